"""Time the kernels of a plan, or of single shapes, beside the floating-point ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from workbench.measurement.evaluation import Timing
from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSource, ModelSummary, OutputKind
from workbench.planning.plan import Assignment, Plan, resolve
from workbench.progress import Progress, silent
from workbench.session.session import Session
from workbench.steps.options import OptionInfo, option, scheme_names
from workbench.steps.requirements import QUANTIZES
from workbench.steps.step import Step, plan_name

BATCH = OptionInfo(label="Batch", minimum=1, maximum=65536, metavar="N", help="rows of the input")
REPEATS = OptionInfo(label="Repeats", minimum=3, maximum=10000, metavar="N", help="timed runs of each kernel")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeKernelsOptions:
    """At which batch size, how often."""

    batch: int = option(1, BATCH)
    repeats: int = option(30, REPEATS)


def time_kernels(
    session: Session, plan: Plan | None = None, *, batch: int = 1, repeats: int = 30, progress: Progress = silent
) -> tuple[Timing, ...]:
    """Time the kernels that serve the plan's schemes beside the floating-point ones; the model stays closed."""
    from workbench.measurement.timing import time_layers

    assignments = resolve(plan or session.plan, session.model.layers)
    return tuple(time_layers(session.model, assignments, batch=batch, repeats=repeats, progress=progress))


def time_shapes(
    shape: tuple[int, int], schemes: Sequence[str] | None = None, *, batch: int = 1, repeats: int = 30,
    progress: Progress = silent,
) -> tuple[Timing, ...]:  # fmt: skip
    """Time the kernels for one linear layer of ``shape`` (outputs x inputs) under each scheme, without a model."""
    from workbench.measurement.timing import time_layers

    rows, columns = shape
    schemes_of = {f"{rows}x{columns} {name}": name for name in scheme_names(schemes)}
    layers = tuple(
        Layer(name=name, kind=LayerKind.LINEAR, parameter="weight", shape=shape, dtype="float32", axes=(0, 1))
        for name in schemes_of
    )
    facts = ModelSummary(
        name="bench", source=ModelSource(kind="none", path=""), fingerprint="", output=OutputKind.NONE, layers=layers
    )
    assignments = {name: Assignment(weights=scheme) for name, scheme in schemes_of.items()}
    return tuple(time_layers(facts, assignments, batch=batch, repeats=repeats, progress=progress))


def with_timings(known: Sequence[Timing], new: Sequence[Timing]) -> tuple[Timing, ...]:
    """Return the timings with ``new`` last, in place of earlier ones of the same layer, scheme, batch and device.

    Which kernel serves them best is measured each time, so another one takes the place of an earlier one too.
    """
    replaced = {_key(timing) for timing in new}
    return (*(old for old in known if _key(old) not in replaced), *new)


def _key(timing: Timing) -> tuple[str, str, int, str]:
    return timing.layer, timing.scheme, timing.batch, timing.device


def join_timings(session: Session, options: object, timings: Sequence[Timing]) -> Session:
    """Add the timings, in place of earlier ones of the same layer, scheme, batch and device."""
    return replace(session, timings=with_timings(session.timings, timings))


TIME_KERNELS: Step[TimeKernelsOptions, tuple[Timing, ...]] = Step(
    name="time-kernels", title="Time the kernels", options=TimeKernelsOptions, requires=(QUANTIZES,), join=join_timings,
    summary="Times the kernels that serve the plan's schemes beside the floating-point ones, on this machine.",
    run=lambda context, options: time_kernels(context.session, progress=context.progress, **asdict(options)),
    heading=lambda options, session: f"Time the kernels of {plan_name(session)}",
    call="wb.time_kernels",
)  # fmt: skip
