"""The slider re-plans while it moves, as one step to undo; a layer's scheme is explained."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QStyle, QStyleOptionSlider

from tests.gui import sessions
from tests.gui.conftest import Person
from tests.gui.test_panels import _drag
from workbench.gui.context import edits, worker
from workbench.gui.panels import pareto as module
from workbench.gui.plots.front import DECADES
from workbench.insight import fronts
from workbench.insight.roofline import plan_time
from workbench.measurement.evaluation import Timing
from workbench.models.summary import quantizable
from workbench.numerics.formats import parse_scheme
from workbench.planning.budgets import MeasuredTimes
from workbench.planning.plan import KEEP, Plan, resolve
from workbench.planning.search.search import Front
from workbench.planning.totals import totals
from workbench.session.session import Session

LAYER = "model.layers.0.mlp.down_proj"


def _handle(slider: object) -> QPoint:
    option = QStyleOptionSlider()
    slider.initStyleOption(option)  # type: ignore[attr-defined]
    control, part = QStyle.ComplexControl.CC_Slider, QStyle.SubControl.SC_SliderHandle
    return slider.style().subControlRect(control, option, part, slider).center()  # type: ignore[attr-defined,no-any-return]


def test_uniform_plans_are_computed_once_for_dashboard_and_front(
    live: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    computed, compute = [], fronts._uniform_sums

    def counted(*arguments: Any) -> Any:
        computed.append(arguments)
        return compute(*arguments)

    monkeypatch.setattr(fronts, "_uniform_sums", counted)
    monkeypatch.setattr(fronts, "_uniform", {})  # other tests show the same session

    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        await person.act(lambda: person.window.reveal("pareto"))
        shown = person.window.panels["pareto"].plot.picture.uniform
        assert len(computed) == 1
        model, layers = person.state.session.model, person.state.session.model.layers
        for scheme, megabytes, loss in shown:
            sums = totals(model, resolve(Plan.uniform(quantizable(layers), scheme), layers), computed[0][1])
            assert megabytes * 1e6 == pytest.approx(sums.nbytes, abs=1e-3) and loss == pytest.approx(sums.predicted)
        await person.act(lambda: edits.assign(person.context.workspace, [LAYER], weights="int4-g32-asym"))
        assert len(computed) == 1, "an edit of weights changes no uniform plan"
        await person.act(lambda: edits.assign(person.context.workspace, [LAYER], inputs="int8-token"))
        assert len(computed) == 2, "one of inputs does"

    live(story)


def test_the_slider_replans_while_it_moves(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        await person.act(lambda: edits.lock(person.context.workspace, [LAYER], True))
        await person.act(lambda: person.window.reveal("pareto"))
        panel, before = person.window.panels["pareto"], person.state.session.plan
        held = person.state.assignments[LAYER]
        start = _handle(panel.slider)
        received = []
        await person.act(lambda: QTest.mousePress(panel.slider, Qt.MouseButton.LeftButton, pos=start))
        for step in range(1, 6):
            await person.act(lambda step=step: _drag(panel.slider, start - QPoint(12 * step, 0)))
            received.append(person.state.totals.nbytes)
            index = panel.slider.value()
            assert person.state.totals.nbytes == panel.front.nbytes[index]
            assert np.isclose(person.state.totals.predicted, panel.front.loss[index])
        assert received == sorted(received, reverse=True) and len(set(received)) > 3
        end = start - QPoint(60, 0)
        await person.act(lambda: QTest.mouseRelease(panel.slider, Qt.MouseButton.LeftButton, pos=end))
        assert person.state.assignments[LAYER] == held  # locked
        assert person.state.undo_name.startswith("Slide to")
        person.picture("slid")
        await person.press(Qt.Key.Key_Z, control=True)
        assert person.state.session.plan == before
        assert person.state.undo_name.startswith("Lock")

    live(story)


def test_the_axis_ends_where_differences_end_and_the_legend_covers_no_point(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        session = sessions.full(1)
        plans = (KEEP, "int4-g32-asym", "int8-channel")
        stored = [layer.name for layer in session.model.stored]
        runs = [replace(session.evaluations[0], plan_hash=session.plan.assign(stored, weights=each).hash)
                for each in plans]  # fmt: skip
        await person.open(replace(session, evaluations=tuple(runs)))
        await person.act(lambda: person.window.reveal("pareto"))
        plot = person.window.panels["pareto"].plot
        assert float(plot.picture.loss.min()) == 0.0, "the largest plan changes nothing"
        low, high = plot.item.viewRange()[1]
        assert high - low < DECADES + 2
        frame, view = plot.item.legend.sceneBoundingRect(), plot.item.vb
        points = [view.mapViewToScene(QPointF(*spot)) for item in plot.item.listDataItems()
                  for spot in zip(*item.getData(), strict=True) if item.getData()[0] is not None]  # fmt: skip
        assert len(points) > 20 and not [point for point in points if frame.contains(point)]

    live(story, size=(1920, 1080))


def test_the_slider_by_keyboard_and_what_the_next_byte_buys(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.window.reveal("pareto"))
        panel = person.window.panels["pareto"]
        await person.act(panel.slider.setFocus)
        await person.press(Qt.Key.Key_Home, panel.slider)
        assert person.state.totals.nbytes == panel.front.nbytes[0]
        await person.press(Qt.Key.Key_Right, panel.slider)
        assert person.state.totals.nbytes == panel.front.nbytes[1]
        moved = panel.front.space.groups[int(panel.front.moves.group[1])].layers[0]
        await person.act(lambda: person.context.workspace.select([moved]))
        scheme = panel.front.choices(2)[moved]
        assert f"{scheme} would take" in panel.why.text() and f"take {moved} from" in panel.why.text()
        await person.press(Qt.Key.Key_End, panel.slider)
        await person.act(lambda: person.context.workspace.select([moved]))
        assert "would take" not in panel.why.text() and "No larger scheme avoids" in panel.why.text()

    live(story)


def _timed(session: Session, batch: int = 1) -> Session:
    """Every scheme of the table at every shape takes as many microseconds as it has bits, FP takes 40."""
    table, result = session.sensitivities["predicted_kl"], []
    for shape in sorted({layer.matrix for layer in session.model.layers}):
        for name in table.schemes:
            micro = parse_scheme(name).bits(shape) / (shape[0] * shape[1])
            result.append(
                Timing(layer=name, scheme=name, kernel="k", baseline_kernel="fp32", shape=shape, batch=batch,
                       device="cpu", note="", samples=np.full(3, micro), baseline_samples=np.full(3, 40.0))
            )  # fmt: skip
    return replace(session, timings=tuple(result))


def test_plans_by_their_time(live: Callable[..., None]) -> None:
    session = _timed(sessions.full(2), batch=4)
    session = replace(session, evaluations=(replace(session.evaluations[0], plan_hash=session.plan.hash),))

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.window.reveal("pareto"))
        panel, before = person.window.panels["pareto"], person.state.session.plan
        assert panel.front.nbytes.size and panel.time.isHidden()
        for _ in range(2):
            await person.press(Qt.Key.Key_Down, panel.axis)
        assert panel.axis.currentText() == "Time at batch 4" and panel.time.isVisible()
        assert panel.front.microseconds is not None and panel.plot.picture.cost_unit == "µs"
        spent = plan_time(session.model, person.state.assignments, session.timings, 4)
        assert panel.plot.picture.present[0] == spent.microseconds
        assert [item.cost for item in panel.plot.picture.measured] == [spent.microseconds]
        person.picture("by-time")
        await person.press(Qt.Key.Key_Home, panel.slider)
        fastest = plan_time(session.model, person.state.assignments, session.timings, 4)
        assert np.isclose(fastest.microseconds, panel.front.microseconds[0])
        assert fastest.microseconds < spent.microseconds
        index = len(panel.front) // 2
        await person.click(panel.plot.viewport())  # the keyboard goes to the plot
        for _ in range(index + 1):
            await person.press(Qt.Key.Key_Right, panel.plot)
        await person.press(Qt.Key.Key_Return, panel.plot)
        assert np.isclose(person.state.totals.predicted, panel.front.loss[index])
        for _ in range(2):
            await person.press(Qt.Key.Key_Z, control=True)
        assert person.state.session.plan == before

    live(story)


def test_candidates_are_timed_from_the_panel(live: Callable[..., None]) -> None:
    session = replace(sessions.full(1), timings=())
    table = session.sensitivities["predicted_kl"]
    few = ("int4-g32", "int8-channel")
    score = table.score[:, [table.column[name] for name in few]]
    session = replace(session, sensitivities={"predicted_kl": replace(table, schemes=few, score=score)})

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.window.reveal("pareto"))
        panel = person.window.panels["pareto"]
        await person.press(Qt.Key.Key_Down, panel.axis)
        assert "no kernel was timed" in panel.figure.text() and panel.front is None
        await person.click(panel.time)
        await person.until(lambda: panel.front is not None)
        assert {item.scheme for item in person.state.session.timings} == set(few)
        assert "the current plan has schemes that were not timed" in panel.figure.text()

    live(story)


def test_a_step_of_the_slider_by_time_makes_no_table_anew(
    live: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = sessions.opened(sessions.summary(43), with_weights=False)
    session = _timed(replace(bare, sensitivities={"predicted_kl": sessions.table(bare.model)}))
    assert len(session.model.layers) > 300
    made, make = [], MeasuredTimes.from_timings
    monkeypatch.setattr(MeasuredTimes, "from_timings", lambda *given: made.append(given) or make(*given))

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.window.reveal("pareto"))
        panel = person.window.panels["pareto"]
        await person.press(Qt.Key.Key_Down, panel.axis)
        start, before, observed = _handle(panel.slider), len(made), set()
        await person.act(lambda: QTest.mousePress(panel.slider, Qt.MouseButton.LeftButton, pos=start))
        for step in range(1, 9):
            await person.act(lambda step=step: _drag(panel.slider, start - QPoint(15 * step, 0)))
            observed.add(person.state.totals.nbytes)
        assert len(observed) > 5 and len(made) - before <= 1, "one front for the whole drag"
        end = start - QPoint(120, 0)
        await person.act(lambda: QTest.mouseRelease(panel.slider, Qt.MouseButton.LeftButton, pos=end))

    live(story)


def test_the_explanation_leaves_the_plot_its_room(live: Callable[..., None]) -> None:
    """At 200 % of a small screen six lines of it left the plot the height of its axis."""

    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        await person.act(lambda: person.window.reveal("pareto"))
        await person.layer("model.layers.0.mlp.up_proj")
        panel = person.window.panels["pareto"]
        whole = panel.why.text()
        assert "; " in whole and panel.why.toolTip().startswith(whole[:40])
        await person.act(lambda: person.window.resize(960, 500))
        assert panel.why.text() == whole.partition(";")[0] and "; " in panel.why.toolTip()
        assert panel.plot.height() > 60
        await person.act(lambda: person.window.resize(1600, 1100))
        assert panel.why.text() == whole

    live(story, size=(1600, 1100))


def test_the_front_counts_what_the_plan_gives_a_layer_that_no_search_decides(live: Callable[..., None]) -> None:
    session = sessions.full(2)
    kept = tuple(replace(layer, keep="a router") if layer.name == LAYER else layer for layer in session.model.layers)
    session = replace(session, model=replace(session.model, layers=kept), plan=Plan())

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.window.reveal("pareto"))
        panel, layer = person.window.panels["pareto"], session.model.by_name[LAYER]
        before = panel.front.nbytes
        await person.act(lambda: edits.assign(person.context.workspace, [LAYER], weights="int8-tensor"))
        assert set(before - panel.front.nbytes) == {layer.nbytes - parse_scheme("int8-tensor").bits(layer.matrix) // 8}

    live(story)


def _in_a_thread(monkeypatch: pytest.MonkeyPatch, name: str) -> threading.Event:
    """Have the panel work in a thread, where a function of a front waits for the event that is returned."""
    goes_on, work = threading.Event(), getattr(Front, name, None) or getattr(module, name)

    def late(*arguments: Any, **options: Any) -> Any:
        assert goes_on.wait(30)
        return work(*arguments, **options)

    monkeypatch.setattr(worker, "FEW", 0)
    monkeypatch.setattr(Front if hasattr(Front, name) else module, name, late)
    return goes_on


def test_a_front_that_comes_late_is_not_shown_for_another_target(
    live: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.window.reveal("pareto"))
        panel, workspace = person.window.panels["pareto"], person.context.workspace
        shown = panel.front
        goes_on = _in_a_thread(monkeypatch, "_worked_out")
        workspace.show_target("gguf")
        await person.until(lambda: panel._worker.is_busy)
        workspace.show_target("")
        await person.until(lambda: panel._drawn.target == "")
        goes_on.set()
        await person.until(lambda: panel._worker._running is None)
        await person.settle()
        assert panel.front is shown and "for " not in panel.figure.text()

    live(story)


def test_a_plan_that_comes_late_overwrites_no_edit(live: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        await person.act(lambda: person.window.reveal("pareto"))
        panel, workspace = person.window.panels["pareto"], person.context.workspace
        goes_on = _in_a_thread(monkeypatch, "plan")
        panel._use(3)
        edits.assign(workspace, [LAYER], weights="int8-channel", algorithm="gptq")
        edits.lock(workspace, [LAYER], True)
        goes_on.set()
        await person.until(lambda: person.state.undo_name.startswith("Use"), 10)
        has = person.state.assignments[LAYER]
        assert (has.weights, has.algorithm) == ("int8-channel", "gptq") and LAYER in person.state.session.locked

    live(story)
