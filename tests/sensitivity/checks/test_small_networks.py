"""The cells of small networks are measured: draws of their second order scatter as much as their layers differ."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from tests.models.networks import Rows, convolutions, images
from workbench.sensitivity.checks import small_networks
from workbench.sensitivity.score import score
from workbench.sensitivity.table import Sensitivity

SCHEMES = ("int3-channel", "int5-channel")


def table_of(
    metric: str, schemes: Sequence[str] = SCHEMES, previous: Sensitivity | None = None, notes: list[str] | None = None
) -> Sensitivity:  # fmt: skip
    return score(convolutions(), metric, schemes, dataset=images(24), batch_size=8, previous=previous, notes=notes)


def test_cells_of_a_small_network_are_those_that_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = list[str]()
    predicted, measured = table_of("predicted_kl", notes=notes), table_of("measured_kl")
    np.testing.assert_array_equal(predicted.score, measured.score)
    assert predicted.directions is not None and any("single layers are measured" in note for note in notes)
    monkeypatch.setattr(small_networks, "LAYERS", len(predicted.layers) - 1)
    drawn = table_of("predicted_kl")
    assert (drawn.score != measured.score).all()
    np.testing.assert_array_equal(predicted.as_predicted().score, drawn.score)


def test_the_interval_is_that_of_the_measured_losses() -> None:
    """Draws scatter beyond the samples; what batches of it cost says how the measured losses do."""
    table, data = table_of("predicted_kl"), images(24)
    batches = [Rows(**{key: tensor[start : start + 8] for key, tensor in data.tensors.items()}) for start in (0, 8, 16)]
    each = np.array([score(convolutions(), "measured_kl", SCHEMES, dataset=batch).score for batch in batches])
    expected = np.median(each.std(axis=0, ddof=1) / math.sqrt(3) / each.mean(axis=0), axis=1)
    assert table.error is not None and table.corrected == {*table.layers}
    np.testing.assert_allclose(table.error, expected, rtol=1e-4)


def test_a_full_table_that_is_scored_again_keeps_what_was_measured() -> None:
    first = table_of("predicted_kl")
    again = table_of("predicted_kl", previous=first)
    np.testing.assert_array_equal(again.score, first.score)
    np.testing.assert_array_equal(again.as_predicted().score, first.as_predicted().score)
    one = table_of("predicted_kl", schemes=SCHEMES[:1])
    np.testing.assert_array_equal(table_of("predicted_kl", previous=one).score, first.score)
