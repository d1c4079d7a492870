"""Checks that a person may ask for: does a plan's loss add up, are the data enough, which cells decide."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import CannotRunError, MissingResultError
from workbench.measurement.data_quality import CalibrationQuality, contents, coverage, distances, saturation
from workbench.numerics.formats import parse_scheme
from workbench.planning.kv_cache import cached_layers
from workbench.planning.plan import Plan, resolve
from workbench.planning.totals import quantized_inputs
from workbench.progress import Progress, part_of, silent
from workbench.sensitivity.audit import Audit, PlanAudit
from workbench.sensitivity.interaction import interaction_of
from workbench.session.session import Session
from workbench.steps import session_data, tasks
from workbench.steps.needs import moments, moments_of_plan, without_results
from workbench.steps.requests import knows_as_much

if TYPE_CHECKING:
    from workbench.engine.model_cache import ModelCache
    from workbench.models.model import Model
    from workbench.sensitivity.table import Sensitivity


def audit_plan(
    session: Session,
    plan: Plan | None = None,
    *,
    model: Model | None = None,
    data: str | Path | None = None,
    samples: int | None = None,
    batch_size: int = 8,
    trust: bool = False,
    progress: Progress = silent,
) -> Audit:
    """Measure the plan's weights one by one, all together and all but one, beside the predicted losses.

    Losses are predicted for the model as it is, so a plan with transforms has none.  Raises PlanError if the plan
    quantizes nothing, CannotRunError, DataError and what quantizing raises.
    """
    from workbench.sensitivity.audit_measurement import audit

    plan, model = plan or session.plan, model or tasks.reopen(session.model, trust=trust)
    if model.summary.cannot_run is not None:
        raise CannotRunError(f"{model.summary.name} cannot be audited: {model.summary.cannot_run}")
    dataset = session_data.for_evaluation(model, session, data, samples=samples, seed=0)
    quantized = tasks.quantize(model, plan, session=session, progress=part_of(progress, 0.0, 0.2))
    weights = {name: parse_scheme(stored.scheme).decode(stored) for name, stored in quantized.tensors.items()}
    table = None if plan.transforms else session.sensitivities.get("predicted_kl")
    cells = [] if table is None else [(name, stored.scheme) for name, stored in quantized.tensors.items()]
    predicted = {name: table.of(name, scheme) for name, scheme in cells if table is not None}
    slopes = [table.slopes(name, scheme) for name, scheme in cells if table is not None]
    return audit(
        quantized.rewritten(model), weights, dataset, predicted=predicted, batch_size=batch_size,
        predicted_interaction=interaction_of(slopes),
        progress=part_of(progress, 0.2, 1.0),
    )  # fmt: skip


def of_plan(found: Audit, session: Session, plan: Plan) -> PlanAudit:
    """Return an audit with the name of its plan and what of the plan it left out; raises PlanError."""
    given = resolve(plan, session.model.layers)
    return PlanAudit(
        plan_name=plan.name, plan_hash=plan.hash, audit=found, cached=len(cached_layers(session.model.layers, given)),
        rounded_inputs=len(quantized_inputs(session.model, given)),
    )  # fmt: skip


def calibration_quality(
    session: Session,
    *,
    model: Model | None = None,
    samples: int | None = None,
    batch_size: int = 8,
    trust: bool = False,
    progress: Progress = silent,
) -> CalibrationQuality:
    """Judge the session's calibration data against its evaluation data; MissingResultError before a calibration."""
    from workbench.measurement.calibrate import calibrate
    from workbench.measurement.data_doublings import statistics_by_step

    if session.calibration is None:
        raise MissingResultError("the calibration data are judged after a calibration; calibrate first")
    model = model or tasks.reopen(session.model, trust=trust)
    mine = session_data.recorded(model, session.calibration, samples=samples)
    other = session_data.for_evaluation(model, session, None, samples=samples, seed=0)
    steps = statistics_by_step(model, mine, batch_size=batch_size, progress=part_of(progress, 0.0, 0.6))
    seen = calibrate(
        model, other, batch_size=batch_size, curvature=False, progress=part_of(progress, 0.6, 1.0)
    ).statistics
    held, wanted = (contents(each.batches(batch_size)) for each in (mine, other))
    return CalibrationQuality(
        calibration=held, evaluation=wanted, coverage=coverage(held, wanted), saturation=saturation(steps),
        distances=distances(steps[-1][1], seen),
    )  # fmt: skip


