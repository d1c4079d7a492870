"""Timings as points of a roofline and as sums over a plan, and what a data sheet predicts for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from workbench.deployment.targets import target
from workbench.errors import PlanError, WorkbenchError
from workbench.measurement.evaluation import Timing
from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSummary
from workbench.numerics.formats import parse_scheme
from workbench.planning.budgets import MeasuredTimes
from workbench.planning.hardware import Device, Estimate, Hardware, PlanEstimate, estimate, plan_estimate, profiles
from workbench.planning.plan import KEEP, Assignment, resolve
from workbench.session.session import Session

WORD = 4
"""Bytes of an input, an output, or a weight in FP32."""
HALF = 2
"""The same of kernels with 16-bit inputs: all CUDA ones but the FP32 product of cuBLAS, and the processor's bf16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One kernel: ``intensity`` in operations a byte, ``speed`` in 1e9 operations a second, ``text`` for its tip."""

    intensity: float
    speed: float
    quantized: bool
    text: str


def points(timings: Sequence[Timing]) -> tuple[Point, ...]:
    """Return a point for each kernel and one for its baseline, one for each shape, scheme and batch.

    Bytes are those of weights (as the scheme packs them; floating point where that kernel stood in), inputs and
    outputs, once each; a multiply-add is two operations (Williams, Waterman and Patterson, 2009).
    """
    points_by_kernel: dict[tuple[object, ...], Point] = {}
    for timing in timings:
        served = timing.kernel != timing.baseline_kernel
        for quantized in (False, True):
            kernel = timing.kernel if quantized else timing.baseline_kernel
            micro = timing.median if quantized else timing.baseline_median
            packed = quantized and served
            if not micro > 0 or (quantized and not served):
                continue
            moved = weight_bytes(timing, packed=packed) + word(kernel) * timing.batch * sum(timing.shape)
            operations = 2.0 * timing.batch * timing.shape[0] * timing.shape[1]
            text = f"{timing.shape[0]} × {timing.shape[1]}, batch {timing.batch}: {kernel}"
            points_by_kernel[timing.shape, timing.batch, kernel, timing.scheme if packed else ""] = Point(
                intensity=operations / moved, speed=operations / micro * 1e-3, quantized=quantized, text=text
            )
    return tuple(points_by_kernel.values())


def weight_bytes(timing: Timing, *, packed: bool) -> float:
    """Return the bytes of the weight: as its scheme packs it, or as the floating-point kernel takes it."""
    if packed:
        try:
            return parse_scheme(timing.scheme).bits(timing.shape) / 8
        except WorkbenchError:
            pass
    return float(word(timing.baseline_kernel) * timing.shape[0] * timing.shape[1])


def word(kernel: str) -> int:
    """Return the bytes of an input or an output of a kernel, by its name."""
    return HALF if "bf16" in kernel or (kernel.startswith("cuda ") and "fp32" not in kernel) else WORD


@lru_cache(maxsize=16)
def measured_times(timings: tuple[Timing, ...], batch: int) -> MeasuredTimes | None:
    """Return the medians at a batch size, None where nothing was timed at it; cached, because a slider asks often."""
    return MeasuredTimes.from_timings(timings, batch) if any(timing.batch == batch for timing in timings) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTime:
    """Microseconds of the timed layers one after another, under the plan and in floating point."""

    batch: int
    device: str
    microseconds: float
    baseline: float
    layers: int
    missing: int


def plan_time(
    summary: ModelSummary, assignments: Mapping[str, Assignment], timings: Sequence[Timing], batch: int
) -> PlanTime | None:
    """Sum a plan's kernel times at a batch size (``missing``: layers whose scheme was not timed); None without any."""
    times = measured_times(tuple(timings), batch)
    if times is None:
        return None
    under, plain, missing = [], [], 0
    for layer in summary.layers:
        base = times.of(layer, KEEP, None)
        assignment = assignments.get(layer.name)
        if assignment is None or math.isnan(base):
            continue
        spent = times.of(layer, assignment.weights, assignment.inputs)
        if math.isnan(spent):
            missing += 1
            continue
        under.append(spent)
        plain.append(base)
    if not under:
        return None
    return PlanTime(
        batch=batch, device=times.device, microseconds=float(sum(under)), baseline=float(sum(plain)),
        layers=len(under), missing=missing,
    )  # fmt: skip


def plan_microseconds(session: Session, assignments: Mapping[str, Assignment], batch: int) -> float | None:
    """Return the time of a plan's kernels at a batch size; None where a scheme was not timed."""
    time = plan_time(session.model, assignments, session.timings, batch)
    return None if time is None or time.missing else time.microseconds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Predicted:
    """The roofline of ``device``: of each kernel (None: the hardware refuses it), of the whole plan by batch size."""

    device: Device
    kernels: tuple[Estimate | None, ...]
    plans: Mapping[int, PlanEstimate]

    @property
    def title(self) -> str:
        """What heads the figures."""
        return f"estimate for {self.device.name}, from its data sheet (roofline), not measured"


def chip_of(target_name: str) -> Hardware | None:
    """Return the hardware that a target names; None for a runtime alone.  Raises PlanError for an unknown target."""
    return target(target_name).chip if target_name else None


def predicted(target_name: str, timings: Sequence[Timing], session: Session | None = None) -> Predicted:
    """Return what the data sheet of a target's hardware predicts for what was timed, and for the session's plan.

    Without a session the timings are of bare shapes, taken as FP32 layers.  Raises PlanError where the target names no
    hardware.
    """
    chip = chip_of(target_name)
    if chip is None:
        raise PlanError(f"{target_name} names no hardware to estimate for; choose one of {', '.join(profiles())}")
    assignments = resolve(session.plan, session.model.layers) if session else {}
    rows = []
    for timing in timings:
        layer = session.model.by_name[timing.layer] if session else _bare(timing)
        inputs = assignments[timing.layer].inputs if session else None
        rows.append(estimate(layer, timing.scheme, inputs, chip, batch=timing.batch))
    plans: dict[int, PlanEstimate] = {}
    if session:
        batches = dict.fromkeys(timing.batch for timing in timings)
        plans = {batch: plan_estimate(session.model, assignments, chip, batch=batch) for batch in batches}
    return Predicted(device=chip.devices[0], kernels=tuple(rows), plans=plans)


def _bare(timing: Timing) -> Layer:
    return Layer(
        name=timing.layer, kind=LayerKind.LINEAR, parameter="weight", shape=timing.shape, dtype="float32", axes=(0, 1)
    )
