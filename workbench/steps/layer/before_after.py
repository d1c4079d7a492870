"""One layer before and after its plan: the weight as transforms and rounding leave it, the input as they shift it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from workbench.errors import MissingResultError, PlanError
from workbench.models.model import Model
from workbench.numerics.formats import parse_scheme
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.numerics.statistics.observe import observe
from workbench.planning.plan import KEEP, LEARNED, Rule, resolve
from workbench.progress import Progress, part_of, rising
from workbench.session.calibrated_ranges import ranges_of_plan
from workbench.session.session import Session
from workbench.steps import session_data
from workbench.steps.options import LAYER, SAMPLES, option
from workbench.steps.quantize import quantize
from workbench.steps.requirements import with_moments
from workbench.steps.step import Context, Step

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeAfterOptions:
    """Which layer; on how many ``samples`` the input is observed after a transform."""

    layer: str = field(metadata=LAYER.metadata)
    samples: int = option(16, SAMPLES)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BeforeAfter:
    """What the plan makes of a layer; None where it changes nothing.

    ``transformed`` is the weight after the transforms, in floating point; ``rounded`` the weight that is stored, as it
    is decoded; ``inputs`` the layer's input after the transforms.
    """

    layer: str
    scheme: str
    transforms: tuple[str, ...]
    transformed: LayerStatistics | None
    rounded: LayerStatistics | None
    inputs: LayerStatistics | None


def _run(context: Context, options: BeforeAfterOptions) -> BeforeAfter:
    """Apply the session's plan to the layer and observe the result.

    Other layers are rounded too only where the plan's algorithm looks at them.  Raises PlanError for an unknown layer,
    and what transforms and rounding raise.
    """
    from workbench.planning.transform_names import CORRECTIONS

    session, model = context.session, context.model()
    owner, scheme = plan_for(session, options.layer)
    transforms = tuple(name for name in session.plan.transforms if name not in CORRECTIONS)  # those come after rounding
    rewritten, inputs = model, None
    if transforms:
        rewritten, inputs = _transformed(session, model, options, part_of(context.progress, 0.0, 0.6))
    rounded = rounded_weight(session, owner, model, part_of(context.progress, 0.6, 1.0))
    return BeforeAfter(
        layer=options.layer, scheme=scheme, transforms=transforms, inputs=inputs,
        rounded=None if rounded is None else observe(rounded, 0),
        transformed=observe(rewritten.weight(owner), 0) if transforms else None,
    )  # fmt: skip


def plan_for(session: Session, layer: str) -> tuple[str, str]:
    """Return the layer that owns ``layer``'s weight and the scheme that the plan gives it; PlanError if unknown."""
    if layer not in session.model.by_name:
        raise PlanError(f"there is no layer {layer!r} in {session.model.name}")
    owner = session.model.by_name[layer].tied_to or layer
    return owner, resolve(session.plan, session.model.layers)[owner].weights


def _transformed(
    session: Session, model: Model, options: BeforeAfterOptions, progress: Progress
) -> tuple[Model, LayerStatistics | None]:
    """Return the model after the plan's transforms, and the layer's input in it."""
    from workbench.measurement.calibrate import calibrate
    from workbench.quantization.transforms.apply import transform

    if session.calibration is None:
        raise MissingResultError("the plan's transforms need calibration data; calibrate first")
    data, progress = session_data.recorded(model, session.calibration), rising(progress)
    transformed = transform(
        model, session.plan, ranges=ranges_of_plan(session, session.plan), data=data,
        curvature=session_data.curvature_for(model, session, session.plan.transforms, progress=progress),
        progress=part_of(progress, 0.0, 0.7),
    )  # fmt: skip
    few = session_data.recorded(model, session.calibration, samples=min(options.samples, session.calibration.samples))
    observed = calibrate(transformed.model, few, curvature=False, progress=part_of(progress, 0.7, 1.0)).statistics
    return transformed.model, observed.get((options.layer, "input"))


def rounded_weight(session: Session, owner: str, model: Model, progress: Progress) -> torch.Tensor | None:
    """Return the weight of ``owner`` as the plan stores it, decoded (outputs x inputs); None if it is kept."""
    from workbench.numerics.rounding.round_weight import needs_sequence

    assignment = resolve(session.plan, session.model.layers)[owner]
    if assignment.weights == KEEP:
        return None
    plan = session.plan
    if not (plan.transforms or assignment.algorithm == LEARNED or needs_sequence(assignment.algorithm)):
        plan = replace(plan, rules=(Rule(pattern=owner, assignment=replace(assignment, inputs=None)),))
    stored = quantize(model, plan, session=session, progress=progress).tensors.get(owner)
    return None if stored is None else parse_scheme(stored.scheme).decode(stored)


BEFORE_AFTER = Step(
    runs_model=True,
    name="before-after", title="Before and after", options=BeforeAfterOptions, run=_run, needs=with_moments,
    summary="Shows what the plan's transforms and rounding make of one layer's weight and input.",
    heading=lambda options, session: f"Before and after of {options.layer}",
)  # fmt: skip
