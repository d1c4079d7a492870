"""Kernel times of layers or shapes, and what a data sheet lets expect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench_kernels.catalog import cuda_reason

from workbench.console.report import Report, Row, Table, figure, row
from workbench.insight.roofline import Predicted
from workbench.measurement.evaluation import Timing


def timed(timings: Sequence[Timing], predicted: Predicted | None = None, *, ncu: bool = False) -> Report:
    """Return one row for each layer or shape, times in microseconds; estimates of a data sheet apart from them.

    With ``ncu`` also the commands that profile the CUDA kernels, each once: none without a CUDA device.
    """
    rows = [_row(timing) for timing in timings]
    cuda, device = cuda_reason() or "available", timings[0].device if timings else None
    facts: dict[str, object] = {"device": device, "cuda": cuda, "rows": rows}
    lines, after = [f"device: {device}", f"CUDA: {cuda}"], list[str]()
    columns = (
        "layer | scheme | shape | batch | microseconds=us | baseline_microseconds=FP us | speedup=speed-up | "
        "gigabytes_per_second=GB/s | teraoperations_per_second=Tops | occupancy"
    )
    if predicted is not None:
        for each, kernel in zip(rows, predicted.kernels, strict=True):
            each["estimate"] = kernel and row(kernel, "microseconds speedup bound how")
        plans = [
            row(plan, "microseconds speedup", batch=batch, refused=len(plan.refused))
            for batch, plan in predicted.plans.items()
        ]
        facts["estimates"] = {"title": predicted.title, "plan": plans}
        lines.append(predicted.title)
        columns += " | estimated=estimate"
        after += map(_whole_plan, plans)
    reasons = dict.fromkeys(each["occupancy_reason"] for each in rows if each["occupancy_reason"])
    after += [f"occupancy -: {reason}" for reason in reasons]
    if ncu:
        facts["ncu"] = commands = list(dict.fromkeys(filter(None, (timing.ncu_command for timing in timings))))
        none = f"nothing to profile with ncu, no timed kernel ran on a CUDA device (CUDA: {cuda})"
        after += ["profile with Nsight Compute:", *commands] if commands else [none]
    shown = [{**each, "speedup": _speedup(each), "estimated": _estimate(each.get("estimate"))} for each in rows]
    return Report(facts=facts, parts=[*lines, Table(rows=shown, columns=f"{columns} | note=what ran"), *after])


def _row(timing: Timing) -> dict[str, Any]:
    return row(
        timing, "layer scheme shape batch kernel baseline_kernel note gigabytes_per_second teraoperations_per_second",
        microseconds=timing.median if timing.samples.size else None,
        baseline_microseconds=timing.baseline_median if timing.baseline_samples.size else None,
        repeats=int(timing.samples.size), occupancy=timing.occupancy or None,
        occupancy_reason=timing.no_occupancy or None,
    )  # fmt: skip


def _speedup(row: dict[str, Any]) -> float | None:
    fast, base = row["microseconds"], row["baseline_microseconds"]
    return base / fast if fast and base else None


def _estimate(estimate: Row | None) -> str:
    if estimate is None:
        return "cannot run"
    return f"{figure(estimate['microseconds'])} us, {figure(estimate['speedup'])}x"


def _whole_plan(plan: Row) -> str:
    refused = f"; {plan['refused']} layers that it cannot run count as stored" if plan["refused"] else ""
    return f"whole plan at batch {plan['batch']}, estimate: {_estimate(plan)} as fast as stored{refused}"
