"""Predictions from measured plans: factors that samples resolve, larger losses that stay larger, ranges that hold."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.planning.synthetic import decoder, table_of
from workbench.errors import SessionError
from workbench.planning.budgets import Budgets
from workbench.planning.plan import Plan
from workbench.planning.search.search import pareto, search
from workbench.planning.totals import plan_totals
from workbench.sensitivity.checks.plan_checks import PlanChecks
from workbench.sensitivity.confidence import interval
from workbench.session.file.records import _part, write_record
from workbench.session.file.tree import read_tree

LLAMA = ((0.0173, 0.0161), (0.1480, 0.1790), (0.6058, 1.3856), (1.2242, 3.1195))
"""Second-order and measured losses of plans of 5.5, 4, 3 and 2.5 bits of the small Llama."""


def checks(*pairs: tuple[float, float], error: float = 0.03, samples: int = 32) -> PlanChecks:
    predicted, measured = np.array(pairs).T.copy()
    bits = np.linspace(5.5, 2.5, len(pairs))
    return PlanChecks(
        predicted=predicted, measured=measured, error=np.full(len(pairs), error), bits=bits, samples=samples
    )  # fmt: skip


@pytest.mark.parametrize(("second_order", "measured"), [
    (0.00034, 0.00030), (0.0355, 0.0328), (0.0700, 0.0702), (0.0893, 0.0927), (0.2962, 0.4272), (0.3689, 0.6244),
    (0.3610, 0.5656), (1.4602, 3.7855), (1.5720, 3.5678), (1.9424, 4.4186),
])  # fmt: skip
def test_other_plans_of_the_small_llama_are_predicted(second_order: float, measured: float) -> None:
    """Mixed and uniform plans of 2 to 8 bits, which the second order puts at 0.39 to 1.14 of what they cost."""
    known = checks(*LLAMA)
    predicted = known.whole(second_order)
    assert 0.75 < predicted / measured < 1.33
    low, high = interval(predicted, 0.07 * predicted, known.doubt(second_order)) or (math.nan, math.nan)
    assert low < measured < high


@pytest.mark.parametrize("seed", range(30))
def test_a_plan_of_a_larger_loss_stays_so_and_the_inverse_holds(seed: int) -> None:
    generator = np.random.default_rng(seed)
    predicted = np.sort(generator.lognormal(-2, 2, 4))
    known = checks(*zip(predicted, predicted * generator.lognormal(0, 1.5, 4), strict=True), samples=256)
    losses = np.geomspace(predicted[0] / 100, predicted[-1] * 100, 500)
    wholes = [known.whole(loss) for loss in losses.tolist()]
    assert (np.diff(wholes) > 0).all()
    for loss, whole in list(zip(losses.tolist(), wholes, strict=True))[seed % 20 :: 20]:
        assert known.whole(known.second_order(whole)) <= whole
        assert known.second_order(whole) == pytest.approx(loss, rel=1e-9)


def test_factors_that_samples_do_not_resolve_are_left_out() -> None:
    assert not checks((0.1, 0.15), error=0.25, samples=10).factors.any()
    assert not checks((0.1, 0.5), samples=7).factors.any(), "too few samples for any"
    assert checks((0.1, 0.5)).factors == pytest.approx([math.log(5)], rel=0.01)
    vague, sure = checks((0.1, 0.15), error=0.1).factors[0], checks((0.1, 0.15), error=0.01).factors[0]
    assert 0 < vague < sure < math.log(1.5)


LOST = ((0.0327, 0.0476, 0.54), (0.409, 0.359, 0.27), (2.40, 2.63, 0.35), (35.1, 1.48, 0.12))
"""Second-order and measured losses of plans of 5.5 to 2.6 bits of a LeViT, with the standard errors of 40 pictures."""


def test_a_lost_model_says_little_of_finer_plans() -> None:
    """The loss of a plan that leaves nothing of the answers is bounded; a small one is that of the second order."""
    known = checks(LOST[-1][:2], error=0.12, samples=40)
    assert known.whole(35.1) == pytest.approx(1.48, rel=0.5)
    assert all(0.75 < known.whole(loss) / loss <= 1.0 for loss in (0.001, 0.01, 0.1)), "0.04 of the loss before"
    losses = np.geomspace(1e-6, 1e3, 400)
    assert (np.diff([known.whole(loss) for loss in losses.tolist()]) > 0).all()
    every = PlanChecks(
        **dict(zip(("predicted", "measured", "error"), np.array(LOST).T.copy(), strict=True)), samples=40,
        bits=np.array([5.5, 4.0, 3.0, 2.6]),
    )  # fmt: skip
    assert every.whole(0.2) == pytest.approx(0.2, rel=0.1) and every.whole(35.1) < 5
    assert every.doubt(0.0327) > 0.5, "what few samples resolve has a wide range"


def test_a_small_loss_keeps_the_factor_of_the_finest_plan() -> None:
    assert checks((0.1, 0.05), error=0.01).whole(0.001) == pytest.approx(0.001, rel=0.1), "one plan: higher orders"
    known = checks((0.1, 0.12), (1.0, 1.2), error=0.001)
    assert known.whole(0.001) == pytest.approx(0.0012, rel=0.01), "all plans have it: the second order is wrong by it"


def test_two_plans_of_the_same_loss_but_for_its_last_bit() -> None:
    known = checks((0.1, 0.12), (math.nextafter(0.1, 1), 0.13))
    assert 0.0005 < known.whole(0.001) < 0.0012


VOVNET = ((0.05292, 0.02003), (0.7293, 0.03668))
"""Second-order and measured losses of plans of 5.5 and 4.8 bits of a VoVNet, whose largest errors few pictures have."""


@pytest.mark.parametrize(("second_order", "measured"), [
    (0.0004273, 0.0002935), (0.0008494, 0.0006131), (6.66e-05, 6.14e-05), (4.33e-05, 4.05e-05), (3.43e-05, 3.06e-05),
])  # fmt: skip
def test_a_factor_that_grows_with_the_loss_is_none_of_far_finer_plans(second_order: float, measured: float) -> None:
    """A plan of 8 bits and single layers of 6 and 8: they were predicted at 0.4 to 0.65 of what they cost."""
    known = checks(*VOVNET, error=0.17, samples=128)
    assert 0.75 < known.whole(second_order) / measured < 1.4


def test_what_is_not_a_loss_stays() -> None:
    known = checks((0.1, 0.5))
    assert known.whole(0.0) == 0.0 and math.isinf(known.whole(math.inf)) and math.isnan(known.whole(math.nan))
    assert known.doubt(0.0) == 0.0 and known.sentence(math.inf) == "" and known.second_order(-1.0) == 0.0


def test_ranges_are_wider_beyond_what_was_measured() -> None:
    known = checks(*LLAMA)
    assert known.doubt(0.001) < known.doubt(0.3) < known.doubt(1.2) < known.doubt(2.0) < known.doubt(4.0)


def test_the_sentence_says_what_was_measured() -> None:
    known = checks(*LLAMA)
    assert known.sentence(0.01) == ""
    assert known.sentence(0.6058) == (
        "the second order says 0.606; plans of 2.5 to 5.5 bits, measured on 32 samples of the calibration, cost 2.3 "
        "times as much at this size, and the prediction counts that"
    )


@pytest.mark.parametrize("pairs", [
    ((0.2, 0.1), (0.1, 0.2)), ((0.1, 0.1), (0.1, 0.2)), ((0.0, 0.1),), ((0.1, 0.0),), ((0.1, math.nan),),
    ((-0.1, 0.1),), ((0.1, math.inf),),
])  # fmt: skip
def test_a_damaged_file_is_refused(tmp_path: Path, pairs: tuple[tuple[float, float], ...]) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        write_record(file, "checks", checks((0.1, 0.5)))
        for name, values in zip(("predicted", "measured"), np.array(pairs).T, strict=True):
            del file[f"checks/{name}"]
            file[f"checks/{name}"] = values
        for name in ("error", "bits"):
            del file[f"checks/{name}"]
            file[f"checks/{name}"] = np.ones(len(pairs))
    tree = read_tree((tmp_path / "s.h5").read_bytes(), 1 << 30)
    with pytest.raises(SessionError, match="/checks"):
        _part(tree, "checks", PlanChecks)


def test_they_come_back_from_a_file(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        write_record(file, "checks", checks(*LLAMA))
    stored = _part(read_tree((tmp_path / "s.h5").read_bytes(), 1 << 30), "checks", PlanChecks)
    assert isinstance(stored, PlanChecks) and stored.samples == 32
    assert stored.whole(0.5) == checks(*LLAMA).whole(0.5)


@pytest.mark.parametrize("seed", range(4))
def test_totals_front_and_search_agree(seed: int) -> None:
    """A budget of loss is one of what is predicted, and the search's choice is that of the second order."""
    summary = decoder(2, seed)
    plain = table_of(summary, seed=seed)
    middle = float(np.median(plain.score)) * len(plain.layers)
    table = replace(plain, checks=checks((middle / 4, middle / 5), (middle, 3 * middle)))
    front, plain_front = pareto(summary, table, Plan()), pareto(summary, plain, Plan())
    assert (np.diff(front.loss) <= 0).all()
    for index in (0, len(front) // 2, len(front) - 1):
        sums, plan = plan_totals(summary, front.plan(index), table), front.plan(index)
        assert sums.predicted == pytest.approx(front.loss[index], rel=1e-9)
        assert sums.second_order == pytest.approx(plain_front.loss[index], rel=1e-9)
        assert sums.predicted - sums.interaction == pytest.approx(sums.second_order)
        limit = float(front.loss[index]) * 1.001
        chosen = search(summary, table, budgets=Budgets(loss=limit), minimise="nbytes", base=Plan())
        assert plan_totals(summary, chosen, table).predicted <= limit * (1 + 1e-9)
        assert plan_totals(summary, chosen, table).nbytes <= plan_totals(summary, plan, table).nbytes
