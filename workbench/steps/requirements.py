"""What steps need of a session: before they can run, and in the engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from workbench.errors import CannotRunError, MissingResultError, PlanError, WorkbenchError
from workbench.numerics.curvature import Curvature
from workbench.numerics.formats import parse_scheme, takes_range
from workbench.numerics.rounding import REGISTRY, Need
from workbench.numerics.rounding.round_weight import is_weights_only
from workbench.planning.plan import KEEP, Rule, resolve_some
from workbench.sensitivity.metrics import BY_NAME
from workbench.sensitivity.table import Sensitivity
from workbench.session.calibrated_ranges import statistics_for_plan
from workbench.session.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """What a step needs of the session before it can run.

    ``unmet(session)`` returns the reason why a step cannot be run, None if it can; ``step`` names the step that
    provides what is missing, ``command`` is what to type for it.  A greyed action shows the reason, the command line
    and Python raise ``error`` with it.
    """

    unmet: Callable[[Session], str | None]
    error: type[WorkbenchError] = MissingResultError
    step: str = ""
    command: str = ""

    def require(self, session: Session) -> None:
        """Raise ``error`` with the reason if the requirement is not met."""
        reason = self.unmet(session)
        if reason is not None:
            raise self.error(reason, command=self.command)


def _cannot_run(session: Session) -> str | None:
    reason = session.model.cannot_run
    return None if reason is None else f"{session.model.name} cannot be run: {reason}"


def _quantizes_nothing(session: Session) -> str | None:
    plan = session.plan
    if any(_quantizes(rule) for rule in plan.rules):  # asked at every redraw: looks for one layer, resolves no plan
        firsts = (plan.first(layer.name) for layer in session.model.layers)
        if any(rule is not None and _quantizes(rule) for rule in firsts):
            return None
    return "the plan quantizes nothing; give layers a scheme first"


def _quantizes(rule: Rule) -> bool:
    return rule.assignment.weights != KEEP or rule.assignment.inputs is not None


def _plan_uncalibrated(session: Session) -> str | None:
    """Return what of the plan takes a calibration that there is none of; asked at every redraw, as above."""
    plan, static = session.plan, takes_range
    if session.calibration is not None or session.model.cannot_run is not None:
        return None
    for name in {"awq", "smoothquant", "bias-correction", "norm-reestimation"}.intersection(plan.transforms):
        return f"the plan's {name} looks at calibration data; calibrate first, or take it out of the plan"
    kinds = {(rule.assignment.inputs, rule.assignment.algorithm) for rule in plan.rules}
    if all(inputs is None and _is_free(algorithm) for inputs, algorithm in kinds):
        return None
    for name, chosen in resolve_some(plan, session.model.layers).items():
        weighted = chosen.algorithm == "rtn-weighted" and session.curvature
        if not (chosen.weights == KEEP or _is_free(chosen.algorithm) or weighted):
            what = f"the layer {name} is rounded by {chosen.algorithm}, which looks at calibration data"
        elif chosen.inputs and (name, "input") not in session.active_ranges and static(parse_scheme(chosen.inputs)):
            what = f"the inputs of {name} are rounded within a range that calibration finds"
        else:
            continue
        return f"{what}; calibrate first, or change the plan"
    return None


def _is_free(algorithm: str) -> bool:
    return algorithm not in REGISTRY or is_weights_only(algorithm)  # the plan's own error is another


def _result(present: Callable[[Session], object], reason: str, step: str, command: str = "") -> Requirement:
    return Requirement(unmet=lambda session: None if present(session) else reason, step=step, command=command)


RUNS = Requirement(unmet=_cannot_run, error=CannotRunError)
"""The model is more than weights."""

CALIBRATED = _result(
    lambda session: session.calibration, "the model has not been calibrated; calibrate first", "calibrate",
    "workbench calibrate MODEL --data DATA --out S.qwb",
)  # fmt: skip
SCORED = _result(
    lambda session: session.sensitivities, "no sensitivity has been computed; compute the sensitivity first",
    "sensitivity",
)  # fmt: skip
PREDICTED = _result(
    lambda session: "predicted_kl" in session.sensitivities,
    "no predicted losses have been computed; compute the sensitivity by predicted KL first", "sensitivity",
)  # fmt: skip
PLAN_CALIBRATED = Requirement(unmet=_plan_uncalibrated, step="calibrate")
"""There is a calibration, or nothing in the plan that looks at one."""

QUANTIZES = Requirement(unmet=_quantizes_nothing, error=PlanError, step="plan")


def without_results(session: Session) -> Session:
    """Return the session's facts, records, plan, locks and active ranges, and the statistics of the plan's ranges.

    What else a step reads is added to it: a request carries no more to the engine.
    """
    return replace(
        session, statistics=statistics_for_plan(session), ranges={}, curvature={}, sensitivities={}, plans={},
        evaluations=(), timings=(), error_budget=None, audit=None, outliers={}, results={},
    )  # fmt: skip


def with_moments(session: Session, options: object = None) -> Session:
    """Add what the plan's algorithms and transforms look at (AWQ, for one, at the inputs)."""
    algorithms = {*(rule.assignment.algorithm for rule in session.plan.rules), *session.plan.transforms}
    return replace(without_results(session), curvature=moments(session, algorithms))


def with_tables(session: Session, options: object = None) -> Session:
    """Add the sensitivity tables."""
    return replace(without_results(session), sensitivities=session.sensitivities)


def tables(session: Session, *metrics: str) -> Mapping[str, Sensitivity]:
    """Return the session's tables by these metrics."""
    return {name: table for name, table in session.sensitivities.items() if name in metrics}


def moments(session: Session, algorithms: Collection[str], metric: str = "") -> Mapping[str, Curvature]:
    """Return the curvature that the step reads; sessions of earlier versions hold whole moments, which few steps need.

    See :func:`workbench.steps.session_data.curvature_for`.
    """
    if reads_moments(algorithms, metric):
        return session.curvature
    if metric and BY_NAME[metric].moments == "diagonal":
        return {name: replace(full, full=None, outputs=None) for name, full in session.curvature.items()}
    return {}


def reads_moments(algorithms: Collection[str], metric: str = "") -> bool:
    """Return whether whole second moments are read: by some algorithms, transforms and metrics."""
    looks = any(name not in REGISTRY or REGISTRY.get(name).needs is not Need.NOTHING for name in algorithms)
    return looks or bool(metric) and BY_NAME[metric].moments == "full"
