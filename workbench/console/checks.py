"""The commands that judge: do losses add up, are the data enough, which cells decide, where does error enter."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from workbench.console.interruption import keeping
from workbench.console.report import Report
from workbench.progress import Progress


def audit(options: argparse.Namespace, progress: Progress) -> Report:
    """Measure a plan's layers one by one, all together and all but one, and keep it in the session."""
    from workbench.console.reports.checks import audited
    from workbench.steps.checks.audit import AUDIT, AuditOptions

    session = _load(options.session)
    chosen = AuditOptions(data=options.data or "", samples=options.samples, batch_size=options.batch_size)
    audit = AUDIT(
        replace(session, plan=_plan_of(options, session)), chosen, trust=options.trust, progress=progress
    )  # fmt: skip
    if not options.no_save:
        replace(session, audit=audit).save(options.session)
    return audited(audit, options.most)


def quality(options: argparse.Namespace, progress: Progress) -> Report:
    """Judge the calibration data."""
    from workbench.console.reports.checks import judged
    from workbench.steps.checks.quality import QUALITY, QualityOptions

    chosen = QualityOptions(samples=options.samples, batch_size=options.batch_size)
    return judged(QUALITY(_load(options.session), chosen, trust=options.trust, progress=progress), options.most)


def refine(options: argparse.Namespace, progress: Progress) -> Report:
    """Measure the close cells; what an interrupted run has measured stays in the session."""
    from workbench.console.reports.tables import refined
    from workbench.steps.checks.refine import REFINE, RefineOptions, close_decisions

    session = _load(options.session)
    out = options.out or options.session
    chosen = RefineOptions(
        bits_per_weight=options.bits_per_weight, tolerance=options.tolerance, samples=options.samples,
        batch_size=options.batch_size,
    )  # fmt: skip
    request = REFINE.request(session, chosen)
    with keeping(session, "measured_kl", out, progress) as watched:
        session = request.joined(session, REFINE(session, chosen, trust=options.trust, progress=watched))
    session.save(out)
    return refined(session, close_decisions(session, chosen), options.bits_per_weight)


def error_budget(options: argparse.Namespace, progress: Progress) -> Report:
    """Measure signal to noise along the depth and keep it in the session."""
    from workbench.console.reports.checks import budgeted
    from workbench.steps.checks.error_budget import ERROR_BUDGET, ErrorBudgetOptions

    session = _load(options.session)
    notes: list[str] = []
    chosen = ErrorBudgetOptions(samples=options.samples, batch_size=options.batch_size, seed=options.seed)
    pair = ERROR_BUDGET(
        replace(session, plan=_plan_of(options, session)), chosen, trust=options.trust, notes=notes, progress=progress
    )
    if not options.no_save:
        replace(session, error_budget=pair).save(options.session)
    return budgeted(pair, options.most, notes)


def compare(options: argparse.Namespace, progress: Progress) -> Report:
    """Compare two sessions layer by layer."""
    from workbench.console.reports.checks import compared
    from workbench.insight.compare import compare_sessions

    found = compare_sessions(_load(options.session), _load(options.other))
    return compared(found, everything=options.all)


def outliers(options: argparse.Namespace, progress: Progress) -> Report:
    """List the tokens with the largest values of every layer."""
    from workbench.console.reports import outliers as reports

    return reports.outliers(_load(options.session), options.most, options.layer, options.tokens)


def _load(path: str) -> Any:
    from workbench.session.session import Session

    return Session.load(path)


def _plan_of(options: argparse.Namespace, session: Any) -> Any:
    from workbench.planning.plan import Plan

    return Plan.load(options.plan) if options.plan else session.plan
