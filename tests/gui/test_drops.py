"""What is dropped on the window reaches it wherever it falls: on plots, tables and fields too."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote_from_bytes

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, QSettings, QSysInfo, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent
from PySide6.QtWidgets import QLineEdit, QMessageBox, QPlainTextEdit, QWidget

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.commands.command import folder_of
from workbench.gui.commands.run import is_data
from workbench.gui.shell import settings
from workbench.gui.shell.forms import PathField, dropped
from workbench.planning.plan import Assignment, Plan, Rule

COPY, LEFT, NONE = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


def drop_on(widget: QWidget, *paths: Path) -> QWidget | None:
    """Drop files on a widget; return the first of it and its parents that accepts the drag, which gets the drop."""
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    target: QWidget | None = widget
    while target is not None:
        if target.acceptDrops():
            enter = QDragEnterEvent(QPoint(5, 5), COPY, data, LEFT, NONE)
            enter.ignore()
            target.event(enter)
            if enter.isAccepted():
                target.event(QDropEvent(QPointF(5, 5), COPY, data, LEFT, NONE))
                return target
        target = target.parentWidget()
    return None


@pytest.mark.skipif(os.name == "nt", reason="names are Unicode there")
@pytest.mark.parametrize("name", [b"x\xff.npy", b"\xe9 a\xef\xbf\xbd#?%41\n.npy", "ä\ufffd.npy".encode()])
def test_a_dropped_name_that_is_no_utf8_is_that_of_the_file(name: bytes) -> None:
    """Qt puts a question mark into it, and no file has that name."""
    data, url = QMimeData(), b"file:///tmp/" + quote_from_bytes(name).encode()
    data.setData("text/uri-list", b"# a comment\r\n" + url + b"\r\n")
    assert os.fsencode(dropped(data)) == b"/tmp/" + name


def test_a_plan_dropped_on_any_part_of_any_panel_becomes_the_current_one(
    live: Callable[..., None], tmp_path: Path
) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        session = person.state.session
        for number, (name, panel) in enumerate(list(person.window.panels.items())):
            await person.act(lambda name=name: person.window.reveal(name))
            fields = [each for each in (*panel.findChildren(QLineEdit), *panel.findChildren(QPlainTextEdit))]
            fields = [each for each in fields if not isinstance(each, PathField)]
            assert not any(each.acceptDrops() for each in fields), name
            spot = panel.childAt(panel.rect().center()) or panel
            rule = Rule(pattern="*", assignment=Assignment(weights="int8-channel"))
            plan = Plan(name=f"dropped {number}", rules=(rule,))
            file = tmp_path / f"{number}.json"
            plan.save(file)
            targets: list[QWidget | None] = []
            await person.act(lambda spot=spot, file=file, targets=targets: targets.append(drop_on(spot, file)))
            assert targets == [person.window], (name, spot)
            assert person.state.session.plan.name == f"dropped {number}"
        assert session is not person.state.session

    live(story)


def test_the_status_bar_says_what_dropping_a_file_does(live: Callable[..., None], tmp_path: Path) -> None:
    async def story(person: Person) -> None:
        window, file = person.window, tmp_path / "mine.json"
        Plan(name="mine").save(file)
        (tmp_path / "text.txt").write_text("words", encoding="utf-8")
        for paths, words in (
            ([file], "Drop to make mine.json the plan"),
            ([tmp_path / "text.txt"], "Drop to calibrate on text.txt"),
            ([tmp_path / "model.onnx"], "Drop to open model.onnx"),
            ([file, file], "Drop one file or folder of this computer"),
        ):
            data = QMimeData()
            data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
            enter = QDragEnterEvent(QPoint(5, 5), COPY, data, LEFT, NONE)
            await person.act(lambda enter=enter: window.dragEnterEvent(enter))
            assert window.status.currentMessage() == words
            await person.act(lambda: window.dragLeaveEvent(QDragLeaveEvent()))
            assert not window.status.currentMessage()

    live(story)


def test_a_file_dropped_on_a_field_for_a_path_is_its_path(live: Callable[..., None], tmp_path: Path) -> None:
    text = tmp_path / "mine.txt"
    text.write_text("a few words " * 500, encoding="utf-8")

    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.context.trigger("calibrate"))
        await person.until(lambda: person.dialog("form"), 10)
        field = person.dialog("form").findChildren(QLineEdit)[0]
        await person.act(lambda: drop_on(field, text))
        assert field.text() == str(text)
        await person.act(person.dialog("form").reject)

    live(story)


def test_data_dropped_before_a_model_is_open_say_what_to_do(live: Callable[..., None], tmp_path: Path) -> None:
    text = tmp_path / "mine.txt"
    text.write_text("a few words", encoding="utf-8")

    async def story(person: Person) -> None:
        await person.act(lambda: drop_on(person.window.start_page, text))
        assert "open the model that reads them" in person.dialog("error").informativeText()
        await person.act(person.dialog("error").close)

    live(story)


def test_several_files_are_not_refused_without_a_word_and_errors_do_not_pile_up(
    live: Callable[..., None], tmp_path: Path
) -> None:
    async def story(person: Person) -> None:
        for count in (2, 3):
            files = [tmp_path / f"{number}.txt" for number in range(count)]
            await person.act(lambda files=files: drop_on(person.window.start_page, *files))
            assert "several files were dropped" in person.dialog("error").informativeText()
        boxes = person.window.findChildren(QMessageBox, "error")
        assert [box.isVisible() for box in boxes].count(True) == 1
        await person.act(person.dialog("error").close)

    live(story)


def test_a_drop_whose_program_has_ended_is_not_said_to_be_elsewhere(live: Callable[..., None]) -> None:
    """X servers hand the names over when they are asked for, and then there is nobody to ask."""

    async def story(person: Person) -> None:
        nothing = QMimeData()
        await person.act(lambda: person.window.dropEvent(QDropEvent(QPointF(5, 5), COPY, nothing, LEFT, NONE)))
        assert "did not say which file it is" in person.dialog("error").informativeText()
        await person.act(person.dialog("error").close)

    live(story)


@pytest.mark.parametrize(("names", "data"), [
    (["a.txt", "b.txt"], True), (["cats/1.png", "dogs/1.png"], True), (["1.wav"], True),
    (["train/data-00000-of-00001.arrow", "train/state.json", "train/dataset_info.json", "dataset_dict.json"], True),
    (["0000.ndjson", "0001.ndjson"], True), (["a.jsonl.zst"], True), (["state.json", "model.onnx"], False),
    (["config.json", "model.safetensors", "README.md"], False), (["notes.docx"], False), ([], False),
])  # fmt: skip
def test_a_folder_of_data_is_told_from_a_models(tmp_path: Path, names: list[str], data: bool) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert is_data(str(tmp_path)) is data


@pytest.mark.parametrize("path", ["a" * 5000, "\0", "~nobody-at-all/x", "loop", "\udcff"])
def test_a_path_that_can_be_none_is_no_folder(tmp_path: Path, path: str) -> None:
    """It may come from a stranger's session, or from what another program hands over."""
    (tmp_path / "loop").symlink_to("loop")
    assert not is_data(str(tmp_path / path))
    session = sessions.full(1)
    source = replace(session.model.source, path=str(tmp_path / path))
    session = replace(session, model=replace(session.model, source=source))
    assert folder_of(session) in (str(tmp_path), "")


def test_a_folder_that_may_not_be_read_is_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(folder: Path) -> Iterator[Path]:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "iterdir", refused)
    assert not is_data(str(tmp_path))


def test_recent_files_that_cannot_be_looked_for_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = QSettings(str(tmp_path / "settings.ini"), QSettings.Format.IniFormat)
    store.setValue("recent", ["a" * 5000, "\0", str(tmp_path)])
    monkeypatch.setattr(settings, "_store", lambda: store)
    assert settings.recent() == [str(tmp_path)]


@pytest.mark.parametrize("text, path", [
    ("file:///a/b%20c%2520%C3%A9/\r\n", "/a/b c%20é/"), ("file://localhost/a\n", "/a"),
    ("# of a manager\r\nfile:/a\r\n", "/a"), (f"file://{QSysInfo.machineHostName()}/a", "/a"), ("", ""),
    ("file:///a\nfile:///b\n", ""), ("https://example.org/a\n", ""),
])  # fmt: skip
def test_one_local_file_is_taken_in_every_form_that_file_managers_give_it(text: str, path: str) -> None:
    data = QMimeData()
    data.setData("text/uri-list", text.encode())
    assert dropped(data) == path
