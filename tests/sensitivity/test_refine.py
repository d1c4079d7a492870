"""Close decisions on tables whose answer is known; resuming to the same bits; measured cells over predicted ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.models.networks import decoder, tokens
from workbench.errors import CancelledError, PlanError
from workbench.measurement.calibrate import calibrate
from workbench.sensitivity.metrics.refined import refined_table
from workbench.sensitivity.refine import close_cells, refine
from workbench.sensitivity.score import score
from workbench.sensitivity.table import Sensitivity

SCHEMES = ("int3-channel", "int4-channel", "int8-channel")


def predicted(model, data):
    return score(model, "predicted_kl", SCHEMES, curvature=calibrate(model, data).curvature)


def table_of(model, rows) -> Sensitivity:
    layers = tuple(layer.name for layer in model.summary.stored)
    return Sensitivity(
        metric="predicted_kl", unit="nats", layers=layers, schemes=SCHEMES, score=np.array(rows), samples=1, seed=0
    )


def test_only_decisions_that_errors_could_turn_are_close() -> None:
    model = decoder()
    clear = [[1e3, 1e-3, 1e-9], [1e3, 1e-3, 1e-9], [1e3, 1e-3, 1e-9], [1e3, 1e-3, 1e-9]]
    assert close_cells(model.summary, table_of(model, clear), 100.0) == []
    rival = [row.copy() for row in clear]
    rival[2] = [1.0, 0.99, 0.985]
    result = close_cells(model.summary, table_of(model, rival), 100.0)
    assert result[0] == ("up", "int4-channel") and {layer for layer, _ in result} == {"up"}


def test_the_layer_that_the_last_bit_goes_to_is_always_close() -> None:
    model = decoder()
    table = table_of(model, [[1e3, 1e-3, 1e-9]] * 4)
    result = close_cells(model.summary, table, 7.0, tolerance=0.01)
    assert 0 < len({layer for layer, _ in result}) < 4


def test_measured_cells_are_those_of_the_measured_table_and_nothing_else() -> None:
    model, data = decoder(), tokens()
    table = predicted(model, data)
    cells = [("up", SCHEMES[0]), ("value", SCHEMES[2])]
    result = refine(model, table, data, cells, batch_size=4)
    whole = score(model, "measured_kl", SCHEMES, dataset=data, batch_size=4)
    for layer in table.layers:
        for scheme in SCHEMES:
            if (layer, scheme) in cells:
                assert result.of(layer, scheme) == whole.of(layer, scheme)
            else:
                assert np.isnan(result.of(layer, scheme))


def test_a_cancelled_refinement_goes_on_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.sensitivity.refine.ROUND", 3)
    model, data = decoder(), tokens()
    table = predicted(model, data)
    cells = close_cells(model.summary, table, 100.0, tolerance=5.0)
    assert len(cells) > 4
    whole, states = refine(model, table, data, cells, batch_size=4), []

    def cancel(fraction, text, partial=None):
        if partial is not None:
            states.append(partial)
            if len(states) == 2:
                raise CancelledError("cancelled")

    with pytest.raises(CancelledError):
        refine(model, table, data, cells, batch_size=4, progress=cancel)
    done = int(np.isfinite(states[-1].score).sum())
    assert 0 < done < np.isfinite(whole.score).sum()
    resumed = refine(model, table, data, cells, batch_size=4, previous=replace(states[-1], complete=False))
    assert whole.complete and not resumed.complete, "it fills no rows that a cancelled scoring left open"
    assert resumed.score.tobytes() == whole.score.tobytes()
    with pytest.raises(PlanError, match="other data"):
        refine(model, table, tokens(5), cells, previous=states[-1])


def test_the_rest_of_the_table_is_scaled_by_what_was_measured() -> None:
    model = decoder()
    table = table_of(model, [[4.0, 2.0, 1.0]] * 4)
    measured = table_of(model, [[6.0, np.nan, np.nan]] + [[np.nan] * 3] * 3)
    np.testing.assert_allclose(refined_table(table, measured).score, [[6.0, 3.0, 1.5]] * 4)
    nothing = table_of(model, [[np.nan] * 3] * 4)
    np.testing.assert_array_equal(refined_table(table, nothing).score, table.score)
