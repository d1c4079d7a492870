"""What of a session a request carries to the engine: only what its task needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from workbench.measurement.evaluation import Evaluation, Timing
from workbench.numerics.curvature import Curvature
from workbench.numerics.ranges import Range
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.sensitivity.audit import PlanAudit
from workbench.sensitivity.error_budget import BudgetPair
from workbench.sensitivity.metrics import BY_NAME
from workbench.sensitivity.table import Sensitivity
from workbench.session.calibrated_ranges import statistics_for_plan
from workbench.session.session import Session

WEIGHTS_ONLY = frozenset({"rtn", "rtn-clip"})
"""Rounding algorithms that look at the weights only; any other is given the second moments of the inputs."""


def everything(session: Session, options: object) -> Session:
    """Return the whole session: for steps that write it."""
    return session


def without_results(
    session: Session, *, statistics: Mapping[tuple[str, str], LayerStatistics] | None = None,
    ranges: Mapping[tuple[str, str, str], Range] | None = None, curvature: Mapping[str, Curvature] | None = None,
    sensitivities: Mapping[str, Sensitivity] | None = None, evaluations: tuple[Evaluation, ...] = (),
    timings: tuple[Timing, ...] = (), error_budget: BudgetPair | None = None, audit: PlanAudit | None = None,
) -> Session:  # fmt: skip
    """Return ``session`` with these results alone; facts, records, plan, locks and active ranges stay.

    So do, by default, the statistics that the plan's range methods look at.
    """
    return replace(
        session, statistics=statistics_for_plan(session) if statistics is None else statistics, ranges=ranges or {},
        curvature=curvature or {}, sensitivities=sensitivities or {}, plans={}, evaluations=evaluations,
        timings=timings, error_budget=error_budget, audit=audit, outliers={}, results={},
    )  # fmt: skip


def moments(session: Session, algorithms: Collection[str], metric: str = "") -> Mapping[str, Curvature]:
    """Return what the task needs of the curvature: whole second moments only for algorithms that look at the inputs."""
    needed = BY_NAME[metric].moments if metric else "none"
    if set(algorithms) - WEIGHTS_ONLY or needed == "full":
        return session.curvature
    if needed == "diagonal":
        return {name: replace(one, full=None, outputs=None) for name, one in session.curvature.items()}
    return {}


def moments_of_plan(session: Session) -> Mapping[str, Curvature]:
    """Return what the plan's algorithms and transforms look at (AWQ, for one, at the inputs)."""
    return moments(session, {*(rule.assignment.algorithm for rule in session.plan.rules), *session.plan.transforms})
