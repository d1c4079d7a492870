"""Outlier channels are found and listed; two metrics' agreement is what an independent computation says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.channels import outliers, pooled
from workbench.gui.plots.agreement import rank_agreement

LAYER = "model.layers.0.mlp.up_proj"


def _with_outlier(times: float) -> object:
    plain = sessions.statistics(np.random.default_rng(0), 1.0)
    absmax = np.linspace(0.5, 1.5, 64, dtype=np.float32)
    absmax[7] = times  # the median of the others is 1
    high = plain.channel_maximum.copy()
    high[7] = times
    return replace(plain, channel_absmax=absmax, channel_maximum=high)


def test_outliers_are_the_channels_far_above_the_median() -> None:
    found = outliers(_with_outlier(9.0))  # type: ignore[arg-type]
    assert found[0].number == 7 and found[0].times == pytest.approx(9.0, rel=0.02)
    assert all(one.times >= 4 for one in found)
    assert 7 not in [one.number for one in outliers(_with_outlier(3.0))]  # type: ignore[arg-type]


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
        await person.act(lambda: person.desk.workspace.select([LAYER]))
        await person.act(lambda: person.window.show_panel("channels"))
        panel = person.window.panels["channels"]
        assert panel.table.records.record(0).number == 7
        assert "64 channels" in panel.figure.text()
        await person.act(lambda: panel.plot.region.setRegion((6.5, 8.5)))
        assert panel.brush.text().startswith("Channels 7 to 8:")
        person.picture("channels")

    live(story)


def test_predicted_against_measured(live: Callable[..., None]) -> None:
    session = sessions.full(2)
    predicted = session.sensitivities["predicted_kl"]
    measured = replace(predicted, metric="measured_kl", score=predicted.score * 1.25)
    session = replace(session, sensitivities={"predicted_kl": predicted, "measured_kl": measured})

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.window.show_panel("agreement"))
        panel = person.window.panels["agreement"]
        assert panel.across.currentData() == "predicted_kl" and panel.up.currentData() == "measured_kl"
        assert panel.figure.text().startswith("rank agreement 1.0 over")
        assert panel.table.records.record(0)[2] == pytest.approx(0.8)
        person.picture("agreement")

    live(story)
