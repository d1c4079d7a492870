"""Numbers mean the same in every locale: a comma is refused with a sentence, never dropped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from PySide6.QtCore import QLocale, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QDialog, QLabel, QLineEdit, QWidget

from workbench.gui.shell import theme
from workbench.gui.shell.dialogs import FormDialog
from workbench.gui.shell.forms import Form
from workbench.gui.shell.number_field import NumberField
from workbench.gui.shell.widgets import column
from workbench.insight import quantities
from workbench.steps.options import OptionInfo, option


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    bits: float = option(
        4.5, OptionInfo(label="Size", help="size", minimum=0.1, maximum=64.0, increment=0.25, unit="bits")
    )
    rate: float = option(0.01, OptionInfo(label="Rate", help="rate", minimum=1e-5, maximum=10.0))
    steps: int = option(300, OptionInfo(label="Steps", help="steps", minimum=1, maximum=1_000_000))
    samples: int | None = option(None, OptionInfo(label="Samples", help="samples", minimum=1, empty="all"))


@pytest.fixture(params=["C", "de_DE", "fr_FR", "en_US"])
def dialog(qapp: QApplication, request: pytest.FixtureRequest) -> Iterator[FormDialog]:
    before = QLocale()
    QLocale.setDefault(QLocale(request.param))
    parent = QWidget()
    form = FormDialog(parent, "Title", "Text", Form(Options()), "Start")
    form.show()
    form.activateWindow()
    yield form
    QLocale.setDefault(before)
    form.close()
    parent.close()
    parent.deleteLater()
    qapp.processEvents()


def type_into(dialog: FormDialog, name: str, text: str) -> QAbstractSpinBox:
    box = dialog.findChild(QAbstractSpinBox, name)
    box.setFocus()
    QTest.keyClick(box, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClicks(box, text)
    return box


def problems(dialog: FormDialog) -> list[str]:
    lines = (line for line in dialog.findChildren(QLabel) if line.property("role") == "error")
    return [line.text() for line in lines if line.isVisible()]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("bits", "5,25", 5.25), ("bits", "5.25", 5.25), ("rate", "0,001", 0.001), ("rate", "1,5e-2", 0.015),
     ("bits", "1.234,5", None), ("bits", "1,2,3", None), ("steps", "1.000", None), ("steps", "1,0", None)],
)  # fmt: skip
def test_a_comma_is_the_decimal_mark_where_the_user_has_chosen_it(
    dialog: FormDialog, name: str, text: str, value: float | None
) -> None:
    quantities.use_comma(True)
    try:
        box = type_into(dialog, name, text)
        assert bool(problems(dialog)) is (value is None)
        assert value is None or box.number == value
    finally:
        quantities.use_comma(False)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("bits", "5.25", 5.25), ("bits", "5.", 5.0), ("rate", "0.001", 0.001), ("rate", ".5", 0.5), ("rate", "1e-4", 1e-4),
     ("steps", "20000", 20000), ("samples", "64", 64), ("samples", "all", None)],
)  # fmt: skip
def test_a_decimal_point_is_read_in_every_locale(dialog: FormDialog, name: str, text: str, value: float | None) -> None:
    box = type_into(dialog, name, text)
    QTest.keyClick(box, Qt.Key.Key_Return)
    assert dialog.result() == QDialog.DialogCode.Accepted
    assert getattr(dialog.findChild(Form).value(), name) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [("bits", "4,5"), ("rate", "0,05"), ("rate", "0,001"), ("steps", "1,000"), ("steps", "1.5"), ("steps", "1 000"),
     ("bits", "65"), ("rate", ""), ("rate", "nan"), ("bits", "four")],
)  # fmt: skip
def test_what_is_no_number_is_refused_beside_the_field(dialog: FormDialog, name: str, text: str) -> None:
    box = type_into(dialog, name, text)
    if not text:
        QTest.keyClick(box, Qt.Key.Key_Delete)
    for leave in (Qt.Key.Key_Return, Qt.Key.Key_Tab):
        QTest.keyClick(box, leave)
        assert dialog.isVisible() and dialog.result() != QDialog.DialogCode.Accepted
        assert box.lineEdit().text().removesuffix(" bits") == text, "what was typed stays, to be corrected"
    assert dialog.findChild(Form).value() == Options(), "nothing else is used in its place"
    words = problems(dialog)
    assert len(words) == 1 and (f"“{text}”" in words[0] or words[0] == "Enter a number")
    QTest.mouseClick(dialog.start_button, Qt.MouseButton.LeftButton)
    assert dialog.isVisible() and box.hasFocus()
    type_into(dialog, name, "7")
    assert not problems(dialog)
    QTest.mouseClick(dialog.start_button, Qt.MouseButton.LeftButton)
    assert dialog.result() == QDialog.DialogCode.Accepted and getattr(dialog.findChild(Form).value(), name) == 7


@pytest.mark.parametrize("name", ["bits", "steps"])
def test_the_arrows_step_from_the_last_good_number(dialog: FormDialog, name: str) -> None:
    box = type_into(dialog, name, "2,5")
    QTest.keyClick(box, Qt.Key.Key_Up)
    assert getattr(dialog.findChild(Form).value(), name) == {"bits": 4.75, "steps": 301}[name]
    assert "," not in box.lineEdit().text()


@pytest.mark.parametrize("text", ["4,5", "4.5", "four", "1,000"])
def test_a_field_of_whole_numbers_asks_for_one(dialog: FormDialog, text: str) -> None:
    """It proposed 4.5 where samples are counted."""
    field = dialog.findChild(QAbstractSpinBox, "samples")
    QTest.keyClick(field, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClicks(field, text)
    shown = [line.text() for line in dialog.findChildren(QLabel) if f"“{text}”" in line.text()]
    assert shown and all("is not a whole number: expected a number from 1" in line for line in shown)


def test_a_field_in_the_windows_style_is_as_high_as_others_and_cuts_no_letter(qapp: QApplication) -> None:
    """13 pixels were left of 14: what is below the line of “many” was not there."""
    page = QWidget()
    page.setStyleSheet(theme.style_sheet(theme.LIGHT))
    fields = [NumberField(0, 9, None, empty="as many"), NumberField(0, 9, 1), QLineEdit("many")]
    page.setLayout(column(*fields))
    page.show()
    qapp.processEvents()
    assert len({field.height() for field in fields}) == 1
    assert all(each.lineEdit().height() >= each.fontMetrics().height() for each in fields[:2])
    page.close()
