"""The largest change of any output of a sample."""

from __future__ import annotations

from workbench.measurement.metrics.metric import EvaluationMetric, Outputs, Sums


def _largest_change(outputs: Outputs) -> Sums | None:
    change = (outputs.quantized.double() - outputs.reference.double()).abs().flatten(1).amax(dim=1)
    return Sums(change, 0.0 * outputs.ones, outputs.ones)


LARGEST_CHANGE = EvaluationMetric(
    name="largest_change", title="Largest change", unit="", higher_is_better=False, measure=_largest_change,
    compares_models=True, meaning="The largest change of any output of a sample; 0 is equal, lower is better",
)  # fmt: skip
