"""Jobs that wait for others see what those found, and do what was asked for when they were started."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.engine.jobs import JobStatus, JobView
from workbench.gui.context import edits
from workbench.gui.shell import words
from workbench.numerics.ranges import Range
from workbench.sensitivity.table import Sensitivity
from workbench.steps import STEPS
from workbench.steps.evaluate import EVALUATE, EvaluateOptions
from workbench.steps.options import option_fields
from workbench.steps.score import SCORE, ScoreOptions
from workbench.steps.step import Context

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

        def statuses() -> list[str]:
            return [view.status for view in person.context.jobs.views if view.listed][-2:]

        await person.until(lambda: statuses()[0] == "running", 20)  # after the estimate that its form has asked for
        assert statuses() == ["running", "queued"] and "and 1 more" in person.window.status.message.text()
        await person.until(lambda: "predicted_kl" in person.state.session.sensitivities)
        assert statuses() == ["done", "done"]
        assert person.state.session.calibration.samples == 64
        assert person.state.session.sensitivities["predicted_kl"].samples == 16

    live(story)


def test_a_job_that_waited_keeps_its_plan_and_takes_the_newest_results(live: Callable[..., None]) -> None:
    full = sessions.full(1)
    bare = replace(full, sensitivities={}, active_ranges={})
    place = next(iter(full.active_ranges))
    own = Range(low=-1.0, high=2.0, method="manual", clipped=0.0)
    requested = replace(bare, active_ranges={place: own}, locked=frozenset({"lm_head"}))

    async def story(person: Person) -> None:
        await person.open(full)
        await person.act(
            lambda: edits.assign(person.context.workspace, ["model.layers.0.mlp.up_proj"], weights="nf4-b64")
        )
        renewed = person.context.runner._prepared(EVALUATE.request(requested, EvaluateOptions())).session
        assert renewed.plan is requested.plan is not person.state.session.plan and renewed.locked == requested.locked
        assert renewed.sensitivities["predicted_kl"] is full.sensitivities["predicted_kl"]
        assert renewed.active_ranges == {**full.active_ranges, place: own}
        other = replace(requested, model=replace(requested.model, fingerprint="sha256:" + "1" * 64))
        assert person.context.runner._prepared(EVALUATE.request(other, EvaluateOptions())).session.sensitivities == {}

    live(story)


def test_the_time_of_a_running_job_goes_on_without_news_of_it(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.window.reveal("jobs"))
        panel = person.window.panels["jobs"]
        started = time.monotonic() - 15.0
        view = JobView(id=1, title="A long job", status=JobStatus.RUNNING, started=started, fraction=0.5, text="half")
        panel.show_jobs((view,))
        records = panel.jobs.records
        titles = [records.headerData(at, Qt.Orientation.Horizontal) for at in range(records.columnCount())]
        places = titles.index("Took"), titles.index("Left")
        took, left = (lambda at=place: records.index(0, at).data() for place in places)
        first = took()
        assert first == "15 s" and left() == "15 s"
        await asyncio.sleep(2.2)  # no progress comes meanwhile
        assert took() != first and int(took().split()[0]) > 15 and int(left().split()[0]) > 15

    live(story)


def test_a_jobs_name_has_room_in_a_panel_that_was_first_seen_empty(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.act(lambda: person.window.reveal("jobs"))
        table = person.window.panels["jobs"].jobs
        assert not table.records.records and table.columnWidth(0) == 210
        await person.act(lambda: person.window.document.open_path("demo:digits-classifier"))
        await person.until(lambda: table.records.records)
        title = table.records.records[0].title
        assert table.columnWidth(0) >= table.fontMetrics().horizontalAdvance(title)

    live(story)


def test_the_status_bar_says_what_a_job_does_and_how_long_it_will_take(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        status = person.window.status
        await person.open(sessions.full(1))
        title, text = f"Evaluate {'a plan with a long name ' * 8}", "batch 3 of 8"
        for took, left in ((15.0, ", 20 s left"), (90.0, ", 2 min left"), (10_800.0, ", 3 h left"), (1.0, "")):
            view = JobView(id=1, title=title, status=JobStatus.RUNNING, started=time.monotonic() - took, fraction=0.5,
                           text=text)  # fmt: skip
            await person.act(lambda view=view: status.show_jobs((view,)))
            assert status.share.text() == f"50 %{left}" and status.message.shown == text
            assert status.message.text() == f"{title} – {text}" and title in status.message.toolTip()

    live(story)


def test_the_status_bar_says_that_a_job_waits_for_an_estimate(live: Callable[..., None]) -> None:
    """The estimate's trial is not listed; while it ran, what the user had just started was nowhere to be seen."""

    async def story(person: Person) -> None:
        status = person.window.status
        await person.open(sessions.full(1))
        view = JobView(id=7, title="Evaluate it", status=JobStatus.QUEUED)
        await person.act(lambda: status.show_jobs((view,)))
        assert status.message.text() == "Evaluate it – waiting for an estimate to end"
        assert status.cancel_button.isVisible() and status.share.text() == "0 %"
        running = JobView(id=6, title="Score", status=JobStatus.RUNNING, started=time.monotonic(), text="batch 1")
        await person.act(lambda: status.show_jobs((running, view)))
        assert status.message.text() == "Score (and 1 more) – batch 1"
        await person.act(lambda: status.show_jobs(()))
        assert status.message.text() == "Ready" and not status.cancel_button.isVisible()

    live(story)


def test_the_notes_of_a_job_are_said_and_kept(live: Callable[..., None]) -> None:
    session, note = sessions.full(1), "predicted_kl: the memory ran out (--memory)"

    def run(context: Context, options: ScoreOptions) -> Sensitivity:
        context.notes.append(note)
        return sessions.table(session.model, seed=7)

    step = replace(SCORE, run=run, requires=(), wants=lambda session, options: (), costs=None)

    async def story(person: Person) -> None:
        await person.open(session)
        for _ in range(2):
            await person.context.runner.work(step.request(person.state.session, ScoreOptions(schemes=("int4-g32",))))
        said = [each.text for each in person.context.messages.entries if each.title.startswith("Note: ")]
        assert said == ["Predicted KL: the memory ran out (--memory)"] and person.state.session.notes.count(note) == 1

    live(story)


def test_messages_name_the_fields_of_forms_not_the_flags_of_the_command_line() -> None:
    labels = {each.flag.removeprefix("--"): each.info.label for step in STEPS for each in option_fields(step.options)}
    labels |= {"device": "Device", "dtype": "Numbers", "memory": "Memory", "cluster": "Cluster"}
    assert {flag: labels[flag] for flag in words.FIELDS} == words.FIELDS
    assert words.tr("which column is meant? (--column)") == "which column is meant? (field “Column”)"
    assert words.tr("shorter samples (--window N)") == "shorter samples (field “Window”)"
    assert words.tr("another (--set tool=NAME)") == "another (field “Options” of Export: tool=NAME)"
    assert words.tr("name both (--column A,B)") == "name both (field “Column”: A,B)"
    assert words.tr("for llama.cpp's quantizer (--imatrix)") == "for llama.cpp's quantizer (--imatrix)"
