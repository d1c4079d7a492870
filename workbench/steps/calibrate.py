"""Calibrate: run the model on data and note statistics, ranges and curvature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import CannotRunError, DataError
from workbench.progress import Progress, part_of, silent
from workbench.session.calibrated_ranges import all_ranges, ranges_in_force
from workbench.session.environment import environment
from workbench.session.session import Session
from workbench.session.table import of_tap
from workbench.steps import session_data
from workbench.steps.files.new_session import start
from workbench.steps.needs import without_results
from workbench.steps.options import BATCH_SIZE, DATA, SAMPLES, SEED, option
from workbench.steps.requirements import RUNS
from workbench.steps.step import Context, Step, arguments, short

if TYPE_CHECKING:
    from workbench.models.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateOptions:
    """On which data, and how much of them."""

    data: str = option("", DATA)
    samples: int | None = option(None, SAMPLES)
    batch_size: int = option(8, BATCH_SIZE)
    seed: int = option(0, SEED)


def calibrate(
    model: Model,
    data: str | Path | None = None,
    *,
    samples: int | None = None,
    batch_size: int = 8,
    seed: int = 0,
    session: Session | None = None,
    progress: Progress = silent,
) -> Session:
    """Observe the model on ``data`` and return ``session`` (or a new one) with statistics, ranges and curvature.

    ``data`` is a text file, a folder of images, an array file or ``demo:...``; a bundled model has its own by default,
    any other needs it (MissingResultError).  A weights-only model gets the statistics and ranges of its weights, or
    CannotRunError if ``data`` was given.  Results of other data (tables, evaluations) and ranges set by hand are kept.
    Where weights with NaN or infinity spoil every batch, the weights' part of the session is there and a note says so.
    """
    from workbench.measurement.calibrate import calibrate as observe

    session = _session_for(model, session, part_of(progress, 0.0, 0.1))
    statistics = dict(session.statistics)
    if model.summary.cannot_run is None:
        dataset = session_data.for_calibration(model, data, samples=samples, seed=seed)
        try:
            seen = observe(model, dataset, batch_size=batch_size, seed=seed, progress=part_of(progress, 0.1, 0.85))
        except DataError as error:
            session = _without_activations(session, error)
        else:
            weights = {key: value for key, value in statistics.items() if key[1] == "weight"}
            statistics = weights | dict(seen.statistics)
            session = replace(
                session,
                calibration=dataset.record,
                evaluation=session_data.evaluation_record(model, dataset.record),
                curvature=seen.curvature,
                outliers=session_data.readable(seen.outliers, model),
                notes=tuple(dict.fromkeys((*session.notes, *dataset.notes, *seen.notes))),
            )
    elif data:
        raise CannotRunError(f"{model.summary.name} cannot be calibrated on data: {model.summary.cannot_run}")
    ranges = all_ranges(statistics, part_of(progress, 0.85, 1.0))
    return replace(
        session,
        environment=environment(),
        statistics=statistics,
        ranges=ranges,
        active_ranges=ranges_in_force(model.summary, session.plan, ranges, session.active_ranges),
    )


def _without_activations(session: Session, error: DataError) -> Session:
    """Go on with the weights alone if it is weights with NaN that spoil every batch; else raise ``error``."""
    if not session.model.non_finite:
        raise error
    note = f"{error}; weights with NaN or infinity kept activations from being observed; what needs weights works"
    return replace(session, notes=tuple(dict.fromkeys((*session.notes, note))))


def _session_for(model: Model, session: Session | None, progress: Progress) -> Session:
    """Return ``session`` if it is of this model, with the weights' statistics; a new one for None."""
    if session is None:
        return start(model, progress)
    model.summary.require_fingerprint(session.model.fingerprint, "the session")
    if any(tap == "weight" for _, tap in session.statistics):
        return session
    from workbench.measurement.calibrate import weight_statistics

    return replace(session, statistics={**session.statistics, **weight_statistics(model, progress)})


def _run(context: Context, options: CalibrateOptions) -> Session:
    return calibrate(
        context.model(), options.data or None, samples=options.samples, batch_size=options.batch_size,
        seed=options.seed, session=context.session, progress=context.progress,
    )  # fmt: skip


def _heading(options: CalibrateOptions, session: Session | None) -> str:
    return f"Calibrate on {short(options.data)}" if options.data else "Calibrate on the bundled data"


def _needs(session: Session, options: CalibrateOptions) -> Session:
    """Keep the model's facts and the weights' statistics."""
    weights = of_tap(session.statistics, "weight")
    return without_results(session, statistics=weights)


def _join(session: Session, options: CalibrateOptions, result: Session) -> Session:
    """Add the new statistics and ranges; a range that the user set by hand stays in force."""
    manual = {key: value for key, value in session.active_ranges.items() if value.method == "manual"}
    return replace(
        session,
        calibration=result.calibration,
        evaluation=result.evaluation,
        statistics={**session.statistics, **result.statistics},
        ranges={**session.ranges, **result.ranges},
        active_ranges={**session.active_ranges, **result.active_ranges, **manual},
        curvature=result.curvature,
        outliers=result.outliers,
        environment=result.environment,
        notes=tuple(dict.fromkeys((*session.notes, *result.notes))),
    )


def _first(session: Session) -> CalibrateOptions:
    return CalibrateOptions(data=session_data.last_data(session, session.calibration))


def _python(options: CalibrateOptions, session: Session | None) -> str:
    path = "" if session is None else str(session.model.source.path)
    return f"\nmodel = wb.open({path!r})\nsession = wb.calibrate({', '.join(['model', *arguments(options)])})"


CALIBRATE = Step(
    name="calibrate",
    title="Calibrate",
    summary="Runs the model on a data set and notes, for every layer, histograms of its inputs and outputs, ranges by "
    "every method, and the curvature that the predicted loss needs.",
    options=CalibrateOptions,
    run=_run,
    heading=_heading,
    needs=_needs,
    join=_join,
    first=_first,
    requires=(RUNS,),
    python=_python,
)
