"""The quantized model beside the floating-point one on the same data: metrics with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from workbench.measurement.bootstrap import interval, pseudo_values
from workbench.measurement.evaluation import Metric
from workbench.measurement.finite_batches import FiniteBatches
from workbench.measurement.gradients import fitting_batch
from workbench.measurement.metrics import METRICS
from workbench.measurement.metrics.metric import EvaluationMetric, Outputs, Sums
from workbench.measurement.most_changed import MostChanged
from workbench.measurement.reference.cache import NO_CACHE, ArrayCache
from workbench.measurement.reference.outputs import ReferenceOutputs
from workbench.models.data.batches import Data, require_classes, require_data, require_repeatable, require_shape
from workbench.models.data.datasets import Dataset
from workbench.models.model import Model
from workbench.models.summary import OutputKind
from workbench.progress import Progress, silent


def evaluate(
    reference: Model, candidate: Model, dataset: Data, *, batch_size: int = 8, seed: int = 0,
    most_changed: MostChanged | None = None, user_metrics: Sequence[EvaluationMetric] = (),
    notes: list[str] | None = None, cache: ArrayCache = NO_CACHE, repeatable: bool = False,
    progress: Progress = silent,
) -> dict[str, Metric]:  # fmt: skip
    """Run both models on ``dataset`` and return the metrics that the output allows, by name.

    The metrics are METRICS, where they apply to the model's outputs, and ``user_metrics`` under their own names.
    ``most_changed`` collects the most changed tokens or samples where the outputs are logits.  Batches on which the
    reference gives NaN or infinity are left out; ``notes`` gets a sentence for each, and one for labels that are
    missing.  ``cache`` keeps the reference's outputs for the next plan on the same data.  ``repeatable``: the
    reference is known to give the same again.  Raises CannotRunError and DataError.
    """
    require_data(reference, dataset, "evaluation")
    batch_size = fitting_batch(batch_size, dataset, reference, gradients=False)
    columns = [_Column(metric=metric) for metric in (*METRICS, *user_metrics)]
    notes = [] if notes is None else notes
    finite = FiniteBatches(model=reference, notes=notes)
    text = dataset.text if isinstance(dataset, Dataset) else None
    known = ReferenceOutputs(model=reference, data=dataset, batch_size=batch_size, cache=cache)
    for number, batch, base in finite.of(dataset, batch_size, known.run, progress=progress, text="evaluating"):
        with torch.no_grad():
            quantized = candidate.run(batch)
            base = base.to(quantized.device)  # what comes from the disk is on the CPU
            require_shape(base, quantized)
            outputs = Outputs(
                reference=base, quantized=quantized, batch=batch, kind=reference.summary.output, text=text
            )
            if not number and not known.compared and not repeatable:
                require_repeatable(reference, batch, base)
            require_classes(batch, base, outputs.kind)
            for column in columns:
                sums = column.metric.measure(outputs)
                if sums is not None:
                    column.batches.append(sums)
            named = outputs.kind in (OutputKind.TOKEN_LOGITS, OutputKind.CLASS_LOGITS)  # answers have a text or a label
            if most_changed is not None and named and outputs.kind.is_logits and outputs.kl.ndim == base.ndim - 1:
                most_changed.add(outputs.kl, outputs.compared.answers, batch, number * batch_size)
    figures: dict[str, Metric] = {}
    for column in (column for column in columns if column.batches):
        figure = column.figure(seed)
        if figure is None:
            which = f"{dataset.record.name} gives no figure for {column.metric.title}"
            notes.append(f"{which}: " + (
                "the floating-point model answers nothing there that counts" if column.metric.compares_models else
                "its labels are empty, unlabelled (negative, or 255 of a mask), or all the same"
            ))  # fmt: skip
        else:
            figures[figure.name] = figure
    if reference.summary.output is OutputKind.CLASS_LOGITS and "accuracy" not in figures:
        shape = dataset.tensors["labels"].shape if isinstance(dataset, Dataset) and "labels" in dataset.tensors else ()
        lacks = f"labels of the shape {tuple(shape)}, and not a class for each sample" if shape else "no labels"
        notes.append(f"{dataset.record.name} has {lacks}, so there is no accuracy; KL and agreement need none")
    progress(1.0, "evaluated")
    return figures


@dataclass(slots=True, kw_only=True)
class _Column:
    """One metric's sums, batch by batch: of the quantized model, of the baseline, and how many units."""

    metric: EvaluationMetric
    batches: list[Sums] = field(default_factory=list)

    def figure(self, seed: int) -> Metric | None:
        """Return the metric over all batches with its confidence interval, None where nothing of the labels counts.

        A statistic's samples are its jackknife pseudo-values, whose mean it is and whose scatter is its own.
        """
        sums, baselines, weights = (
            np.concatenate([part.double().cpu().numpy() for part in parts]) for parts in zip(*self.batches, strict=True)
        )
        statistic = self.metric.statistic
        if statistic is not None:
            sums, baselines = pseudo_values(sums, statistic), pseudo_values(baselines, statistic)
        counted = weights > 0
        if not counted.any() or (statistic is not None and np.isnan(baselines).all()):
            return None
        weights = weights[counted]
        per_sample = sums[counted] / weights, baselines[counted] / weights
        transform = self.metric.transform
        value, baseline = (float(transform(np.array(values @ weights / weights.sum()))) for values in per_sample)
        low, high = interval(per_sample[0], weights, seed=seed, transform=transform)
        return Metric(
            name=self.metric.name, unit=self.metric.unit, higher_is_better=self.metric.higher_is_better, value=value,
            baseline=baseline, low=low, high=high, samples=len(weights), per_sample=per_sample[0],
            baseline_per_sample=per_sample[1], weights=weights,
        )  # fmt: skip
