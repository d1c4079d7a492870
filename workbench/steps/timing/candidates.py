"""Time every scheme that a search may choose, so that plans can be compared by time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

from workbench.measurement.evaluation import Timing
from workbench.planning.plan import Assignment
from workbench.progress import Progress, silent
from workbench.session.session import Session
from workbench.steps.options import OptionInfo, option, scheme_choices
from workbench.steps.requirements import without_results
from workbench.steps.step import Step
from workbench.steps.timing.kernels import BATCH, REPEATS, join_timings


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeCandidatesOptions:
    """Which schemes, at which batch size, how often."""

    schemes: tuple[str, ...] = field(metadata=OptionInfo(
        label="Schemes", choices=scheme_choices, suggested=True, metavar="A,B,...", help="the schemes to time"
    ).metadata)  # fmt: skip
    batch: int = option(1, BATCH)
    repeats: int = option(10, REPEATS)


def candidate_timings(
    session: Session, schemes: Sequence[str], *, batch: int = 1, repeats: int = 10, progress: Progress = silent
) -> tuple[Timing, ...]:
    """Return the session's timings at ``batch`` and those of every shape and scheme that it lacks, timed now.

    The model is not opened: its shapes are enough.
    """
    from workbench.measurement.timing import TIMED_KINDS, device_name, time_layers

    device = device_name()
    known = [timing for timing in session.timings if timing.batch == batch and timing.device == device]
    done = {(timing.shape, timing.scheme) for timing in known}
    shapes = {layer.matrix: layer for layer in session.model.layers if layer.kind in TIMED_KINDS}
    missing = [
        (replace(layer, name=f"{layer.name} {scheme}", tied_to=None, shares_with=()), scheme)
        for shape, layer in shapes.items() for scheme in schemes if (shape, scheme) not in done
    ]  # fmt: skip
    if not missing:
        return tuple(known)
    facts = replace(session.model, layers=tuple(layer for layer, _ in missing), others=())
    assignments = {layer.name: Assignment(weights=scheme) for layer, scheme in missing}
    return (*known, *time_layers(facts, assignments, batch=batch, repeats=repeats, progress=progress))


TIME_CANDIDATES: Step[TimeCandidatesOptions, tuple[Timing, ...]] = Step(
    name="time-candidates", title="Time the candidates of a search", options=TimeCandidatesOptions, join=join_timings,
    summary="Times every scheme that a search may choose, at every shape of the model that lacks a timing.",
    run=lambda context, options: candidate_timings(context.session, progress=context.progress, **asdict(options)),
    heading=lambda options, session: f"Time {len(options.schemes)} candidates at batch {options.batch}",
    needs=lambda session, options: replace(without_results(session), timings=session.timings),
)  # fmt: skip
