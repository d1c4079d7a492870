"""Targets: the best plan of every runtime within a budget, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from workbench.deployment.networks import unknown_network
from workbench.deployment.targets import RUNTIMES, Target, target
from workbench.errors import BudgetError, MissingResultError, PlanError, SchemeError
from workbench.insight.legality import refused_cells, rounding_of, target_schemes, unknown_rounding
from workbench.planning.plan import Plan, resolve
from workbench.planning.totals import Totals
from workbench.progress import Progress, silent
from workbench.readable import few
from workbench.session.session import Session
from workbench.steps.options import OptionInfo, option
from workbench.steps.requirements import SCORED, with_tables
from workbench.steps.search import BITS, METRIC, SIZE, SearchOptions, budget_text, find_plan
from workbench.steps.session_data import totals_of
from workbench.steps.step import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetsOptions:
    """The budget, by whose losses, and which targets."""

    bits_per_weight: float | None = option(None, BITS)
    size: int | None = option(None, SIZE)
    metric: str | None = option(None, METRIC)
    targets: tuple[str, ...] = option((), OptionInfo(
        label="Targets", metavar="A,B,...", empty="every runtime",
        help="only these: names of runtimes, of chips, or runtime@hardware",
    ))  # fmt: skip


def budget_of(options: TargetsOptions) -> str:
    """Return the budget for headings."""
    return budget_text(SearchOptions(bits_per_weight=options.bits_per_weight, size=options.size))


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPlan:
    """The best plan for a target, or the reason why it has none.

    ``nbytes`` are those of the tensors in the target's own form, ``loss`` is the plan's predicted loss with what the
    target's own rounding of inputs adds; ``remark`` says where that is not known.
    """

    target: str
    title: str
    plan: Plan | None = None
    nbytes: int = 0
    bits_per_weight: float = math.nan
    loss: float = math.nan
    reason: str = ""
    remark: str = ""


def best_targets(
    session: Session, *, bits_per_weight: float | None = None, size: int | None = None, metric: str | None = None,
    targets: Sequence[str] = (), progress: Progress = silent,
) -> tuple[TargetPlan, ...]:  # fmt: skip
    """Return the best plan of every target within the budget, that of the least predicted loss first.

    Targets that have none come last, with the reason.  Raises MissingResultError without a table, PlanError for an
    unknown target and without a budget.
    """
    if bits_per_weight is None and size is None:
        raise PlanError("a budget is needed to compare targets; give bits per weight or a size")
    table = session.require_table(metric)
    chosen = [target(name) for name in dict.fromkeys(targets or [runtime.name for runtime in RUNTIMES])]
    found = []
    for place, each in enumerate(chosen):
        progress(place / len(chosen), f"searching for {each.title}")
        options = SearchOptions(bits_per_weight=bits_per_weight, size=size, metric=table.metric, target=each.name)
        found.append(_best(session, each, options, table.metric))
    return tuple(sorted(found, key=lambda row: (row.plan is None, math.isnan(row.loss), row.loss, row.nbytes)))


def _best(session: Session, each: Target, options: SearchOptions, metric: str) -> TargetPlan:
    from workbench.deployment.checkpoints.sizes import FOLDERS, more_bytes

    none = TargetPlan(target=each.name, title=each.title)
    if unknown := unknown_network(each.name, session.model):
        return replace(none, reason=unknown)
    if refused_cells(session.model, session.require_table(metric), each.name).all():
        own = few(target_schemes(session.model.layers, each.name), 4)
        return replace(none, reason=f"it runs none of the schemes that were scored; score some that it runs ({own})")
    try:
        plan = find_plan(session, options)
    except (BudgetError, MissingResultError, PlanError, SchemeError) as error:
        return replace(none, reason=str(error))
    sums, assignments = totals_of(session, plan, metric), resolve(plan, session.model.layers)
    kind = "" if each.runtime is None else FOLDERS.get(each.runtime.name, "")
    return replace(
        none, plan=plan, nbytes=sums.nbytes + more_bytes(kind, session.model.layers, assignments),
        bits_per_weight=sums.bits_per_weight, loss=_loss(session, each, plan, sums, metric),
        remark=unknown_rounding(session, each.name, metric),
    )  # fmt: skip


def _loss(session: Session, each: Target, plan: Plan, sums: Totals, metric: str) -> float:
    """Return a plan's predicted loss with the target's own rounding of inputs, where its cost is known."""
    rounding, table = rounding_of(each.name), session.inputs_table(metric)
    loss = math.nan if sums.predicted is None else sums.predicted
    if rounding is None or table is None or unknown_rounding(session, each.name, metric):
        return loss
    assignments = resolve(plan, session.model.layers)
    beside = {layer.name: rounding(assignments[layer.name].weights) for layer in session.model.layers}
    costs = [table.of(name, scheme) for name, scheme in beside.items() if scheme is not None and name in table.row]
    return loss + sum(cost for cost in costs if not math.isnan(cost))


TARGETS: Step[TargetsOptions, tuple[TargetPlan, ...]] = Step(
    name="targets", title="Best target for a budget", options=TargetsOptions, requires=(SCORED,), needs=with_tables,
    summary="Finds the best plan of every target within the budget, and shows them side by side.",
    run=lambda context, options: best_targets(
        context.session, bits_per_weight=options.bits_per_weight, size=options.size, metric=options.metric,
        targets=options.targets, progress=context.progress,
    ),
    heading=lambda options, session: f"Compare targets within {budget_of(options)}",
)  # fmt: skip
