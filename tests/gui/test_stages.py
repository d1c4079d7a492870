"""The row of stages: what is done, runs, comes next, and why not yet; Run All does the rest."""

from __future__ import annotations

import itertools
from asyncio import sleep
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit
from safetensors.torch import save_file

from tests.gui import sessions
from tests.gui.conftest import Person, empty_text
from tests.gui.test_plan import drop
from workbench.deployment.targets import target
from workbench.engine.jobs import Jobs, JobStatus, JobView
from workbench.gui.commands import run
from workbench.gui.commands.action import ActionState
from workbench.gui.commands.run import schemes_of
from workbench.gui.commands.stages import STAGES, Stages
from workbench.gui.context import edits
from workbench.gui.context.runner import running_steps
from workbench.gui.shell import settings
from workbench.gui.shell.forms import Form
from workbench.gui.shell.stepper import StageStatus
from workbench.session.session import Session
from workbench.session.workspace import State
from workbench.steps.files.export import EXPORT, ExportOptions
from workbench.steps.score import SCORE, ScoreOptions

DONE, NEXT, LATER = StageStatus.DONE, StageStatus.NEXT, StageStatus.LATER


def statuses(person: Person) -> list[StageStatus]:
    """Return where every stage is."""
    return [mark.status for mark in person.window.stepper.marks]


