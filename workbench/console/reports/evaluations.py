"""Metrics of an evaluation, differences and whether the samples resolve them, what changed most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from workbench.console.command import Outcome
from workbench.console.report import Report, Row, Table, figure, row
from workbench.measurement.evaluation import Evaluation
from workbench.measurement.metrics import HALF_DISTANCE, KL
from workbench.measurement.paired import against_baseline
from workbench.memory import size_text
from workbench.sensitivity.confidence import higher_orders, interval, resolution
from workbench.steps.checks.compare_plans import paired_differences

CHANGED = {"context": "after", "baseline": "floating point", "quantized": "quantized", "actual": "actual"}
"""The words around a changed token, and their headings."""


def evaluated(outcome: Outcome[Any, Evaluation]) -> Report:
    """Return metrics, paired differences and the most changed tokens or samples.

    Differences are those to floating point and, where the session has another plan's evaluation on the same samples,
    to the newest of them.
    """
    evaluation = outcome.result
    to_baseline = filter(None, map(against_baseline, evaluation.metrics.values()))
    pairs = [(difference, "floating point") for difference in to_baseline]
    other = _comparable(evaluation, outcome.before.evaluations)
    if other is not None:
        pairs += [(difference, other.plan_name) for difference in paired_differences(evaluation, other)]
    changed = [asdict(change) for change in evaluation.changed[: outcome.flags.worst]]
    sure = resolution(evaluation.predicted_kl, evaluation.predicted_error, evaluation.predicted_samples)
    parts: list[str | Table] = [_heading(evaluation), *([sure] if sure else []), metrics_table(evaluation)]
    parts += [f"against {name}: {difference.sentence()}" for difference, name in pairs]
    parts.append(_changed_table(changed) if changed or not evaluation.notes else "")
    differences = [
        asdict(difference) | row(difference, "metric=name resolved", to=name, sentence=difference.sentence())
        for difference, name in pairs
    ]
    facts = {**figures_of(evaluation), "differences": differences, "changed": changed}
    return Report(facts=facts, parts=parts, notes=evaluation.notes)


def figures_of(evaluation: Evaluation) -> Row:
    """Return every metric beside its baseline."""
    metrics = {name: row(metric, "unit value baseline low high samples") for name, metric in evaluation.metrics.items()}
    bounds = _predicted_interval(evaluation)
    return row(
        evaluation, "bits_per_weight bytes=nbytes predicted_kl notes", predicted_interval=bounds, metrics=metrics
    )


def metrics_table(evaluation: Evaluation) -> Table:
    """Return the metrics as a table of the text."""
    rows = [
        row(metric, "value baseline unit samples", metric=name,
            interval=f"{figure(metric.low)} .. {figure(metric.high)}")
        for name, metric in evaluation.metrics.items()
    ]  # fmt: skip
    columns = "metric | value=quantized | baseline=floating point | interval=95 % interval | unit | samples"
    return Table(rows=rows, columns=columns)


def _heading(evaluation: Evaluation) -> str:
    heading = f"{evaluation.bits_per_weight:.3f} bits per weight, {size_text(evaluation.nbytes)}"
    if evaluation.predicted_kl is None:
        return heading
    unit = "KL {:.4g} nats" if KL.name in evaluation.metrics else f"{HALF_DISTANCE.unit} {{:.4g}}"
    bounds = _predicted_interval(evaluation)
    heading = f"{heading}, predicted {unit.format(evaluation.predicted_kl)}"
    return heading if bounds is None else f"{heading} ({bounds[0]:.3g} to {bounds[1]:.3g})"


def _predicted_interval(evaluation: Evaluation) -> tuple[float, float] | None:
    predicted, doubt = evaluation.predicted_kl, evaluation.predicted_doubt
    if doubt is None and predicted is not None and KL.name in evaluation.metrics:
        doubt = higher_orders(predicted)
    return interval(predicted, evaluation.predicted_error, doubt or 0.0)


def _comparable(evaluation: Evaluation, earlier: Sequence[Evaluation]) -> Evaluation | None:
    """Return the newest evaluation of another plan on the same samples."""
    samples = {name: metric.samples for name, metric in evaluation.metrics.items()}
    for old in reversed(earlier):
        shared = samples.keys() & old.metrics.keys()
        same = all(old.metrics[name].samples == samples[name] for name in shared)
        if old.data_hash == evaluation.data_hash and old.plan_hash != evaluation.plan_hash and shared and same:
            return old
    return None


def _changed_table(changed: Sequence[dict[str, Any]]) -> Table:
    rows = [
        {
            "place": f"{change['sample']}" + (f":{change['position']}" if change["position"] >= 0 else ""),
            "kl": change["kl"], **{key: (" ".join(change[key].split()) or repr(change[key]))[-40:] for key in CHANGED},
        }
        for change in changed
    ]  # fmt: skip
    known = [f"{key}={title}" for key, title in CHANGED.items() if any(change[key] for change in changed)]
    return Table(rows=rows, columns=" | ".join(["place=sample", "kl=KL", *known]), above="most changed")
