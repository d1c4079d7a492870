"""The engine killed in the middle of a job of any kind: it is said, nothing is lost, and the job can be done again."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit

import workbench as wb
from tests.gui.conftest import Person
from workbench.engine.engine import Engine
from workbench.gui.context import edits
from workbench.planning.plan import Plan
from workbench.session.session import Session

MODEL, SCHEMES = "demo:digits-classifier", ("int3-channel", "int8-channel")
Ask = Callable[[Person, Path], Awaitable[None]]


@pytest.fixture(scope="module")
def scored() -> Session:
    """A calibrated and scored classifier with a plan."""
    model = wb.open(MODEL)
    session = wb.score(wb.calibrate(model, samples=32), model=model, schemes=SCHEMES)
    return replace(session, plan=Plan.uniform(session.model.layers, "int3-channel"))


def form(key: Qt.Key, *, control: bool = False, shift: bool = False, path: str = "") -> Ask:
    """Return what asks for a job with a key and its form, which may want a path first."""

    async def ask(person: Person, folder: Path) -> None:
        await person.press(key, person.window, control=control, shift=shift)
        await person.until(lambda: person.dialog("form"), 10)
        if path:
            edits = person.dialog("form").findChildren(QLineEdit)
            *_, field = (edit for edit in edits if edit.accessibleName() == "Path")
            await person.type(field, str(folder / path))
        await person.click(person.dialog("form").start_button)

    return ask


def button(panel: str, find: Callable[[Any], Any]) -> Ask:
    """Return what asks for a job with a button of a panel."""

    async def ask(person: Person, folder: Path) -> None:
        await person.act(lambda: person.window.reveal(panel))
        await person.click(find(person.window.panels[panel]))

    return ask


async def save(person: Person, folder: Path) -> None:
    await person.press(Qt.Key.Key_S, person.window, control=True)


async def open_demo(person: Person, folder: Path) -> None:
    """Open another model; what is not saved is to be let go."""
    await person.press(Qt.Key.Key_D, person.window, control=True, shift=True)
    await person.answer("question", "Discard")


Done = Callable[[Person, Path, Session], Any]

KINDS: dict[str, tuple[Ask, Done]] = {
    "score": (form(Qt.Key.Key_F6), lambda person, folder, before: _table(person.state.session) is not _table(before)),
    "search": (button("plan", lambda panel: panel.search_button),
               lambda person, folder, before: person.state.undo_name.startswith("Search")),
    "evaluate": (form(Qt.Key.Key_F8), lambda person, folder, before: person.state.session.evaluations),
    "audit": (form(Qt.Key.Key_F8, control=True, shift=True), lambda person, folder, before: person.state.session.audit),
    "time": (form(Qt.Key.Key_F9), lambda person, folder, before: person.state.session.timings),
    "error budget": (button("error_budget", lambda panel: panel.next_step),
                     lambda person, folder, before: person.state.session.error_budget),
    "judge": (button("calibration_data", lambda panel: panel.judge),
              lambda person, folder, before: person.window.panels["calibration_data"].quality),
    "samples": (button("calibration_data", lambda panel: panel.samples.read),
                lambda person, folder, before: person.window.panels["calibration_data"].samples.page),
    "export": (form(Qt.Key.Key_E, control=True, shift=True, path="plan.json"),
               lambda person, folder, before: (folder / "plan.json").exists()),
    "save": (save, lambda person, folder, before: not person.state.dirty),
    "calibrate": (form(Qt.Key.Key_F5),
                  lambda person, folder, before: person.state.session.statistics is not before.statistics),
    "train": (form(Qt.Key.Key_F8, control=True, path="trained"),
              lambda person, folder, before: any(folder.glob("trained*"))),
    "open": (open_demo, lambda person, folder, before: person.state.session.model.name != before.model.name),
}  # fmt: skip


def _table(session: Session) -> Any:
    return session.sensitivities["predicted_kl"]


OFTEN = ("save", "search")


@pytest.mark.parametrize(
    "kinds", [OFTEN, pytest.param(tuple(kind for kind in KINDS if kind not in OFTEN), marks=pytest.mark.slow)]
)
def test_nothing_is_lost_when_the_engine_is_killed(
    kinds: tuple[str, ...], live: Callable[..., None], scored: Session, tmp_path: Path
) -> None:
    engine, file = Engine(), tmp_path / "kept.qwb"
    scored.save(file)

    async def story(person: Person) -> None:
        await person.open(scored, file)
        await person.act(
            lambda: edits.assign(person.context.workspace, [scored.model.layers[0].name], weights="int8-channel")
        )
        for kind, (ask, done) in ((kind, KINDS[kind]) for kind in kinds):
            await person.until(lambda: engine.alive, 30)
            before, pid = person.state.session, engine.pid
            whole = file.read_bytes()
            assert pid is not None
            if kind == "save":
                await person.act(
                    lambda: edits.assign(
                        person.context.workspace, [scored.model.layers[1].name], weights="int8-channel"
                    )
                )
                before = person.state.session
            os.kill(pid, signal.SIGSTOP)  # whatever it is asked for now cannot end before it is killed
            await ask(person, tmp_path)
            await person.until(lambda: person.context.jobs.views[-1].status == "running", 5)
            os.kill(pid, signal.SIGKILL)
            await person.until(lambda: person.context.jobs.views[-1].status == "failed", 5)
            assert person.state.session is before and file.read_bytes() == whole, kind
            assert person.dialog("error") is None and person.window.status.retry_button.isVisible(), kind
            await person.click(person.window.status.retry_button)
            if kind == "open":
                await person.answer("question", "Discard")  # the work is still there, and still unsaved
            await person.until(lambda done=done, before=before: done(person, tmp_path, before))
            await person.until(lambda: person.context.jobs.views[-1].status == "done", 5)

    live(story, engine=engine)
