"""Names from strangers' files on every surface of the window: no markup, no control characters, no endless lines."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PySide6.QtCore import QAbstractItemModel, QAbstractListModel, QLocale, Qt
from PySide6.QtGui import QAction, QTextDocument
from PySide6.QtGui import Qt as Text
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QComboBox,
    QFileDialog,
    QGraphicsScene,
    QGraphicsSimpleTextItem,
    QGraphicsTextItem,
    QGraphicsView,
    QLabel,
    QLineEdit,
    QMenu,
    QMessageBox,
    QWidget,
)

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.errors import WorkbenchError
from workbench.gui.panels.deploy.card import Card
from workbench.gui.report.pictures import save_picture, svg
from workbench.gui.report.report import html
from workbench.gui.shell.file_dialog import file_dialog
from workbench.gui.shell.foreign import elided
from workbench.gui.tables.copying import add_copies, cell_text
from workbench.gui.tables.records import MOST_LETTERS
from workbench.session.session import Session

MARK = "\x1b]0;x\x07\u202egnp.\u2066\u200f"
HOSTILE = f"{MARK}<img src='file:///etc/hosts'><b>&amp;\n{'long' * 1500}"
ROWS = 30
SHAPES = {
    "svg", "g", "defs", "title", "desc", "path", "polyline", "polygon", "rect", "circle", "ellipse", "line", "text",
    "tspan", "image", "clipPath", "mask", "use", "linearGradient", "radialGradient", "stop", "pattern",
}  # fmt: skip


def hostile() -> Session:
    """A session whose every name came from a stranger."""
    session = sessions.full(1, prefix=HOSTILE)
    assert session.calibration is not None
    return replace(
        session, plan=replace(session.plan, name=HOSTILE), plans={HOSTILE: session.plan},
        model=replace(session.model, name=HOSTILE), notes=(HOSTILE,),
        calibration=replace(session.calibration, name=HOSTILE, path=f"/{HOSTILE}"),
        evaluations=tuple(replace(each, plan_name=HOSTILE, data_name=HOSTILE) for each in session.evaluations),
        timings=tuple(replace(each, device=HOSTILE, kernel=HOSTILE, note=HOSTILE) for each in session.timings),
    )  # fmt: skip


def unsafe(text: str, lines: bool) -> str:
    """What of a text must not be shown."""
    allowed = "\n\t\u200c\u200d" if lines else "\t\u200c\u200d"
    return "".join(mark for mark in text if unicodedata.category(mark) in ("Cc", "Cf", "Cs") and mark not in allowed)


def cells(model: QAbstractItemModel) -> Iterator[tuple[str, str, bool]]:
    for row in range(min(model.rowCount(), ROWS)):
        for column in range(1 if isinstance(model, QAbstractListModel) else model.columnCount()):
            index = model.index(row, column)
            yield f"cell {column}", str(index.data(Qt.ItemDataRole.DisplayRole) or ""), False
            yield f"tip of cell {column}", str(index.data(Qt.ItemDataRole.ToolTipRole) or ""), True


def texts(widget: QWidget) -> Iterator[tuple[str, str, bool]]:
    """What a widget shows: where, the text, and whether Qt would take tags in it for markup."""
    yield "tip", widget.toolTip(), True
    yield "window title", widget.windowTitle(), False
    yield "spoken name", widget.accessibleName(), False
    yield "spoken description", widget.accessibleDescription(), False
    if isinstance(widget, QLabel):
        yield "label", widget.text(), widget.textFormat() != Qt.TextFormat.PlainText
    if isinstance(widget, QMessageBox):
        yield "message", widget.text(), True
        yield "more", widget.informativeText(), True
    if isinstance(widget, QAbstractButton):
        yield "button", widget.text(), False
    if isinstance(widget, QComboBox):
        yield from (("choice", widget.itemText(number), False) for number in range(widget.count()))
    if isinstance(widget, QAbstractItemView) and widget.model() is not None:
        yield from cells(widget.model())
    for action in widget.actions():
        yield "action", action.text(), False
        yield "tip of an action", action.toolTip(), True
    if isinstance(widget, QGraphicsView):
        yield from drawn(widget.scene())


def drawn(scene: QGraphicsScene | None) -> Iterator[tuple[str, str, bool]]:
    for item in scene.items() if scene is not None else ():
        if isinstance(item, QGraphicsTextItem):
            yield "drawn", item.toPlainText(), False
        if isinstance(item, QGraphicsSimpleTextItem):
            yield "drawn", item.text(), False
        for ticks in getattr(item, "_tickLevels", None) or ():
            yield from (("tick", str(text), False) for _, text in ticks)


def problems(widgets: list[QWidget]) -> list[str]:
    problems = []
    for widget in widgets:
        for where, text, rich in texts(widget):
            name = f"{type(widget).__name__} {widget.objectName()} {widget.accessibleName()[:30]!r}: {where}"
            if rich and Text.mightBeRichText(text):
                document = QTextDocument()
                document.setHtml(text)
                if "\ufffc" in document.toPlainText() or ("etc/hosts" in text and "<img" not in document.toPlainText()):
                    problems.append(f"{name} is markup: {text[:60]!r}")
                text = document.toPlainText()
            if unsafe(text, lines=where not in ("choice", "action", "window title")):
                problems.append(f"{name} has control characters: {text[:60]!r}")
            if len(text) > 8000:
                problems.append(f"{name} has {len(text)} characters")
    return sorted(set(problems))


def drawing_problems(drawing: bytes) -> list[str]:
    """What of an SVG file is more than shapes and text, as another program would read it."""
    root = ElementTree.fromstring(drawing)  # well formed, or an error
    text = drawing.decode()
    problems = [f"the element {each.tag}" for each in root.iter() if str(each.tag).rpartition("}")[2] not in SHAPES]
    for each in root.iter():
        problems += [
            f"control characters: {part[:60]!r}" for part in (each.text, each.tail) if unsafe(part or "", True)
        ]
        problems += [f"a text of {len(each.text)} characters"] if len(each.text or "") > 8000 else []
        for name, value in each.items():
            names = name.rpartition("}")[2]
            if names.startswith("on") or (names == "href" and not value.startswith(("#", "data:image/png"))):
                problems.append(f"the attribute {name}={value[:60]!r}")
            if unsafe(value, True) or "javascript:" in value or "file:" in value:
                problems.append(f"the attribute {name}={value[:60]!r}")
    return problems if "<!DOCTYPE" not in text and "<!ENTITY" not in text else [*problems, "a document type"]


def test_no_drawing_takes_a_name_for_anything_else(live: Callable[..., None], tmp_path: Path) -> None:
    async def story(person: Person) -> None:
        await person.act(lambda: person.context.workspace.open(hostile(), tmp_path / "s.qwb"))
        layer = person.state.session.model.layers[1].name
        await person.act(lambda: person.context.workspace.select([layer]))
        received, drawings = list[str](), 0
        for name in person.window.panels:
            await person.act(lambda name=name: person.window.reveal(name))  # type: ignore[misc]
            await person.settle(0.05)
            for view in person.window.docks[name].findChildren(QGraphicsView):
                file = tmp_path / "drawing.svg"
                view.setAccessibleName(f"{view.accessibleName()} {HOSTILE}")  # the title of the drawing
                save_picture(view, file)
                drawings += 1
                received += [f"{name}, {type(view).__name__}: {each}" for each in drawing_problems(file.read_bytes())]
        assert not received, "\n".join(sorted(set(received)))
        assert drawings > 10

    live(story)


@pytest.mark.parametrize(
    "name", ["a]]>b", "a--><script>x</script>", "&#27;[31m&x;", "<![CDATA[", "a\x00b\ufffe\ud800", MARK]
)
def test_a_label_and_a_title_of_a_drawing_are_text(qapp: QApplication, name: str) -> None:
    label = QLabel(name)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setAccessibleName(name)
    assert not drawing_problems(svg(label))


def test_names_are_painted_as_they_may_be_shown(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(hostile())
        tree = person.window.panels["layers"].view
        painted = [static.text() for static, *_ in tree._texts.values()]
        assert any("\\x1b" in text for text in painted) and not [text for text in painted if unsafe(text, False)]
        await person.act(lambda: person.window.reveal("accuracy"))
        table = person.window.panels["accuracy"].table
        widths = [table.columnWidth(column) for column in range(table.records.columnCount())]
        assert max(widths) <= table.fontMetrics().averageCharWidth() * MOST_LETTERS, "a long name hides no other column"
        metrics = tree.fontMetrics()
        for cut in (Qt.TextElideMode.ElideLeft, Qt.TextElideMode.ElideRight):
            text = elided(metrics, HOSTILE, 300, cut)
            assert "…" in text and not unsafe(text, False) and metrics.horizontalAdvance(text) <= 300

    live(story)


def test_no_surface_takes_a_name_for_anything_else(live: Callable[..., None], tmp_path: Path) -> None:
    async def story(person: Person) -> None:
        await person.act(lambda: person.context.workspace.open(hostile(), tmp_path / f"{MARK}.qwb"))
        layer = person.state.session.model.layers[1].name
        await person.act(lambda: person.context.workspace.select([layer]))
        error = WorkbenchError(f"{HOSTILE} is wrong")
        await person.act(lambda: person.context.messages.report(HOSTILE, error))
        received = list[str]()
        for name in person.window.panels:
            await person.act(lambda name=name: person.window.reveal(name))  # type: ignore[misc]
            await person.settle(0.05)
            received += problems([person.window.docks[name], *person.window.docks[name].findChildren(QWidget)])
        every: list[Any] = [person.window, *person.window.findChildren(QWidget)]
        received += problems(every)
        tips = [action.toolTip() for action in person.window.findChildren(QAction)]
        assert not [tip for tip in tips if unsafe(tip, lines=True)]
        assert not received, "\n".join(sorted(set(received)))
        text = html(person.state)
        assert not unsafe(text, lines=True) and "<img src='file" not in text and HOSTILE not in text

    live(story)


def test_menus_take_a_name_for_nothing_else(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(hostile())
        layer = person.state.session.model.layers[1].name
        await person.act(lambda: person.context.workspace.select([layer]))
        await person.act(lambda: person.window.trigger("lock"))
        undo = person.window.actions_by_id["undo"].text()
        menu = person.window.panels["layers"]._menu((layer,))
        received = [*problems([menu]), *problems([person.window, *person.window.findChildren(QWidget)])]
        assert "Lock" in undo and len(undo) < 200 and "&&amp" in undo and not received, received
        await person.act(menu.close)

    live(story)


def test_copies_take_a_name_for_nothing_else(live: Callable[..., None], tmp_path: Path) -> None:
    """A terminal into which a copied card was pasted obeyed the escape sequences and lines in a layer's name."""

    async def story(person: Person) -> None:
        page = person.window.start_page
        page.show_recent([str(tmp_path / f"{MARK}<b>x.qwb"), str(tmp_path / "a\udcff.qwb")])
        await person.act(lambda: person.context.workspace.open(hostile(), tmp_path / f"{MARK}.qwb"))
        await person.act(lambda: person.window.trigger("palette"))
        await person.until(lambda: person.dialog("palette"), 5)
        received = problems([page, *page.findChildren(QWidget), *person.dialog("palette").findChildren(QWidget)])
        await person.act(person.dialog("palette").close)
        await person.act(lambda: person.window.reveal("deploy"))
        cards = person.window.docks["deploy"].findChildren(Card)
        await person.until(lambda: all(card.copied for card in cards), 5)
        refused = [card for card in cards if card.form.target and card.repair.isVisibleTo(card)]
        for card in refused:
            await person.act(card.head.actions()[0].trigger)
            copied = QApplication.clipboard().text()
            assert "\\x1b]0;x" in copied and not unsafe(copied, lines=True)
            assert not [line for line in copied.split("\n") if line.startswith("long")], copied[:200]
        view, menu = person.window.panels["layers"].view, QMenu()
        rows = [view.model().index(row, 0) for row in range(view.model().rowCount())]
        add_copies(menu, view, next(index for index in rows if "\x1b" in cell_text(index)))
        await person.act(menu.actions()[0].trigger)
        assert "\\x1b]0;x" in (copied := QApplication.clipboard().text()) and not unsafe(copied, lines=False)
        assert refused and not received

    live(story)


