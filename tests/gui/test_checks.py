"""Checks of the predicted losses from the window: close decisions are measured, a plan is audited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit

import workbench as wb
from tests.gui import sessions
from tests.gui.conftest import Person, empty_text
from workbench.gui.context import edits
from workbench.gui.shell.number_field import NumberField
from workbench.planning.constraints import Constraints
from workbench.planning.plan import Plan
from workbench.planning.search.search import pareto
from workbench.planning.totals import plan_totals
from workbench.sensitivity.checks import small_networks
from workbench.sensitivity.metrics import REFINED
from workbench.sensitivity.refine import close_cells
from workbench.session.session import Session
from workbench.steps.checks.refine import REFINE, RefineOptions
from workbench.steps.score import SCORE, ScoreOptions

MODEL, SCHEMES = "demo:digits-classifier", ("int3-channel", "int4-channel", "int8-channel")


@cache
def scored() -> Session:
    """A calibrated and scored classifier with a plan; made once, because nothing can change it."""
    model = wb.open(MODEL)
    session = wb.calibrate(model, samples=64, batch_size=16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_networks, "LAYERS", 0)  # whose cells are measured, and have nothing left to refine
        session = wb.score(session, model=model, schemes=SCHEMES, batch_size=16)
    return replace(session, plan=Plan.uniform(session.model.layers, "int3-channel"))


async def _fill(person: Person, **values: float) -> None:
    await person.until(lambda: person.dialog("form"), 10)
    dialog = person.dialog("form")
    for name, value in values.items():
        box = dialog.findChild(NumberField, name)
        await person.type(box.lineEdit(), str(value))
    person.picture("form")
    await person.click(dialog.start_button)


def test_close_decisions_are_measured_from_the_panel(live: Callable[..., None]) -> None:
    session = scored()

    async def story(person: Person) -> None:
        await person.open(session)
        await person.click(person.window.panels["sensitivity"].refine)
        await _fill(person, bits_per_weight=5, tolerance=0.9, samples=16)
        await person.until(lambda: "measured_kl" in person.state.session.sensitivities)
        await person.until(person.window.panels["agreement"].isVisible, 5)
        cells = close_cells(session.model, session.sensitivities["predicted_kl"], 5.0, tolerance=0.9)
        table = person.state.session.sensitivities["measured_kl"]
        known = {(layer, scheme) for layer in table.layers for scheme in table.schemes
                 if np.isfinite(table.of(layer, scheme))}  # fmt: skip
        assert known == set(cells) and 0 < len(known) < table.score.size and table.samples == 16
        assert person.state.metric == "predicted_kl" and empty_text(person.window.panels["agreement"]) == ""
        assert f"over {len(known)} cells" in person.window.panels["agreement"].figure.text()
        await person.settle(0.2)
        person.picture("refined")

    live(story)


def test_a_cancelled_refinement_keeps_what_it_measured_and_goes_on(live: Callable[..., None]) -> None:
    session = scored()

    async def story(person: Person) -> None:
        await person.open(session)
        panel, jobs = person.window.panels["sensitivity"], person.context.jobs
        await person.press(Qt.Key.Key_F6, person.window, control=True)
        await _fill(person, bits_per_weight=5, tolerance=10, batch_size=1)

        def seen() -> bool:
            cells = panel.heatmap.cells
            return panel.heatmap.isVisible() and cells is not None and bool(np.isfinite(cells.score).any())

        box = panel.metric_box
        await person.until(lambda: box.model().item(box.findData("measured_kl")).isEnabled())
        assert person.state.metric == "predicted_kl" and person.state.totals.predicted is not None
        await person.choose(box, box.findData("measured_kl"))
        await person.act(lambda: box.activated.emit(box.currentIndex()))
        await person.until(seen)
        assert jobs.views[-1].status == "running" and "measured_kl" not in person.state.session.sensitivities
        person.picture("partial")
        await person.click(person.window.status.cancel_button)
        await person.until(lambda: "measured_kl" in person.state.session.sensitivities, 10)
        assert jobs.views[-1].status == "cancelled" and person.state.dirty
        assert person.context.messages.entries[-1].text == "the results so far are kept"
        scores = person.state.session.sensitivities["measured_kl"].score
        some = np.isfinite(scores)
        assert some.any() and not some.all()
        await person.act(lambda: person.context.workspace.show_metric("predicted_kl"))
        await person.press(Qt.Key.Key_R, person.window, control=True, shift=True)
        await person.until(lambda: jobs.views[-1].status == "done", 30)
        await person.settle()
        assert person.state.metric == "predicted_kl" and person.window.panels["agreement"].isVisible()
        whole = person.state.session.sensitivities["measured_kl"].score
        assert np.array_equal(whole[some], scores[some]) and np.isfinite(whole).sum() > some.sum()
        await _search_by_refined(person)

    live(story)


async def _search_by_refined(person: Person) -> None:
    """Choose the refined losses; the sums, the search and the slider of the front then go by them."""
    panel, plan = person.window.panels["sensitivity"], person.window.panels["plan"]
    await person.act(lambda: person.window.reveal("sensitivity"))
    await person.choose(panel.metric_box, panel.metric_box.findData(REFINED.name))
    assert person.state.metric == REFINED.name and "of them measured" in panel.figure.text()
    session = person.state.session
    measured, table = session.sensitivities["measured_kl"], session.table(REFINED.name)
    row, column = (int(result[0]) for result in np.nonzero(np.isfinite(measured.score)))
    layer, scheme = measured.layers[row], measured.schemes[column]
    assert panel.heatmap.cells.score[table.row[layer], table.column[scheme]] == measured.score[row, column]
    sums = plan_totals(session.model, session.plan, table)
    assert person.state.totals.predicted == pytest.approx(sums.predicted, rel=1e-12)
    predicted = plan_totals(session.model, session.plan, session.sensitivities["predicted_kl"]).predicted
    assert person.state.totals.predicted != pytest.approx(predicted, rel=1e-6)
    await person.type(plan.budget.lineEdit(), "6")
    await person.click(plan.search_button)
    await person.until(lambda: person.state.undo_name.startswith("Search within"), 30)
    best = wb.search(session, bits_per_weight=6.0, metric=REFINED.name)
    assert person.state.session.plan.rules == best.rules
    await person.act(lambda: person.window.reveal("pareto"))
    panel = person.window.panels["pareto"]
    rules = Constraints(locked=session.locked, keep_inputs=True)
    assert np.array_equal(panel.front.loss, pareto(session.model, table, best, constraints=rules).loss)
    await person.press(Qt.Key.Key_Home, panel.slider)
    assert person.state.session.plan.rules == panel.front.plan(0).rules


def test_a_cancelled_score_keeps_its_cells_and_goes_on_to_the_same_bits(live: Callable[..., None]) -> None:
    session = replace(scored(), sensitivities={})
    model = wb.open(MODEL)
    whole = wb.score(session, "measured_kl", model=model, schemes=SCHEMES, batch_size=1, samples=24)
    expected = whole.sensitivities["measured_kl"].score

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.context.workspace.show_metric("measured_kl"))
        panel, jobs = person.window.panels["sensitivity"], person.context.jobs
        request = SCORE.request(session, ScoreOptions(metric="measured_kl", schemes=SCHEMES, batch_size=1, samples=24))
        await person.act(lambda: person.context.runner.submit(request))
        await person.until(lambda: panel.heatmap.cells is not None and np.isfinite(panel.heatmap.cells.score).any())
        await person.click(person.window.status.cancel_button)
        await person.until(lambda: "measured_kl" in person.state.session.sensitivities, 10)
        scores = person.state.session.sensitivities["measured_kl"].score
        some = np.isfinite(scores)
        assert some.any() and not some.all() and np.array_equal(scores[some], expected[some])
        assert person.context.messages.entries[-1].text == "the results so far are kept" and panel.heatmap.isVisible()
        await person.press(Qt.Key.Key_R, person.window, control=True, shift=True)
        await person.until(lambda: jobs.views[-1].status == "done", 60)
        await person.settle()
        assert np.array_equal(person.state.session.sensitivities["measured_kl"].score, expected)

    live(story)


def test_a_cancelled_score_that_knows_less_than_the_session_leaves_its_table_on_the_map(
    live: Callable[..., None],
) -> None:
    session = scored()
    finest = replace(session.sensitivities["predicted_kl"], metric="measured_kl", samples=10_000)
    session = replace(session, sensitivities={"measured_kl": finest})

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.context.workspace.show_metric("measured_kl"))
        panel, jobs = person.window.panels["sensitivity"], person.context.jobs
        await person.until(lambda: panel.heatmap.cells is not None)
        before = panel.heatmap.cells.score.copy()
        options = ScoreOptions(metric="measured_kl", schemes=SCHEMES, batch_size=1, samples=24)
        await person.act(lambda: person.context.runner.submit(SCORE.request(session, options)))
        await person.until(lambda: bool(np.isnan(panel.heatmap.cells.score).any()))
        await person.click(person.window.status.cancel_button)
        await person.until(lambda: jobs.views[-1].status == "cancelled", 10)
        await person.settle()
        assert person.state.session.sensitivities["measured_kl"] is finest
        assert np.array_equal(panel.heatmap.cells.score, before)

    live(story)


def test_a_cancelled_refinement_does_not_replace_a_table_that_knows_more() -> None:
    session = sessions.full(1)
    full = sessions.table(session.model, "measured_kl")
    part = replace(full, score=np.where(np.arange(full.score.size).reshape(full.score.shape) < 3, full.score, np.nan))
    request = REFINE.request(session, RefineOptions(bits_per_weight=4.5))
    assert request.with_partial(session, part).sensitivities["measured_kl"] is part
    held = replace(session, sensitivities={**session.sensitivities, "measured_kl": full})
    assert request.with_partial(held, part) is held


def test_refining_says_what_is_missing(live: Callable[..., None]) -> None:
    full = sessions.full(1)
    cases = (
        (replace(full, sensitivities={}), "predicted KL first (F6)"),
        (replace(full, calibration=None), "calibrate first (F5)"),
        (replace(full, model=replace(full.model, cannot_run="weights only")), "weights only"),
    )

    async def story(person: Person) -> None:
        action, button = person.window.actions_by_id["refine"], person.window.panels["sensitivity"].refine
        assert not action.isEnabled() and "Open a model first" in action.toolTip()
        for session, reason in cases:
            await person.open(session)
            assert not action.isEnabled() and reason in action.toolTip()
            assert not button.isEnabled() and reason in button.toolTip()
        await person.open(full)
        assert action.isEnabled() and button.isEnabled() and "nats" in button.toolTip()

    live(story)


def test_a_plan_is_audited(live: Callable[..., None], tmp_path: Path) -> None:
    session = scored()

    async def story(person: Person) -> None:
        await person.open(session)
        panel = person.window.panels["accuracy"]
        await person.act(lambda: person.window.reveal("accuracy"))
        assert "Audit a plan (Ctrl+Shift+F8)" in empty_text(panel)
        await person.press(Qt.Key.Key_F8, person.window, control=True, shift=True)
        await _fill(person, samples=16)
        await person.until(lambda: panel.audit.result is not None)
        await person.settle()
        view, result = panel.audit, person.state.session.audit.audit
        assert empty_text(panel) == "" and view.isVisible() and not panel.tabs.isTabEnabled(0) and person.state.dirty
        figures = tuple(label.text() for label in view.figures)
        correction = figures[-1]
        table = session.sensitivities["predicted_kl"]
        assert result.predicted_sum == sum(table.of(name, "int3-channel") for name in result.layers)
        assert all(text.endswith(" nats") for text in figures[:-1])
        assert correction.startswith("×") and correction.endswith("(fitted)")
        rows = [view.table.records.record(row) for row in range(view.table.records.rowCount())]
        assert [row.layer for row in rows] == list(result.most_interacting(len(result.layers)))
        assert abs(rows[0].interaction) == np.abs(result.interaction).max()
        assert "add up" in view.words.text() and "16 samples" in view.words.text()
        assert person.window.focusWidget() is view.table
        person.picture("audited")
        await person.act(lambda: edits.assign(person.context.workspace, [result.layers[0]], weights="int8-channel"))
        assert view.words.text().startswith("The plan has changed since")
        await person.press(Qt.Key.Key_Z, control=True)
        assert "changed" not in view.words.text()
        await person.click(view.button)
        await person.answer("form", "Cancel")
        await _saved_and_reopened(person, tmp_path / "audited.qwb")
        assert view.result is not None and figures == tuple(label.text() for label in view.figures)
        await person.open(sessions.full(1))
        assert view.result is None and not view.table.isVisible() and "No audit yet" in view.words.text()
        assert panel.tabs.currentIndex() == 0  # there are evaluations, so they are in front

    live(story)


async def _saved_and_reopened(person: Person, path: Path) -> None:
    await person.press(Qt.Key.Key_S, control=True)
    await person.until(lambda: person.dialog("path"), 10)
    await person.type(person.dialog("path").findChild(QLineEdit, "fileNameEdit"), str(path))
    await person.answer("path", "Save")
    await person.until(lambda: path.exists() and not person.state.dirty)
    await person.press(Qt.Key.Key_W, control=True)
    await person.until(lambda: person.state.session is None)
    await person.act(lambda: person.window.document.open_path(str(path)))
    await person.until(lambda: person.state.session is not None)
    await person.act(lambda: person.window.reveal("accuracy"))
