"""What ``workbench evaluate`` prints: metrics, differences and whether the samples resolve them, what changed most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.console import reports
from workbench.console.terminal import readable_bytes, table
from workbench.measurement.evaluation import Evaluation
from workbench.measurement.metrics import HALF_DISTANCE, KL
from workbench.measurement.paired import Difference, against_baseline
from workbench.steps.paired_differences import paired_differences

Result = dict[str, Any]


def evaluated(evaluation: Evaluation, earlier: Sequence[Evaluation], worst: int) -> Result:
    """Return metrics, paired differences and the ``worst`` most changed tokens or samples.

    Differences are those to floating point and, where ``earlier`` has another plan's evaluation on the same samples,
    to the newest of them.
    """
    found = [against_baseline(metric) for metric in evaluation.metrics.values()]
    differences = [_difference(one, "floating point") for one in found if one is not None]
    other = _comparable(evaluation, earlier)
    if other is not None:
        differences += [_difference(one, other.plan_name) for one in paired_differences(evaluation, other)]
    return reports.evaluate(evaluation) | {
        "differences": differences,
        "changed": [
            {
                "sample": one.sample, "position": one.position, "kl": one.kl, "flipped": one.flipped,
                "context": one.context, "baseline": one.baseline, "quantized": one.quantized, "actual": one.actual,
            }
            for one in evaluation.changed[:worst]
        ],
    }  # fmt: skip


def _comparable(evaluation: Evaluation, earlier: Sequence[Evaluation]) -> Evaluation | None:
    """Return the newest evaluation of another plan on the same samples."""
    samples = {name: metric.samples for name, metric in evaluation.metrics.items()}
    for old in reversed(earlier):
        shared = samples.keys() & old.metrics.keys()
        same = all(old.metrics[name].samples == samples[name] for name in shared)
        if old.data_hash == evaluation.data_hash and old.plan_hash != evaluation.plan_hash and shared and same:
            return old
    return None


def _difference(one: Difference, other: str) -> Result:
    return {
        "metric": one.name, "to": other, "value": reports.number(one.value), "low": reports.number(one.low),
        "high": reports.number(one.high), "samples": one.samples, "resolved": one.resolved,
        "needed": reports.number(one.needed), "sentence": one.sentence(),
    }  # fmt: skip


def evaluated_text(result: Result) -> str:
    """Return the metrics as a table, the differences as sentences, what changed most as a table."""
    parts = [_metrics(result)]
    parts += [
        "\n".join(f"against {each['to']}: {each['sentence']}" for each in result["differences"])
    ] if result["differences"] else []  # fmt: skip
    if result["changed"]:
        titles = {"context": "after", "baseline": "floating point", "quantized": "quantized", "actual": "actual"}
        told = [key for key in titles if any(one[key] for one in result["changed"])]
        rows = [
            (f"{one['sample']}" + (f":{one['position']}" if one["position"] >= 0 else ""), f"{one['kl']:.4g}",
             *(_line(one[key])[-40:] for key in told))
            for one in result["changed"]
        ]  # fmt: skip
        parts.append("most changed\n" + table(rows, ("sample", "KL", *(titles[key] for key in told))))
    parts += ["\n".join(f"note: {note}" for note in result["notes"])] if result["notes"] else []
    return "\n\n".join(parts)


def _metrics(result: Result) -> str:
    rows = [
        (name, reports.figure(entry["value"]), reports.figure(entry["baseline"]),
         f"{reports.figure(entry['low'])} .. {reports.figure(entry['high'])}", entry["unit"], str(entry["samples"]))
        for name, entry in result["metrics"].items()
    ]  # fmt: skip
    head = f"{result['bits_per_weight']:.3f} bits per weight, {readable_bytes(result['bytes'])}"
    if result["predicted_kl"] is not None:
        unit = "KL {:.4g} nats" if KL.name in result["metrics"] else f"{HALF_DISTANCE.unit} {{:.4g}}"
        head += f", predicted {unit.format(result['predicted_kl'])}"
    return f"{head}\n\n" + table(rows, ("metric", "quantized", "floating point", "95 % interval", "unit", "samples"))


def _line(text: str) -> str:
    return " ".join(text.split()) or repr(text)
