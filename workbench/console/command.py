"""Commands, and the command of a step: flags from its options; load the session, run, join, save, report."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from workbench.console.flags import (
    CLUSTER,
    DEVICE,
    DTYPE,
    MEMORY,
    PLAN,
    SESSION,
    TRUST,
    Flags,
    flag,
    flags_of,
    options_of,
    placement_of,
    workers_of,
)
from workbench.console.report import Report, described
from workbench.errors import SessionError
from workbench.planning.plan import Plan
from workbench.preflight import Estimate
from workbench.progress import Progress
from workbench.session.session import Session
from workbench.session.shared_file import SharedFile
from workbench.steps.preflight.record import with_estimate
from workbench.steps.step import Step

O = TypeVar("O")  # noqa: E741
R = TypeVar("R")

NO_SAVE = flag("--no-save", action="store_true", help="do not add the result to the session")
OUT = flag("--out", metavar="S2.qwb", help="write the session here (default: back into S.qwb)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command; ``flags`` describe its arguments to a parser, ``run`` returns an exit code if it prints nothing."""

    name: str
    help: str
    example: str
    flags: tuple[Flags, ...]
    run: Callable[[argparse.Namespace, Progress], Report | int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[O, R]):
    """What a step gave: the session that was read (with the plan that was asked for), and with the result in it."""

    before: Session
    session: Session
    options: O
    result: R
    notes: tuple[str, ...]
    flags: argparse.Namespace


@contextmanager
def output_of_libraries_as_errors() -> Iterator[None]:
    """Send what compiled code prints to standard error: HiGHS reports its progress now and then, and standard output
    belongs to the result."""
    sys.stdout.flush()
    try:
        stored = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # no such streams, as under a window
        yield
        return
    try:
        yield
    finally:
        os.dup2(stored, 1)
        os.close(stored)


def of_step(
    step: Step[O, R], example: str, show: Callable[[Outcome[O, R]], Report] | None = None, *own: Flags,
    with_plan: bool = False, saves: Literal["unless --no-save", "to --out"] = "unless --no-save",
) -> Command:  # fmt: skip
    """Return the command of a step, with ``own`` flags in addition to its options; ``show`` reports the outcome.

    ``with_plan``: ``--plan`` replaces the session's plan for the run.  ``saves`` says where a result that joins the
    session goes: back into the file unless told otherwise, or to ``--out``, with the notes of the run.
    """
    to_out = saves == "to --out"

    def run(arguments: argparse.Namespace, progress: Progress) -> Report:
        from workbench.measurement.partial_results import remembered

        file = SharedFile.open(arguments.session)
        stored = file.session
        before = replace(stored, plan=Plan.load(arguments.plan)) if with_plan and arguments.plan else stored
        options, notes, results = options_of(step.options, arguments), list[str](), list[R]()
        estimates = list[Estimate]()
        out = (arguments.out if to_out else None) or arguments.session
        saving = step.join is not None and (to_out or not arguments.no_save)
        if saving:
            require_saved(file, out, "" if to_out else ", or give --no-save")

        def carried_out() -> R:
            reports = watched(progress, results, estimates)
            with workers_of(arguments), output_of_libraries_as_errors():
                return step(
                    before, options, trust=arguments.trust, placement=placement_of(arguments), notes=notes,
                    progress=reports, says=reports,
                )  # fmt: skip

        def joined(current: Session, result: R) -> Session:
            after = current if step.join is None else step.join(current, options, result)
            after = with_estimate(after, step.name, estimates[-1]) if estimates else after
            return replace(after, notes=(*after.notes, *notes)) if to_out else after

        with remembered(notes):  # until the result is saved
            try:
                result = carried_out()
            except KeyboardInterrupt:  # the same command goes on from what is saved
                if step.keep is not None and results:
                    keep, partial = step.keep, results[-1]
                    file.save(lambda current: keep(current, options, partial), out)
                raise
            after = file.save(lambda current: joined(current, result), out) if saving else joined(stored, result)
        if show is None:
            return described(step.title, result)
        return show(Outcome(
            before=before, session=after, options=options, result=result, notes=tuple(notes), flags=arguments
        ))  # fmt: skip

    saving = () if step.join is None else (OUT if to_out else NO_SAVE,)
    place = (DEVICE, DTYPE, MEMORY, *((CLUSTER,) if step.spreads else ())) if step.runs_model else ()
    flags = (SESSION, TRUST, *place, *((PLAN,) if with_plan else ()), flags_of(step.options), *own, *saving)
    return Command(name=step.name, help=step.summary, example=f"{step.name} {example}", flags=flags, run=run)


def require_saved(file: SharedFile, out: str | Path | None = None, hint: str = ", or give --no-save") -> None:
    """Raise SessionError, with ``hint`` of what else there is, where a result could not be saved to ``out``."""
    try:
        file.require_writable(out)
    except SessionError as error:
        raise SessionError(f"{error}{hint}") from None


def watched(progress: Progress, results: list[Any], estimates: list[Estimate]) -> Progress:
    """Return a Progress that leaves the latest partial result in ``results``, and what was estimated."""

    def report(fraction: float, text: str, partial: object = None) -> None:
        if isinstance(partial, Estimate):
            estimates.append(partial)
        elif partial is not None:
            results[:] = [partial]
        progress(fraction, text, partial)

    return report
