"""Error budget: where the plan's error enters and grows along the depth of the network."""

from __future__ import annotations

from dataclasses import dataclass, replace

from workbench.errors import MissingResultError
from workbench.planning.plan import KEEP, resolve
from workbench.progress import part_of
from workbench.sensitivity import error_budget as budget
from workbench.sensitivity.error_budget import BudgetPair, ErrorBudget, NoiseGains, predicted_budget
from workbench.session.calibrated_ranges import identity
from workbench.session.session import Session
from workbench.steps import session_data
from workbench.steps.options import BATCH_SIZE, SAMPLES, SEED, option
from workbench.steps.quantize import quantize
from workbench.steps.requirements import CALIBRATED, RUNS, tables, with_moments
from workbench.steps.step import Context, Step, plan_name


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBudgetOptions:
    """On how many of the calibration samples."""

    samples: int = option(8, SAMPLES)
    batch_size: int = option(8, BATCH_SIZE)
    seed: int = option(0, SEED)


def _run(context: Context, options: ErrorBudgetOptions) -> BudgetPair:
    """Return signal-to-noise at every block's output, predicted and measured.

    The noise gains in the session serve again where samples and seed are the same: they belong to the model, not to
    the plan.  There is no prediction where the session's ``weight_error`` table lacks a cell of the plan; a note says
    so, and names each batch that was left out because the model gives NaN or infinity on it.
    """
    session, model, size, notes = context.session, context.model(), options.batch_size, context.notes
    assert session.calibration is not None, "required"
    samples = min(options.samples, session.calibration.samples)
    data = session_data.recorded(model, session.calibration, samples=samples)
    gains = _known_gains(session, len(data), options.seed) or budget.noise_gains(
        model, data, batch_size=size, seed=options.seed, notes=notes, progress=part_of(context.progress, 0.0, 0.6)
    )
    quantized = quantize(model, session.plan, session=session, progress=part_of(context.progress, 0.6, 0.9))
    measured = budget.measured_budget(
        model, quantized.bind(model), data, batch_size=size, notes=notes, progress=part_of(context.progress, 0.9, 1.0)
    )
    predicted, missing = _predicted(session, gains)
    if missing:
        notes.append(f"no prediction: {missing}")
    return BudgetPair(
        plan_name=session.plan.name, plan_hash=identity(session, session.plan), gains=gains, measured=measured,
        predicted=predicted,
    )  # fmt: skip


def _predicted(session: Session, gains: NoiseGains) -> tuple[ErrorBudget | None, str]:
    """Return the plan's predicted budget, or None and what it lacks."""
    errors = session.sensitivities.get("weight_error")
    if errors is None:
        return None, "compute the sensitivity by weight error first"
    assignments = resolve(session.plan, session.model.layers)
    schemes = {name: assignment.weights for name, assignment in assignments.items() if assignment.weights != KEEP}
    try:
        return predicted_budget(gains, schemes, errors), ""
    except MissingResultError as error:
        return None, str(error)


def _known_gains(session: Session, samples: int, seed: int) -> NoiseGains | None:
    gains = session.error_budget and session.error_budget.gains
    return gains if gains and (gains.samples, gains.seed) == (samples, seed) else None


ERROR_BUDGET = Step(
    runs_model=True,
    name="error-budget", title="Error budget", options=ErrorBudgetOptions, requires=(RUNS, CALIBRATED), run=_run,
    summary="Measures signal to noise at every block's output: where the plan's error enters, and where it grows.",
    heading=lambda options, session: f"Error budget of {plan_name(session)}",
    needs=lambda session, options: replace(
        with_moments(session), sensitivities=tables(session, "weight_error"), error_budget=session.error_budget
    ),
    join=lambda session, options, budget: replace(session, error_budget=budget),
)  # fmt: skip
