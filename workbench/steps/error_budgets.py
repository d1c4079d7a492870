"""The error budget of a plan, predicted and measured: the step and the window's request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.errors import MissingResultError
from workbench.planning.plan import KEEP, Plan, resolve
from workbench.progress import Progress, part_of, silent
from workbench.sensitivity.error_budget import BudgetPair, ErrorBudget, NoiseGains
from workbench.session.session import Session
from workbench.steps.needs import moments_of_plan, without_results

if TYPE_CHECKING:
    from workbench.engine.model_cache import ModelCache
    from workbench.models.model import Model


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
    notes: list[str] | None = None,
    progress: Progress = silent,
) -> BudgetPair:
    """Return signal-to-noise at every block's output under ``plan`` (default: the session's), predicted and measured.

    Runs on the first ``samples`` of the calibration's data.  ``gains`` of an earlier call serve again: they belong to
    the model, not to the plan; those in the session are taken where samples and seed are the same.  There is no
    prediction where the session's ``weight_error`` table lacks a cell of the plan.  ``notes`` gets a sentence for that,
    and for each batch that was left out because the model gives NaN or infinity on it.  Raises CannotRunError,
    MissingResultError without calibration.
    """
    from workbench.sensitivity import error_budget as budget
    from workbench.steps import session_data, tasks

    plan = plan or session.plan
    if session.calibration is None:
        raise MissingResultError(
            "an error budget needs calibration data; calibrate first",
            command="workbench calibrate MODEL --data DATA --out S.qwb",
        )
    model = model or tasks.reopen(session.model, trust=trust)
    data = session_data.recorded(model, session.calibration, samples=min(samples, session.calibration.samples))
    gains = gains or _known_gains(session, len(data), seed)
    if gains is None:
        gains = budget.noise_gains(
            model, data, batch_size=batch_size, seed=seed, notes=notes, progress=part_of(progress, 0.0, 0.6)
        )  # fmt: skip
    quantized = tasks.quantize(model, plan, session=session, progress=part_of(progress, 0.6, 0.9))
    measured = budget.measured_budget(
        model, quantized.bind(model), data, batch_size=batch_size, notes=notes, progress=part_of(progress, 0.9, 1.0)
    )
    predicted, missing = _predicted(session, plan, gains)
    if missing and notes is not None:
        notes.append(f"no prediction: {missing}")
    return BudgetPair(plan_name=plan.name, plan_hash=plan.hash, gains=gains, measured=measured, predicted=predicted)


def _predicted(session: Session, plan: Plan, gains: NoiseGains) -> tuple[ErrorBudget | None, str]:
    """Return the plan's predicted budget, or None and what it lacks."""
    from workbench.sensitivity.error_budget import predicted_budget

    errors = session.sensitivities.get("weight_error")
    if errors is None:
        return None, "compute the sensitivity by weight error first"
    assignments = resolve(plan, session.model.layers)
    schemes = {name: assignment.weights for name, assignment in assignments.items() if assignment.weights != KEEP}
    try:
        return predicted_budget(gains, schemes, errors), ""
    except MissingResultError as error:
        return None, str(error)


def _known_gains(session: Session, samples: int, seed: int) -> NoiseGains | None:
    known = None if session.error_budget is None else session.error_budget.gains
    return known if known is not None and (known.samples, known.seed) == (samples, seed) else None


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
        return f"Error budget of “{self.session.plan.name}”"

    def slim(self) -> MeasureErrorBudget:
        """Keep the plan, the active ranges, the weight errors, and the moments that the plan's algorithms look at."""
        tables = {name: table for name, table in self.session.sensitivities.items() if name == "weight_error"}
        slimmed = without_results(
            self.session, sensitivities=tables, curvature=moments_of_plan(self.session),
            error_budget=self.session.error_budget,
        )  # fmt: skip
        return replace(self, session=slimmed)

    def run(self, models: ModelCache, progress: Progress) -> BudgetPair:
        """Measure; raises CannotRunError, MissingResultError and what opening the model raises."""
        return error_budget(
            self.session, model=models.get(self.session.model, self.trust), gains=self.gains, samples=self.samples,
            trust=self.trust, progress=progress,
        )  # fmt: skip

    def joined(self, current: Session, response: BudgetPair) -> Session:
        """Keep it as the session's error budget."""
        return replace(current, error_budget=response)
