"""The objects that the command line prints with ``--json``, and the readable text of each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.console.outlier_reports import outliers
from workbench.console.terminal import readable_bytes, table
from workbench.measurement.evaluation import Evaluation, Timing
from workbench.models.summary import ModelSummary
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session

if TYPE_CHECKING:
    from workbench.insight.estimates import Predicted

Result = dict[str, Any]


def number(value: float | None) -> float | None:
    """Return ``value`` as JSON can hold it: NaN and infinity become null."""
    return None if value is None or not math.isfinite(value) else float(value)


def inspect(summary: ModelSummary) -> Result:
    """Describe a model: one entry for each layer."""
    return {
        "model": summary.name,
        "fingerprint": summary.fingerprint,
        "parameters": summary.parameters,
        "bytes": summary.nbytes,
        "layers": [
            {
                "name": layer.name, "kind": str(layer.kind), "shape": list(layer.shape), "dtype": layer.dtype,
                "parameters": layer.parameters, "bytes": layer.nbytes, "tied_to": layer.tied_to,
            }
            for layer in summary.layers
        ],
    }  # fmt: skip


def inspect_text(result: Result) -> str:
    """Return a table of layers."""
    rows = [
        (
            layer["name"], layer["kind"], " x ".join(map(str, layer["shape"])), layer["dtype"],
            f"{layer['parameters']:,}", readable_bytes(layer["bytes"]),
            f"tied to {layer['tied_to']}" if layer["tied_to"] else "",
        )
        for layer in result["layers"]
    ]  # fmt: skip
    head = f"{result['model']}: {result['parameters']:,} parameters, {readable_bytes(result['bytes'])}"
    listing = table(rows, ("layer", "kind", "shape", "dtype", "parameters", "size", ""))
    return f"{head}\n{result['fingerprint']}\n\n{listing}"


def calibrate(session: Session, out: str) -> Result:
    """Say what a calibration collected."""
    record = session.calibration
    return {
        "session": out,
        "model": session.model.name,
        "fingerprint": session.model.fingerprint,
        "data": record.name if record else None,
        "data_hash": record.content_hash if record else None,
        "samples": record.samples if record else 0,
        "layers": len({layer for layer, _ in session.statistics}),
        "outliers": outliers(session, 3)["tensors"] if session.outliers else [],
        "notes": list(session.notes),
    }


def calibrate_text(result: Result) -> str:
    """Return one or more lines."""
    data = f"{result['samples']} samples of {result['data']}" if result["data"] else "weights only"
    lines = [f"calibrated {result['layers']} layers of {result['model']} on {data}", f"session: {result['session']}"]
    lines += [
        f"outlier: {one['tap']} of {one['layer']} reaches {one['largest']:.4g}, {one['sigmas']:.0f} standard deviations"
        for one in result["outliers"]
    ]
    return "\n".join([*lines, *(f"note: {note}" for note in result["notes"])])


def sensitivity(scores: Sensitivity, model: ModelSummary, notes: Iterable[str] = ()) -> Result:
    """Return the whole table; a cell that was not computed is null.  ``notes`` are the session's.

    ``forms`` says by which form of the prediction each layer's losses came.
    """
    unscored = [name for name, row in zip(scores.layers, scores.score, strict=True) if np.isnan(row).all()]
    mine = [note for note in notes if note.startswith(f"{scores.metric}: ")]
    if unscored:
        mine.append(
            f"{', '.join(unscored)} could not be scored (no data reached it, or its weights are not finite): a search "
            "leaves it in floating point"
        )
    return {
        "metric": scores.metric,
        "unit": scores.unit,
        "layers": list(scores.layers),
        "schemes": list(scores.schemes),
        "score": [[number(value) for value in row] for row in scores.score.tolist()],
        "forms": _forms(scores),
        "gauss_newton": not model.output.is_logits,
        "notes": mine,
    }


def _forms(scores: Sensitivity) -> dict[str, list[str]]:
    """Return the layers of each form of the prediction; empty for a table of another metric."""
    if scores.metric != "predicted_kl":
        return {}
    sampled = set() if scores.directions is None else set(scores.directions.layers)
    rows = zip(scores.layers, scores.score, strict=True)
    known = [name for name, row in rows if not np.isnan(row).all()]
    return {
        "kronecker": [name for name in known if name not in sampled],
        "directional": [name for name in known if name in sampled],
    }


def sensitivity_text(result: Result) -> str:
    """Return the table, one row for each layer."""
    rows = [
        (layer, *("-" if value is None else f"{value:.3g}" for value in row))
        for layer, row in zip(result["layers"], result["score"], strict=True)
    ]
    found = f"{result['metric']} in {result['unit']}\n\n" + table(rows, ("layer", *result["schemes"]))
    told = [
        f"predicted by the {form} form{' of Gauss-Newton' if result['gauss_newton'] else ''}: {len(layers)} layers"
        for form, layers in result["forms"].items() if layers
    ]
    return "\n".join([found, *told, *(f"note: {note}" for note in result["notes"])])


def evaluate(evaluation: Evaluation) -> Result:
    """Return every metric beside its baseline."""
    return {
        "bits_per_weight": evaluation.bits_per_weight,
        "bytes": evaluation.nbytes,
        "predicted_kl": number(evaluation.predicted_kl),
        "metrics": {
            name: {
                "unit": metric.unit, "value": number(metric.value), "baseline": number(metric.baseline),
                "low": number(metric.low), "high": number(metric.high), "samples": metric.samples,
            }
            for name, metric in evaluation.metrics.items()
        },
        "notes": list(evaluation.notes),
    }  # fmt: skip


def figure(value: float | None) -> str:
    """Return a figure with four digits, ``-`` for one that is not known."""
    return "-" if value is None else f"{value:.4g}"


def written(paths: Iterable[Path], notes: Iterable[str] = ()) -> Result:
    """List the files that an export wrote, with their bytes, and what there is to tell of layers left as they are."""
    return {"files": [{"path": str(path), "bytes": _bytes(path)} for path in paths], "notes": list(notes)}


def _bytes(path: Path) -> int:
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return path.stat().st_size


def written_text(result: Result) -> str:
    """Return one line for each file."""
    lines = [f"wrote {entry['path']} ({readable_bytes(entry['bytes'])})" for entry in result["files"]]
    return "\n".join([*lines, *(f"note: {note}" for note in result["notes"])])


def bench(timings: Sequence[Timing], predicted: Predicted | None = None, *, ncu: bool = False) -> Result:
    """Return one row for each layer or shape, times in microseconds; estimates of a data sheet apart from them.

    With ``ncu`` also the commands that profile the CUDA kernels, each once: none without a CUDA device.
    """
    from workbench_kernels.catalog import cuda_reason

    from workbench.measurement.profiling import ncu_command

    rows: list[Result] = [
        {
            "layer": timing.layer, "scheme": timing.scheme, "shape": list(timing.shape), "batch": timing.batch,
            "kernel": timing.kernel, "baseline_kernel": timing.baseline_kernel,
            "microseconds": number(timing.median) if timing.samples.size else None,
            "baseline_microseconds": number(timing.baseline_median) if timing.baseline_samples.size else None,
            "repeats": int(timing.samples.size), "note": timing.note,
            "gigabytes_per_second": number(timing.gigabytes_per_second),
            "teraoperations_per_second": number(timing.teraoperations_per_second),
            "occupancy": timing.occupancy or None, "occupancy_reason": timing.no_occupancy or None,
        }
        for timing in timings
    ]  # fmt: skip
    found: Result = {
        "device": timings[0].device if timings else None, "cuda": cuda_reason() or "available", "rows": rows
    }
    if ncu:
        found["ncu"] = list(dict.fromkeys(filter(None, map(ncu_command, timings))))
    if predicted is not None:
        for row, one in zip(rows, predicted.kernels, strict=True):
            row["estimate"] = None if one is None else _estimate(one.microseconds, one.speedup) | {
                "bound": one.bound, "how": one.how,
            }  # fmt: skip
        found["estimates"] = {
            "title": predicted.title,
            "plan": [
                {"batch": batch, "refused": len(plan.refused), **_estimate(plan.microseconds, plan.speedup)}
                for batch, plan in predicted.plans.items()
            ],
        }
    return found


def _estimate(microseconds: float, speedup: float) -> Result:
    return {"microseconds": number(microseconds), "speedup": number(speedup)}


def bench_text(result: Result) -> str:
    """Return the rows as a table with the speed-up, and estimates, marked as such, in a column of their own."""
    told = result.get("estimates")
    rows = []
    for row in result["rows"]:
        fast, base = row["microseconds"], row["baseline_microseconds"]
        ratio = f"{base / fast:.2f}x" if fast and base else "-"
        shape = " x ".join(map(str, row["shape"]))
        cells = (row["layer"], row["scheme"], shape, str(row["batch"]), figure(fast), figure(base), ratio)
        rates = (figure(row["gigabytes_per_second"]), figure(row["teraoperations_per_second"]), row["occupancy"] or "-")
        rows.append((*cells, *rates, *((_estimate_text(row["estimate"]),) if told else ()), row["note"]))
    head = f"device: {result['device']}\nCUDA: {result['cuda']}" + (f"\n{told['title']}" if told else "")
    columns = ("layer", "scheme", "shape", "batch", "us", "FP us", "speed-up", "GB/s", "Tops", "occupancy")
    text = f"{head}\n\n" + table(rows, (*columns, *(("estimate",) if told else ()), "what ran"))
    return "\n".join([text, *(map(_plan_text, told["plan"]) if told else ()), *_profiling_lines(result)])


def _profiling_lines(result: Result) -> list[str]:
    """Say why rows have no occupancy, and the commands that profile, if they were asked for."""
    reasons = dict.fromkeys(row["occupancy_reason"] for row in result["rows"] if row["occupancy_reason"])
    lines = [f"occupancy -: {reason}" for reason in reasons]
    if "ncu" not in result:
        return lines
    none = f"nothing to profile with ncu, no timed kernel ran on a CUDA device (CUDA: {result['cuda']})"
    return [*lines, *(("profile with Nsight Compute:", *result["ncu"]) if result["ncu"] else (none,))]


def _plan_text(plan: Result) -> str:
    refused = f"; {plan['refused']} layers that it cannot run count as stored" if plan["refused"] else ""
    return f"whole plan at batch {plan['batch']}, estimate: {_estimate_text(plan)} as fast as stored{refused}"


def _estimate_text(row: Result | None) -> str:
    if row is None:
        return "cannot run"
    return f"{figure(row['microseconds'])} us, {figure(row['speedup'])}x"


def info(session: Session, path: Path) -> Result:
    """Say what a session holds."""
    record = session.calibration
    return {
        "session": str(path),
        "model": session.model.name,
        "fingerprint": session.model.fingerprint,
        "parameters": session.model.parameters,
        "layers": len(session.model.layers),
        "source": session.model.source.path,
        "calibration": None if record is None else {"data": record.path, "samples": record.samples,
                                                    "hash": record.content_hash},
        "statistics": len(session.statistics),
        "sensitivities": {name: list(scores.score.shape) for name, scores in session.sensitivities.items()},
        "plan": session.plan.name,
        "rules": len(session.plan.rules),
        "evaluations": [evaluate(evaluation) | {"plan": evaluation.plan_name} for evaluation in session.evaluations],
        "timings": len(session.timings),
        "workbench": session.environment.workbench,
    }  # fmt: skip


def info_text(result: Result) -> str:
    """Return one line for each part."""
    calibration = result["calibration"]
    lines = [
        f"model         {result['model']} ({result['parameters']:,} parameters, {result['layers']} layers)",
        f"fingerprint   {result['fingerprint']}",
        f"source        {result['source']}",
        f"calibration   {calibration['samples']} samples of {calibration['data']}" if calibration else
        "calibration   none",
        f"statistics    {result['statistics']} tensors",
        "sensitivity   " + (", ".join(f"{name} {rows} x {columns}" for name, (rows, columns) in
                                      result["sensitivities"].items()) or "none"),
        f"plan          {result['plan']} ({result['rules']} rules)",
        f"evaluations   {len(result['evaluations'])}",
        f"timings       {result['timings']}",
        f"made with     workbench {result['workbench']}",
    ]  # fmt: skip
    return "\n".join(lines)


def demo_text(result: Result) -> str:
    """Return where the demo's files are and its figures."""
    from workbench.console.demo import demo_text

    return demo_text(result)
