"""Learned steps against their definition, and learned rounding of one matrix against rounding to nearest."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from workbench.errors import AlgorithmError, PlanError
from workbench.numerics.formats import parse_scheme
from workbench.numerics.rounding.algorithm import Context
from workbench.numerics.rounding.descent import Descent, rate_factor
from workbench.numerics.rounding.learned_rounding import LearnedRounding
from workbench.numerics.rounding.lsq import SCALE, SHIFT, ZERO, LearnedMatrix

WEIGHT = torch.randn(8, 72, generator=torch.Generator().manual_seed(0))
NAMES = (
    "int4-g32-asym", "int3-g64-asym", "int4-g32", "int8-channel", "int4-tensor-asym", "int4-b4x16-asym",
    "fp8-e4m3-channel", "int4-g64-asym-zfp16", "bf16", "nf4-b64", "nf4-b64-dq", "mxfp4", "nvfp4", "q4_0", "q4_k",
    "kmeans4-channel",
)  # fmt: skip


def moved(name: str, by: float = 0.1) -> LearnedMatrix:
    scheme, generator = parse_scheme(name), torch.Generator().manual_seed(1)
    matrix = LearnedMatrix(WEIGHT, scheme, scheme.fit(WEIGHT, clip_search=True))
    with torch.no_grad():
        for variable in matrix.variables.values():
            variable.add_(by * torch.randn(variable.shape, generator=generator))
    return matrix


@pytest.mark.parametrize("name", NAMES)
def test_what_is_learned_is_what_is_stored(name: str) -> None:
    matrix, scheme = moved(name), parse_scheme(name)
    rounded = matrix.rounded()
    assert torch.equal(matrix.values().detach(), rounded.values)
    assert torch.equal(scheme.decode(scheme.encode(rounded.values, rounded.parameters)), rounded.values)
    assert not torch.equal(rounded.values, scheme.quantize(WEIGHT, clip_search=True))


@pytest.mark.parametrize("name", NAMES)
def test_it_begins_at_round_to_nearest(name: str) -> None:
    assert torch.equal(moved(name, by=0.0).rounded().values, parse_scheme(name).quantize(WEIGHT, clip_search=True))


def test_gradients_are_those_of_the_papers() -> None:
    matrix = moved("int3-g32-asym")
    values = matrix.values()
    upstream = torch.randn(values.shape, generator=torch.Generator().manual_seed(2))
    shift, scale, zero = torch.autograd.grad(values, [matrix.variables[n] for n in (SHIFT, SCALE, ZERO)], upstream)
    fit, stored = parse_scheme("int3-g32-asym").fit(WEIGHT, clip_search=True), matrix.rounded().parameters
    steps = fit.scale.double()
    for row, column in ((0, 3), (5, 40), (7, 71)):
        group = column // 32
        inside = slice(32 * group, min(32 * group + 32, 72))
        s, z = stored.scale[row, group].double(), stored.zero_point[row, group].double()
        u = WEIGHT[row, inside].double() + matrix.variables[SHIFT].detach()[row, inside].double() * steps[row, group]
        code = torch.round(u / s) + z
        free = ((code >= 0) & (code <= 7)).double()
        g = upstream[row, inside].double()
        factor = 1 / np.sqrt(32 * 3)  # n weights, Qp of a signed 3-bit code
        learned = (g * torch.where(free > 0, torch.round(u / s) - u / s, code.clamp(0, 7) - z)).sum() * factor
        assert float(scale[row, group]) == pytest.approx(float(learned * steps[row, group]), rel=1e-3, abs=1e-6)
        assert float(zero[row, group]) == pytest.approx(float(-(g * (1 - free)).sum() * s * factor), rel=1e-3, abs=1e-6)
        place = column - inside.start
        assert float(shift[row, column]) == pytest.approx(float(g[place] * free[place] * steps[row, group]), rel=1e-4)


def correlated(columns: int = 72) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(500, columns, generator=generator) + 2.0 * torch.randn(500, 1, generator=generator)
    return inputs.T @ inputs / 500


@pytest.mark.parametrize("name", ["int3-g32-asym", "int4-channel", "nf4-b64", "q4_0"])
def test_it_loses_on_weight_error_and_wins_on_output_error(name: str) -> None:
    scheme, moment = parse_scheme(name), correlated()
    rounded = LearnedRounding().quantize(WEIGHT, scheme, Context(second_moment=moment)).values
    nearest = scheme.quantize(WEIGHT, clip_search=True)
    errors = [float(((v - WEIGHT) @ moment * (v - WEIGHT)).sum()) for v in (nearest, rounded)]
    assert errors[1] < 0.75 * errors[0]
    assert float((rounded - WEIGHT).square().sum()) > float((nearest - WEIGHT).square().sum())


def test_without_inputs_it_says_what_it_needs() -> None:
    with pytest.raises(AlgorithmError, match="second moment"):
        LearnedRounding().quantize(WEIGHT, parse_scheme("int4-g32"), Context())


@pytest.mark.parametrize("rule", ["adam", "signed"])
def test_a_descent_goes_on_from_its_state(rule: str) -> None:
    def run(variable: torch.Tensor, descent: Descent, until: int) -> None:
        while descent.taken < until:
            descent.step([2.0 * variable + 0.1 * descent.taken], rate_factor("cosine", descent.taken, 20))

    whole, part = torch.ones(3), torch.ones(3)
    run(whole, Descent(variables=[whole], rates=[0.1], rule=rule), 20)  # type: ignore[arg-type]
    half = Descent(variables=[part], rates=[0.1], rule=rule)  # type: ignore[arg-type]
    run(part, half, 9)
    fresh = torch.zeros(3)
    resumed = Descent(variables=[fresh], rates=[0.1], rule=rule)  # type: ignore[arg-type]
    resumed.load(half.state())
    run(fresh, resumed, 20)
    assert torch.equal(fresh, whole)
    with pytest.raises(PlanError, match="other variables"):
        resumed.load({"taken": np.array(1)})


def test_the_rate_falls_to_nothing() -> None:
    for schedule in ("cosine", "linear"):
        factors = [rate_factor(schedule, step, 10) for step in range(11)]  # type: ignore[arg-type]
        assert factors[0] == 1.0 and abs(factors[-1]) < 1e-12 and factors == sorted(factors, reverse=True)