def refine_table(
    session: Session,
    bits_per_weight: float,
    *,
    model: Model | None = None,
    samples: int | None = None,
    batch_size: int = 8,
    tolerance: float = 0.3,
    trust: bool = False,
    progress: Progress = silent,
) -> Session:
    """Measure the cells whose decision is close at ``bits_per_weight`` and return the session with them.

    The table of ``measured_kl`` grows; a cancelled call's last report is such a table, and goes on from there.  Raises
    MissingResultError without a predicted table.
    """
    from workbench.sensitivity.refine import refine

    table = session.require_table("predicted_kl")
    model = model or tasks.reopen(session.model, trust=trust)
    if session.calibration is None:
        raise MissingResultError("measured losses need calibration data; calibrate first")
    dataset = session_data.recorded(model, session.calibration, samples=samples)
    previous = session.sensitivities.get("measured_kl")
    same = previous is not None and (previous.samples, previous.data_hash, previous.seed, previous.algorithm) == (
        len(dataset), dataset.record.content_hash, table.seed, table.algorithm,
    )  # fmt: skip
    found = refine(
        model, table, dataset, close_decisions(session, bits_per_weight, tolerance),
        batch_size=batch_size, algorithm=table.algorithm, curvature=session.curvature,
        previous=previous if same else None, progress=progress,
    )  # fmt: skip
    return replace(session, sensitivities={**session.sensitivities, "measured_kl": found})


def close_decisions(session: Session, bits_per_weight: float, tolerance: float = 0.3) -> list[tuple[str, str]]:
    """Return the (layer, scheme) cells that :func:`refine_table` measures, in its order."""
    from workbench.sensitivity.refine import close_cells

    return close_cells(
        session.model, session.require_table("predicted_kl"), bits_per_weight, tolerance=tolerance
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditPlan:
    """The window's request: do the losses of the session's plan add up?  The response is a PlanAudit."""

    session: Session
    data: str | None = None
    samples: int | None = None
    batch_size: int = 8
    trust: bool = False

    @property
    def title(self) -> str:
        """What a person reads in the jobs panel."""
        return f"Audit “{self.session.plan.name}”"

    def slim(self) -> AuditPlan:
        """Keep the plan, the active ranges, the prediction, and the moments that its algorithms look at."""
        tables = {name: table for name, table in self.session.sensitivities.items() if name == "predicted_kl"}
        slimmed = without_results(self.session, sensitivities=tables, curvature=moments_of_plan(self.session))
        return replace(self, session=slimmed)

    def run(self, models: ModelCache, progress: Progress) -> PlanAudit:
        """Audit; raises PlanError, CannotRunError, DataError and what opening the model raises."""
        found = audit_plan(
            self.session, model=models.get(self.session.model, self.trust), data=self.data, samples=self.samples,
            batch_size=self.batch_size, trust=self.trust, progress=progress,
        )  # fmt: skip
        return of_plan(found, self.session, self.session.plan)

    def joined(self, current: Session, response: PlanAudit) -> Session:
        """Keep it as the session's audit."""
        return replace(current, audit=response)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RefineTable:
    """The window's request: measure the cells that decide closely; partial results are the table so far.

    What a cancelled one has measured joins the session: a later one goes on from there.
    """

    session: Session
    bits_per_weight: float
    samples: int | None = None
    batch_size: int = 8
    tolerance: float = 0.3
    trust: bool = False

    @property
    def title(self) -> str:
        """What a person reads in the jobs panel."""
        return f"Measure close decisions at {self.bits_per_weight:g} bits per weight"

    def slim(self) -> RefineTable:
        """Keep the two tables and the moments that their algorithm looks at."""
        kept = ("predicted_kl", "measured_kl")
        tables = {name: table for name, table in self.session.sensitivities.items() if name in kept}
        algorithms = {table.algorithm for table in tables.values()}
        slimmed = without_results(
            self.session, sensitivities=tables, curvature=moments(self.session, algorithms, "measured_kl")
        )
        return replace(self, session=slimmed)

    def run(self, models: ModelCache, progress: Progress) -> Sensitivity:
        """Measure; raises MissingResultError, CannotRunError, DataError and what opening the model raises."""
        return refine_table(
            self.session, self.bits_per_weight, model=models.get(self.session.model, self.trust),
            samples=self.samples, batch_size=self.batch_size, tolerance=self.tolerance, trust=self.trust,
            progress=progress,
        ).sensitivities["measured_kl"]  # fmt: skip

    def joined(self, current: Session, response: Sensitivity) -> Session:
        """Put the measured table in place of the earlier one, which it holds already."""
        return replace(current, sensitivities={**current.sensitivities, "measured_kl": response})

    def kept(self, current: Session, partial: Sensitivity) -> Session:
        """Take up what a cancelled run measured, unless the session has measured more, such as on other samples."""
        return current if knows_as_much(current, partial) else self.joined(current, partial)