def test_stages_say_what_is_done_comes_next_and_why_not_yet(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        stepper = person.window.stepper
        assert statuses(person) == [NEXT, LATER, LATER, LATER, LATER, LATER]
        await person.open(sessions.opened())
        assert statuses(person) == [DONE, NEXT, LATER, LATER, LATER, LATER]
        assert stepper.buttons[1].accessibleName() == "Calibrate: next"
        triggered: list[str] = []
        person.window.trigger = triggered.append  # type: ignore[method-assign]
        await person.click(stepper.buttons[1])
        assert triggered == ["calibrate"]
        await person.click(stepper.buttons[3])
        assert "Compute the sensitivity first" in person.context.messages.entries[-1].text
        full = sessions.full(1)
        await person.open(full)
        assert statuses(person) == [DONE, DONE, DONE, DONE, NEXT, LATER]
        table = full.sensitivities["predicted_kl"]
        some = replace(table, score=np.where(np.arange(len(table.layers))[:, None] < 2, table.score, np.nan))
        await person.open(replace(full, sensitivities={"predicted_kl": some}))
        assert statuses(person)[2] == DONE, "weights with NaN, and layers that no data reach, have no scores"
        request = SCORE.request(full, ScoreOptions())
        await person.open(request.with_partial(replace(full, sensitivities={}), some))
        assert statuses(person)[2] == NEXT, "a job that was cancelled scored two layers"
        await person.open(request.joined(person.state.session, some))
        assert statuses(person)[2] == DONE, "as many as can be scored"
        await person.open(full)
        await person.click(stepper.buttons[5])
        assert person.window.panels["deploy"].is_seen, "a plan can be exported before it was evaluated"
        run = replace(full.evaluations[0], plan_hash=full.plan.hash, nbytes=person.state.totals.nbytes)
        await person.open(replace(full, evaluations=(run,)))
        assert statuses(person) == [DONE, DONE, DONE, DONE, DONE, NEXT]
        person.window.panels["accuracy"].setVisible(False)
        await person.act(lambda: stepper.buttons[4].setFocus())
        await person.act(lambda: QTest.keyClick(stepper.buttons[4], Qt.Key.Key_Space))
        assert person.window.panels["accuracy"].is_seen
        await person.layer("model.layers.0.mlp.up_proj")
        await person.press(Qt.Key.Key_Minus, person.window, control=True)
        assert statuses(person)[4] is NEXT, "the evaluation is of another plan"
        person.picture("stages")

    live(story)


def test_an_export_is_that_of_its_model_and_plan(qapp: QApplication) -> None:
    """A plan that says the same of another model's layers was said to be exported."""
    full = sessions.full(1)
    request = EXPORT.request(full, ExportOptions(kind="gguf", out="x.gguf"))
    view = SimpleNamespace(id=1, status=JobStatus.DONE)
    stages = Stages(SimpleNamespace(views=(view,), request=lambda number: request))  # type: ignore[arg-type]

    def deployed(session: Session) -> bool:
        return stages.marks(ActionState(state=State(session=session)), {})[-1].status is DONE

    assert deployed(full) and deployed(replace(full, plan=replace(full.plan, name="another name")))
    assert not deployed(replace(full, model=replace(full.model, fingerprint="sha256:another")))
    assert not deployed(replace(full, plan=full.plan.assign([full.model.layers[1].name], weights="int2-channel")))


def test_weights_without_a_network_are_scored_by_weight_error_and_say_why_no_more_is_possible(
    live: Callable[..., None], tmp_path: Path
) -> None:
    file = tmp_path / "some.safetensors"
    save_file({"up.weight": torch.randn(64, 32), "down.weight": torch.randn(32, 64)}, file)

    async def story(person: Person) -> None:
        window = person.window
        await person.act(lambda: window.document.open_path(str(file)))
        await person.until(lambda: statuses(person)[0] is DONE)
        assert statuses(person)[1:3] == [LATER, NEXT]
        await person.click(window.stepper.buttons[2])
        await person.until(lambda: person.dialog("form"), 20)
        assert person.dialog("form")._form.value().metric == "weight_error"
        await person.act(person.dialog("form").reject)
        panel = window.panels["sensitivity"]
        assert "holds weights only" in empty_text(panel) and panel.next_step.text() == "Compute Sensitivity…"
        run_all = window.actions_by_id["run_all"]
        assert not run_all.isEnabled() and "holds weights only" in run_all.toolTip()
        for action in ("run_all", "calibrate"):
            await person.act(lambda action=action: window.trigger(action))
            said = person.context.messages.entries[-1]
            assert said.title.endswith(": not now") and said.text.startswith("Some cannot be run: the file holds")

    live(story)


@pytest.mark.parametrize("listed", [False, True])
def test_a_job_that_the_user_does_not_see_is_in_no_ones_way(
    listed: bool, live: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.opened())
        view = JobView(id=1, title="Statistics of a layer", status=JobStatus.RUNNING, listed=listed)
        monkeypatch.setattr(Jobs, "views", (view,))
        asked: list[bool] = []
        monkeypatch.setattr(run, "_calibration_due", lambda command: asked.append(True) or sleep(0))
        await person.press(Qt.Key.Key_F5, person.window, control=True)
        await person.settle(0.05)
        refused = [each.text for each in person.context.messages.entries if each.title == "Run All: not now"]
        assert (bool(asked), bool(refused)) == (not listed, listed)

    live(story)


def test_a_job_that_ends_leaves_the_panel_that_the_user_has_gone_to(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        window, dock = person.window, person.window.docks["accuracy"]
        await person.act(lambda: window.document.open_path("demo:digits-classifier"))
        await person.until(lambda: statuses(person)[0] is DONE)
        await person.press(Qt.Key.Key_F5, window, control=True)
        await person.until(lambda: statuses(person)[3] is DONE)
        await person.click(window.stepper.buttons[5])
        await person.until(lambda: statuses(person)[4] is DONE and not running_steps(person.context.jobs))
        await person.settle(0.1)
        assert window.panels["deploy"].is_seen and dock.windowTitle() == "Accuracy (new)"
        await person.click(window.stepper.buttons[4])
        assert window.panels["accuracy"].is_seen and dock.windowTitle() == "Accuracy"

    live(story)


def test_what_was_new_of_a_closed_document_is_not_of_the_next(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        window, dock = person.window, person.window.docks["accuracy"]
        await person.open(sessions.full(1))
        await person.act(lambda: window.reveal("deploy"))
        await person.act(lambda: window.area.show_result("accuracy", "sensitivity"))
        await person.act(lambda: person.context.workspace.edit("Edit", lambda now: replace(now, locked=frozenset())))
        assert dock.windowTitle() == "Accuracy (new)"
        await person.open(sessions.full(2))
        assert dock.windowTitle() == "Accuracy"

    live(story)


def test_run_all_goes_from_the_model_to_an_evaluated_plan(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path("demo:digits-classifier"))
        await person.until(lambda: statuses(person)[0] is DONE)
        await person.press(Qt.Key.Key_F5, person.window, control=True)
        await person.until(lambda: StageStatus.RUNNING in statuses(person))
        assert not person.window.actions_by_id["run_all"].isEnabled(), "once is enough"
        await person.until(lambda: statuses(person)[4] is DONE)
        session = person.state.session
        assert session.calibration is not None and session.evaluations[-1].plan_hash == session.plan.hash
        assert abs(person.state.totals.bits_per_weight - person.state.budget.amount) < 0.5
        assert person.window.panels["accuracy"].is_seen
        before = session.plan
        await person.press(Qt.Key.Key_F5, person.window, control=True)
        await person.settle(0.2)
        assert person.state.session.plan is before and len(person.state.session.evaluations) == 1

    live(story)


def test_run_all_takes_the_options_that_the_forms_start_with(live: Callable[..., None]) -> None:
    """It evaluated on all samples where the user had calibrated on few, and scored with other options than typed."""

    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path("demo:digits-classifier"))
        await person.until(lambda: statuses(person)[0] is DONE)
        await person.press(Qt.Key.Key_F5, person.window)
        await person.until(lambda: person.dialog("form"), 10)
        form = person.dialog("form").findChild(Form)
        await person.type(form.widgets["samples"], "24")
        await person.type(form.widgets["batch_size"], "16")
        await person.click(person.dialog("form").start_button)
        await person.until(lambda: statuses(person)[1] is DONE)
        await person.press(Qt.Key.Key_F5, person.window, control=True)
        await person.until(lambda: statuses(person)[4] is DONE)
        session = person.state.session
        assert session.calibration.samples == 24
        assert session.evaluations[-1].metrics["kl"].samples == 24
        assert session.sensitivities["predicted_kl"].samples == 24

    live(story)


def test_an_empty_panel_says_that_its_step_runs(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path("demo:digits-classifier"))
        await person.until(lambda: statuses(person)[0] is DONE)
        await person.act(lambda: person.window.reveal("sensitivity"))
        step = person.window.panels["sensitivity"].next_step
        assert step.text() == "Calibrate…" and step.isEnabled()
        await person.press(Qt.Key.Key_F5, person.window, control=True)
        await person.until(lambda: StageStatus.RUNNING in statuses(person))
        assert not step.isEnabled() and step.text() == "Running…"
        await person.until(lambda: statuses(person)[4] is DONE)
        assert step.isEnabled()

    live(story)


def test_the_key_of_what_is_not_possible_says_why(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.press(Qt.Key.Key_F5, person.window)
        said = person.context.messages.entries[-1]
        assert (said.title, said.text, said.level) == ("Calibrate: not now", "Open a model first", "warning")
        await person.open(sessions.opened())
        await person.press(Qt.Key.Key_F7, person.window.panels["layers"].focusWidget() or person.window)
        assert person.context.messages.entries[-1].text == "Compute the sensitivity first"
        await person.press(Qt.Key.Key_Z, person.window, control=True)
        assert person.context.messages.entries[-1].text == "Nothing to undo"
        before = person.context.messages.entries
        await person.press(Qt.Key.Key_Down)
        assert person.context.messages.entries == before

    live(story)


def test_every_stage_has_its_panel_and_action(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        assert {stage.panel for stage in STAGES} <= set(person.window.docks)
        assert {stage.action for stage in STAGES if stage.action} <= set(person.window.actions_by_id)

    live(story)


def test_a_role_sets_target_budget_and_the_schemes_that_are_scored(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        page = person.window.start_page
        buttons = (page.model_button, page.session_button, page.demo_button)
        gaps = [below.y() - above.geometry().bottom() for above, below in itertools.pairwise(buttons)]
        assert min(gaps) >= 8, gaps
        assert page.role.title == "Explore" and person.state.target == ""
        await person.click(page.role_buttons.button(0))
        assert not page.role_buttons.button(3).isChecked()
        assert person.state.target == "gguf" and person.state.budget.amount == 4.5
        assert settings.role() == "llama.cpp"
        await person.open(sessions.opened())
        names = schemes_of(person.state)
        runtime = target("gguf")
        assert {"q4_k", "q6_k", "q8_0"} <= set(names) and "nf4-b64" not in names
        assert "iq1_s" not in names, "a search through a table for every vector would take hours on a real model"
        layers = [layer for layer in person.state.session.model.layers if layer.kind == "linear"]
        assert all(any(runtime.legal(layer, name, None) is None for layer in layers) for name in names)
        person.picture("role")
        await person.open(sessions.full(1))
        assert statuses(person)[2] is NEXT, "the table has no scheme that llama.cpp runs"
        await person.act(lambda: person.context.trigger("score"))
        await person.until(lambda: person.dialog("form"), 10)
        offered = person.dialog("form").findChild(Form).value().schemes
        assert set(offered) == set(names), "those of the table, of which llama.cpp runs none, stay in it"
        await person.act(person.dialog("form").reject)
        await person.act(lambda: person.context.workspace.show_target(""))
        assert statuses(person)[2] is DONE

    live(story)


@pytest.mark.parametrize(("target_name", "scheme"), [("", "q4_k"), ("vllm", "int4-g128")])
def test_a_plan_of_schemes_without_scores_asks_to_score_them(
    live: Callable[..., None], target_name: str, scheme: str
) -> None:
    async def story(person: Person) -> None:
        workspace = person.context.workspace
        await person.open(sessions.full(1))
        assert statuses(person)[2] is DONE and scheme not in sessions.full(1).table("predicted_kl").column
        await person.act(lambda: workspace.show_target(target_name))
        assert statuses(person)[2] is DONE
        names = [person.state.session.model.layers[2].name]
        await person.act(lambda: edits.assign(workspace, names, weights=scheme))
        assert statuses(person)[2] is NEXT and person.state.totals.predicted is None
        await person.act(lambda: person.context.trigger("score"))
        await person.until(lambda: person.dialog("form"), 10)
        assert scheme in person.dialog("form").findChild(Form).value().schemes
        await person.act(person.dialog("form").reject)
        await person.press(Qt.Key.Key_Z, control=True)
        assert statuses(person)[2] is DONE

    live(story)


def test_data_dropped_on_the_window_are_calibrated_on(live: Callable[..., None], tmp_path: Path) -> None:
    text = tmp_path / "mine.txt"
    text.write_text("a few words " * 500, encoding="utf-8")

    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: drop(person.window, text))
        await person.until(lambda: person.dialog("form"), 10)
        fields = person.dialog("form").findChildren(QLineEdit)
        assert str(text) in [field.text() for field in fields]
        await person.act(person.dialog("form").reject)
        heat = person.window.panels["sensitivity"].heatmap
        heat.cursor_cell = 1, 2
        await person.press(Qt.Key.Key_C, heat, control=True)
        name, scheme, score = QApplication.clipboard().text().split("\t")
        table = person.state.session.sensitivities["predicted_kl"]
        assert float(score) == pytest.approx(table.of(name, scheme), rel=1e-5)

    live(story)


def test_a_narrow_window_keeps_the_stages_and_rows_of_the_heatmap(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        window = person.window
        await person.open(sessions.full(12))
        stepper, heatmap = window.stepper, window.panels["sensitivity"].heatmap
        style = Qt.ToolButtonStyle
        titled = [button.text() for button in stepper.buttons if button.toolButtonStyle() != style.ToolButtonIconOnly]
        following = next(mark for mark in stepper.marks if mark.status is StageStatus.NEXT)
        assert stepper.isVisible() and titled == [following.title]
        assert all(mark.title in button.toolTip() for mark, button in zip(stepper.marks, stepper.buttons, strict=True))
        assert stepper.mapTo(window, stepper.rect().topRight()).x() < window.width()
        assert (heatmap.viewport().height() - heatmap.head_height) // heatmap.row_height >= 3, "not headings alone"
        assert heatmap.head_height > 50
        person.picture("narrow")
        await person.act(lambda: window.resize(1600, 1000))
        assert all(button.toolButtonStyle() == style.ToolButtonTextBesideIcon for button in stepper.buttons)

    live(story, size=(960, 540))
