"""Outlier channels are found and listed; two metrics' agreement is what an independent computation says."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from scipy import stats

from tests.gui import sessions
from tests.gui.conftest import Person
from tests.gui.test_panels import _drag
from workbench.gui.context import edits
from workbench.insight.agreement import rank_agreement
from workbench.insight.channels import by_channel, outliers, pooled
from workbench.models.layer import LayerKind

LAYER = "model.layers.0.mlp.up_proj"


def _with_outlier(times: float) -> object:
    plain = sessions.statistics(np.random.default_rng(0), 1.0)
    absmax = np.linspace(0.5, 1.5, 64, dtype=np.float32)
    absmax[7] = times  # the median of the others is 1
    high = plain.channel_maximum.copy()
    high[7] = times
    return replace(plain, channel_absmax=absmax, channel_maximum=high)


def test_outliers_are_the_channels_far_above_the_median() -> None:
    result = outliers(_with_outlier(9.0))  # type: ignore[arg-type]
    assert result[0].number == 7 and result[0].times == pytest.approx(9.0, rel=0.02)
    assert all(item.times >= 4 for item in result)
    assert 7 not in [item.number for item in outliers(_with_outlier(3.0))]  # type: ignore[arg-type]


def test_pooling_keeps_the_extremes() -> None:
    low, high = -np.arange(10.0), np.arange(10.0) ** 2
    starts, least, most = pooled(low, high, 4)
    assert starts.tolist() == [0, 3, 6, 9]
    assert least.tolist() == [-2, -5, -8, -9] and most.tolist() == [4, 25, 64, 81]


def test_rank_agreement_is_spearmans() -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(0, 12, 80).astype(float)
    y = x + rng.normal(0, 3, 80).round()
    assert rank_agreement(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
    assert np.isnan(rank_agreement(np.ones(9), np.arange(9.0)))


def test_the_channels_of_the_selected_layer_are_drawn(live: Callable[..., None]) -> None:
    session = sessions.full(1)
    session = replace(session, statistics={**session.statistics, (LAYER, "weight"): _with_outlier(9.0)})

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.context.workspace.select([LAYER]))
        await person.act(lambda: person.window.reveal("channels"))
        panel = person.window.panels["channels"]
        assert panel.table.records.record(0).number == 7
        assert "64 channels" in panel.figure.text()
        await _brush(person, 20, 40)
        assert panel.brush.text().startswith("Channels 20 to 40:") and panel.listed.currentText() == "In the region"
        assert [item.number for item in panel.table.records.records] == list(range(20, 41))
        table = panel.table
        assert table.horizontalHeader().length() <= table.viewport().width() + 1, "every column is seen"
        person.picture("channels")
        await _brush(person, 50, 45)
        assert panel.plot.chosen == (45, 50), "drawn to the left"
        for key, shift, expected in ((Qt.Key.Key_Right, False, (46, 51)), (Qt.Key.Key_Left, True, (46, 50))):
            await person.press(key, panel.plot, shift=shift)
            assert panel.plot.chosen == expected

    live(story)


async def _brush(person: Person, first: float, last: float) -> None:
    """Draw a region from one channel to another with the mouse."""
    plot = person.window.panels["channels"].plot
    view = plot.item.getViewBox()
    height = view.viewRect().center().y()
    spots = [plot.mapFromScene(view.mapViewToScene(QPointF(at, height))) for at in (first, last)]
    await person.act(lambda: QTest.mousePress(plot.viewport(), Qt.MouseButton.LeftButton, pos=spots[0]))
    for part in (0.3, 0.7, 1.0):
        spot = QPoint(round(spots[0].x() + part * (spots[1].x() - spots[0].x())), spots[0].y())
        await person.act(lambda spot=spot: _drag(plot.viewport(), spot))
    await person.act(lambda: QTest.mouseRelease(plot.viewport(), Qt.MouseButton.LeftButton, pos=spots[1]))


def test_predicted_against_measured(live: Callable[..., None]) -> None:
    session = sessions.full(2)
    predicted = session.sensitivities["predicted_kl"]
    measured = replace(predicted, metric="measured_kl", score=predicted.score * 1.25)
    session = replace(session, sensitivities={"predicted_kl": predicted, "measured_kl": measured})

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.window.reveal("agreement"))
        panel = person.window.panels["agreement"]
        assert panel.across.currentData() == "predicted_kl" and panel.up.currentData() == "measured_kl"
        assert panel.figure.text().startswith("rank agreement 1.0 over")
        assert panel.table.records.record(0).ratio == pytest.approx(0.8)
        for row in range(panel.table.records.rowCount()):
            scheme = panel.table.records.record(row).scheme
            marked = panel.table.records.index(row, 0).data(Qt.ItemDataRole.DecorationRole).name()
            assert marked == panel.plot.colour_of(predicted.schemes.index(scheme)), "in the colour of its points"
        axis, metrics = panel.plot.item.getAxis("bottom"), panel.fontMetrics()
        ((ticks,),) = [axis._tickLevels]
        scale = panel.plot.item.getViewBox().width() / np.ptp(panel.plot.item.viewRange()[0])
        spots = sorted((at * scale, metrics.horizontalAdvance(text)) for at, text in ticks)
        assert len(spots) > 1 and all(
            right - left > (wide + wider) / 2 for (left, wide), (right, wider) in itertools.pairwise(spots)
        ), "labels run together"
        person.picture("agreement")
        layer, scheme = predicted.layers[3], predicted.schemes[5]
        point = QPointF(*(math.log10(table.of(layer, scheme)) for table in (predicted, measured)))
        view = panel.plot.item.getViewBox()
        await person.click(panel.plot.viewport(), panel.plot.mapFromScene(view.mapViewToScene(point)))
        await person.until(lambda: person.state.selection, 5)
        chosen = person.state.selection[0]
        index = predicted.row[chosen] * len(predicted.schemes) + 5
        assert panel._cells.text(index).startswith(f"{chosen}, {scheme}: ")
        near = np.abs(np.log10(predicted.score[predicted.row[chosen]] / predicted.of(layer, scheme)))
        assert near.min() < 0.05, "a point where the click was"

    live(story)


def test_errors_by_channel_of_the_brush(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path("demo:digits-classifier"))
        await person.until(lambda: person.state.session is not None)
        linear = [layer.name for layer in person.state.session.model.layers if layer.kind is LayerKind.LINEAR]
        await person.act(lambda: person.context.workspace.select(linear[-1:]))
        await person.act(lambda: edits.assign(person.context.workspace, linear, weights="int3-g32-asym"))
        await person.act(lambda: person.window.reveal("channels"))
        panel = person.window.panels["channels"]
        assert "of the error" not in panel.brush.text()
        await person.press(Qt.Key.Key_Space, panel.errors)
        await person.until(lambda: "% of the error" in panel.brush.text())
        count = panel.plot._statistics.channels
        await person.press(Qt.Key.Key_Home, panel.listed)
        for _ in range(count - 1 - panel.plot.chosen[1]):
            await person.press(Qt.Key.Key_Right, panel.plot, shift=True)
        assert panel.plot.chosen == (0, count - 1)
        assert panel.brush.text().endswith("100.00 % of the error")
        assert panel.listed.currentText() == "In the region" and panel.table.records.rowCount() == count
        assert sum(item.error for item in panel.table.records.records) == pytest.approx(1)
        person.picture("errors")
        await person.press(Qt.Key.Key_Up, panel.listed)
        for row in range(panel.table.records.rowCount()):
            place = panel.table.visualRect(panel.table.records.index(row, 0)).center()
            await person.click(panel.table.viewport(), place)
            number = panel.table.records.record(row).number
            assert panel.plot.chosen == (number, number)
            break
        others = [layer.name for layer in person.state.session.model.layers if layer.name != linear[-1]]
        await person.act(lambda: edits.assign(person.context.workspace, others, weights="int4-g32-asym"))
        assert "of the error" in panel.brush.text(), "the layer is rounded as before"
        await person.act(lambda: edits.assign(person.context.workspace, linear, weights="int6-g32-asym"))
        await person.until(lambda: panel.errors.toolTip().endswith("under int6-g32-asym"))
        assert panel.brush.text().endswith("100.00 % of the error"), "found anew for the other plan"

    live(story)


def test_errors_of_columns_become_those_of_channels() -> None:
    assert by_channel(np.arange(6.0), 3).tolist() == [1, 5, 9]
    assert by_channel(np.arange(6.0), 4) is None
