"""The command of a step: flags from its options; load the session, run, join, save, report."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, Literal, TypeVar

from workbench.console import flags
from workbench.console.command import Command, Flags
from workbench.console.interruption import keeping
from workbench.console.report import Report, described
from workbench.console.step_flags import add_options, options_of
from workbench.planning.plan import Plan
from workbench.progress import Progress
from workbench.session.session import Session
from workbench.steps.step import Step

O = TypeVar("O")  # noqa: E741
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[O, R]):
    """What a step gave: the session that was read (with the plan that was asked for), and with the result in it."""

    before: Session
    session: Session
    options: O
    result: R
    notes: tuple[str, ...]
    flags: argparse.Namespace


def of_step(
    step: Step[O, R],
    example: str,
    show: Callable[[Outcome[O, R]], Report] | None = None,
    *own: Flags,
    with_plan: bool = False,
    saves: Literal["unless --no-save", "to --out"] = "unless --no-save",
) -> Command:
    """Return the command of a step, with ``own`` flags in addition to its options; ``show`` reports the outcome.

    ``with_plan``: ``--plan`` replaces the session's plan for the run.  ``saves`` says where a result that joins the
    session goes: back into the file unless told otherwise, or to ``--out``, with the notes of the run.
    """
    out_of = saves == "to --out"

    def add_flags(entry: argparse.ArgumentParser) -> None:
        shared = (flags.session, flags.trust, flags.plan) if with_plan else (flags.session, flags.trust)
        for add in (*shared, lambda entry: add_options(entry, step.options), *own):
            add(entry)
        if step.join is not None:
            _add_saving(entry, out_of)

    def run(arguments: argparse.Namespace, progress: Progress) -> Report:
        stored = Session.load(arguments.session)
        before = replace(stored, plan=Plan.load(arguments.plan)) if with_plan and arguments.plan else stored
        options, notes = options_of(step.options, arguments), list[str]()
        out = (arguments.out if out_of else None) or arguments.session
        keep = None if step.keep is None else partial(step.keep, stored, options)
        with keeping(keep, out, progress) as watched:
            result = step(before, options, trust=arguments.trust, notes=notes, progress=watched)
        after = stored if step.join is None else step.join(stored, options, result)
        if step.join is not None and (out_of or not arguments.no_save):
            after = replace(after, notes=(*after.notes, *notes)) if out_of else after
            after.save(out)
        outcome = Outcome(
            before=before, session=after, options=options, result=result, notes=tuple(notes), flags=arguments
        )
        return described(step.title, result) if show is None else show(outcome)

    return Command(name=step.name, help=step.summary, example=f"{step.name} {example}", add_flags=add_flags, run=run)


def _add_saving(entry: argparse.ArgumentParser, out: bool) -> None:
    if out:
        entry.add_argument("--out", metavar="S2.qwb", help="write the session here (default: back into S.qwb)")
    else:
        entry.add_argument("--no-save", action="store_true", help="do not add the result to the session")
