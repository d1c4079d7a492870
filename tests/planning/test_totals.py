"""Exact sums of a plan: a ledger that follows edits says what adding everything up anew says, activations included."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.session.models import SCHEMES, summary, table
from workbench.planning.plan import KEEP, Assignment
from workbench.planning.totals import SMALLEST, Ledger, quantized_inputs, totals
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


def test_losses_of_any_size_are_added_up_without_rounding() -> None:
    """From the smallest float to one near the largest, and what is open or infinite is counted apart."""
    model, scores = summary(), table(summary())
    choose, shape = random.Random(5), scores.score.shape
    sizes = [5e-324, 3e-310, 1e-200, 1e-9, 0.1, 1.0, 1e17, 1e300, math.nan, math.inf, 0.0]
    score = np.array([choose.choice(sizes) * choose.random() for _ in range(scores.score.size)]).reshape(shape)
    scatter, rerouting = np.array([choose.choice([0.0, 0.25, math.nan]) for _ in scores.layers]), score / 3
    scores = replace(scores, score=score, error=scatter, rerouting=rerouting)
    stored = {layer.name for layer in model.layers if layer.tied_to is None}
    for _ in range(20):
        chosen = {layer.name: Assignment(weights=choose.choice([KEEP, *SCHEMES])) for layer in model.layers}
        amounts = Ledger.of(model, chosen, scores).amounts
        cells = [(name, each.weights) for name, each in chosen.items() if name in stored and each.weights != KEEP]
        parts = [scores.of(*cell) - scores.rerouting_of(*cell) for cell in cells]
        errors = [scores.scatter_of(*cell) for cell in cells]
        assert Fraction(amounts.loss, 1 << SMALLEST) == sum(Fraction(each) for each in parts if math.isfinite(each))
        assert Fraction(amounts.error, 1 << SMALLEST) == sum(Fraction(each) for each in errors if math.isfinite(each))
        assert amounts.missing == sum(map(math.isnan, parts)) and amounts.infinite == sum(map(math.isinf, parts))
        assert amounts.unsure == sum(not math.isfinite(each) for each in errors)
    every = [(layer, scheme) for layer in ("no layer", *scores.layers) for scheme in ("no scheme", *scores.schemes)]
    one_by_one = [(scores.of(*cell), scores.scatter_of(*cell), scores.rerouting_of(*cell)) for cell in every]
    np.testing.assert_array_equal(np.transpose(scores.gathered(every)), one_by_one)


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
