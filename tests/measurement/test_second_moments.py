"""Whole second moments against plain products, in any grouping; layers called twice, NaN, memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from tests.measurement.moments import whole_curvature
from tests.models.networks import Rows, convolutions, decoder, images, model_of, tokens
from workbench.errors import AlgorithmError, CancelledError
from workbench.measurement import second_moments
from workbench.measurement.calibrate import calibrate
from workbench.measurement.gradients import GradientPass, fitting_batch
from workbench.measurement.second_moments import SecondMoments
from workbench.memory import limited_to
from workbench.models.data.batches import tappable
from workbench.models.layer import LayerKind
from workbench.models.summary import OutputKind


def weighed_mean(model, data, layer, seed=0):
    """Return ``sum_t |d_t|^2 x_t x_t^T`` over all calls of a layer, float64, in the trace of ``E[x x^T]``."""
    rows, gradients = [], GradientPass(model)

    def observed(name, x, d):
        if name == layer:
            rows.append((x.reshape(-1, x.shape[-1]).double(), d.reshape(-1, d.shape[-1]).double()))

    for number, batch in enumerate(data.batches(4)):
        gradients.run(batch, number * 4, seed, None, observed)
    total = sum(torch.einsum("tr,ti,tj->ij", d.square(), x, x) for x, d in rows)
    count = sum(len(x) for x, _ in rows)
    return (total * (sum(float(x.square().sum()) for x, _ in rows) / count / total.trace())).numpy()


@pytest.mark.parametrize("name", ["value", "up", "down", "head"])
def test_inputs_are_the_mean_of_products_over_all_tokens_by_their_gradients(name):
    model, data = decoder(), tokens()
    whole = whole_curvature(model, data, batch_size=4, seed=5)
    np.testing.assert_allclose(whole[name].full, weighed_mean(model, data, name, 5), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(whole[name].full.trace(), whole[name].columns.sum(), rtol=1e-5)


@pytest.mark.parametrize("name", ["value", "up"])
def test_without_the_gradients_of_tokens_the_inputs_alone_count(name):
    """Sessions of earlier versions have no ``by_loss``."""
    model, data = decoder(), tokens()
    known = {layer: replace(each, by_loss=None) for layer, each in calibrate(model, data).curvature.items()}
    rows = []
    for batch in data.batches(4):
        model.run(batch, tap=lambda _, x, y: rows.append(x.detach().reshape(-1, x.shape[-1]).double()), layers=(name,))
    x = torch.cat(rows)
    full = SecondMoments(model, data, known, batch_size=4)[name].full
    np.testing.assert_allclose(full, (x.T @ x / len(x)).numpy(), rtol=1e-4, atol=1e-6)


def test_outputs_are_the_second_moment_of_the_gradients_at_a_linear_layers_outputs():
    model, data = decoder(), tokens()
    whole = whole_curvature(model, data, batch_size=4, seed=5)
    calls = []
    gradients = GradientPass(model)
    for number, batch in enumerate(data.batches(4)):
        gradients.run(batch, number * 4, 5, None, lambda name, x, d: calls.append(d) if name == "up" else None)
    flat = torch.cat([d.reshape(-1, d.shape[-1]) for d in calls]).double()
    expected = torch.stack([torch.outer(d, d) for d in flat]).mean(dim=0)
    np.testing.assert_allclose(whole["up"].outputs, expected.numpy(), rtol=1e-4, atol=1e-9)
    assert whole["embed"].outputs is None
    np.testing.assert_allclose(whole["embed"].full, np.diag(whole["embed"].columns), rtol=1e-6)


@pytest.mark.parametrize(("make", "data"), [(decoder, tokens), (convolutions, images)])
def test_groups_of_any_size_give_the_same_bits(make, data):
    model, samples = make(), data()
    known = calibrate(model, samples).curvature
    together, alone = SecondMoments(model, samples, known), SecondMoments(model, samples, known, nbytes=1)
    for name in known:
        for mine, other in zip(parts(together[name]), parts(alone[name]), strict=True):
            assert (mine is None) == (other is None) and (mine is None or np.array_equal(mine, other)), name


def parts(curvature):
    return curvature.full, curvature.outputs, curvature.rows, curvature.columns


class Twice(nn.Module):
    """``first`` and ``second`` get the same tensor at their first call, and not at the second."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x) + self.second(x).tanh()
        return self.second(y.relu())


def test_layers_that_share_their_input_at_one_call_only_are_kept_apart():
    model = model_of(Twice(), OutputKind.EMBEDDING)
    data = Rows(inputs=torch.randn(9, 6, generator=torch.Generator().manual_seed(1)))
    whole = whole_curvature(model, data, batch_size=4)
    for name in ("first", "second"):
        np.testing.assert_allclose(whole[name].full, weighed_mean(model, data, name), rtol=1e-4, atol=1e-6)


