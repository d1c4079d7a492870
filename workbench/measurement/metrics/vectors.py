"""Metrics of models whose outputs are not logits: how far the output vectors moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.measurement.metrics.metric import EvaluationMetric, Outputs, Sums
from workbench.measurement.units import HALF_SQUARED_DISTANCE, RELATIVE_SQUARED_ERROR
from workbench.models.summary import OutputKind

if TYPE_CHECKING:
    import torch


def _cosine(outputs: Outputs) -> Sums | None:
    import torch

    if outputs.kind is not OutputKind.EMBEDDING:
        return None
    reference, quantized = (_vectors(each) for each in (outputs.reference, outputs.quantized))
    if reference.shape[1] == 1:  # of one number it is the sign
        return None
    cosine = torch.nn.functional.cosine_similarity(reference, quantized, dim=1)
    return Sums(cosine, outputs.ones, outputs.ones)


def _relative_error(outputs: Outputs) -> Sums | None:
    import torch

    if outputs.kind.is_logits:
        return None
    size = _vectors(outputs.reference).square().sum(dim=1)
    error = 2.0 * _half_distances(outputs) / size.clamp_min(torch.finfo(torch.float64).tiny)
    return Sums(error, 0.0 * outputs.ones, outputs.ones)


def _half_squared_distance(outputs: Outputs) -> Sums | None:
    if outputs.kind.is_logits:
        return None
    return Sums(_half_distances(outputs), 0.0 * outputs.ones, outputs.ones)


def _vectors(outputs: torch.Tensor) -> torch.Tensor:
    """Return outputs as float64 ``[samples, numbers]``; a network may answer one number for each sample."""
    return outputs.double().reshape(len(outputs), -1)


def _half_distances(outputs: Outputs) -> torch.Tensor:
    from workbench.measurement.divergence import sample_divergence

    return sample_divergence(outputs.reference, outputs.quantized, outputs.batch, outputs.kind)


COSINE = EvaluationMetric(
    name="cosine", title="Cosine similarity", unit="", higher_is_better=True, measure=_cosine, compares_models=True,
    meaning="Cosine of the angle between both models' outputs; 1 is equal, higher is better",
)  # fmt: skip
RELATIVE_ERROR = EvaluationMetric(
    name="relative_error", title="Relative error", unit=RELATIVE_SQUARED_ERROR, higher_is_better=False,
    measure=_relative_error, compares_models=True,
    meaning="Squared distance of both models' outputs over the squared size of the floating-point model's; no unit, "
    "lower is better",
)  # fmt: skip
HALF_DISTANCE = EvaluationMetric(
    name="half_squared_distance", title="Half squared distance", unit=HALF_SQUARED_DISTANCE, higher_is_better=False,
    measure=_half_squared_distance, compares_models=True,
    meaning="Half the squared distance of both models' outputs, which is what the predicted loss predicts where they "
    "are not logits; 0 is equal, lower is better",
)  # fmt: skip
