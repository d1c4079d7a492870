"""Anybody can use it: text stands out from its ground, everything to act on has a name, tab order reaches it all."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDoubleSpinBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QScrollBar,
    QTabWidget,
    QWidget,
)

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.panels import PANELS
from workbench.gui.plots.plot import Plot
from workbench.gui.shell import theme
from workbench.gui.shell.dialogs import FormDialog
from workbench.gui.shell.forms import Form
from workbench.gui.shell.widgets import Combo
from workbench.gui.tables.records import RecordsView
from workbench.steps import STEPS
from workbench.steps.checks.refine import REFINE
from workbench.steps.score import SCORE

PLAIN = {
    "Layer", "Layers", "Tensor", "Channel", "Value", "Least", "Greatest", "Scheme", "Plan",
    "Pattern", "Gives", "Size", "Metric", "Unit", "Data", "Fact", "This session", "Other session", "Note", "What",
    "Time", "Message", "Job",
}  # fmt: skip
"""Headings that are words of every day, or what the model and its files call it."""

GROUNDS = ("window", "base", "alternate", "raised", "selection")
ACTIVE = (
    QAbstractButton, QAbstractItemView, QAbstractSlider, QAbstractSpinBox, QComboBox, QLineEdit, QPlainTextEdit, Plot,
)  # fmt: skip


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2.1."""
    made = QColor(colour)
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
             for part in (made.redF(), made.greenF(), made.blueF())]  # fmt: skip
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(a: str, b: str) -> float:
    """Return the contrast ratio of WCAG 2.1, 1 to 21."""
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_contrast_of_known_pairs() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
@pytest.mark.parametrize("ground", GROUNDS)
def test_text_stands_out(colours: theme.Colours, ground: str) -> None:
    for role in ("text", "muted", "error", "warning", "good", "accent"):
        assert contrast(getattr(colours, role), getattr(colours, ground)) >= 4.5, (role, ground)
    assert contrast(colours.on_accent, colours.accent) >= 4.5


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_labels_in_plots_stand_out(colours: theme.Colours) -> None:
    for colour in (*colours.series, colours.baseline, colours.quantized, colours.predicted):
        assert contrast(colour, colours.base) >= 4.5, colour


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_frames_of_fields_stand_out(colours: theme.Colours, qapp: QApplication) -> None:
    """Only its frame shows an empty field (WCAG 1.4.11); its contrast was 1.4 to 1.7."""
    theme.apply(qapp, colours)
    try:
        for field in (QLineEdit(), QDoubleSpinBox(), Combo()):
            field.setStyleSheet(theme.style_sheet(colours))
            field.resize(120, 26)
            edge = field.grab().toImage().pixelColor(0, 13).name()
            for ground in (colours.base, colours.window):
                assert contrast(edge, ground) >= 3.0, (type(field).__name__, edge, ground)
    finally:
        theme.apply(qapp, theme.LIGHT)


def test_the_design_document_has_the_colours_of_both_themes() -> None:
    text = (Path(str(files("workbench_resources"))) / "style" / "design.md").read_text(encoding="utf-8")
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[0].startswith("`"):
            roles = re.findall("`([a-z_]+)`", cells[0])
            for colours, cell in ((theme.LIGHT, cells[1]), (theme.DARK, cells[2])):
                assert re.findall("#[0-9a-f]{6}", cell) == [getattr(colours, role) for role in roles], roles
    assert "`accent`" in text and "viridis" in text


def _unnamed(root: QWidget) -> list[QWidget]:
    result = []
    for kind in ACTIVE:
        for widget in root.findChildren(kind):
            inner = isinstance(widget.parent(), QAbstractSpinBox | QLineEdit | QComboBox)
            inner = inner or isinstance(widget, QScrollBar) or widget.objectName().startswith("qt_")
            inner = inner or type(widget).__name__ in ("QTableCornerButton", "QComboBoxListView", "QHeaderView")
            popup = widget.window() is not root.window()
            text = widget.text() if isinstance(widget, QAbstractButton) else ""
            if not (inner or popup or widget.accessibleName() or text):
                result.append(widget)
    return result


