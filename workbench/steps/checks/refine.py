"""Refine: measure the losses where the prediction leaves the choice of scheme open."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session
from workbench.steps import session_data
from workbench.steps.needs import moments, without_results
from workbench.steps.options import BATCH_SIZE, BITS_PER_WEIGHT, SAMPLES, OptionInfo, option
from workbench.steps.requirements import CALIBRATED, PREDICTED, RUNS
from workbench.steps.score import with_more_cells, with_table
from workbench.steps.step import Context, Step

TOLERANCE = OptionInfo(
    label="Tolerance", minimum=0.01, maximum=10.0, increment=0.1, metavar="T",
    help="relative error of a predicted loss that a decision must withstand not to be measured; more measures more "
    "cells",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RefineOptions:
    """At which size decisions are examined, how closely, on how much of the calibration data."""

    bits_per_weight: float = option(4.5, BITS_PER_WEIGHT)
    tolerance: float = option(0.3, TOLERANCE)
    samples: int | None = option(None, SAMPLES)
    batch_size: int = option(8, BATCH_SIZE)


def close_decisions(session: Session, options: RefineOptions) -> list[tuple[str, str]]:
    """Return the (layer, scheme) cells that the step measures, in its order; MissingResultError without predictions."""
    from workbench.sensitivity.refine import close_cells

    return close_cells(
        session.model, session.require_table("predicted_kl"), options.bits_per_weight, tolerance=options.tolerance
    )


def _run(context: Context, options: RefineOptions) -> Sensitivity:
    """Return the table of ``measured_kl``, grown; partial results are such tables, from which a later run goes on."""
    from workbench.sensitivity.refine import refine

    session, model = context.session, context.model()
    table = session.require_table("predicted_kl")
    assert session.calibration is not None, "required"
    dataset = session_data.recorded(model, session.calibration, samples=options.samples)
    previous = session.sensitivities.get("measured_kl")
    basis = (len(dataset), dataset.record.content_hash, table.seed, table.algorithm)
    if previous is not None and (previous.samples, previous.data_hash, previous.seed, previous.algorithm) != basis:
        previous = None
    return refine(
        model, table, dataset, close_decisions(session, options), batch_size=options.batch_size,
        algorithm=table.algorithm, curvature=session.curvature, previous=previous, progress=context.progress,
    )  # fmt: skip


def _heading(options: RefineOptions, session: Session | None) -> str:
    return f"Measure close decisions at {options.bits_per_weight:g} bits per weight"


def _needs(session: Session, options: RefineOptions) -> Session:
    """Keep the two tables and the moments that their algorithm looks at."""
    names = ("predicted_kl", "measured_kl")
    tables = {name: table for name, table in session.sensitivities.items() if name in names}
    algorithms = {table.algorithm for table in tables.values()}
    return without_results(session, sensitivities=tables, curvature=moments(session, algorithms, "measured_kl"))


def _join(session: Session, options: RefineOptions, table: Sensitivity) -> Session:
    """Put the measured table in place of the earlier one, which it contains."""
    return with_table(session, table)


def _keep(session: Session, options: RefineOptions, table: Sensitivity) -> Session:
    """Keep what a cancelled run measured, unless the session has measured more, such as on other samples."""
    return with_more_cells(session, table)


def _first(session: Session) -> RefineOptions:
    """Use as many samples as the earlier table, which the run then goes on from."""
    earlier = session.sensitivities.get("measured_kl")
    return RefineOptions(samples=None if earlier is None else earlier.samples)


REFINE = Step(
    name="refine",
    title="Refine close decisions",
    summary="Measures the loss of the cells whose choice the prediction leaves open at this size, the closest decision "
    "first. A cancelled run keeps what it has measured; the same run started again goes on from there. A table "
    "measured on other samples is replaced.",
    options=RefineOptions,
    run=_run,
    heading=_heading,
    needs=_needs,
    join=_join,
    keep=_keep,
    first=_first,
    requires=(RUNS, PREDICTED, CALIBRATED),
)
