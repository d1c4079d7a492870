"""What a data sheet predicts for a plan and its kernels: estimates that stand beside what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.deployment.targets import target
from workbench.errors import PlanError
from workbench.measurement.evaluation import Timing
from workbench.models.layer import Layer, LayerKind
from workbench.planning.hardware import Device, Estimate, Hardware, PlanEstimate, estimate, plan_estimate, profiles
from workbench.planning.plan import resolve
from workbench.session.session import Session


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
        raise PlanError(f"{target_name} names no hardware to estimate for; there are {', '.join(profiles())}")
    given = resolve(session.plan, session.model.layers) if session else {}
    rows = []
    for timing in timings:
        layer = session.model.by_name[timing.layer] if session else _bare(timing)
        assigned = given.get(timing.layer)
        rows.append(estimate(layer, timing.scheme, assigned.inputs if assigned else None, chip, batch=timing.batch))
    batches = dict.fromkeys(timing.batch for timing in timings)
    plans = {b: plan_estimate(session.model, given, chip, batch=b) for b in batches} if session else {}
    return Predicted(device=chip.devices[0], kernels=tuple(rows), plans=plans)


def _bare(timing: Timing) -> Layer:
    return Layer(
        name=timing.layer, kind=LayerKind.LINEAR, parameter="weight", shape=timing.shape, dtype="float32", axes=(0, 1)
    )
