"""Foldable places, found in graphs whose names say nothing; every one is tried by running the rewritten model."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.models.networks import convolutions, decoder
from tests.quantization.transforms.networks import After, Fused, Gated, language_model, sentences
from workbench.errors import TransformError
from workbench.models.tracing import trace
from workbench.quantization.transforms.folds import find_folds
from workbench.quantization.transforms.rewrite import Draft
from workbench.quantization.transforms.stream import find_stream


def folds_of(model, **options):
    return find_folds(trace(model), model.summary, **options)


def test_a_gated_block_offers_its_norms_values_and_gated_layer():
    result = folds_of(language_model(Gated))
    assert {fold.name: fold.consumers for fold in result.folds} == {
        "body.0.one.gain": ("body.0.a", "body.0.b", "body.0.c"), "body.0.c": ("body.0.d",),
        "body.0.two.gain": ("body.0.e", "body.0.f"), "body.0.f": ("body.0.g",),
        "body.1.one.gain": ("body.1.a", "body.1.b", "body.1.c"), "body.1.c": ("body.1.d",),
        "body.1.two.gain": ("body.1.e", "body.1.f"), "body.1.f": ("body.1.g",),
    }  # fmt: skip
    assert "silu" in result.obstacles["body.0.e"] and "out" in result.obstacles["last.gain"]
    values = result.folds[1]
    assert values.vectors == ("body.0.c.bias",)
    assert values.columns["body.0.d"].tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7]
    assert values.heads.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]] and not result.folds[3].heads.numel()
    assert folds_of(language_model(Gated), tied=True).folds[-1].consumers == ("out",)


def test_of_a_fused_projection_the_values_alone_are_free():
    result = {fold.name: fold for fold in folds_of(language_model(Fused)).folds}
    assert {name: fold.consumers for name, fold in result.items()} == {
        "n1.weight": ("all",), "all": ("back",), "n2.weight": ("wide",), "n3.weight": ("out",),
    }  # fmt: skip
    assert result["n1.weight"].vectors == ("n1.weight", "n1.bias")
    assert result["all"].free.tolist() == [False] * 32 + [True] * 16
    assert result["all"].columns["back"].tolist() == list(range(32, 48))
    assert result["all"].heads.tolist() == [list(range(32, 40)), list(range(40, 48))]


def test_a_rectifier_passes_a_positive_factor_and_gelu_does_not():
    assert "wide" in {fold.name for fold in folds_of(language_model(Fused, activation=nn.ReLU())).folds}
    assert "gelu" in folds_of(language_model(Fused)).obstacles["wide"]


def test_a_norm_that_stores_the_difference_from_one():
    fold = folds_of(language_model(Gated, offset=1.0)).folds[0]
    assert (fold.name, fold.offset) == ("body.0.one.gain", 1.0)


@pytest.mark.parametrize("network", [Gated, Fused])
@torch.no_grad()
def test_every_fold_keeps_the_outputs(network):
    model, batch = language_model(network), sentences().tensors
    exact, draft = model.run(batch), Draft.of(model, {})
    for number, fold in enumerate(folds_of(model).folds):
        factor = torch.rand(fold.free.numel(), generator=torch.Generator().manual_seed(number)) * 3 + 0.2
        before = dict(draft.weights)
        draft.scale(fold, factor)
        changed = {name for name in draft.weights if draft.weights[name] is not before.get(name)}
        assert set(fold.consumers) <= changed
    result = draft.changes().apply(model).run(batch)
    assert not torch.equal(result, exact)
    assert float((result - exact).abs().max()) < 1e-5 * float(exact.abs().max())


def test_a_model_without_any_place_says_what_its_channels_met():
    model = language_model(After)
    with pytest.raises(TransformError, match="After has no place.*n1.weight meets.*wide meets the operation tanh"):
        folds_of(model).require(model.summary)
    with pytest.raises(TransformError, match="the inputs of Convolutions are not known"):
        trace(convolutions())


def test_a_layer_that_runs_twice_is_left_alone():
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ids, self.norm = nn.Embedding(9, 8), nn.LayerNorm(8)
            self.x, self.y = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.y(self.x(self.x(self.norm(self.ids(ids)))))

    result = folds_of(language_model(Twice))
    assert not result.folds and "the layer x" in result.obstacles["norm.weight"]


def test_a_rectifier_behind_the_values_lets_no_rotation_pass():
    class Rectified(nn.Module):
        def __init__(self, rectified: bool = True) -> None:
            super().__init__()
            self.ids, self.q, self.v, self.o = nn.Embedding(9, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
            self.rectified = rectified

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            x = self.ids(ids)
            mixed = self.q(x).softmax(-1)[..., : ids.shape[1]] @ self.v(x)[:, :8]
            return self.o(mixed.relu() if self.rectified else mixed)

    for rectified in (False, True):
        (fold,) = folds_of(language_model(Rectified, rectified=rectified)).folds
        assert fold.name == "v" and fold.consumers == ("o",)
        assert bool(fold.heads.numel()) is not rectified


def test_the_residual_stream_of_a_gated_network():
    model = language_model(Gated)
    recorded = trace(model)
    norms = [fold.vectors[0] for fold in find_folds(recorded, model.summary, tied=True).folds if fold.layer is None]
    stream = find_stream(recorded, model.summary, norms)
    assert stream.width == 16
    assert stream.writers == ("ids", "body.0.d", "body.0.g", "body.1.d", "body.1.g")
    assert stream.readers == tuple(f"body.{i}.{layer}" for i in (0, 1) for layer in "abcef") + ("out",)
    assert stream.norms == tuple(norms)


@pytest.mark.parametrize("network, met", [(Fused, "native_layer_norm"), (After, "native_layer_norm")])
def test_a_stream_under_layer_norms_cannot_be_rotated(network, met):
    model = language_model(network)
    with pytest.raises(TransformError, match=f"meets the operation {met}.*RMS norms"):
        find_stream(trace(model), model.summary, [])


def test_a_model_without_a_stream_cannot_be_rotated():
    model = decoder()
    with pytest.raises(TransformError, match="the residual stream meets"):
        find_stream(trace(model), model.summary, [])
