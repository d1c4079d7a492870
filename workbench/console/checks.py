"""The commands that judge: do losses add up, are the data enough, which cells decide, where does error enter."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from workbench.console.interruption import keeping
from workbench.console.report import Report
from workbench.errors import MissingResultError
from workbench.progress import Progress


def audit(options: argparse.Namespace, progress: Progress) -> Report:
    """Measure a plan's layers one by one, all together and all but one, and keep it in the session."""
    from workbench.console.reports.checks import audited
    from workbench.steps.audits import audit_plan, of_plan

    session = _load(options.session)
    plan = _plan_of(options, session)
    found = audit_plan(
        session, plan, data=options.data, samples=options.samples,
        batch_size=options.batch_size, trust=options.trust, progress=progress,
    )  # fmt: skip
    of = of_plan(found, session, plan)
    if not options.no_save:
        replace(session, audit=of).save(options.session)
    return audited(of, options.most)


def quality(options: argparse.Namespace, progress: Progress) -> Report:
    """Judge the calibration data."""
    from workbench.console.reports.checks import judged
    from workbench.steps.audits import calibration_quality

    found = calibration_quality(
        _load(options.session), samples=options.samples, batch_size=options.batch_size, trust=options.trust,
        progress=progress,
    )  # fmt: skip
    return judged(found, options.most)


def refine(options: argparse.Namespace, progress: Progress) -> Report:
    """Measure the close cells; what an interrupted run has measured stays in the session."""
    from workbench.console.reports.tables import refined
    from workbench.steps.audits import close_decisions, refine_table

    session = _load(options.session)
    if "predicted_kl" not in session.sensitivities:
        raise MissingResultError(
            "the session has no predicted table to refine; compute the sensitivity first",
            command="workbench sensitivity S.qwb --metric predicted_kl",
        )
    out = options.out or options.session
    with keeping(session, "measured_kl", out, progress) as watched:
        session = refine_table(
            session, options.bits_per_weight, samples=options.samples, batch_size=options.batch_size,
            tolerance=options.tolerance, trust=options.trust, progress=watched,
        )  # fmt: skip
    session.save(out)
    cells = close_decisions(session, options.bits_per_weight, options.tolerance)
    return refined(session, cells, options.bits_per_weight)


def error_budget(options: argparse.Namespace, progress: Progress) -> Report:
    """Measure signal to noise along the depth and keep it in the session."""
    from workbench.console.reports.checks import budgeted
    from workbench.steps.error_budgets import error_budget as measure

    session = _load(options.session)
    notes: list[str] = []
    pair = measure(
        session, _plan_of(options, session), samples=options.samples, batch_size=options.batch_size,
        seed=options.seed, trust=options.trust, notes=notes, progress=progress,
    )  # fmt: skip
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