def test_the_dialog_for_files_shows_names_as_they_may_be_shown(qapp: QApplication, tmp_path: Path) -> None:
    parent, file = QWidget(), tmp_path / "a\u202eb" / "model\u202esrotcennasfet.bin"
    file.parent.mkdir()
    file.touch()
    dialog = file_dialog(parent, "Open", QFileDialog.FileMode.ExistingFile, str(file.parent))
    dialog.show()
    path, line = dialog.findChild(QComboBox, "lookInCombo"), dialog.findChild(QLineEdit, "fileNameEdit")
    assert path is not None and line is not None
    views = [dialog.findChild(QAbstractItemView, name) for name in ("listView", "treeView", "sidebar")]
    shown = [view.itemDelegate().displayText(MARK, QLocale()) for view in [*views, line.completer().popup()]]  # type: ignore[union-attr]
    assert shown[0].startswith("\\x1b]0;x") and not [text for text in shown if unsafe(text, False)]
    path.showPopup()
    assert [path.itemText(row) for row in range(2)] == [str(tmp_path / "a\\u202eb"), str(tmp_path)]
    line.setText(file.name)
    assert line.text() == "model\\u202esrotcennasfet.bin" and dialog.selectedFiles() == [str(file)]
    path.setCurrentIndex(1)
    path.textActivated.emit(path.currentText())
    assert dialog.directory().path() == str(tmp_path) == path.currentText()
    parent.deleteLater()
