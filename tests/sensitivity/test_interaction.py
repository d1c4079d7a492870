"""Interactions of layers against measured losses and plain sums of slopes; exact in any order."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.models.networks import convolutions, images
from tests.session.models import SCHEMES, summary, table
from workbench.measurement.evaluate import evaluate
from workbench.planning.plan import KEEP, Assignment, Plan
from workbench.planning.totals import Ledger, plan_totals, totals
from workbench.quantization.quantize import quantize
from workbench.sensitivity.interaction import (
    FEWEST,
    UNIT,
    USUAL,
    Directions,
    beyond_chance,
    interaction,
    interaction_of,
    interactions,
)
from workbench.sensitivity.score import score


def loss_of(slopes: np.ndarray) -> float:
    """The loss in nats of slopes, ``[draws]`` in UNITs."""
    return 0.5 * UNIT * UNIT * float(np.square(slopes.astype(np.float64)).sum())


def sloped(bare=None, draws: int = 50):
    """A table whose cells have random slopes; every third layer has none."""
    result = table(summary()) if bare is None else bare
    rng = np.random.default_rng(5)
    layers = tuple(name for index, name in enumerate(result.layers) if index % 3)
    rows = {name: {scheme: rng.standard_normal(draws).astype(np.float32) for scheme in SCHEMES} for name in layers}
    return replace(result, directions=Directions.gather(SCHEMES, rows))


def test_the_loss_of_a_cell_gives_its_slopes_their_size() -> None:
    result = sloped()
    layer = result.directions.layers[0]
    slopes = result.slopes(layer, SCHEMES[0])
    assert loss_of(slopes) == pytest.approx(result.of(layer, SCHEMES[0]), rel=1e-4)
    doubled = result.directions.of(layer, SCHEMES[0], 4 * result.of(layer, SCHEMES[0]))
    np.testing.assert_allclose(doubled, 2 * slopes, atol=2)


def test_cells_without_slopes_or_loss_have_none() -> None:
    result = sloped()
    directions, known = result.directions, result.directions.layers[0]
    assert result.slopes(result.layers[0], SCHEMES[0]) is None and not directions.has(result.layers[0], SCHEMES[0])
    assert result.slopes(known, KEEP) is None
    for loss in (0.0, np.nan, np.inf):
        assert directions.of(known, SCHEMES[0], loss) is None
    assert Directions.gather(SCHEMES, {"layer": {}}) is None


def test_equal_errors_of_two_layers_cost_twice_their_sum_and_opposite_ones_nothing() -> None:
    slopes = np.rint(np.random.default_rng(1).standard_normal(100_000) / UNIT / 1000).astype(np.int64)
    alone, squares = loss_of(slopes), slopes * slopes
    assert interaction(slopes, squares) == 0.0
    assert interaction(2 * slopes, 2 * squares) == pytest.approx(2 * alone, rel=2e-2)
    assert interaction(0 * slopes, 2 * squares) == pytest.approx(-2 * alone, rel=2e-2)


def test_what_chance_explains_is_believed_the_less() -> None:
    rng, draws = np.random.default_rng(2), 100
    unrelated = [np.rint(rng.standard_normal(draws) / UNIT / draws).astype(np.int64) for _ in range(2)]
    slopes, squares = sum(unrelated), sum(item * item for item in unrelated)
    together, apart = ((0.5 * UNIT**2 * x.astype(float)).reshape(-1, 2).sum(axis=1) for x in (slopes**2, squares))
    quotient = together.sum() / apart.sum()
    left = stats.bootstrap((together, apart), lambda t, a, axis: t.sum(axis) / a.sum(axis), paired=True,
                           vectorized=True, n_resamples=20_000, rng=rng)  # fmt: skip
    share = 1 / (1 + (left.standard_error / USUAL) ** 2)
    expected = share * (together.sum() - apart.sum())
    assert 0.5 < share < 0.95 and abs(quotient - 1) > 0.02
    assert interaction(slopes, squares) == pytest.approx(expected, rel=0.05)
    rows = np.array([slopes, 2 * unrelated[0], 0 * slopes]), np.array([squares, 2 * unrelated[0] ** 2, 0 * squares])
    np.testing.assert_allclose(interactions(*rows), [interaction(*pair) for pair in zip(*rows, strict=True)], rtol=1e-9)


@pytest.mark.parametrize(("samples", "most"), [(4, 0.0), (8, 0.0), (16, 0.2), (32, 0.17), (256, 0.07)])
def test_few_samples_of_unrelated_layers_show_little_interaction(samples: int, most: float) -> None:
    rng, layers, plans = np.random.default_rng(3), 20, 2000
    slopes = np.rint(rng.standard_normal((plans, layers, 2 * samples)) / UNIT / 1000).astype(np.int64)
    result = interactions(slopes.sum(axis=1), np.square(slopes).sum(axis=1))
    own = 0.5 * UNIT**2 * np.square(slopes.astype(float)).sum(axis=(1, 2))
    assert np.sqrt(np.mean(np.square(result / own))) <= most
    assert result[0] == interaction(slopes[0].sum(axis=0), np.square(slopes[0]).sum(axis=0))


@pytest.mark.parametrize("quotient", [0.55, 1.0, 1.6])
def test_what_errors_cost_together_is_known_where_few_samples_carry_most_of_the_loss(quotient: float) -> None:
    rng, layers, plans, samples = np.random.default_rng(4), 10, 300, 256
    sizes = np.exp(0.6 * rng.standard_normal((plans, 1, samples, 1)))
    own = rng.standard_normal((plans, layers, samples, 2)) * sizes
    pull = (np.sqrt(quotient) - 1) / layers  # of the mean of all, which alone adds up
    slopes = own + pull * own.sum(axis=1, keepdims=True)
    whole = np.rint(slopes.reshape(plans, layers, -1) / UNIT / 1000).astype(np.int64)
    squares = np.square(whole).sum(axis=1)
    result = interactions(whole.sum(axis=1), squares)
    alone = 0.5 * UNIT**2 * squares.astype(float).sum(axis=1)
    true = quotient * layers / (layers + 2 * pull * layers + (pull * layers) ** 2)  # of independent errors, pulled
    assert np.mean(np.abs(np.log((alone + result) / alone / true)) < np.log(4 / 3)) > 0.9


@pytest.mark.parametrize("samples", [FEWEST, 12, 40, 1000])
@pytest.mark.parametrize("errors", [1.28, 2.0])
def test_errors_of_few_samples_are_quantiles_of_students_distribution(samples: int, errors: float) -> None:
    assert beyond_chance(errors, samples) == pytest.approx(stats.t.ppf(stats.norm.cdf(errors), samples - 1), rel=1e-3)
    assert beyond_chance(errors, FEWEST - 1) == np.inf


def test_a_ledger_adds_slopes_up_as_totals_do_after_any_edits() -> None:
    model, scores, choose = summary(), sloped(), random.Random(1)
    assignments = {layer.name: Assignment() for layer in model.layers}
    ledger = Ledger.of(model, assignments, scores)
    for _ in range(200):
        name = choose.choice(model.layers).name
        assignment = Assignment(weights=choose.choice([KEEP, *SCHEMES]))
        ledger = ledger.moved(assignments, {name: assignment})
        assignments = {**assignments, name: assignment}
        expected = totals(model, assignments, scores)
        assert ledger.totals == expected
        chosen = [(layer.name, assignments[layer.name].weights) for layer in model.stored]
        slopes = [scores.slopes(*cell) for cell in chosen if scores.slopes(*cell) is not None]
        plain = sum(scores.of(*cell) for cell in chosen if cell[1] != KEEP)
        together = interaction_of([*slopes, None])
        assert expected.interaction == together
        assert expected.missing or expected.predicted == pytest.approx(plain + together, abs=1e-12)


def test_whole_plans_of_convolutions_are_predicted_with_their_interaction() -> None:
    model, data = convolutions(), images(600)
    schemes = ("int4-channel", "int5-channel", "int6-channel")
    result = score(model, "predicted_kl", schemes, dataset=data, batch_size=50)
    ratios, without = [], []
    for scheme in schemes:
        plan = Plan.uniform(model.summary.layers, scheme)
        sums = plan_totals(model.summary, plan, result)
        measured = evaluate(model, quantize(model, plan).bind(model), data, batch_size=50)["kl"].value
        ratios.append(sums.predicted / measured)
        without.append((sums.predicted - sums.interaction) / measured)
    assert all(0.8 < ratio < 1.25 for ratio in ratios), ratios
    assert np.abs(np.log(ratios)).sum() < np.abs(np.log(without)).sum(), "the plain sum is further off"


def test_values_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="int16 of that shape"):
        Directions(layers=("a",), schemes=SCHEMES, values=np.zeros((2, len(SCHEMES), 4), np.int16))
