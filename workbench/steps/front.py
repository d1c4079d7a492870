"""Front: the best plan of every size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from workbench.planning.search.search import Front, pareto
from workbench.session.session import Session
from workbench.steps.options import SCHEMES, TARGET, option
from workbench.steps.requirements import SCORED, with_tables
from workbench.steps.search import METRIC
from workbench.steps.search_rules import constraints_of
from workbench.steps.step import Step

AMONG = replace(SCHEMES, help="among these schemes only")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontOptions:
    """By whose losses, among which schemes."""

    metric: str | None = option(None, METRIC)
    schemes: tuple[str, ...] = option((), AMONG)
    target: str | None = option(None, TARGET)


def efficient_plans(
    session: Session, *, metric: str | None = None, schemes: Sequence[str] | None = None, target: str | None = None
) -> Front:
    """Return the convex front of size against predicted loss: all plans that no other one beats, smallest first.

    Locked layers keep what the session's plan gives them, and every layer its activations and cache.
    ``target`` refuses what it cannot run.  Raises MissingResultError without a table, PlanError, SchemeError.
    """
    rules = replace(constraints_of(session, target, schemes=schemes or None), keep_inputs=True)
    table = session.require_table(metric)
    return pareto(
        session.model, table, session.plan, constraints=rules, inputs=session.inputs_table(table.metric),
        cache=session.cache_table(table.metric),
    )  # fmt: skip


FRONT: Step[FrontOptions, Front] = Step(
    name="front", title="Best plan of every size", options=FrontOptions, requires=(SCORED,), needs=with_tables,
    summary="Lists the plans that no other plan beats in both size and predicted loss.",
    run=lambda context, options: efficient_plans(context.session, **asdict(options)),
    heading=lambda options, session: "List the best plan of every size",
)  # fmt: skip