class Chosen(nn.Module):
    """Of two layers, each gets the rows that choose it, in some batches none."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.ways, self.last = nn.ModuleList([nn.Linear(6, 6) for _ in range(2)]), nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros_like(x)
        for number, way in enumerate(self.ways):
            rows = ((x[:, 0] > 0).long() == number).nonzero().flatten()
            total = total.index_add(0, rows, way(x[rows]))
        return self.last(total)


def test_layers_that_get_no_rows_of_a_batch():
    x = torch.randn(8, 6, generator=torch.Generator().manual_seed(1))
    x[:, 0] = torch.tensor([1.0] * 4 + [-1.0] * 4)
    model, data = model_of(Chosen(), OutputKind.EMBEDDING), Rows(inputs=x)
    whole = whole_curvature(model, data, batch_size=4)
    for name in ("ways.0", "ways.1"):
        np.testing.assert_allclose(whole[name].full, weighed_mean(model, data, name), rtol=1e-4, atol=1e-6)
        assert np.isfinite(whole[name].outputs).all()


class Unheard(nn.Module):
    """Hardly anything that ``quiet`` gives is heard."""

    def __init__(self, share: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.share, self.quiet, self.last = share, nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(x) + self.share * self.quiet(x)


@pytest.mark.parametrize("share", [1e-19, 1e-21])
def test_gradients_whose_squares_are_hardly_numbers_weigh_as_any(share):
    data = Rows(inputs=10 * torch.randn(9, 6, generator=torch.Generator().manual_seed(1)))
    tiny, usual = (model_of(Unheard(each), OutputKind.EMBEDDING) for each in (share, 1e-9))
    assert calibrate(tiny, data).curvature["quiet"].by_loss is not None
    mine, expected = (whole_curvature(model, data)["quiet"].full for model in (tiny, usual))
    np.testing.assert_allclose(mine, expected, rtol=0.05, atol=1.0)


def test_a_layer_without_gradients_weighs_nothing():
    model = model_of(Unheard(), OutputKind.EMBEDDING)
    data = Rows(inputs=torch.randn(9, 6, generator=torch.Generator().manual_seed(1)))
    known = calibrate(model, data).curvature
    assert known["quiet"].by_loss is None
    known["quiet"] = replace(known["quiet"], by_loss=known["quiet"].columns)  # as where another run's were tiny
    full = SecondMoments(model, data, known)["quiet"].full
    assert full.shape == (6, 6) and not full.any()


def test_a_batch_with_nan_is_left_out():
    model, data = convolutions(), images()
    spoiled = data.tensors["inputs"].clone()
    spoiled[-1] = torch.nan
    clean = Rows(inputs=spoiled[:-2])
    known = calibrate(model, Rows(inputs=spoiled), batch_size=2).curvature
    whole = SecondMoments(model, Rows(inputs=spoiled), known, batch_size=2)
    np.testing.assert_array_equal(whole["out"].full, SecondMoments(model, clean, known, batch_size=2)["out"].full)


def test_a_layer_that_does_not_fit_is_an_error_with_the_numbers(monkeypatch):
    model, data = decoder(), tokens()
    whole = SecondMoments(model, data, calibrate(model, data).curvature)
    for room in ("available_memory", "disk_room"):
        monkeypatch.setattr(second_moments, room, lambda: 10)
    with pytest.raises(AlgorithmError, match=r"second moments of .* of memory and disk are free; choose rtn-clip"):
        whole["up"]


def test_cancelling_goes_through():
    def cancel(fraction: float, text: str, partial: object = None) -> None:
        raise CancelledError("stop")

    model, data = decoder(), tokens()
    with pytest.raises(CancelledError):
        SecondMoments(model, data, calibrate(model, data).curvature, progress=cancel)["up"]


def test_long_samples_of_large_models_run_fewer_at_a_time():
    model = decoder()
    short, long = tokens(length=7), Rows(input_ids=torch.zeros(1, dtype=torch.int64).expand(9, 1 << 24))
    assert fitting_batch(8, short, model, gradients=True) == 8
    assert fitting_batch(8, long, model, gradients=True) == 1
    assert fitting_batch(8, images(), convolutions(), gradients=True) == 8


def test_batches_are_cut_to_a_limit_of_the_memory():
    model, data = decoder(), tokens(length=700)
    whole, sizes = fitting_batch(8, data, model, gradients=True), list[int]()
    for allowed in (1, 1 << 21, 1 << 22, 1 << 40):
        with limited_to(allowed):
            sizes.append(fitting_batch(8, data, model, gradients=True))
    assert whole == 8 and sizes[0] == 1 and sizes[-1] == 8
    assert sizes == sorted(sizes) and len(set(sizes)) > 2, sizes


def test_moments_of_a_rewritten_model_are_bounded_whatever_memory_is_free(monkeypatch):
    model, data = decoder(), tokens()
    plain = calibrate(model, data).curvature
    position = model.summary.position
    owners = sorted(tappable(model), key=lambda layer: position[layer.tied_to or layer.name])
    linear = [layer.name for layer in owners if layer.kind is LayerKind.LINEAR]
    sizes = [4 * sum(side**2 for side in reversed(model.summary.layer(name).matrix)) for name in linear]
    for nbytes in (10, 1 << 40):
        moments = SecondMoments(model, data, plain, nbytes=nbytes)
        known, beyond = moments.bounded(sum(sizes[:2]))
        assert [name for name in linear if known[name].full is not None] == linear[:2]
        assert list(beyond) == linear[2:]
