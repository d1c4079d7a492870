"""Jobs that wait for others see what those found, and do what was asked for when they were started."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.context import edits
from workbench.numerics.ranges import Range
from workbench.steps.evaluate import EVALUATE, EvaluateOptions

MODEL = "demo:digits-classifier"


async def _start(person: Person, key: Qt.Key, samples: str) -> None:
    await person.press(key, person.window)
    await person.until(lambda: person.dialog("form"), 10)
    await person.type(person.dialog("form").findChild(QLineEdit, "qt_spinbox_lineedit"), samples)
    await person.click(person.dialog("form").start_button)
    await person.until(lambda: person.dialog("form") is None, 10)


def test_a_score_asked_for_while_a_calibration_runs_has_its_data(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path(MODEL))
        await person.until(lambda: person.state.session is not None)
        await _start(person, Qt.Key.Key_F5, "64")
        await _start(person, Qt.Key.Key_F6, "16")
        statuses = [view.status for view in person.context.jobs.views][-2:]
        assert statuses == ["running", "queued"] and "and 1 more" in person.window.status.message.text()
        await person.until(lambda: "predicted_kl" in person.state.session.sensitivities)
        assert [view.status for view in person.context.jobs.views][-2:] == ["done", "done"]
        assert person.state.session.calibration.samples == 64
        assert person.state.session.sensitivities["predicted_kl"].samples == 16

    live(story)


def test_a_job_that_waited_keeps_its_plan_and_takes_the_newest_results(live: Callable[..., None]) -> None:
    full = sessions.full(1)
    bare = replace(full, sensitivities={}, active_ranges={})
    place = next(iter(full.active_ranges))
    own = Range(low=-1.0, high=2.0, method="manual", clipped=0.0)
    asked = replace(bare, active_ranges={place: own}, locked=frozenset({"lm_head"}))

    async def story(person: Person) -> None:
        await person.open(full)
        await person.act(
            lambda: edits.assign(person.context.workspace, ["model.layers.0.mlp.up_proj"], weights="nf4-b64")
        )
        renewed = person.context.runner._prepared(EVALUATE.request(asked, EvaluateOptions())).session
        assert renewed.plan is asked.plan is not person.state.session.plan and renewed.locked == asked.locked
        assert renewed.sensitivities["predicted_kl"] is full.sensitivities["predicted_kl"]
        assert renewed.active_ranges == {**full.active_ranges, place: own}
        other = replace(asked, model=replace(asked.model, fingerprint="sha256:" + "1" * 64))
        assert person.context.runner._prepared(EVALUATE.request(other, EvaluateOptions())).session.sensitivities == {}

    live(story)
