"""Exact sums of a plan: a ledger that follows edits says what adding everything up anew says, activations included."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.session.models import SCHEMES, summary, table
from workbench.planning.plan import KEEP, Assignment
from workbench.planning.totals import Ledger, quantized_inputs, totals
from workbench.sensitivity.table import Sensitivity

INPUTS = ("int8-token", "fp8-e4m3-token")


def activations(model, open_cell: bool = False) -> Sensitivity:
    rng = np.random.default_rng(3)
    names = tuple(layer.name for layer in model.layers)
    score = rng.random((len(names), len(INPUTS))) * 1e-3
    if open_cell:
        score[-1, 0] = np.nan
    return Sensitivity(
        metric="predicted_kl_inputs", unit="nats", layers=names, schemes=INPUTS, score=score, samples=4, seed=0
    )


@pytest.mark.parametrize("open_cell", [False, True])
def test_a_ledger_after_any_edits_says_what_adding_up_anew_says(open_cell: bool) -> None:
    model, scores = summary(), table(summary())
    inputs, choose = activations(model, open_cell), random.Random(1)
    assignments = {layer.name: Assignment() for layer in model.layers}
    ledger = Ledger.of(model, assignments, scores, inputs)
    for _ in range(200):
        name = choose.choice(model.layers).name
        assignment = Assignment(weights=choose.choice([KEEP, *SCHEMES]), inputs=choose.choice([None, *INPUTS]))
        ledger = ledger.moved(assignments, {name: assignment})
        assignments = {**assignments, name: assignment}
        expected = totals(model, assignments, scores, inputs)
        assert ledger.totals == expected == Ledger.of(model, assignments, scores, inputs).totals


def test_inputs_add_their_losses_and_nothing_else() -> None:
    model, scores = summary(), table(summary())
    inputs = activations(model)
    plain = {layer.name: Assignment() for layer in model.layers}
    rounded = {name: Assignment(inputs="int8-token") for name in plain}
    observed = quantized_inputs(model, rounded)
    without, result = totals(model, plain, scores, inputs), totals(model, rounded, scores, inputs)
    assert result.nbytes == without.nbytes and without.predicted == 0
    assert result.predicted == pytest.approx(sum(inputs.of(name, "int8-token") for name in observed))
    assert totals(model, rounded, scores).predicted == 0, "without a table of inputs only weights count"
