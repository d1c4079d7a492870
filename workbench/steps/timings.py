"""Timing kernels: of a plan, of one shape, of all that a search could choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from workbench.engine.model_cache import ModelCache
from workbench.measurement.evaluation import Timing
from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSource, ModelSummary, OutputKind
from workbench.numerics.formats import parse_scheme, standard_schemes
from workbench.planning.plan import Assignment, Plan, resolve
from workbench.progress import Progress, silent
from workbench.session.session import Session
from workbench.steps.needs import without_results


def time_kernels(
    session: Session,
    plan: Plan | None = None,
    *,
    batch: int = 1,
    repeats: int = 30,
    progress: Progress = silent,
) -> tuple[Timing, ...]:
    """Time the kernels that serve the plan's schemes beside the floating-point ones, on this machine."""
    from workbench.measurement.timing import time_layers

    assignments = resolve(plan or session.plan, session.model.layers)
    return tuple(time_layers(session.model, assignments, batch=batch, repeats=repeats, progress=progress))


def time_shapes(
    shape: tuple[int, int],
    schemes: Sequence[str] | None = None,
    *,
    batch: int = 1,
    repeats: int = 30,
    progress: Progress = silent,
) -> tuple[Timing, ...]:
    """Time the kernels for one linear layer of ``shape`` (outputs x inputs) under each scheme, without a model."""
    from workbench.measurement.timing import time_layers

    names = [parse_scheme(name).name for name in schemes or [scheme.name for scheme in standard_schemes()]]
    rows, columns = shape
    layers = tuple(
        Layer(
            name=f"{rows}x{columns} {name}", kind=LayerKind.LINEAR, parameter="weight", shape=shape, dtype="float32",
            axes=(0, 1),
        )
        for name in names
    )  # fmt: skip
    facts = ModelSummary(
        name="bench", source=ModelSource(kind="none", path=""), fingerprint="", output=OutputKind.NONE, layers=layers
    )
    assignments = {layer.name: Assignment(weights=name) for layer, name in zip(layers, names, strict=True)}
    return tuple(time_layers(facts, assignments, batch=batch, repeats=repeats, progress=progress))


def candidate_timings(
    session: Session, schemes: Sequence[str], *, batch: int = 1, repeats: int = 10, progress: Progress = silent
) -> tuple[Timing, ...]:
    """Return the session's timings at ``batch`` and those of every shape and scheme that it lacks, timed now."""
    from workbench.measurement.timing import TIMED_KINDS, device_name, time_layers

    device = device_name()
    known = [timing for timing in session.timings if timing.batch == batch and timing.device == device]
    done = {(timing.shape, timing.scheme) for timing in known}
    shapes = {layer.matrix: layer for layer in session.model.layers if layer.kind in TIMED_KINDS}
    wanted = [
        (replace(layer, name=f"{layer.name} {scheme}", tied_to=None, shares_with=()), scheme)
        for shape, layer in shapes.items() for scheme in schemes if (shape, scheme) not in done
    ]  # fmt: skip
    if not wanted:
        return tuple(known)
    facts = replace(session.model, layers=tuple(layer for layer, _ in wanted), kept=())
    given = {layer.name: Assignment(weights=scheme) for layer, scheme in wanted}
    return (*known, *time_layers(facts, given, batch=batch, repeats=repeats, progress=progress))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimeKernels:
    """Time the kernels that serve the plan's schemes against the floating-point baseline, on this machine."""

    session: Session
    batch: int = 1
    repeats: int = 30

    @property
    def title(self) -> str:
        return f"Time the kernels of “{self.session.plan.name}”"

    def slim(self) -> TimeKernels:
        """Keep the model's facts and the plan."""
        return replace(self, session=without_results(self.session))

    def run(self, models: ModelCache, progress: Progress) -> tuple[Timing, ...]:
        """Time; needs the shapes only, not the model's file."""
        return time_kernels(self.session, batch=self.batch, repeats=self.repeats, progress=progress)

    def joined(self, current: Session, response: tuple[Timing, ...]) -> Session:
        """Add the timings, in place of earlier ones of the same layer, scheme, batch and device."""
        return replace(current, timings=with_timings(current.timings, response))


def with_timings(known: Sequence[Timing], new: Sequence[Timing]) -> tuple[Timing, ...]:
    """Return the timings with ``new`` last, in place of earlier ones of the same layer, scheme, batch and device.

    Which kernel serves them best is measured each time, so another one takes the place of an earlier one too.
    """
    replaced = {_key(timing) for timing in new}
    return (*(old for old in known if _key(old) not in replaced), *new)


def _key(timing: Timing) -> tuple[str, str, int, str]:
    return timing.layer, timing.scheme, timing.batch, timing.device
