"""Front: the best plan of every size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from workbench.planning.plan import Plan
from workbench.planning.search.search import Front, pareto
from workbench.session.session import Session
from workbench.steps.needs import without_results
from workbench.steps.options import option
from workbench.steps.requirements import SCORED
from workbench.steps.search import METRIC, TARGET
from workbench.steps.search import SCHEMES as SEARCHED
from workbench.steps.search_rules import constraints_of
from workbench.steps.step import Context, Step

SCHEMES = replace(SEARCHED, help="among these schemes only")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontOptions:
    """By whose losses, among which schemes."""

    metric: str | None = option(None, METRIC)
    schemes: tuple[str, ...] = option((), SCHEMES)
    target: str | None = option(None, TARGET)


def efficient_plans(
    session: Session, *, plan: Plan | None = None, metric: str | None = None, schemes: Sequence[str] | None = None,
    target: str | None = None,
) -> Front:  # fmt: skip
    """Return the convex front of size against predicted loss: all plans that no other one beats, smallest first.

    Locked layers keep what ``plan`` (default: the session's) gives them, and every layer its activations and cache.
    ``target`` refuses what it cannot run.  Raises MissingResultError without a table, PlanError, SchemeError.
    """
    rules = replace(constraints_of(session, target, schemes=schemes or None), keep_inputs=True)
    table = session.require_table(metric)
    return pareto(
        session.model, table, plan or session.plan, constraints=rules, inputs=session.inputs_table(table.metric),
        cache=session.cache_table(table.metric),
    )  # fmt: skip


def _run(context: Context, options: FrontOptions) -> Front:
    return efficient_plans(
        context.session, metric=options.metric, schemes=options.schemes, target=options.target
    )  # fmt: skip


def _heading(options: FrontOptions, session: Session | None) -> str:
    return "List the best plan of every size"


def _needs(session: Session, options: FrontOptions) -> Session:
    return without_results(session, sensitivities=session.sensitivities)


FRONT = Step(
    name="front",
    title="Best plan of every size",
    summary="Lists the plans that no other plan beats in both size and predicted loss.",
    options=FrontOptions,
    run=_run,
    heading=_heading,
    needs=_needs,
    requires=(SCORED,),
)
