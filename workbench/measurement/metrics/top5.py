"""Top-5 accuracy of classifiers: the label is among the five most likely classes."""

from __future__ import annotations

from workbench.measurement.metrics.metric import EvaluationMetric, Outputs, Sums
from workbench.measurement.units import PERCENT
from workbench.models.summary import OutputKind

CLASSES = 5


def _top5_accuracy(outputs: Outputs) -> Sums | None:
    labelled = outputs.kind is OutputKind.CLASS_LOGITS and "labels" in outputs.batch
    if not labelled or outputs.batch["labels"].ndim != 1 or outputs.reference.shape[-1] <= CLASSES:
        return None
    labels = outputs.batch["labels"][:, None]
    both = (outputs.quantized, outputs.reference)
    quantized, baseline = ((logits.topk(CLASSES).indices == labels).any(dim=-1) for logits in both)
    return Sums(100.0 * quantized, 100.0 * baseline, outputs.ones)


TOP5_ACCURACY = EvaluationMetric(
    name="top5_accuracy", title="Top-5 accuracy", unit=PERCENT, higher_is_better=True, measure=_top5_accuracy,
    meaning="Share of samples whose label is among the five most likely classes, in %; higher is better",
)  # fmt: skip
