"""The planner's steps as pure functions: searches with targets, times and strategies.

Thin glue like :mod:`workbench.steps.tasks`: each opens what it needs and calls the layer below.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from workbench.errors import MissingResultError, PlanError, nearest
from workbench.models.summary import quantizable
from workbench.numerics.formats import parse_scheme
from workbench.planning.budgets import Budgets, MeasuredTimes
from workbench.planning.constraints import Constraints
from workbench.planning.plan import KEEP, Assignment, Plan, Rule, resolve, with_cache
from workbench.planning.strategies import Optimal, strategy
from workbench.progress import Progress, silent
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session
from workbench.steps.timings import candidate_timings

NONE = "none"
"""Instead of a scheme of activations or of the cache: as computed."""


def find_plan(
    session: Session,
    budgets: Budgets,
    *,
    minimise: str = "loss",
    strategy_name: str = "optimal",
    metric: str | None = None,
    schemes: Sequence[str] | None = None,
    target: str | None = None,
    lock: Sequence[str] = (),
    allow: Mapping[str, Sequence[str]] | None = None,
    inputs: str | Sequence[str] | None = None,
    cache: str | None = None,
    batch: int = 1,
    corrected: bool = False,
    range_method: str | None = None,
    progress: Progress = silent,
) -> Plan:
    """Return the plan that minimises ``minimise`` within ``budgets``, or the one of a simple strategy.

    ``target`` (see :mod:`workbench.deployment.targets`) refuses what it cannot run; layers that match a pattern of
    ``lock`` keep what the session's plan gives them, those that match a pattern of ``allow`` take one of its schemes
    (``keep`` only if it is listed; the first pattern that matches counts).  ``inputs`` is the activation scheme of all
    other layers that are searched (default: what the session's plan says); of several the search chooses for each layer
    one or none, by the session's table of activation losses.  ``cache`` is the scheme in which the keys and values of
    all layers that are not locked are stored (default: what the session's plan says).  ``none`` instead of a scheme
    takes those of the session's plan out.  Where there are tables for them, what activations and the cache cost counts
    in the loss.  ``corrected`` means a budget of loss in losses that are multiplied by the correction of the session's
    audit (see :func:`correction_of`).  ``range_method`` calibrates the static ranges of all layers that are not locked.
    Where microseconds matter, the session's timings at ``batch`` serve, and the candidates that lack one are timed on
    this machine first.  Raises BudgetError, PlanError, MissingResultError, RangeError.
    """
    rules = constraints_of(session, target, lock, schemes, allow or {})
    table = session.require_table(metric)
    asked = (inputs,) if isinstance(inputs, str) else tuple(inputs or ())
    base, rules, activations = _with_inputs(session, rules, session.inputs_table(table.metric), asked)
    if range_method is not None:
        base = _with_range_method(session, base, range_method, rules.locked)
    if cache is not None:
        base = with_cache(base, session.model.layers, None if cache == NONE else cache, rules.locked)
    if strategy_name != "optimal":
        if minimise != "loss":
            raise PlanError(f"the strategy {strategy_name} minimises nothing; use the strategy optimal")
        if len(asked) > 1:
            raise PlanError(f"the strategy {strategy_name} chooses no activation schemes; give one, or use optimal")
        return strategy(strategy_name).plan(session.model, table, base, budgets, rules)
    asked_for = budgets
    if corrected and budgets.loss is not None:
        _require_weights_alone(session, base)
        budgets = replace(budgets, loss=budgets.loss / correction_of(session, table.metric))
    times = None
    if minimise == "microseconds" or budgets.microseconds is not None:
        names = tuple(name for name in rules.schemes or table.schemes if name != KEEP)
        timings = candidate_timings(session, names, batch=batch, progress=progress)
        times = MeasuredTimes.from_timings(timings, batch)
    found = Optimal(minimise=minimise, inputs=activations, cache=session.cache_table(table.metric))
    plan = found.plan(session.model, table, base, budgets, rules, times)
    said = plan.name.replace(str(budgets), f"{asked_for}, corrected by an audit")
    return plan if budgets is asked_for else replace(plan, name=said)


def correction_of(session: Session, metric: str) -> float:
    """Return what the session's audit says that predicted losses of weights are to be multiplied with.

    It is fitted to the measurement of one plan: whoever shows what comes of it says so.  Raises MissingResultError
    without an audit or where it had no prediction, PlanError for a table that is not of ``predicted_kl``.
    """
    if metric != "predicted_kl":
        raise PlanError(f"an audit corrects predicted_kl, and the losses here are {metric}; leave the correction out")
    if session.audit is None:
        raise MissingResultError(
            "there is no audit to correct by; audit a plan first", command="workbench audit S.qwb"
        )
    found = session.audit.audit.correction
    if not math.isfinite(found) or found <= 0:
        raise MissingResultError(
            f"the audit of “{session.audit.plan_name}” has no correction: its plan had no predicted loss; audit a plan "
            "whose layers are all scored"
        )
    return found


def _require_weights_alone(session: Session, base: Plan) -> None:
    given = resolve(base, session.model.layers).values()
    if any(one.inputs is not None or one.cache is not None for one in given):
        raise PlanError(
            "the audit's correction is of weights alone, and the plan rounds activations or the cache too; give a "
            "budget of bytes or bits per weight, or leave the correction out"
        )


def constraints_of(
    session: Session,
    target: str | None,
    lock: Sequence[str] = (),
    schemes: Sequence[str] | None = None,
    allow: Mapping[str, Sequence[str]] | None = None,
) -> Constraints:
    """Return the session's locks, those of the patterns ``lock``, the allowed schemes and the target's rules."""
    locked = session.locked | frozenset(name for pattern in lock for name in _matching(session, pattern))
    allowed = tuple((pattern, tuple(map(_scheme, names))) for pattern, names in (allow or {}).items())
    rules = Constraints(locked=locked, schemes=None if schemes is None else tuple(schemes), allowed=allowed)
    if target is None:
        return rules
    from workbench.deployment.targets import target as find

    chosen = find(target)
    return replace(rules, legal=chosen.legal, bonds=chosen.bonds(session.model.layers), target=chosen.title)


def _with_inputs(
    session: Session, rules: Constraints, table: Sensitivity | None, asked: Sequence[str]
) -> tuple[Plan, Constraints, Sensitivity | None]:
    """Return the base plan, the rules and the activation losses of a search with the activation schemes ``asked``.

    One scheme, or none, leaves nothing to choose: the losses of what the base plan says are added as they stand, also
    where a target takes a layer without it.  A scheme that was scored is given to the layers that have a score.
    """
    if len(asked) > 1:
        return session.plan, rules, _columns(table, asked)
    base = session.plan
    if asked:
        scheme = None if asked[0] == NONE else parse_scheme(asked[0]).name
        searched = [layer.name for layer in quantizable(session.model.layers) if layer.name not in rules.locked]
        if table is not None and scheme is not None and scheme in table.column:
            # a layer that no data reached has no score, and is left alone
            searched = [name for name in searched if not math.isnan(table.of(name, scheme))]
        base = base.assign(searched, inputs=scheme)
    return base, replace(rules, keep_inputs=True), table


def _with_range_method(session: Session, base: Plan, name: str, locked: frozenset[str]) -> Plan:
    """Return the plan with static inputs calibrated by the method ``name``; RangeError if there is none such."""
    from workbench.numerics.ranges import range_method

    given = resolve(base, session.model.layers)
    rounded = [layer for layer, one in given.items() if one.inputs is not None and layer not in locked]
    if not rounded:
        raise PlanError(f"the range method {name} is for inputs, and the plan rounds none; give a scheme (--inputs)")
    return base.assign(rounded, range_method=range_method(name).name)


def _columns(table: Sensitivity | None, schemes: Sequence[str]) -> Sensitivity:
    """Return the table of activation losses with these schemes only."""
    names = tuple(dict.fromkeys(parse_scheme(name).name for name in schemes))
    missing = [name for name in names if table is None or name not in table.column]
    if table is None or missing:
        raise MissingResultError(
            f"a choice of activation schemes needs their losses in nats, and {', '.join(missing)} were not scored; "
            "score them first",
            command=f"workbench sensitivity S.qwb --metric predicted_kl_inputs --schemes {','.join(names)}",
        )
    return replace(table, schemes=names, score=table.score[:, [table.column[name] for name in names]])


def _scheme(name: str) -> str:
    return KEEP if name == KEEP else parse_scheme(name).name


def _matching(session: Session, pattern: str) -> list[str]:
    rule = Rule(pattern=pattern, assignment=Assignment())
    names = [layer.name for layer in session.model.layers if rule.matches(layer.name)]
    if not names:
        known = [layer.name for layer in session.model.layers]
        close = [name for name in known if fnmatchcase(name, f"*{pattern}*")][:1]
        hint = f"; did you mean '*{pattern}*'?" if close else nearest(pattern, known)
        raise PlanError(f"the lock {pattern!r} matches no layer of the model{hint}")
    return names
