"""The heatmap of inputs and of the key-value cache: looking at one changes no plan, a click gives a scheme."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox

from tests.gui import sessions
from tests.gui.conftest import Person, empty_text
from tests.gui.test_panels import _drag
from workbench.gui.panels.sensitivity import cells_of
from workbench.gui.plots.agreement import MOST
from workbench.gui.plots.cells import Cells
from workbench.gui.plots.heatmap import Heatmap
from workbench.gui.plots.heatmap_picture import HeatmapPicture
from workbench.gui.shell import theme
from workbench.gui.shell.foreign import elided
from workbench.gui.shell.forms import Form
from workbench.insight.agreement import comparable_metrics
from workbench.insight.arrangement import Order, arranged
from workbench.insight.legality import refused_cells
from workbench.measurement.units import HALF_SQUARED_DISTANCE
from workbench.models.kv_cache import makes_keys_or_values
from workbench.models.summary import OutputKind
from workbench.planning.plan import resolve
from workbench.sensitivity.metrics import REFINED
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session

SCHEMES = ("int4-token", "int6-token", "int8-token")


def _activations(session: Session) -> Session:
    """Add tables of what inputs and caches cost: 1, 1/4 and 1/16 of a tenth of a nat."""

    def of(metric: str, layers: tuple[str, ...]) -> Sensitivity:
        score = np.tile([0.1, 0.025, 0.00625], (len(layers), 1)) * np.arange(1, len(layers) + 1)[:, None]
        return Sensitivity(metric=metric, unit="nats", layers=layers, schemes=SCHEMES, score=score, samples=8, seed=0)

    layers = tuple(layer.name for layer in session.model.layers[1:-1])
    cached = tuple(layer.name for layer in session.model.layers if makes_keys_or_values(layer))
    inputs, cache = "predicted_kl_inputs", "predicted_kl_cache"
    return replace(
        session, sensitivities={**session.sensitivities, inputs: of(inputs, layers), cache: of(cache, cached)}
    )


async def _look_at(person: Person, metric: str) -> None:
    box = person.window.panels["sensitivity"].metric_box
    await person.choose(box, box.findData(metric))


def test_a_click_gives_a_layer_its_activation_scheme_and_takes_it_out(live: Callable[..., None]) -> None:
    full = sessions.full(2)
    predicted = {"predicted_kl": full.sensitivities["predicted_kl"]}
    session = _activations(replace(full, sensitivities=predicted))

    async def story(person: Person) -> None:
        await person.open(session)
        panel = person.window.panels["sensitivity"]
        heatmap, before = panel.heatmap, person.state.totals.predicted
        for metric, field in (("predicted_kl_inputs", "inputs"), ("predicted_kl_cache", "cache")):
            table = session.sensitivities[metric]
            await _look_at(person, metric)
            assert heatmap.cells.rows == table.layers and heatmap.cells.columns == SCHEMES
            assert person.state.metric == "predicted_kl" and person.state.totals.predicted == before
            assert (heatmap.cells.chosen == -1).all() and "once more takes out" in panel.figure.text()
            layer, cell = table.layers[3], heatmap.cell_rect(3, 1).center()
            await person.click(heatmap.viewport(), cell)
            assert getattr(person.state.assignments[layer], field) == "int6-token" and heatmap.cells.chosen[3] == 1
            assert np.isclose(person.state.totals.predicted, before + table.score[3, 1], rtol=1e-12)
            assert "int6-token" in person.state.undo_name and layer in person.state.undo_name
            person.picture(field)
            await person.click(heatmap.viewport(), cell)
            assert getattr(person.state.assignments[layer], field) is None and heatmap.cells.chosen[3] == -1
            assert person.state.totals.predicted == before

    live(story)


def test_dragging_paints_inputs_as_one_step(live: Callable[..., None]) -> None:
    session = _activations(sessions.full(1))

    async def story(person: Person) -> None:
        await person.open(session)
        await _look_at(person, "predicted_kl_inputs")
        heatmap = person.window.panels["sensitivity"].heatmap
        spots = [heatmap.cell_rect(row, 2).center() for row in range(3)]
        await person.act(lambda: QTest.mousePress(heatmap.viewport(), Qt.MouseButton.LeftButton, pos=spots[0]))
        for spot in spots[1:]:
            await person.act(lambda spot=spot: _drag(heatmap.viewport(), spot))
        await person.act(lambda: QTest.mouseRelease(heatmap.viewport(), Qt.MouseButton.LeftButton, pos=spots[-1]))
        assert {person.state.assignments[name].inputs for name in heatmap.cells.rows[:3]} == {"int8-token"}
        assert person.state.undo_name == "Paint the inputs of 3 layers"
        await person.press(Qt.Key.Key_Z, person.window, control=True)
        assert person.state.session.plan == session.plan

    live(story)


def test_metrics_without_a_table_are_grey_and_never_a_dead_end(live: Callable[..., None]) -> None:
    session = sessions.full(1)
    only = replace(session, sensitivities={"weight_error": session.sensitivities["weight_error"]})

    async def story(person: Person) -> None:
        await person.open(only)
        panel = person.window.panels["sensitivity"]
        box = panel.metric_box
        grey = {box.itemData(place) for place in range(box.count()) if not box.model().item(place).isEnabled()}
        assert {"predicted_kl", "measured_kl", REFINED.name, "predicted_kl_inputs"} <= grey
        assert "weight_error" not in grey
        assert empty_text(panel) == "" and box.isVisible() and "Predicted KL was not scored yet" in panel.not_yet.text()
        person.picture("not-yet")
        await person.press(Qt.Key.Key_Down, box)
        assert person.state.metric == "weight_error" and panel.heatmap.isVisible() and not panel.not_yet.isVisible()
        await person.open(_activations(session))
        await _look_at(person, "predicted_kl_cache")
        await person.open(replace(only, model=sessions.summary(2)))
        assert panel.metric_box.currentData() == "weight_error", "another model is looked at from the beginning"

    live(story)


def test_of_very_many_cells_a_random_part_is_drawn(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        panel = person.window.panels["agreement"]
        await person.act(lambda: person.window.reveal("agreement"))
        await person.open(sessions.full(200))
        names = {int(number) for number in panel.plot._group}
        assert panel.plot._x.size == MOST < panel._cells.x.size and len(names) == len(panel._cells.schemes)
        assert panel.figure.text().endswith("25,218 cells, 20,000 of them drawn")

    live(story)


def test_the_agreement_offers_only_tables_that_score_the_same_thing(live: Callable[..., None]) -> None:
    session = _activations(sessions.full(1))
    inputs = session.sensitivities["predicted_kl_inputs"]
    measured = replace(inputs, metric="measured_kl_inputs", score=inputs.score * 2)
    session = replace(session, sensitivities={**session.sensitivities, "measured_kl_inputs": measured})
    assert comparable_metrics(session) == {
        "predicted_kl": ("weight_error",), "weight_error": ("predicted_kl",),
        "predicted_kl_inputs": ("measured_kl_inputs",), "measured_kl_inputs": ("predicted_kl_inputs",),
    }  # fmt: skip

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.window.reveal("agreement"))
        panel = person.window.panels["agreement"]
        await person.choose(panel.across, panel.across.findData("predicted_kl_inputs"))
        assert panel.up.currentData() == "measured_kl_inputs" and empty_text(panel) == ""
        assert panel.figure.text() == f"rank agreement 1.0 over {inputs.score.size} cells"
        assert panel.table.records.record(0).ratio == 0.5

    live(story)


def test_cells_that_the_target_refuses_are_neither_asked_for_nor_missed(live: Callable[..., None]) -> None:
    """They were scored for nothing: two fifths of the time on a model whose width is no multiple of 256."""
    session = sessions.full(1)
    table = session.sensitivities["predicted_kl"]
    refused = refused_cells(session.model, table, "gguf").copy()
    refused[:, :2] = False  # two that somebody wanted to see
    part = replace(table, score=np.where(refused, np.nan, table.score))

    async def story(person: Person) -> None:
        await person.open(replace(session, sensitivities={"predicted_kl": part}))
        panel = person.window.panels["sensitivity"]
        await person.act(lambda: person.window.reveal("sensitivity"))
        some = f"{int(np.isfinite(part.score).sum())} of {part.score.size} cells"
        assert panel.figure.text().startswith(some)
        await person.act(lambda: person.context.workspace.show_target("gguf"))
        assert panel.figure.text().startswith(f"{int(np.isfinite(part.score).sum())} cells")
        await person.act(lambda: person.context.trigger("score"))
        await person.until(lambda: person.dialog("form"), 5)
        assert person.dialog("form").findChild(Form).value().target == "gguf"
        await person.act(person.dialog("form").reject)

    live(story)


def test_losses_of_an_encoder_are_distances(live: Callable[..., None]) -> None:
    full = sessions.full(1)
    table = replace(full.sensitivities["predicted_kl"], unit=HALF_SQUARED_DISTANCE)
    run = full.evaluations[0]
    renamed = replace(run.metrics["kl"], name="half_squared_distance", unit=HALF_SQUARED_DISTANCE)
    session = replace(
        full, model=replace(full.model, output=OutputKind.EMBEDDING), sensitivities={"predicted_kl": table},
        evaluations=(replace(run, metrics={renamed.name: renamed}),),
    )  # fmt: skip

    async def story(person: Person) -> None:
        await person.open(session)
        window = person.window
        assert window.status.loss_label.text().startswith("Predicted distance ")
        assert window.panels["sensitivity"].metric_box.currentText() == "Predicted distance (½ d²)"
        for name in ("pareto", "accuracy", "sensitivity"):
            await person.act(lambda name=name: window.reveal(name))
            person.picture(f"encoder-{name}")
        (measured,) = window.panels["pareto"].plot.picture.measured
        assert (measured.value, measured.predicted) == (renamed.value, run.predicted_kl)
        (row,) = window.panels["accuracy"].table.records.records
        assert row.predicted == run.predicted_kl
        person.window.panels["sensitivity"]._hover(0, 0)
        assert HALF_SQUARED_DISTANCE in person.window.panels["sensitivity"].figure.text()
        await person.act(lambda: person.context.trigger("score"))
        await person.until(lambda: person.dialog("form"), 10)
        metric = person.dialog("form").findChild(QComboBox)
        names = [metric.itemText(place) for place in range(metric.count())]
        assert "Predicted distance (½ d²)" in names and not any("KL" in name or "nats" in name for name in names), names
        await person.act(person.dialog("form").reject)

    live(story)


def test_measured_losses_among_predicted_ones_are_named(live: Callable[..., None]) -> None:
    full = sessions.full(1)
    table = full.sensitivities["predicted_kl"]
    session = replace(full, sensitivities={"predicted_kl": replace(table, measured=table.layers[:1])})

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.window.reveal("sensitivity"))
        panel = person.window.panels["sensitivity"]
        assert "1 layer measured, since no gradient tells what they decide" in panel.figure.text()
        panel._hover(0, 0)
        assert "(measured: no gradient tells what it decides)" in panel.figure.text()
        panel._hover(1, 0)
        assert "measured" not in panel.figure.text()

    live(story)


@pytest.mark.parametrize("smallest", [1e-6, 3e-12])
@pytest.mark.parametrize("width", [700, 800, 900, 1000, 1400])
def test_no_text_runs_into_the_next_cell(qapp: object, width: int, smallest: float) -> None:
    score = np.geomspace(smallest, 0.9, 12 * 16).reshape(12, 16)
    picture = HeatmapPicture(theme.LIGHT)
    picture.resize(width, 500)
    rows, columns = tuple(f"layer.{row}" for row in range(12)), tuple(f"int{bits}" for bits in range(16))
    chosen = np.full(12, -1)
    picture.show_cells(Cells(rows=rows, columns=columns, score=score, chosen=chosen, low=smallest, high=0.9))
    picture.grab()
    texts = {text: wide for text, (_, wide) in picture._texts.items()}
    assert texts and max(texts.values()) <= picture.column_width
    picture.deleteLater()


def test_rows_are_added_and_taken_out_with_control_and_up_to_one_with_shift(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(3))
        heatmap = person.window.panels["sensitivity"].heatmap
        rows = heatmap.cells.rows

        async def click(row: int, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> set[str]:
            at = heatmap.cell_rect(row, 0)
            await person.click(heatmap.viewport(), QPoint(at.left() - 20, at.center().y()), modifier=modifier)
            return set(person.state.selection)

        control, shift = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
        assert await click(2) == {rows[2]}
        assert await click(5, control) == {rows[2], rows[5]}
        assert await click(7, shift) == set(rows[5:8])
        assert await click(6, control) == {rows[5], rows[7]}
        assert await click(1) == {rows[1]}
        assert await click(1, control) == {rows[1]}, "one row stays selected"

    live(story)


def test_a_fast_drag_paints_the_rows_that_the_mouse_skipped(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(3))
        heatmap, before = person.window.panels["sensitivity"].heatmap, person.state.session.plan
        scheme, names = heatmap.cells.columns[1], heatmap.cells.rows[1:8]
        view = heatmap.viewport()

        def drag(start: int, end: int) -> None:
            spots = [heatmap.cell_rect(row, 1).center() for row in (start, end)]
            QTest.mousePress(view, Qt.MouseButton.LeftButton, pos=spots[0])
            _drag(view, spots[1])
            QTest.mouseRelease(view, Qt.MouseButton.LeftButton, pos=spots[1])

        for ends in ((1, 7), (7, 1)):
            await person.act(partial(drag, *ends))
            await person.settle(0.1)
            assert {person.state.assignments[name].weights for name in names} == {scheme}
            await person.act(lambda: person.context.trigger("undo"))
            assert person.state.session.plan == before, "one step"

    live(story)


def test_names_of_schemes_can_be_told_apart_where_the_heatmap_is_low(qapp: QApplication) -> None:
    """At a scale of 2 and 1080 lines, "int3-g64-asym" and "int3-g32-asym" ended after "int3-g"."""
    session = sessions.full(2)
    shown = arranged(session.sensitivities["predicted_kl"], Order.DEPTH, session.model)
    for height, has_families in ((168, False), (400, True)):
        heatmap = Heatmap(theme.LIGHT)
        heatmap.show_cells(cells_of(shown, resolve(session.plan, session.model.layers), "predicted_kl"))
        heatmap.resize(330, height)
        heatmap.grab()
        room = heatmap.head_height - heatmap._band_height - 8
        names = {elided(heatmap.fontMetrics(), name, room) for name in shown.table.schemes}
        assert len(names) == len(shown.table.schemes), names
        assert bool(heatmap._band_height) == has_families
        assert (heatmap.viewport().height() - heatmap.head_height) // heatmap.row_height >= 2
        heatmap.deleteLater()


def test_a_click_on_a_block_leaves_its_router_as_it_is(live: Callable[..., None]) -> None:
    session = sessions.full(2)
    router = session.model.layers[3].name
    layers = tuple(replace(each, keep="a router") if each.name == router else each for each in session.model.layers)
    session = replace(session, model=replace(session.model, layers=layers), plan=replace(session.plan, rules=()))

    async def story(person: Person) -> None:
        await person.open(session)
        panel = person.window.panels["sensitivity"]
        await person.choose(panel.order_box, list(Order).index(Order.BLOCK))
        await person.act(lambda: panel.order_box.activated.emit(panel.order_box.currentIndex()))
        heatmap = panel.heatmap
        row = next(at for at in range(len(heatmap.cells.rows)) if router in panel._layers(at))
        await person.click(heatmap.viewport(), heatmap.cell_rect(row, 2).center())
        changed = {name for name, each in person.state.assignments.items() if each.weights == heatmap.cells.columns[2]}
        assert changed == {name for name in panel._layers(row) if name != router}
        await person.settle()
        assert set(person.state.selection) == changed

    live(story)
