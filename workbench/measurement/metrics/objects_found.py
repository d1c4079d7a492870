"""Whether the quantized detector finds the objects that the floating-point one finds."""

from __future__ import annotations

from workbench.measurement.metrics.metric import EvaluationMetric, Outputs, Sums
from workbench.measurement.units import PERCENT
from workbench.models.summary import OutputKind


def _objects_found(outputs: Outputs) -> Sums | None:
    if outputs.kind is not OutputKind.DETECTIONS:
        return None
    from workbench.numerics.detections import matched_objects

    both, there = matched_objects(outputs.reference, outputs.quantized)
    return Sums(100.0 * both, 100.0 * there, there)


OBJECTS_FOUND = EvaluationMetric(
    name="objects_found", title="Objects found", unit=PERCENT, higher_is_better=True, measure=_objects_found,
    compares_models=True,
    meaning="Share of the floating-point model's objects (probability of at least a half) that the quantized model "
    "finds too, with the same label and boxes that overlap by half or more, in %; higher is better",
)  # fmt: skip
