"""Refine: measure the losses where the prediction leaves the choice of scheme open."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from workbench.preflight import Estimate
from workbench.progress import rising
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session
from workbench.steps import session_data
from workbench.steps.options import BATCH_SIZE, BITS_PER_WEIGHT, SAMPLES, OptionInfo, option
from workbench.steps.requirements import CALIBRATED, PREDICTED, RUNS, moments, tables, without_results
from workbench.steps.score import with_more_cells, with_table
from workbench.steps.step import Context, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class RefineOptions:
    """At which size decisions are examined, how closely, on how much of the calibration data."""

    bits_per_weight: float = option(4.5, BITS_PER_WEIGHT)
    tolerance: float = option(0.3, OptionInfo(
        label="Relative error", minimum=0.01, maximum=10.0, increment=0.1, metavar="T",
        help="relative error of a predicted loss that a decision must withstand not to be measured; more measures more "
        "cells",
    ))  # fmt: skip
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
    progress = rising(context.progress)
    return refine(
        model, table, dataset, close_decisions(session, options), batch_size=options.batch_size,
        algorithm=table.algorithm, previous=previous, progress=progress,
        curvature=session_data.curvature_for(model, session, {table.algorithm}, "measured_kl", progress),
    )  # fmt: skip


def _costs(context: Context, options: RefineOptions) -> Estimate | None:
    from workbench.steps.preflight.costs import measured_cells

    model, session = context.model(), context.session
    assert session.calibration is not None, "required"
    data = session_data.recorded(model, session.calibration, samples=options.samples)
    table, known = session.require_table("predicted_kl"), session.sensitivities.get("measured_kl")
    cells = close_decisions(session, options)
    if known is not None and known.samples == len(data):
        cells = [(layer, scheme) for layer, scheme in cells if np.isnan(known.cells((layer,), (scheme,))).any()]
    return measured_cells(model, data, cells, algorithm=table.algorithm, batch_size=options.batch_size)


def _needs(session: Session, options: RefineOptions) -> Session:
    """Add the two tables and the moments that their algorithm looks at."""
    both = tables(session, "predicted_kl", "measured_kl")
    curvature = moments(session, {table.algorithm for table in both.values()}, "measured_kl")
    return replace(without_results(session), sensitivities=both, curvature=curvature)


REFINE = Step(
    runs_model=True, costs=_costs,
    name="refine", title="Refine close decisions", options=RefineOptions, requires=(RUNS, PREDICTED, CALIBRATED),
    summary="Measures the loss of the cells whose choice the prediction leaves open at this size, the closest decision "
    "first. A cancelled run keeps what it has measured; the same run started again goes on from there. A table "
    "measured on other samples is replaced.",
    run=_run, needs=_needs, join=with_table, keep=with_more_cells,
    heading=lambda options, session: f"Measure close decisions at {options.bits_per_weight:g} bits per weight",
)  # fmt: skip
