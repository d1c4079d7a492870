"""Every efficient plan of a session, and why a plan's layers have their schemes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from workbench.errors import PlanError, nearest
from workbench.planning.explain import Explanation, Purchase, explain, next_purchase
from workbench.planning.plan import Assignment, Plan, Rule, resolve
from workbench.planning.search.search import Front, pareto
from workbench.planning.totals import Totals, plan_totals
from workbench.session.session import Session
from workbench.steps.planner import constraints_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Why layers have their schemes in one plan, what the plan costs, and what its next bytes would buy.

    ``price`` is the loss that one byte more avoids at the plan's size, in ``unit``.
    """

    plan: Plan
    totals: Totals
    price: float
    unit: str
    layers: tuple[Explanation, ...]
    purchase: Purchase | None


def efficient_plans(
    session: Session, *, plan: Plan | None = None, metric: str | None = None, schemes: Sequence[str] | None = None,
    target: str | None = None,
) -> Front:  # fmt: skip
    """Return the convex front of size against predicted loss: all plans that no other one beats, smallest first.

    Locked layers keep what ``plan`` (default: the session's) gives them, and every layer its activations and cache.
    ``target`` refuses what it cannot run.  Raises MissingResultError without a table, PlanError, SchemeError.
    """
    rules = replace(constraints_of(session, target, schemes=schemes), keep_inputs=True)
    table = session.require_table(metric)
    return pareto(
        session.model, table, plan or session.plan, constraints=rules, inputs=session.inputs_table(table.metric),
        cache=session.cache_table(table.metric),
    )  # fmt: skip


def explain_plan(
    session: Session, plan: Plan | None = None, *, layer: str = "*", metric: str | None = None,
    schemes: Sequence[str] | None = None, target: str | None = None,
) -> Explained:  # fmt: skip
    """Explain the choices of ``plan`` (default: the session's) for the layers that the pattern ``layer`` matches.

    Layers that are tied to another one share its choice and have none of their own.  Raises MissingResultError without
    a table, PlanError for a pattern that matches nothing, SchemeError.
    """
    plan = plan or session.plan
    table = session.require_table(metric)
    front = efficient_plans(session, plan=plan, metric=metric, schemes=schemes, target=target)
    given = resolve(plan, session.model.layers)
    rule = Rule(pattern=layer, assignment=Assignment())
    names = [one.name for one in session.model.stored if rule.matches(one.name)]
    if not names:
        known = [one.name for one in session.model.stored]
        raise PlanError(f"the pattern {layer!r} matches no layer with a weight of its own{nearest(layer, known)}")
    sums = plan_totals(
        session.model, plan, table, session.inputs_table(table.metric), session.cache_table(table.metric)
    )
    return Explained(
        plan=plan, totals=sums, price=front.price(sums.nbytes), unit=table.unit,
        layers=tuple(explain(front, given, name, table) for name in names),
        purchase=next_purchase(front, sums.nbytes),
    )  # fmt: skip
