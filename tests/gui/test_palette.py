"""Commands by name; jobs as Python, with their memory, and a word when a long one ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.commands.actions import ACTIONS
from workbench.gui.panels import PANELS
from workbench.gui.shell.palette import score
from workbench.memory import resident


def test_words_find_their_commands() -> None:
    assert score(["fil", "lay"], "edit: filter layers") > score(["ilt", "aye"], "edit: filter layers") > 0
    assert score(["zz"], "edit: filter layers") == 0


def test_a_command_is_found_and_done_by_keyboard(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.press(Qt.Key.Key_K, control=True)
        await person.until(lambda: person.dialog("palette"), 5)
        dialog = person.dialog("palette")
        assert dialog.list.count() == len(ACTIONS) - 1 + len(PANELS)
        await person.type(dialog.field, "all lay")
        assert "Select All Layers" in dialog.list.currentItem().text()
        person.picture("palette")
        await person.press(Qt.Key.Key_Return, dialog.field)
        await person.until(lambda: person.dialog("palette") is None, 5)
        assert len(person.state.selection) == len(person.state.session.model.layers)
        await person.press(Qt.Key.Key_P, control=True, shift=True)
        await person.until(lambda: person.dialog("palette"), 5)
        dialog = person.dialog("palette")
        await person.type(dialog.field, "cancel job")
        assert "No job is running" in dialog.reason.text()
        await person.type(dialog.field, "go to channels")
        await person.press(Qt.Key.Key_Return, dialog.field)
        await person.until(person.window.panels["channels"].isVisible, 5)
        person.context.trigger("palette")
        await person.until(lambda: person.dialog("palette"), 5)
        assert "Channels" in person.dialog("palette").list.item(0).text(), "what was used last comes first"
        await person.act(person.dialog("palette").close)

    live(story)


async def find(person: Person, text: str) -> None:
    """Type into the palette and press Enter."""
    await person.press(Qt.Key.Key_K, person.window, control=True)
    await person.until(lambda: person.dialog("palette"), 5)
    await person.type(person.dialog("palette").field, text)
    await person.press(Qt.Key.Key_Return, person.dialog("palette").field)
    await person.until(lambda: person.dialog("palette") is None, 5)


def test_layers_schemes_plans_and_the_guide_are_found(live: Callable[..., None]) -> None:
    session = sessions.full(2)
    session = replace(session, plans={"small one": replace(session.plan, rules=())})

    async def story(person: Person) -> None:
        await person.open(session)
        await find(person, "layr 1 upproj")
        assert person.state.selection == ("model.layers.1.mlp.up_proj",), "letters in order are enough"
        await find(person, "scheme int8-channel")
        assert person.state.assignments["model.layers.1.mlp.up_proj"].weights == "int8-channel"
        await find(person, "plan: small")
        assert person.state.session.plan == session.plans["small one"]
        await find(person, "guide: rounding")
        await person.until(lambda: person.dialog("guide"), 5)
        await person.act(person.dialog("guide").close)

    live(story)


def test_metrics_and_targets_are_found(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        panels = person.window.panels
        await find(person, "metric weight")
        assert person.state.metric == "weight_error" and panels["sensitivity"].is_seen
        await find(person, "perplexity")
        await person.until(lambda: panels["accuracy"].is_seen, 5)
        await find(person, "llama")
        assert person.state.target == "gguf" and panels["plan"].isAncestorOf(person.window.focusWidget())
        await find(person, "target: any")
        assert person.state.target == ""
        await person.press(Qt.Key.Key_K, person.window, control=True)
        dialog = person.dialog("palette")
        await person.type(dialog.field, "metric: measured")
        assert dialog.reason.text() == "It was not scored yet (F6)"
        await person.act(dialog.close)

    live(story)


def test_memory_is_this_process(live: Callable[..., None]) -> None:
    held = resident(os.getpid())
    assert held is not None and 50e6 < held < 5e9
    assert resident(None) is None and resident(2**30) is None


def ended(person: Person) -> list[str]:
    """Return the titles of the messages that a job has ended."""
    return [message.title for message in person.context.messages.entries if message.title.startswith("Done: ")]


def test_a_long_job_is_spoken_of_once_and_copied_as_python(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        person.window.notices.seconds = 0.0
        person.context.engine_pid = os.getpid
        await person.act(lambda: person.window.document.open_path("demo:digits-classifier"))
        await person.until(lambda: ended(person))
        await person.settle(0.1)
        assert ended(person) == ["Done: Open demo:digits-classifier"]
        await person.act(lambda: person.window.reveal("jobs"))
        assert "Window" in person.window.panels["jobs"].memory.text()
        panel = person.window.panels["jobs"]
        steps = [step.text for step in panel.steps.records.records]  # the newest progress, 30 times a second at most
        assert steps and all("model" in text or "weights" in text for text in steps)
        memory = [column.title for column in panel.jobs.records.columns].index("Memory")
        assert panel.jobs.records.data(panel.jobs.records.index(0, memory)).endswith(("MB", "GB"))
        await person.click(panel.python)
        assert "wb.open('demo:digits-classifier')" in QApplication.clipboard().text()
        person.picture("jobs")

    live(story)
