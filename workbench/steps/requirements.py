"""What steps need of a session, with the reasons that greyed actions show and errors name."""

from __future__ import annotations

from workbench.errors import CannotRunError, PlanError
from workbench.planning.plan import KEEP, Rule
from workbench.session.session import Session
from workbench.steps.step import Requirement


def _cannot_run(session: Session) -> str | None:
    reason = session.model.cannot_run
    return None if reason is None else f"{session.model.name} cannot be run: {reason}"


def _uncalibrated(session: Session) -> str | None:
    return "the model has not been calibrated; calibrate first" if session.calibration is None else None


def _unscored(session: Session) -> str | None:
    return None if session.sensitivities else "no sensitivity has been computed; compute the sensitivity first"


def _unpredicted(session: Session) -> str | None:
    if "predicted_kl" in session.sensitivities:
        return None
    return "no predicted losses have been computed; compute the sensitivity by predicted KL first"


def _quantizes_nothing(session: Session) -> str | None:
    plan = session.plan
    if any(_quantizes(rule) for rule in plan.rules):  # asked at every redraw: looks for one layer, resolves no plan
        firsts = (plan.first(layer.name) for layer in session.model.layers)
        if any(rule is not None and _quantizes(rule) for rule in firsts):
            return None
    return "the plan quantizes nothing; give layers a scheme first"


def _quantizes(rule: Rule) -> bool:
    return rule.assignment.weights != KEEP or rule.assignment.inputs is not None


RUNS = Requirement(unmet=_cannot_run, error=CannotRunError)
"""The model is more than weights."""

CALIBRATED = Requirement(unmet=_uncalibrated, step="calibrate")
SCORED = Requirement(unmet=_unscored, step="sensitivity")
PREDICTED = Requirement(unmet=_unpredicted, step="sensitivity")
QUANTIZES = Requirement(unmet=_quantizes_nothing, error=PlanError, step="plan")
