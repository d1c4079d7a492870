"""What error feedback is for: a smaller error of the output, at the price of a larger one of the weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from workbench.errors import AlgorithmError, NonFiniteError
from workbench.numerics.curvature import output_energy
from workbench.numerics.formats import parse_scheme
from workbench.numerics.rounding import Context, Gptq, Hqq, Rtn, RtnWeighted, gptq
from workbench.numerics.rounding.coupled_compiled import nearest
from workbench.numerics.rounding.hessian import hessian
from workbench.numerics.rounding.parameter_parts import take_rows
from workbench.numerics.scheme import Parameters

SEED = torch.Generator().manual_seed(0)
WEIGHT = torch.randn(24, 96, generator=SEED)
MIXED = torch.randn(2000, 12, generator=SEED) @ torch.randn(12, 96, generator=SEED)
INPUTS = MIXED + 0.3 * torch.randn(2000, 96, generator=SEED)
MOMENT = INPUTS.T @ INPUTS / len(INPUTS)
CONTEXT = Context(second_moment=MOMENT, samples=len(INPUTS))


def output_error(values: torch.Tensor, moment: torch.Tensor = MOMENT, weight: torch.Tensor = WEIGHT) -> float:
    return float(output_energy(values - weight, moment).sum())


@pytest.mark.parametrize("name", ["int4-g32-asym", "int3-g32", "int4-channel", "int4-tensor", "nvfp4", "q4_k"])
def test_feedback_wins_on_the_output_and_loses_on_the_weight(name: str) -> None:
    scheme = parse_scheme(name)
    plain = Rtn(clip_search=True).quantize(WEIGHT, scheme)
    fed = Gptq().quantize(WEIGHT, scheme, CONTEXT)
    assert output_error(fed.values) < 0.35 * output_error(plain.values)
    assert float((fed.values - WEIGHT).square().sum()) > 1.1 * float((plain.values - WEIGHT).square().sum())
    assert torch.equal(scheme.decode(scheme.encode(fed.values, fed.parameters)), fed.values)


def test_ranges_by_blocks_of_the_second_moment_win_on_the_output() -> None:
    scheme = parse_scheme("int3-g32-asym")
    plain = Rtn(clip_search=True).quantize(WEIGHT, scheme).values
    weighted = RtnWeighted().quantize(WEIGHT, scheme, CONTEXT).values
    assert output_error(weighted) < 0.85 * output_error(plain)


def test_feedback_comes_close_to_the_best_of_all_roundings() -> None:
    weight, scheme = torch.randn(200, 4, generator=torch.Generator().manual_seed(2)), parse_scheme("int2-channel-asym")
    mixing = torch.tensor([[1.0, 0.8, -0.6, 0.3], [0.2, 0.9, 0.7, -0.8]])
    moment = mixing.T @ mixing + 0.1 * torch.eye(4)
    fed = Gptq().quantize(weight, scheme, Context(second_moment=moment))
    best = torch.empty_like(weight)
    for row in range(200):
        grid = scheme.round(torch.linspace(-9, 9, 400).reshape(-1, 1).repeat(1, 4)[:, :1], _row(fed.parameters, row))
        every = torch.cartesian_prod(*[grid.unique()] * 4)
        best[row] = every[output_energy(every - weight[row], moment).argmin()]
    plain = scheme.round(weight, fed.parameters)
    least = output_error(best, moment, weight)
    assert output_error(fed.values, moment, weight) < 1.25 * least
    assert output_error(plain, moment, weight) > 1.8 * least


def _row(parameters: Parameters, row: int) -> Parameters:
    return take_rows(parameters, torch.full((400,), row))


def test_independent_inputs_leave_nothing_to_feed_back() -> None:
    scheme, moment = parse_scheme("int8-tensor"), torch.eye(96)
    fed = Gptq().quantize(WEIGHT, scheme, Context(second_moment=moment))
    assert torch.equal(fed.values, scheme.round(WEIGHT, fed.parameters))


def test_dead_columns_and_rank_deficient_moments_are_served() -> None:
    moment = MOMENT.clone()
    moment[5] = 0
    moment[:, 5] = 0
    moment[7], moment[:, 7] = moment[8].clone(), moment[:, 8].clone()
    moment[7, 7] = moment[8, 8]
    scheme = parse_scheme("int4-g32-asym")
    fed = Gptq().quantize(WEIGHT, scheme, Context(second_moment=moment))
    nearest = scheme.round(WEIGHT, fed.parameters)
    assert torch.equal(fed.values[:, 5], nearest[:, 5])
    assert output_error(fed.values, moment) < 0.5 * output_error(nearest, moment)


def test_a_grouped_convolution_is_two_layers() -> None:
    scheme = parse_scheme("int4-channel-asym")
    other = torch.diag(torch.linspace(0.5, 2, 96)) + 0.4
    both = Gptq().quantize(WEIGHT, scheme, Context(second_moment=torch.stack([MOMENT, other]))).values
    each = torch.stack([MOMENT, other])
    plain = Rtn(clip_search=True).quantize(WEIGHT, scheme).values
    assert output_error(both, each) < 0.5 * output_error(plain, each)


def test_a_shifted_input_is_made_good() -> None:
    scheme, now = parse_scheme("int6-g32-asym"), 0.9 * INPUTS + 0.1 * INPUTS.roll(1, dims=1)
    context = Context(second_moment=now.T @ now / 2000, cross_moment=INPUTS.T @ now / 2000, samples=2000)
    expected = INPUTS @ WEIGHT.T
    errors = [
        float((now @ algorithm.quantize(WEIGHT, scheme, known).values.T - expected).square().mean())
        for algorithm, known in ((Gptq(), CONTEXT), (Gptq(sequential=True), context))
    ]
    assert errors[1] < 0.5 * errors[0]


def test_too_few_samples_tell_the_rank() -> None:
    few = INPUTS[:40]
    with pytest.raises(AlgorithmError, match="40 calibration samples.*96 inputs.*rank 40"):
        Gptq().quantize(WEIGHT, parse_scheme("int4-g32"), Context(second_moment=few.T @ few / 40, samples=40))


@pytest.mark.parametrize(
    "name", ["int4-g32-asym", "int8-channel", "nf4-b64", "mxfp4", "q4_k", "kmeans3-channel", "nvfp4"]
)
def test_bands_of_a_table_are_rounded_as_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(3)
    weight, inputs = torch.randn(100, 256), torch.randn(512, 256) * torch.rand(256)
    scheme, context = parse_scheme(name), Context(second_moment=inputs.T @ inputs / 512, samples=512)
    whole = Gptq().quantize(weight, scheme, context)
    monkeypatch.setattr(gptq, "BAND", 32 * 256)
    monkeypatch.setattr(gptq, "SQUARES", 0)
    banded = Gptq().quantize(weight, scheme, context)
    torch.testing.assert_close(banded.values, whole.values, rtol=0, atol=1e-6)
    torch.testing.assert_close(scheme.round(banded.values, banded.parameters), banded.values, rtol=0, atol=0)
    torch.testing.assert_close(banded.parameters.scale, whole.parameters.scale, rtol=1e-6, atol=0)


def test_nan_is_refused() -> None:
    broken = WEIGHT.clone()
    broken[0, 0] = torch.nan
    with pytest.raises(NonFiniteError):
        Gptq().quantize(broken, parse_scheme("int4-g32-asym"), CONTEXT)


def test_hqq_spares_the_many_at_the_outliers_cost() -> None:
    heavy = torch.randn(32, 128, generator=torch.Generator().manual_seed(5)) ** 3
    scheme = parse_scheme("int3-g64-asym")
    plain, moved = scheme.quantize(heavy), Hqq().quantize(heavy, scheme).values
    assert float((moved - heavy).abs().pow(0.7).sum()) < 0.96 * float((plain - heavy).abs().pow(0.7).sum())
    with pytest.raises(AlgorithmError, match="asymmetric"):
        Hqq().quantize(heavy, parse_scheme("fp8-e4m3-channel"))


def coupled_loss(values: torch.Tensor, outputs: torch.Tensor) -> float:
    difference = (values - WEIGHT).double()
    return float((outputs.double() * (difference @ MOMENT.double() @ difference.T)).sum())


@pytest.mark.parametrize(
    "name", ["int4-g32-asym", "int3-g32", "int4-channel", "int4-g32-asym-zfp16", "nvfp4", "nf4-b64-dq"]
)
def test_errors_of_different_outputs_cancel_where_the_model_cannot_tell_them_apart(name: str) -> None:
    few = torch.randn(24, 8, generator=torch.Generator().manual_seed(7))
    outputs, scheme = few @ few.T + 0.2 * torch.eye(24), parse_scheme(name)
    apart = Gptq().quantize(WEIGHT, scheme, CONTEXT)
    known = Context(second_moment=MOMENT, samples=len(INPUTS), outputs=outputs)
    together = Gptq().quantize(WEIGHT, scheme, known)
    assert coupled_loss(together.values, outputs) < 0.75 * coupled_loss(apart.values, outputs)
    assert output_error(together.values) > 1.1 * output_error(apart.values)
    assert torch.equal(together.parameters.scale, apart.parameters.scale)
    assert torch.equal(scheme.decode(scheme.encode(together.values, together.parameters)), together.values)


def test_independent_outputs_change_nothing() -> None:
    scheme = parse_scheme("int4-g32-asym")
    known = Context(second_moment=MOMENT, outputs=torch.diag(torch.linspace(0.1, 3, 24)))
    apart, together = (Gptq(sweeps=20).quantize(WEIGHT, scheme, each).values for each in (CONTEXT, known))
    assert torch.equal(apart, together)


def test_a_coupled_descent_ends_where_no_single_weight_can_move() -> None:
    few = torch.randn(24, 8, generator=torch.Generator().manual_seed(7))
    outputs, scheme = few @ few.T + 0.2 * torch.eye(24), parse_scheme("int3-g32-asym")
    result = Gptq(sweeps=40).quantize(WEIGHT, scheme, Context(second_moment=MOMENT, outputs=outputs))
    damped = MOMENT.double() + 0.01 * MOMENT.diagonal().mean() * torch.eye(96)
    coupling = outputs.double() + 0.01 * outputs.diagonal().mean() * torch.eye(24)
    slopes = coupling @ (result.values - WEIGHT).double() @ damped
    best = result.values - slopes / (coupling.diagonal()[:, None] * damped.diagonal())
    assert torch.equal(scheme.round(best.float(), result.parameters), result.values)


@pytest.mark.parametrize("name", ["int4-g32-asym", "int4-channel", "int4-tensor"])
@pytest.mark.parametrize("dead_weights", [1.0, 8.0])
def test_the_units_of_the_inputs_do_not_matter_where_columns_are_dead(name: str, dead_weights: float) -> None:
    inputs, weight = INPUTS.clone(), WEIGHT.clone()
    inputs[:, ::8] = 0.0
    weight[:, ::8] *= dead_weights
    errors = []
    for unit in (10.0, 1.0, 0.1, 0.001):
        moment = (unit * inputs).T @ (unit * inputs) / len(inputs)
        fed = Gptq().quantize(weight, parse_scheme(name), Context(second_moment=moment, samples=len(inputs))).values
        errors.append(output_error(fed, moment, weight) / float(output_energy(weight, moment).sum()))
    assert max(errors) < 1.01 * min(errors)
    assert errors[0] < 0.5 * output_error(Rtn().quantize(weight, parse_scheme(name)).values, moment, weight) / float(
        output_energy(weight, moment).sum()
    )


@pytest.mark.parametrize("name", ["int4-g32-asym", "int4-channel", "int4-tensor", "nvfp4", "nf4-b64", "q4_k"])
@pytest.mark.parametrize("dead_weights", [1.0, 8.0, 1000.0])
def test_weights_that_no_input_reaches_change_nothing_else(name: str, dead_weights: float) -> None:
    scheme, inputs, columns = parse_scheme(name), INPUTS.clone(), torch.arange(96)
    inputs[:, (columns % 8 == 0) | (columns >= 64)] = 0.0
    moment, alive = inputs.T @ inputs / len(inputs), inputs.any(dim=0)
    context = Context(second_moment=moment, samples=len(inputs))
    weight, plain = torch.where(alive, WEIGHT, WEIGHT * dead_weights), torch.where(alive, WEIGHT, 0.0)
    errors = [output_error(Gptq().quantize(each, scheme, context).values, moment, each) for each in (weight, plain)]
    assert 0.99 < errors[0] / errors[1] < 1.01


@pytest.mark.parametrize(
    "name", ["int4-g32-asym", "int3-g32", "int4-g64-asym-zfp16", "nvfp4", "nf4-b64", "fp8-e4m3-channel", "int8-tensor"]
)
def test_compiled_columns_give_the_bits_of_plain_tensor_operations(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.numerics.formats import scaled

    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(300, 224, generator=generator) * torch.rand(300, 1, generator=generator)
    inputs = torch.randn(500, 224, generator=generator) @ torch.randn(224, 224, generator=generator)
    outputs = torch.randn(400, 300, generator=generator)
    context = Context(second_moment=inputs.T @ inputs / 500, outputs=outputs.T @ outputs / 400)
    scheme, method = parse_scheme(name), Gptq(trials=3)
    compiled = method.quantize(weight, scheme, context)
    monkeypatch.setattr(scaled, "COMPILED_FROM", 1 << 30)
    plain = method.quantize(weight, scheme, context)
    assert torch.equal(compiled.parameters.scale, plain.parameters.scale)
    assert torch.equal(compiled.values, plain.values)


def test_feedback_is_the_factor_of_the_inverse() -> None:
    curved = hessian(MOMENT, (24, 96), 0.01)
    order = torch.randperm(96, generator=torch.Generator().manual_seed(3))
    factor = curved.feedback(order)[0].double()
    exact = torch.linalg.inv(curved.matrix[0][order][:, order].double())
    assert torch.equal(factor, factor.triu())
    torch.testing.assert_close(factor.T @ factor, exact, rtol=1e-4, atol=1e-5 * float(exact.abs().max()))


@pytest.mark.parametrize("first", [0, -4, -127])
@pytest.mark.parametrize("count", [2, 8, 16, 255])
def test_the_nearest_of_whole_numbers_in_line_is_that_of_the_search(first: int, count: int) -> None:
    table = np.arange(first, first + count, dtype=np.float32)
    spread = np.linspace(first - 2.25, first + count + 2.25, 64 * count).astype(np.float32)
    beyond = np.float32([np.inf, -np.inf, 1e30, -1e30])
    for value in (*spread, *(table[:-1] + np.float32(0.5)), *beyond):
        assert nearest(table, value, 1.0) == nearest(table, value, 0.0), value
