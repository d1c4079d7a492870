"""Explain: why a plan's layers have their schemes."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.errors import PlanError, nearest
from workbench.planning.explain import Explanation, Purchase, explain, next_purchase
from workbench.planning.patterns import matching
from workbench.planning.plan import Plan, resolve
from workbench.planning.totals import Totals
from workbench.steps.front import AMONG, efficient_plans
from workbench.steps.options import TARGET, OptionInfo, option
from workbench.steps.requirements import SCORED, with_tables
from workbench.steps.search import METRIC
from workbench.steps.session_data import totals_of
from workbench.steps.step import Context, Step, plan_name


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainOptions:
    """Which layers, by whose losses, among which schemes."""

    layer: str = option("*", OptionInfo(
        label="Layers", metavar="PATTERN", help="only layers that match, such as '*.mlp.*'"
    ))  # fmt: skip
    metric: str | None = option(None, METRIC)
    schemes: tuple[str, ...] = option((), AMONG)
    target: str | None = option(None, TARGET)


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


def _run(context: Context, options: ExplainOptions) -> Explained:
    """Explain the choices of the session's plan for the layers that the pattern matches.

    Layers that are tied to another one share its choice and have none of their own.  Raises PlanError for a pattern
    that matches nothing, SchemeError.
    """
    session, plan = context.session, context.session.plan
    table = session.require_table(options.metric)
    front = efficient_plans(session, metric=options.metric, schemes=options.schemes, target=options.target)
    assignments = resolve(plan, session.model.layers)
    known = [layer.name for layer in session.model.stored]
    names = matching(options.layer, known)
    if not names:
        raise PlanError(
            f"the pattern {options.layer!r} matches no layer with a weight of its own{nearest(options.layer, known)}"
        )
    totals = totals_of(session, plan, table.metric)
    return Explained(
        plan=plan, totals=totals, price=front.price(totals.nbytes), unit=table.unit,
        layers=tuple(explain(front, assignments, name, table) for name in names),
        purchase=next_purchase(front, totals.nbytes),
    )  # fmt: skip


EXPLAIN = Step(
    name="explain", title="Explain the plan", options=ExplainOptions, requires=(SCORED,), run=_run, needs=with_tables,
    summary="Explains why the plan's layers have their schemes, and what the next bytes would buy.",
    heading=lambda options, session: f"Explain {plan_name(session)}",
)  # fmt: skip
