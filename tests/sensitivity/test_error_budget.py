"""Gains against noise that is put in by hand, predictions against measurements, and what is added up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.planning.synthetic import linear, summary_of
from workbench.errors import CannotRunError, MissingResultError
from workbench.models.summary import ModelSummary
from workbench.sensitivity.error_budget import (
    OUTPUT,
    NoiseGains,
    blocks_of,
    measured_budget,
    noise_gains,
    predicted_budget,
)
from workbench.sensitivity.table import Sensitivity


class Chain:
    """Linear layers one after another, each a block, without any network: blocks are seen through the layers' taps."""

    def __init__(self, weights: dict[str, torch.Tensor], cannot_run: str | None = None) -> None:
        self.weights = weights
        layers = (linear(name, *weight.shape, block=name) for name, weight in weights.items())
        self._summary = replace(summary_of(*layers), cannot_run=cannot_run)
        self.tappable = frozenset(weights)

    @property
    def summary(self) -> ModelSummary:
        """The facts."""
        return self._summary

    def weight(self, layer: str) -> torch.Tensor:
        """The matrix."""
        return self.weights[layer]

    def on_device(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """As it is."""
        return batch

    def with_weights(self, weights: dict[str, torch.Tensor]) -> Chain:
        """A view."""
        return Chain({**self.weights, **weights})

    def run(self, batch, tap=None, inputs=None, layers=None):
        """Multiply through."""
        x = batch["inputs"]
        for name, weight in self.weights.items():
            y = x @ weight.T
            if tap is not None:
                tap(name, x, y)
            x = y
        return x


class Samples:
    """Random inputs, the last token of every sample being padding."""

    def __init__(self, width: int, masked: bool = False) -> None:
        generator = torch.Generator().manual_seed(1)
        self.inputs = torch.randn(8, 5, width, generator=generator)
        self.masked = masked

    def __len__(self) -> int:
        return len(self.inputs)

    def batches(self, batch_size: int) -> Iterator[dict[str, torch.Tensor]]:
        """Slices of the inputs."""
        for start in range(0, len(self.inputs), batch_size):
            batch = {"inputs": self.inputs[start : start + batch_size]}
            if self.masked:
                batch["attention_mask"] = torch.tensor([1, 1, 1, 1, 0]).expand(len(batch["inputs"]), -1)
            yield batch


def chain(width: int = 24, depth: int = 4) -> Chain:
    """Random matrices that keep the size of the signal."""
    generator = torch.Generator().manual_seed(0)
    return Chain({f"b{n}": torch.randn(width, width, generator=generator) / width**0.5 for n in range(depth)})


def test_blocks_are_the_innermost_in_order_with_the_output_last():
    layers = [linear("m.e", block="m"), linear("m.l.0.q", block="m.l.0"), linear("m.l.1.q", block="m.l.1")]
    assert blocks_of(summary_of(*layers, linear("h", block="h"))) == ("m.l.0", "m.l.1", "h", OUTPUT)


def test_gains_are_zero_before_a_layer_and_about_one_at_it():
    model = chain()
    gains = noise_gains(model, Samples(24), batch_size=3)
    assert gains.layers == ("b0", "b1", "b2", "b3") and gains.blocks == ("b0", "b1", "b2", "b3", OUTPUT)
    assert (np.tril(gains.gain[:, :4], -1) == 0).all()
    assert np.allclose(np.diag(gains.gain[:, :4]), 1.0, rtol=0.3)
    assert (gains.gain[:, 3] == gains.gain[:, 4]).all()
    again = noise_gains(model, Samples(24), batch_size=3)
    assert (again.gain == gains.gain).all()


@pytest.mark.parametrize("size", [1e-5, 1e-3])
def test_prediction_meets_measurement(size: float):
    model = chain(48)
    data = Samples(48)
    gains = noise_gains(model, data)
    generator = torch.Generator().manual_seed(5)
    noisy, errors = {}, []
    for number, (name, weight) in enumerate(model.weights.items()):
        change = torch.randn(weight.shape, generator=generator) * weight.square().mean().sqrt() * size**0.5
        noisy[name] = weight + change * (number + 1)
        errors.append(float((noisy[name] - weight).square().sum() / weight.square().sum()))
    table = Sensitivity(
        metric="weight_error", unit="", layers=tuple(noisy), schemes=("int8-channel",),
        score=np.array(errors)[:, None], samples=0, seed=0,
    )  # fmt: skip
    predicted = predicted_budget(gains, dict.fromkeys(noisy, "int8-channel"), table)
    measured = measured_budget(model, model.with_weights(noisy), data, batch_size=3)
    assert np.allclose(predicted.decibels, measured.decibels, atol=0.7)
    assert (np.diff(measured.decibels[:4]) < 0).all()
    assert predicted.worst(OUTPUT, 1)[0][0] == "b3"
    assert sum(part for _, part in predicted.worst(OUTPUT, 9)) == pytest.approx(1)


def test_an_exact_model_has_no_noise_and_padding_does_not_count():
    model = chain()
    assert (measured_budget(model, model, Samples(24)).noise == 0).all()
    assert np.isinf(measured_budget(model, model, Samples(24)).decibels).all()
    other = model.with_weights({"b1": model.weights["b1"] * 1.01})
    data = Samples(24, masked=True)
    before = measured_budget(model, other, data).noise
    data.inputs[:, 4] *= 1000
    assert (measured_budget(model, other, data).noise == before).all()
    assert before[0] == 0 and np.allclose(before[1:], 1e-4, rtol=1e-3)


def test_what_is_missing_is_named():
    gains = NoiseGains(layers=("a",), blocks=(OUTPUT,), gain=np.ones((1, 1)), samples=1, seed=0)
    table = Sensitivity(
        metric="weight_error", unit="", layers=("a",), schemes=("int8-channel",), score=np.full((1, 1), np.nan),
        samples=0, seed=0,
    )  # fmt: skip
    with pytest.raises(MissingResultError, match="no score for a in int8-channel"):
        predicted_budget(gains, {"a": "int8-channel"}, table)
    budget = predicted_budget(gains, {}, table)
    assert (budget.noise == 0).all() and budget.worst(OUTPUT) == ()
    with pytest.raises(CannotRunError, match="weights only"):
        noise_gains(Chain(chain().weights, cannot_run="weights only"), Samples(24))
