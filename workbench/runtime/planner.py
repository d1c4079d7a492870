"""The planner's steps as pure functions: searches with targets, times and strategies; the error budget.

Thin glue like :mod:`workbench.runtime.tasks`: each opens what it needs and calls the layer below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from workbench.errors import MissingResultError, PlanError, nearest
from workbench.models.summary import quantizable
from workbench.numerics.formats import parse_scheme
from workbench.planning.budgets import Budgets, MeasuredTimes
from workbench.planning.constraints import Constraints
from workbench.planning.plan import KEEP, Assignment, Plan, Rule, resolve
from workbench.planning.strategies import Optimal, strategy
from workbench.progress import Progress, part_of, silent
from workbench.runtime.timings import candidate_timings
from workbench.storage.session import Session

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.planning.error_budget import ErrorBudget, NoiseGains
    from workbench.runtime.model_cache import ModelCache


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
    inputs: str | None = None,
    batch: int = 1,
    progress: Progress = silent,
) -> Plan:
    """Return the plan that minimises ``minimise`` within ``budgets``, or the one of a simple strategy.

    ``target`` (see :mod:`workbench.deployment.targets`) refuses what it cannot run; layers that match a pattern of
    ``lock`` keep what the session's plan gives them.  ``inputs`` is the activation scheme of all other layers that are
    searched (default: what the session's plan says).  Where microseconds matter, the session's timings at ``batch``
    serve, and the candidates that lack one are timed on this machine first.  Raises BudgetError, PlanError,
    MissingResultError.
    """
    rules = constraints_of(session, target, lock, schemes)
    table = session.require_table(metric)
    base = session.plan
    if inputs is not None:
        name = parse_scheme(inputs).name
        searched = [layer.name for layer in quantizable(session.model.layers) if layer.name not in rules.locked]
        base = base.assign(searched, inputs=name)
    if strategy_name != "optimal":
        if minimise != "loss":
            raise PlanError(f"the strategy {strategy_name} minimises nothing; use the strategy optimal")
        return strategy(strategy_name).plan(session.model, table, base, budgets, rules)
    times = None
    if minimise == "microseconds" or budgets.microseconds is not None:
        names = tuple(name for name in rules.schemes or table.schemes if name != KEEP)
        timings = candidate_timings(session, names, batch=batch, progress=progress)
        times = MeasuredTimes.from_timings(timings, batch)
    found = Optimal(minimise=minimise)
    return found.plan(session.model, table, base, budgets, rules, times)


def constraints_of(
    session: Session, target: str | None, lock: Sequence[str] = (), schemes: Sequence[str] | None = None
) -> Constraints:
    """Return the session's locks, those of the patterns ``lock``, the allowed schemes and the target's rules."""
    locked = session.locked | frozenset(name for pattern in lock for name in _matching(session, pattern))
    rules = Constraints(locked=locked, schemes=None if schemes is None else tuple(schemes))
    if target is None:
        return rules
    from workbench.deployment.targets import target as find

    chosen = find(target)
    return replace(rules, legal=chosen.legal, bonds=chosen.bonds(session.model.layers), target=chosen.title)


def _matching(session: Session, pattern: str) -> list[str]:
    rule = Rule(pattern=pattern, assignment=Assignment())
    names = [layer.name for layer in session.model.layers if rule.matches(layer.name)]
    if not names:
        known = [layer.name for layer in session.model.layers]
        close = [name for name in known if fnmatchcase(name, f"*{pattern}*")][:1]
        hint = f"; did you mean '*{pattern}*'?" if close else nearest(pattern, known)
        raise PlanError(f"the lock {pattern!r} matches no layer of the model{hint}")
    return names


def error_budget(
    session: Session,
    plan: Plan | None = None,
    *,
    model: Model | None = None,
    gains: NoiseGains | None = None,
    samples: int = 8,
    batch_size: int = 8,
    seed: int = 0,
    trust: bool = False,
    progress: Progress = silent,
) -> BudgetPair:
    """Return signal-to-noise at every block's output under ``plan`` (default: the session's), predicted and measured.

    Runs on the first ``samples`` of the calibration's data.  ``gains`` of an earlier call serve again: they belong to
    the model, not to the plan.  There is no prediction where the session lacks the ``weight_error`` table.  Raises
    CannotRunError, MissingResultError without calibration.
    """
    from workbench.planning import error_budget as budget
    from workbench.runtime import session_data, tasks

    plan = plan or session.plan
    if session.calibration is None:
        raise MissingResultError("an error budget needs calibration data; calibrate first (workbench calibrate)")
    model = model or tasks.reopen(session.model, trust=trust)
    data = session_data.recorded(model, session.calibration, samples=min(samples, session.calibration.samples))
    if gains is None:
        gains = budget.noise_gains(
            model, data, batch_size=batch_size, seed=seed, progress=part_of(progress, 0.0, 0.6)
        )  # fmt: skip
    quantized = tasks.quantize(model, plan, session=session, progress=part_of(progress, 0.6, 0.9))
    measured = budget.measured_budget(
        model, quantized.bind(model), data, batch_size=batch_size, progress=part_of(progress, 0.9, 1.0)
    )
    errors = session.sensitivities.get("weight_error")
    given = resolve(plan, session.model.layers)
    predicted = None if errors is None else budget.predicted_budget(gains, given, errors)
    return BudgetPair(plan_name=plan.name, gains=gains, measured=measured, predicted=predicted)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BudgetPair:
    """A plan's error budget, measured and (where weight errors are known) predicted, with the gains for the next."""

    plan_name: str
    gains: NoiseGains
    measured: ErrorBudget
    predicted: ErrorBudget | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasureErrorBudget:
    """The request of the window: the current plan's error budget along the depth."""

    session: Session
    gains: NoiseGains | None = None
    samples: int = 8
    trust: bool = False

    @property
    def title(self) -> str:
        """What a person reads in the jobs panel."""
        return f"Error budget of {self.session.plan.name}"

    def run(self, models: ModelCache, progress: Progress) -> BudgetPair:
        """Measure; raises CannotRunError, MissingResultError and what opening the model raises."""
        return error_budget(
            self.session, model=models.get(self.session.model, self.trust), gains=self.gains, samples=self.samples,
            trust=self.trust, progress=progress,
        )  # fmt: skip