def test_every_widget_to_act_on_has_a_name(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        for spec in PANELS:
            await person.act(lambda name=spec.id: person.window.reveal(name))
        assert not _unnamed(person.window)
        for step in STEPS:
            if step.first is None and step not in (SCORE, REFINE):
                continue
            start = step.options() if step.first is None else step.first(person.state.session)
            form = FormDialog(person.window, "t", "t", Form(start), "Start")
            assert not _unnamed(form), step.name
            form.deleteLater()

    live(story)


def _mnemonics(root: QWidget) -> list[str]:
    """Return the keys that work with Alt in ``root`` as it is seen now."""
    labelled: list[QAbstractButton | QLabel] = [
        *root.findChildren(QAbstractButton), *(label for label in root.findChildren(QLabel) if label.buddy())
    ]  # fmt: skip
    keys = [QKeySequence.mnemonic(item.text()).toString() for item in labelled if item.isVisible()]
    return [key for key in keys if key]


def test_no_panel_takes_a_key_of_the_menus_or_gives_one_away_twice(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        menus = {QKeySequence.mnemonic(title).toString() for title in person.window.menus}
        for spec in PANELS:
            panel = person.window.panels[spec.id]
            await person.act(lambda name=spec.id: person.window.reveal(name))
            pages = [(tabs, page) for tabs in panel.findChildren(QTabWidget) for page in range(tabs.count())
                     if tabs.isTabEnabled(page)]  # fmt: skip
            for tabs, page in pages or [(None, 0)]:
                if tabs is not None:
                    await person.tab(tabs, page)
                keys = _mnemonics(panel)
                assert len(keys) == len(set(keys)) and not menus & set(keys), (spec.id, page, keys)

    live(story)


def test_every_menu_opens_with_its_key_whatever_panels_there_are(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        for spec in reversed(PANELS):
            await person.act(lambda name=spec.id: person.window.reveal(name))
        for title, menu in person.window.menus.items():
            key = Qt.Key(ord(title[title.index("&") + 1].upper()))
            await person.act(lambda key=key: QTest.keyClick(
                QApplication.focusWidget() or person.window, key, Qt.KeyboardModifier.AltModifier
            ))  # fmt: skip
            assert QApplication.activePopupWidget() is menu, title
            await person.press(Qt.Key.Key_Escape, menu)

    live(story)


def test_a_panel_behind_another_one_does_not_hear_its_keys(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        behind, front = person.window.panels["jobs"], person.window.panels["channels"]
        for shown, hidden in ((front, behind), (behind, front), (front, behind)):
            name = "channels" if shown is front else "jobs"
            await person.act(lambda name=name: person.window.reveal(name))
            assert shown.isVisible() and not hidden.isVisible() and not _mnemonics(hidden)

    live(story)


def test_every_term_that_heads_a_column_is_explained(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        for spec in PANELS:
            await person.act(lambda name=spec.id: person.window.reveal(name))
        tables = person.window.findChildren(RecordsView)
        unexplained = {(table.accessibleName(), column.title) for table in tables for column in table.records.columns
                       if not column.tip and column.title not in PLAIN}  # fmt: skip
        assert len(tables) > 10 and not unexplained

    live(story)


def test_a_metric_says_what_it_means_where_it_is_shown(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.window.reveal("accuracy"))
        panel = person.window.panels["accuracy"]
        model = panel.table.model()
        row = next(row for row in range(model.rowCount()) if panel.table.records.record(row).metric.name == "kl")
        tooltip = model.index(row, 1).data(Qt.ItemDataRole.ToolTipRole)
        assert "nats per token" in tooltip and "lower is better" in tooltip
        assert tooltip in [plot.toolTip() for plot in panel.plots]

    live(story)
