"""Metrics of an evaluation, differences and whether the samples resolve them, what changed most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from workbench.console.report import Report, Row, Table, figure, readable_bytes
from workbench.console.step_command import Outcome
from workbench.measurement.evaluation import Evaluation
from workbench.measurement.metrics import HALF_DISTANCE, KL
from workbench.measurement.paired import Difference, against_baseline
from workbench.steps.checks.compare_plans import paired_differences
from workbench.steps.evaluate import EvaluateOptions

CHANGED = {"context": "after", "baseline": "floating point", "quantized": "quantized", "actual": "actual"}
"""The words around a changed token, and their headings."""


def evaluated(outcome: Outcome[EvaluateOptions, Evaluation]) -> Report:
    """Return metrics, paired differences and the most changed tokens or samples.

    Differences are those to floating point and, where the session has another plan's evaluation on the same samples,
    to the newest of them.
    """
    evaluation, earlier, worst = outcome.result, outcome.before.evaluations, outcome.flags.worst
    pairs = [
        (difference, "floating point")
        for difference in map(against_baseline, evaluation.metrics.values()) if difference is not None
    ]  # fmt: skip
    other = _comparable(evaluation, earlier)
    if other is not None:
        pairs += [(difference, other.plan_name) for difference in paired_differences(evaluation, other)]
    changed = [asdict(change) for change in evaluation.changed[:worst]]
    parts: list[str | Table] = [_heading(evaluation), metrics_table(evaluation)]
    parts += [f"against {name}: {difference.sentence()}" for difference, name in pairs]
    if changed:
        parts += ["", "most changed", _changed_table(changed)]
    if evaluation.notes and not changed:
        parts.append("")
    return Report(
        facts={
            **figures_of(evaluation), "differences": [_difference(*pair) for pair in pairs], "changed": changed
        },
        parts=parts,
        notes=evaluation.notes,
    )  # fmt: skip


def figures_of(evaluation: Evaluation) -> Row:
    """Return every metric beside its baseline."""
    return {
        "bits_per_weight": evaluation.bits_per_weight,
        "bytes": evaluation.nbytes,
        "predicted_kl": evaluation.predicted_kl,
        "metrics": {
            name: {
                "unit": metric.unit, "value": metric.value, "baseline": metric.baseline, "low": metric.low,
                "high": metric.high, "samples": metric.samples,
            }
            for name, metric in evaluation.metrics.items()
        },
        "notes": evaluation.notes,
    }  # fmt: skip


def metrics_table(evaluation: Evaluation) -> Table:
    """Return the metrics as a table of the text."""
    rows = [
        {
            "metric": name, "value": metric.value, "baseline": metric.baseline,
            "interval": f"{figure(metric.low)} .. {figure(metric.high)}", "unit": metric.unit,
            "samples": metric.samples,
        }
        for name, metric in evaluation.metrics.items()
    ]  # fmt: skip
    columns = "metric | value=quantized | baseline=floating point | interval=95 % interval | unit | samples"
    return Table(rows=rows, columns=columns)


def _heading(evaluation: Evaluation) -> str:
    heading = f"{evaluation.bits_per_weight:.3f} bits per weight, {readable_bytes(evaluation.nbytes)}"
    if evaluation.predicted_kl is None:
        return heading
    unit = "KL {:.4g} nats" if KL.name in evaluation.metrics else f"{HALF_DISTANCE.unit} {{:.4g}}"
    return f"{heading}, predicted {unit.format(evaluation.predicted_kl)}"


def _comparable(evaluation: Evaluation, earlier: Sequence[Evaluation]) -> Evaluation | None:
    """Return the newest evaluation of another plan on the same samples."""
    samples = {name: metric.samples for name, metric in evaluation.metrics.items()}
    for old in reversed(earlier):
        shared = samples.keys() & old.metrics.keys()
        same = all(old.metrics[name].samples == samples[name] for name in shared)
        if old.data_hash == evaluation.data_hash and old.plan_hash != evaluation.plan_hash and shared and same:
            return old
    return None


def _difference(difference: Difference, other: str) -> Row:
    return {
        **asdict(difference), "metric": difference.name, "to": other, "resolved": difference.resolved,
        "sentence": difference.sentence(),
    }  # fmt: skip


def _changed_table(changed: Sequence[dict[str, Any]]) -> Table:
    rows = [
        {
            "place": f"{change['sample']}" + (f":{change['position']}" if change["position"] >= 0 else ""),
            "kl": change["kl"], **{key: _line(change[key])[-40:] for key in CHANGED},
        }
        for change in changed
    ]  # fmt: skip
    known = [f"{key}={title}" for key, title in CHANGED.items() if any(change[key] for change in changed)]
    return Table(rows=rows, columns=" | ".join(["place=sample", "kl=KL", *known]))


def _line(text: str) -> str:
    return " ".join(text.split()) or repr(text)
