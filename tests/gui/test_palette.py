"""Commands by name; jobs as Python, with their memory, and a word when a long one ends."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from dataclasses import replace
from inspect import signature

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

import workbench as wb
from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.actions import ACTIONS
from workbench.gui.as_python import as_python
from workbench.gui.memory import resident
from workbench.gui.palette import score
from workbench.gui.panels import PANELS
from workbench.runtime import planner, requests, training
from workbench.runtime.timings import TimeKernels
from workbench.runtime.train_job import TrainModel


def test_words_find_their_commands() -> None:
    assert score("fil lay", "Edit: Filter Layers") > score("ilt aye", "Edit: Filter Layers") > 0
    assert score("zz", "Edit: Filter Layers") == 0


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
        await person.type(dialog.field, "channels")
        await person.press(Qt.Key.Key_Return, dialog.field)
        await person.until(person.window.panels["channels"].isVisible, 5)

    live(story)


def test_every_request_is_python_that_names_what_there_is() -> None:
    session = sessions.full(1)
    made = (
        requests.OpenModel(path="m", factory="build"), requests.OpenSession(path="s.qwb"),
        requests.SaveSession(session=session, path="s.qwb"),
        requests.Calibrate(session=session, data="text.txt", samples=3),
        requests.Score(session=session, metric="weight_error", schemes=("int8-channel",)),
        requests.SearchPlan(session=session, nbytes=123456), requests.Evaluate(session=session, seed=4),
        TimeKernels(session=session, batch=8),
        requests.Export(session=session, kind="plan-json", out="p.json"),
    )  # fmt: skip
    for request in made:
        tree = ast.parse(as_python(request))
        names = {node.attr for node in ast.walk(tree)
                 if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "wb"}
        assert names <= set(dir(wb)), names  # fmt: skip
    assert "size=123456" in as_python(made[5]) and "samples=3" in as_python(made[3])
    assert as_python(replace(made[3], samples=None)).endswith("wb.calibrate(model, 'text.txt')\n")


def test_python_of_training_and_of_a_search_for_a_target_gives_known_arguments() -> None:
    session = sessions.full(1)
    trained = TrainModel(session=session, kind="safetensors", out="o", data="d.txt", steps=5, learning_rate=0.5)
    searched = requests.SearchPlan(session=session, bits_per_weight=4.0, target="vllm")
    known = {*signature(training.train).parameters, *signature(training.train_and_export).parameters}
    for request, name, arguments in (
        (trained, "train_and_export", known), (searched, "find_plan", set(signature(planner.find_plan).parameters)),
    ):  # fmt: skip
        calls = [node for node in ast.walk(ast.parse(as_python(request))) if isinstance(node, ast.Call)]
        call = next(one for one in calls if name in (getattr(one.func, "id", ""), getattr(one.func, "attr", "")))
        assert {keyword.arg for keyword in call.keywords} <= arguments
    assert "steps=5" in as_python(trained) and "target='vllm'" in as_python(searched)


def test_memory_is_this_process(live: Callable[..., None]) -> None:
    held = resident(os.getpid())
    assert held is not None and 50e6 < held < 5e9
    assert resident(None) is None and resident(2**30) is None


def test_a_long_job_is_spoken_of_once_and_copied_as_python(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        person.window.notices.seconds = 0.0
        person.desk.engine_pid = os.getpid
        await person.act(lambda: person.window.commands.open_path("demo:digits-classifier"))
        await person.until(lambda: person.state.session is not None)
        await person.settle(0.1)
        said = [message.title for message in person.desk.messages if message.title.endswith(" ended")]
        assert said == ["Open demo:digits-classifier ended"]
        await person.act(lambda: person.window.show_panel("jobs"))
        assert "Window" in person.window.panels["jobs"].memory.text()
        panel = person.window.panels["jobs"]
        steps = [step.text for step in panel.steps.records.records]  # the newest progress, 30 times a second at most
        assert steps and all("model" in text or "weights" in text for text in steps)
        assert panel.jobs.records.data(panel.jobs.records.index(0, 5)).endswith(("MB", "GB"))
        await person.click(panel.python)
        assert "wb.open('demo:digits-classifier')" in QApplication.clipboard().text()
        person.picture("jobs")

    live(story)
