"""Losses of quantized activations: of each layer's input, and of the keys and values in the KV cache."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from workbench.measurement.units import NATS
from workbench.sensitivity.metrics.metric import OpenCells, Part, SensitivityMetric

if TYPE_CHECKING:
    from workbench.sensitivity.scoring import Scoring


def _fill(scoring: Scoring, cells: OpenCells, *, part: Part, measured: bool) -> None:
    from workbench.sensitivity.activations import measured_losses, predicted_losses, quantizers_of

    data = scoring.require_data("an activation's loss" if part == "inputs" else "a KV cache's loss")
    quantizers = quantizers_of(scoring.model, part, cells, scoring.ranges)
    losses = (measured_losses if measured else predicted_losses)(scoring, quantizers, part, data)
    scoring.fill(losses.items(), len(losses))


PREDICTED_KL_INPUTS = SensitivityMetric(
    name="predicted_kl_inputs", title="Predicted KL of inputs", unit=NATS, part="inputs",
    fill=partial(_fill, part="inputs", measured=False),
    meaning="Prediction, from output gradients, of the KL that quantizing this layer's input alone causes",
    formula="½ mean of Σ g²·(q(x) − x)²; x: the layer's inputs, q: rounding, g: gradients there",
)  # fmt: skip
MEASURED_KL_INPUTS = SensitivityMetric(
    name="measured_kl_inputs", title="Measured KL of inputs", unit=NATS, part="inputs",
    fill=partial(_fill, part="inputs", measured=True),
    meaning="KL to the floating-point model with this layer's input alone quantized; one run for each cell",
    formula="mean of Σ p·(ln p − ln q) over tokens or samples; p: floating point, q: with this input rounded",
)  # fmt: skip
PREDICTED_KL_CACHE = SensitivityMetric(
    name="predicted_kl_cache", title="Predicted KL of the KV cache", unit=NATS, part="cache",
    fill=partial(_fill, part="cache", measured=False),
    meaning="Prediction of the KL that quantizing the keys or values of this layer alone in the KV cache causes",
    formula="½ mean of Σ g²·(q(x) − x)²; x: keys or values, q: rounding, g: gradients there",
)  # fmt: skip
MEASURED_KL_CACHE = SensitivityMetric(
    name="measured_kl_cache", title="Measured KL of the KV cache", unit=NATS, part="cache",
    fill=partial(_fill, part="cache", measured=True),
    meaning="KL with the keys or values of this layer alone quantized in the KV cache; one run for each cell",
    formula="mean of Σ p·(ln p − ln q) over tokens or samples; p: floating point, q: with these keys or values rounded",
)  # fmt: skip
