"""Distributions: every tensor's range is dragged, formats stand on the axis, many layers are compared."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pyqtgraph as pg
import pytest
import torch
from PySide6.QtCore import QLocale, QPoint, QPointF, Qt
from PySide6.QtGui import QPainter, QPixmap, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

import workbench as wb
from tests.gui import sessions
from tests.gui.conftest import Person
from tests.gui.test_panels import _drag
from tests.numerics.statistics.same import same
from workbench.errors import WorkbenchError
from workbench.gui.app import pass_results_by
from workbench.gui.context import edits
from workbench.gui.panels.distributions.panel import CACHE, MANY, OVERLAY
from workbench.gui.panels.distributions.range_editor import range_of
from workbench.gui.plots.histogram import BINS, TICK_PIXELS, Histogram, count_ticks
from workbench.gui.shell import theme
from workbench.models.layer import LayerKind
from workbench.numerics.ranges import Range
from workbench.numerics.statistics.observe import observe
from workbench.planning.plan import KEEP
from workbench.session.table import of_tap
from workbench.session.workspace import State
from workbench.steps.calibrate import CALIBRATE, CalibrateOptions

Q_PROJ = "model.layers.0.self_attn.q_proj"


class Unlisted(dict[tuple[str, str, str], Range]):
    """Ranges that may be asked for, but not gone through: there are 100,000 of them for 5,000 layers."""

    def __iter__(self) -> Iterator[tuple[str, str, str]]:
        raise AssertionError("all ranges were gone through")


def test_another_layer_is_shown_without_going_through_the_ranges_of_all(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        session = sessions.full(1)
        await person.open(replace(session, ranges=Unlisted(session.ranges)))
        await person.act(lambda: person.context.workspace.select([Q_PROJ]))
        methods = {method for layer, tap, method in session.ranges if (layer, tap) == (Q_PROJ, "input")}
        line = person.window.panels["distributions"].line
        assert {line.method.itemData(at) for at in range(line.method.count())} == methods

    live(story)


def test_the_collector_of_cycles_passes_by_results() -> None:
    session = sessions.full(1)
    gc.unfreeze()
    try:
        pass_results_by(State(session=session), State(session=replace(session)))  # an edit
        assert gc.get_freeze_count() == 0
        pass_results_by(State(), State(session=session))
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("tap", ["weight", "output"])
def test_the_range_of_weights_and_outputs_is_dragged(live: Callable[..., None], tap: str) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.context.workspace.select([Q_PROJ]))
        panel = person.window.panels["distributions"]
        plot, before = panel.plots[tap], range_of(person.state.session, Q_PROJ, tap)
        view = plot.item.getViewBox()
        height = view.viewRect().center().y()
        start = plot.mapFromScene(view.mapViewToScene(QPointF(before.high, height)))
        await person.act(lambda: QTest.mousePress(plot.viewport(), Qt.MouseButton.LeftButton, pos=start))
        for step in range(1, 7):
            await person.act(lambda step=step: _drag(plot.viewport(), start - QPoint(5 * step, 0)))
        assert panel.line.tap == tap and "not used by the plan" in panel.figures.text()
        end = start - QPoint(30, 0)
        await person.act(lambda: QTest.mouseRelease(plot.viewport(), Qt.MouseButton.LeftButton, pos=end))
        after = person.state.session.active_ranges[Q_PROJ, tap]
        assert after.method == "manual" and after.high < before.high
        await person.press(Qt.Key.Key_Z, control=True)
        assert person.state.session.active_ranges.get((Q_PROJ, tap)) == (before if tap == "output" else None)

    live(story)


def test_formats_stand_on_the_axis_and_layers_are_compared(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        names = [layer.name for layer in person.state.session.model.layers[1:8]]
        await person.act(lambda: person.context.workspace.select(names))
        panel = person.window.panels["distributions"]
        planned = person.state.assignments[names[0]].weights
        assert list(panel.plots["weight"]._grids) == [planned]
        assert panel.plots["weight"]._grids[planned].size == 256
        action = next(item for item in panel.formats.actions() if item.text() == "nf4-b64")
        await person.act(action.trigger)
        assert panel.plots["weight"]._grids["nf4-b64"].size == 16
        assert panel.plots["weight"].item.viewRange()[1][0] < 0  # room below the axis
        await person.choose(panel.view, panel.view.findText(OVERLAY))
        assert len(panel.plots["weight"]._others) == 5
        person.picture("overlay")
        await person.choose(panel.view, panel.view.findText(MANY))
        assert panel.multiples.isVisible() and len(panel.multiples._entries) == len(names)
        person.picture("side-by-side")
        await person.click(panel.multiples, panel.multiples.rect_of(3).center())
        assert person.state.selection == (names[3],)

    live(story)


def _small_model(person: Person) -> object:
    return person.window.document.open_path("demo:digits-classifier")


async def _calibrated(person: Person) -> str:
    """Open the bundled classifier, calibrate it, and select its last linear layer, which is returned."""
    await person.act(lambda: _small_model(person))
    await person.until(lambda: person.state.session is not None)
    request = CALIBRATE.request(person.state.session, CalibrateOptions(data="demo:digits-classifier", samples=64))
    await person.act(lambda: person.context.runner.submit(request))
    await person.until(lambda: person.state.session.calibration is not None)
    linear = [layer.name for layer in person.state.session.model.layers if layer.kind is LayerKind.LINEAR]
    await person.act(lambda: person.context.workspace.select(linear[-1:]))
    return linear[-1]


def test_dragging_shows_error_and_predicted_loss(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        layer = await _calibrated(person)
        panel = person.window.panels["distributions"]
        before, least = range_of(person.state.session, layer, "input"), panel.figures.text()
        await person.type(panel.high, f"{before.high / 2:.5g}")
        await person.press(Qt.Key.Key_Return, panel.high)
        await person.until(lambda: panel.figures.text() != least)
        half = panel.figures.text()
        loss = float(half.split("loss ")[1].split(" nats")[0])
        session, model = person.state.session, wb.open("demo:digits-classifier", trust=True)
        scheme, metric = "int8-tensor", "predicted_kl_inputs"
        table = wb.score(session, metric, model=model, schemes=(scheme,)).sensitivities[metric]
        assert loss == pytest.approx(table.of(layer, scheme), rel=0.15)
        assert "gradients there in 64 samples" in panel.figures.toolTip()
        await person.press(Qt.Key.Key_Z, person.window, control=True)
        assert panel.figures.text() != half and "nats" in panel.figures.text()

    live(story)


@pytest.mark.parametrize(
    ("scheme", "label"),
    [
        (None, "leaves this input in floating point"),
        ("int8-token", "scales this input for every token"),
        ("int8-tensor-asym", ""),
    ],
)
def test_a_range_of_inputs_that_no_plan_uses_is_said_to_be_for_judging(
    live: Callable[..., None], scheme: str | None, label: str
) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.context.workspace.select([Q_PROJ]))
        await person.act(lambda: edits.assign(person.context.workspace, [Q_PROJ], inputs=scheme))
        line = person.window.panels["distributions"].line
        assert line.tap == "input" and "clips " in line.figures.text()
        assert label in line.figures.text() and ("not used by the plan" in line.figures.text()) == bool(label)

    live(story)


def test_a_symmetric_scheme_is_said_to_mirror_the_range(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        panel, layers = person.window.panels["distributions"], person.window.panels["layers"]
        await person.click(layers.view.viewport(), layers.view.visualRect(layers.model.index_of(Q_PROJ)).center())
        await person.type(panel.low, "-99")
        await person.press(Qt.Key.Key_Return, panel.low)
        await person.until(lambda: "±99.0" in panel.figures.text(), 10)
        assert "as int8-tensor, symmetric: ±99.0 (the plan leaves" in panel.figures.text()
        assert panel.figures.shown.startswith("not used by the plan"), "it is seen in a window of 1,280 pixels"
        assert person.dialog("error") is None

    live(story)


def test_what_the_plan_makes_of_a_layer_is_laid_over_it(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        layer = await _calibrated(person)
        panel = person.window.panels["distributions"]
        await person.act(lambda: edits.assign(person.context.workspace, [layer], weights="int3-g32-asym"))
        await person.click(panel.compared)
        await person.until(lambda: panel.plots["weight"]._others)
        ((name, rounded),) = panel.plots["weight"]._others
        assert name == "int3-g32-asym"
        original = person.state.session.statistics[layer, "weight"]
        assert rounded.count == original.count and not same(rounded, original)
        assert rounded.minimum >= original.minimum - 0.1 and not panel.plots["input"]._others
        person.picture("before-after")
        await person.act(lambda: edits.assign(person.context.workspace, [layer], weights=KEEP))
        await person.until(lambda: panel.after.get(layer) is not None)
        assert panel.after.get(layer).rounded is None and not panel.plots["weight"]._others
        person.context.jobs.submit = _refused
        await person.act(lambda: edits.assign(person.context.workspace, [layer], weights="int4-g32"))
        await person.answer("error", "Close")
        await person.settle(0.3)
        assert person.dialog("error") is None, "what failed is not asked for again by itself"

    live(story)


def _refused(request: object) -> object:
    raise WorkbenchError("no room")


def test_histograms_are_hidden_and_the_layer_is_named_in_a_small_window(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.layer(Q_PROJ)
        panel = person.window.panels["distributions"]
        assert panel.title.shown == "0.self_attn.q_proj"
        await person.act(lambda: panel.tensors.popup(panel.mapToGlobal(panel.rect().center())))
        for shown in (False, True):
            await person.press(Qt.Key.Key_O, panel.tensors)
            assert panel.plots["output"].isVisible() is shown and panel.plots["weight"].isVisible()
            await person.act(lambda: panel.tensors.popup(panel.mapToGlobal(panel.rect().center())))
        await person.press(Qt.Key.Key_Escape, panel.tensors)

    live(story)


def test_zooming_side_by_side_and_linked(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        names = [layer.name for layer in person.state.session.model.layers[1:5]]
        await person.act(lambda: person.context.workspace.select(names))
        panel = person.window.panels["distributions"]
        await person.click(panel.linked)
        plot, other = panel.plots["weight"], panel.plots["output"]
        view = plot.item.getViewBox()
        middle = plot.mapFromScene(view.mapViewToScene(view.viewRect().center()))
        await person.act(lambda: _wheel(plot.viewport(), middle))
        parts = [[(end - each.span[0]) / (each.span[1] - each.span[0]) for end in each.item.viewRange()[0]]
                 for each in (plot, other)]  # fmt: skip
        assert parts[0][1] - parts[0][0] < 0.95 and parts[0] == pytest.approx(parts[1])
        await person.choose(panel.view, panel.view.findText(MANY))
        many = panel.multiples
        whole = many.span
        await person.act(lambda: _wheel(many, many.rect_of(1).center()))
        assert many.span[1] - many.span[0] == pytest.approx(0.8 * (whole[1] - whole[0]))
        await person.press(Qt.Key.Key_Right, many)
        assert many.span[0] > whole[0]
        person.picture("zoomed")
        await person.press(Qt.Key.Key_0, many)
        assert many.span == whole

    live(story)


def _wheel(widget: QWidget, spot: QPoint) -> None:
    place, nothing = QPointF(spot), Qt.MouseButton.NoButton
    event = QWheelEvent(
        place, QPointF(widget.mapToGlobal(spot)), QPoint(), QPoint(0, 120), nothing, Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(widget, event)


def test_keys_and_values_of_the_whole_model(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(3))
        await person.act(lambda: person.context.workspace.select([Q_PROJ]))
        panel = person.window.panels["distributions"]
        await person.press(Qt.Key.Key_End, panel.view)
        assert panel.view.currentText() == CACHE and panel.multiples.isVisible()
        shown = dict(panel.multiples._entries)
        parts = [f"model.layers.{block}.self_attn.{part}" for block in range(3) for part in ("k_proj", "v_proj")]
        assert list(shown) == parts
        assert all(item is person.state.session.statistics[name, "output"] for name, item in shown.items())
        heading = panel.title.text()
        assert heading == "Outputs of 6 layers (k_proj, v_proj): keys before their rotation by position, and values"
        assert "keys before rotation" in panel.title.shown and panel.line.isHidden()
        person.picture("keys-and-values")

    live(story)


def test_the_range_method_that_is_chosen_is_in_force(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.context.workspace.select([Q_PROJ]))
        panel = person.window.panels["distributions"]
        ranges = person.state.session.ranges
        for drag in (False, True):
            for method in ("percentile", "min-max", "percentile"):
                if drag:
                    await person.type(panel.high, "0.4321")
                    await person.press(Qt.Key.Key_Return, panel.high)
                    assert range_of(person.state.session, Q_PROJ, "input").method == "manual"
                    assert panel.method.currentData() == "manual"
                await person.choose(panel.method, panel.method.findData(method))
                assert panel.method.currentData() == method
                assert range_of(person.state.session, Q_PROJ, "input") == ranges[Q_PROJ, "input", method]
                assert person.state.assignments[Q_PROJ].range_method == method
        undo = person.state.undo_name
        assert undo == f"Set the input range of {Q_PROJ} (percentile)"
        await person.press(Qt.Key.Key_Z, person.window, control=True)
        assert panel.method.currentData() == "manual"

    live(story)


def test_a_range_is_typed_with_a_decimal_point_in_every_locale(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.context.workspace.select([Q_PROJ]))
        panel = person.window.panels["distributions"]
        before = range_of(person.state.session, Q_PROJ, "input")
        for wrong, words in (("1,5", "comma"), ("1.000.000", "not a number"), ("1 000", "not a number")):
            await person.type(panel.high, wrong)
            await person.press(Qt.Key.Key_Return, panel.high)
            assert panel.figures.text().startswith("Not taken: ") and words in panel.figures.text()
            await person.press(Qt.Key.Key_Tab)
            assert range_of(person.state.session, Q_PROJ, "input") == before and panel.high.lineEdit().text() == wrong
        await person.type(panel.high, "1.5")
        assert "clips " in panel.figures.text()
        await person.press(Qt.Key.Key_Return, panel.high)
        after = range_of(person.state.session, Q_PROJ, "input")
        assert after.high == 1.5 and after.low == before.low, "an end that was not edited keeps all its digits"

    locale = QLocale()
    QLocale.setDefault(QLocale("de_DE"))
    try:
        live(story)
    finally:
        QLocale.setDefault(locale)


def test_an_empty_plot_says_why(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        panel, full = person.window.panels["distributions"], replace(sessions.full(1), ranges={}, active_ranges={})
        plots = panel.plots
        await person.open(replace(full, calibration=None, statistics=of_tap(full.statistics, "weight")))
        await person.layer("model.layers.0.mlp.up_proj")
        assert "Calibrate (F5)" in plots["input"].reason and "Calibrate (F5)" in panel.figures.text()
        assert plots["weight"].reason == ""
        embedding = full.model.layers[0].name
        seen = {key: value for key, value in full.statistics.items() if key != (embedding, "input")}
        await person.open(replace(full, statistics=seen))
        await person.layer(embedding)
        assert "token ids" in plots["input"].reason and "token ids" in panel.figures.text()
        person.picture("embedding")
        without = {key: value for key, value in seen.items() if key[0] != "model.layers.0.mlp.up_proj"}
        await person.open(replace(full, statistics=without))
        await person.layer("model.layers.0.mlp.up_proj")
        assert "never reached" in plots["output"].reason
        await person.act(lambda: person.window.reveal("channels"))
        assert "No statistics" in person.window.panels["channels"].figure.text()

    live(story)


def test_the_ends_of_a_range_stand_side_by_side(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.context.workspace.select([Q_PROJ]))
        line = person.window.panels["distributions"].line
        places = [widget.geometry() for widget in (line.taps, line.method, line.low, line.high, line.figures)]
        assert all(left.right() < right.left() for left, right in zip(places, places[1:], strict=False)), places

    live(story)


def test_every_curve_has_a_name_where_there_are_several(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        names = [layer.name for layer in person.state.session.model.layers[1:4]]
        await person.act(lambda: person.context.workspace.select(names))
        panel = person.window.panels["distributions"]
        plot = panel.plots["weight"]
        assert plot._legend == []
        await person.choose(panel.view, panel.view.findText(OVERLAY))
        await person.act(lambda: panel.view.activated.emit(panel.view.currentIndex()))
        assert plot._legend == ["0.self_attn.q_proj", "0.self_attn.k_proj", "0.self_attn.v_proj"]
        assert [mark.text for mark in plot._marks if mark.right] == plot._legend
        assert [action.text() for action in plot.context_menu().actions()] == [
            "Show &All", "&Logarithmic", "&Copy the Picture", "Copy the &Numbers", "&Zoom to the Range",
        ]  # fmt: skip

    live(story)


def test_a_tick_stands_where_its_count_does(qapp: object) -> None:
    """A bar of c is log10(c + 1) high: "1" below all bars, and "10" where 9 is, would be a false axis."""
    for top, per_pixel in ((0.9, 0.01), (3.2, 0.02), (6.5, 0.06), (6.5, 0.2)):
        ticks = count_ticks(top, per_pixel)
        assert ticks[0] == (0.0, "0") and len(ticks) > 1
        for place, text in ticks:
            assert place == pytest.approx(math.log10(_number(text) + 1.0)) and place <= top
        gaps = [after - before for (before, _), (after, _) in zip(ticks, ticks[1:], strict=False)]
        assert min(gaps) >= TICK_PIXELS * per_pixel, "texts do not overlap"


def _number(tick: str) -> float:
    return float(tick.rstrip("kMG")) * {"k": 1e3, "M": 1e6, "G": 1e9}.get(tick[-1], 1.0)


@pytest.mark.parametrize("log", (True, False))
def test_ticks_leave_room_for_the_label(qapp: object, log: bool) -> None:
    values = torch.from_numpy(np.random.default_rng(0).normal(size=(3_000, 1_000)).astype(np.float32))
    plot = Histogram("many", theme.LIGHT, bottom="weight")
    plot.resize(300, 240)
    plot.show_log(log)
    plot.show_statistics(observe(values, 1))
    plot.show()
    axis = plot.item.getAxis("left")
    canvas = QPixmap(300, 240)
    painter = QPainter(canvas)
    ticks = axis.generateDrawSpecs(painter)[2]
    painter.end()
    label = axis.label.mapRectToParent(axis.label.boundingRect())
    shown = [(rect, text) for rect, _, text in ticks if _number(text) >= 1_000]
    assert shown and all(not rect.intersects(label.adjusted(2, 0, -2, 0)) for rect, _ in shown)
    plot.deleteLater()


def test_few_values_are_no_comb(qapp: object) -> None:
    values = torch.from_numpy(np.random.default_rng(0).uniform(size=(100, 4)).astype(np.float32))
    plot = Histogram("few", theme.LIGHT, bottom="weight")
    plot.show_statistics(observe(values, 1))
    (curve,) = [item for item in plot.item.items if isinstance(item, pg.PlotCurveItem)]
    heights = curve.getData()[1]
    assert 20 < heights.size < 100 and (heights[1:-1] > 0).mean() > 0.95


def test_pixels_are_no_comb_and_few_levels_stay_lines(qapp: object) -> None:
    normal = np.random.default_rng(0).normal(size=100_000)
    for values, combed in (
        (np.clip(np.round(normal * 40), -127, 127) / 127, True), (np.sign(np.round(normal)), False), (normal, False),
        (np.round(normal * 2) / 2, False),
    ):  # fmt: skip
        plot = Histogram("steps", theme.LIGHT, bottom="value")
        statistics = observe(torch.from_numpy(values.astype(np.float32)).reshape(100, -1), 1)
        plot.show_statistics(statistics)
        (curve,) = [item for item in plot.item.items if isinstance(item, pg.PlotCurveItem)]
        heights = curve.getData()[1]
        assert (heights.size < statistics.display(BINS)[1].size) == combed
        if combed:
            inner = heights[(heights > 1.3).argmax() :][: 1 + int((heights > 1.3).sum())]
            assert heights.size >= 64 and (inner > 0).mean() > 0.98


def test_names_of_layers_without_a_block_are_not_doubled(live: Callable[..., None]) -> None:
    opened = sessions.opened()
    model = opened.model
    alone = replace(model.layers[1], name="inp", block="inp")
    session = replace(opened, model=replace(model, layers=(model.layers[0], alone, *model.layers[2:])))

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.context.workspace.select(("inp",)))
        assert person.window.panels["distributions"].title.text() == "inp"

    live(story)


def test_a_right_click_looks_closer_at_the_range(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.context.workspace.select([Q_PROJ]))
        plot = person.window.panels["distributions"].plots["output"]
        middle = range_of(person.state.session, Q_PROJ, "output")
        low, high = middle.low / 4, middle.high / 4
        await person.act(lambda: plot.region.setRegion((low, high)))
        actions = {action.text().replace("&", ""): action for action in plot.context_menu().actions()}
        await person.act(actions["Zoom to the Range"].trigger)
        seen = plot.item.viewRange()[0]
        assert seen[0] < low < high < seen[1] and seen[1] - seen[0] < 1.3 * (high - low)

    live(story)
