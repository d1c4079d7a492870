"""Layers quantized one after another, and what is told when that or the moments are not to be had."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.measurement.moments import whole_curvature
from tests.models.networks import decoder, tokens
from workbench.errors import MissingResultError
from workbench.measurement.calibrate import calibrate
from workbench.measurement.evaluate import evaluate
from workbench.models.layer import LayerKind
from workbench.planning.plan import Plan
from workbench.quantization.quantize import quantize


@pytest.mark.parametrize("algorithm", ["gptq", "gptq-sequential", "rtn-weighted"])
def test_without_a_calibration_the_layer_and_the_session_are_named(algorithm: str) -> None:
    model = decoder()
    linear = [layer for layer in model.summary.stored if layer.kind is LayerKind.LINEAR]
    with pytest.raises(MissingResultError, match=rf"{algorithm}.*{linear[0].name}") as error:
        quantize(model, Plan.uniform(linear, "int4-channel", algorithm=algorithm))
    assert "--session" in (error.value.command or "")


def test_sequential_quantization_is_deterministic_and_close() -> None:
    model, data = decoder(), tokens()
    linear = [layer for layer in model.summary.stored if layer.kind is LayerKind.LINEAR]
    known = calibrate(model, data).curvature
    models = [
        quantize(model, Plan.uniform(linear, "int3-channel-asym", algorithm=name), curvature=known, data=data)
        for name in ("rtn-clip", "gptq-sequential", "gptq-sequential")
    ]
    losses = [evaluate(model, each.bind(model), data)["kl"].value for each in models]
    assert losses[1] == losses[2] and losses[1] < losses[0]
    assert all(torch.isfinite(model.weight(name)).all() for name in models[1].tensors)


def test_a_layer_with_too_few_samples_is_kept_and_named() -> None:
    model = decoder()
    linear = [layer for layer in model.summary.stored if layer.kind is LayerKind.LINEAR]
    known = whole_curvature(model, tokens())
    first = linear[0].name
    scarce = {name: replace(item, count=2) if name == first else item for name, item in known.items()}
    done = quantize(model, Plan.uniform(linear, "int4-channel", algorithm="gptq"), curvature=scarce)
    assert first not in done.tensors and len(done.tensors) == len(linear) - 1
    assert any(first in note and "rank" in note for note in done.notes)
