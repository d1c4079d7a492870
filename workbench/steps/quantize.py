"""The model quantized by a plan, with the session's ranges, curvature and calibration data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.models.model import Model
from workbench.models.summary import ModelSummary
from workbench.planning.plan import KEEP, LEARNED, Plan, resolve
from workbench.preflight import Estimate
from workbench.progress import Progress, rising, silent
from workbench.session.calibrated_ranges import ranges_of_plan
from workbench.session.session import Session
from workbench.steps import session_data
from workbench.steps.changed_files import unchanged

if TYPE_CHECKING:
    from workbench.measurement.second_moments import SecondMoments
    from workbench.models.data.batches import Data
    from workbench.models.data.datasets import Dataset
    from workbench.quantization.quantize import Accept
    from workbench.quantization.quantized_model import QuantizedModel


def quantize(
    model: Model, plan: Plan, *, session: Session | None = None, accept: Accept | None = None,
    progress: Progress = silent,
) -> QuantizedModel:  # fmt: skip
    """Quantize ``model`` by ``plan``; ranges, curvature and the calibration data come from ``session``.

    ``accept`` is called with what the plan's transforms made of the model before any weight is rounded.

    The same session and plan give the same bits, so what was evaluated is what is exported.
    Raises FingerprintMismatchError for a plan or session of another model, UnmatchedRuleError, SchemeError, and
    MissingResultError if static input schemes lack a calibrated range.
    """
    from workbench.quantization.quantize import quantize as apply_plan

    require_same(model.summary, plan, session)
    with unchanged(model, "Quantize"):
        if session is None:
            return apply_plan(model, plan, accept=accept, progress=progress)
        algorithms = _algorithms(plan, model) | set(plan.transforms)
        progress = rising(progress)
        return apply_plan(
            model, plan, ranges=ranges_of_plan(session, plan), data=_learning_data(model, plan, session),
            curvature=session_data.curvature_for(model, session, algorithms, progress=progress), accept=accept,
            progress=progress,
        )  # fmt: skip


def moments_of(model: Model, session: Session) -> Callable[[Data], SecondMoments]:
    """Return what collects the session's second moments from any data."""
    from workbench.measurement.second_moments import SecondMoments

    seed = session.calibration.seed if session.calibration is not None else 0
    return lambda data: SecondMoments(model, data, session.curvature, seed=seed)


def costs(
    model: Model, plan: Plan, session: Session | None, out: str = "", nbytes: int | None = None, preparing: float = 0.0
) -> Estimate | None:
    """Estimate what rounding takes, ``preparing``, and writing ``nbytes`` (default: those of the plan) to ``out``."""
    from workbench.steps.preflight.costs import quantizing

    record = None if session is None else session.calibration
    return quantizing(
        model, plan, None if record is None else session_data.recorded(model, record), out=out, nbytes=nbytes,
        moments=moments_of(model, session) if session is not None else lambda data: None, preparing=preparing,
    )  # fmt: skip


def require_same(summary: ModelSummary, plan: Plan, session: Session | None) -> None:
    """Raise FingerprintMismatchError for a plan or session of another model."""
    plan.require_model(summary)
    if session is not None:
        summary.require_fingerprint(session.model.fingerprint, "the session")


def _algorithms(plan: Plan, model: Model) -> set[str]:
    return {a.algorithm for a in resolve(plan, model.summary.layers).values() if a.weights != KEEP}


def _learning_data(model: Model, plan: Plan, session: Session | None) -> Dataset | None:
    """Open the calibration's data again if the plan learns on them or transforms by them; else None."""
    from workbench.numerics.rounding.round_weight import needs_sequence

    used = _algorithms(plan, model)
    learns = bool(plan.transforms) or LEARNED in used or any(needs_sequence(name) for name in used)
    if not learns or session is None or session.calibration is None:
        return None
    return session_data.recorded(model, session.calibration)
