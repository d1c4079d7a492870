"""Calibrate: run the model on data and note statistics, ranges and curvature."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from workbench.cache import cache_folder
from workbench.errors import CannotRunError, DataError
from workbench.measurement.reference.cache import ArrayCache
from workbench.models.data.reading import Reading
from workbench.models.model import Model
from workbench.models.placement import ran_on
from workbench.models.summary import ModelSource
from workbench.preflight import Estimate, clock
from workbench.progress import Progress, part_of, silent
from workbench.session.calibrated_ranges import all_ranges, ranges_in_force
from workbench.session.session import Environment, Session
from workbench.session.table import of_tap, overlaid
from workbench.steps import session_data
from workbench.steps.changed_files import unchanged
from workbench.steps.files.first_session import start
from workbench.steps.options import BATCH_SIZE, COLUMN, DATA, SAMPLES, SEED, WINDOW, OptionInfo, option, takes_tokens
from workbench.steps.requirements import RUNS, without_results
from workbench.steps.step import Context, Request, Step, arguments, short

IMATRIX = OptionInfo(
    suits=takes_tokens,
    label="Importance matrix", path="file", metavar="FILE", empty="none: the inputs are those of the data",
    help="llama.cpp's importance matrix (.gguf or .dat) to take the inputs' mean squares from; needs no data",
)  # fmt: skip

ALL_EXPERTS = OptionInfo(
    label="All tokens through all experts",
    help="Lets every expert of a mixture see all tokens, not only those that its router sends; the outputs stay as "
    "they are, and a run takes as much longer as there are experts for each one that is chosen.",
    suits=lambda model: any(layer.experts > 1 for layer in model.layers),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateOptions:
    """On which data, and how much of them."""

    data: str = option("", DATA)
    samples: int | None = option(None, SAMPLES)
    batch_size: int = option(8, BATCH_SIZE)
    seed: int = option(0, SEED)
    column: str = option("", COLUMN)
    window: int | None = option(None, WINDOW)
    imatrix: str = option("", IMATRIX)
    all_experts: bool = option(False, ALL_EXPERTS)


def calibrate(
    model: Model, data: str | Path | None = None, *, samples: int | None = None, batch_size: int = 8, seed: int = 0,
    column: str = "", window: int | None = None, imatrix: str | Path = "", all_experts: bool = False,
    session: Session | None = None, progress: Progress = silent,
) -> Session:  # fmt: skip
    """Observe the model on ``data`` and return ``session`` (or a new one) with statistics, ranges and curvature.

    ``data`` is a text file, a table, a folder of texts, images or sounds, an array file or ``demo:...``; a bundled
    model has its own by default, any other needs it (MissingResultError).  ``column`` names the columns of a table,
    ``window`` is the length of a window in tokens (default 256).  A weights-only model gets the statistics and ranges
    of its weights, or CannotRunError if ``data`` was given.  ``imatrix`` is an importance matrix of llama.cpp: its mean
    squares of inputs replace those of the data, and serve ``rtn-weighted`` alone where there are none.
    ``all_experts`` shows every expert of a mixture all tokens, not only those that are sent to it.
    Results of other data (tables, evaluations) and ranges set by hand are kept.  Where weights with NaN or infinity
    spoil every batch, the weights' part of the session is there and a note says so.
    """
    from workbench.deployment.imatrix import with_imatrix

    curvature, note = with_imatrix(model.summary, {}, imatrix) if imatrix else ({}, "")  # a bad file costs no run
    without_data = bool(curvature) and not data and session_data.bundled_data(model.summary.source.path) is None
    with unchanged(model, CALIBRATE.title):
        session = _with_weights(model, session, part_of(progress, 0.0, 0.1))
        if model.summary.cannot_run is None and not without_data:
            session = _observed(
                model, session, data, samples, batch_size, seed, Reading(column=column, window=window), all_experts,
                part_of(progress, 0.1, 0.85),
            )  # fmt: skip
        elif data:
            raise CannotRunError(f"{model.summary.name} cannot be calibrated on data: {model.summary.cannot_run}")
    if imatrix:
        curvature, note = with_imatrix(model.summary, session.curvature, imatrix)
        notes = tuple(dict.fromkeys((*session.notes, note, *((NO_GRADIENTS,) if without_data else ()))))
        session = replace(session, curvature=curvature, notes=notes)
    ranges = all_ranges(session.statistics, part_of(progress, 0.85, 1.0))
    active = ranges_in_force(model.summary, session.plan, ranges, session.active_ranges)
    return replace(session, environment=Environment.here(ran_on(model)), ranges=ranges, active_ranges=active)


NO_GRADIENTS = (
    "an importance matrix has no gradients: rtn-weighted and the metric output_error work with it alone; a predicted "
    "loss, GPTQ and ranges of inputs need data"
)


def _observed(
    model: Model, session: Session, data: str | Path | None, samples: int | None, batch_size: int, seed: int,
    reading: Reading, all_experts: bool, progress: Progress,
) -> Session:  # fmt: skip
    """Return the session with what a run on the data shows; only with a note if NaN in weights spoils every batch."""
    from workbench.measurement.calibrate import calibrate as observe
    from workbench.measurement.gini_impurity import keep_impurities
    from workbench.measurement.token_outliers import with_texts

    dataset = session_data.for_calibration(model, data, samples=samples, seed=seed, reading=reading)
    try:
        collected = observe(
            model, dataset, batch_size=batch_size, seed=seed, all_experts=all_experts, progress=progress
        )
    except DataError as error:
        if not session.model.non_finite:
            raise
        note = f"{error}; weights with NaN or infinity kept activations from being observed; what needs weights works"
        return replace(session, notes=tuple(dict.fromkeys((*session.notes, note))))
    if collected.impurities.size == len(dataset):
        keep_impurities(model, dataset, collected.impurities, ArrayCache(folder=cache_folder("outputs")))
    decode = session_data.text_of_tokens(model)
    return replace(
        session, calibration=dataset.record, evaluation=session_data.evaluation_record(model, dataset.record),
        statistics={**of_tap(session.statistics, "weight"), **collected.statistics}, curvature=collected.curvature,
        outliers=collected.outliers if decode is None else with_texts(collected.outliers, decode),
        notes=tuple(dict.fromkeys((*session.notes, *dataset.notes, *collected.notes))),
    )  # fmt: skip


def _with_weights(model: Model, session: Session | None, progress: Progress) -> Session:
    """Return ``session`` if it is of this model, with the weights' statistics; a new one for None."""
    if session is None:
        return start(model, progress)
    model.summary.require_fingerprint(session.model.fingerprint, "the session")
    if any(tap == "weight" for _, tap in session.statistics):
        return session
    from workbench.measurement.calibrate import weight_statistics

    return replace(session, statistics={**session.statistics, **weight_statistics(model, progress)})


def _join(session: Session, options: CalibrateOptions, result: Session) -> Session:
    """Add the new statistics and ranges; a range that the user set by hand stays in force."""
    manual = {key: value for key, value in session.active_ranges.items() if value.method == "manual"}
    return replace(
        session, calibration=result.calibration, evaluation=result.evaluation, curvature=result.curvature,
        outliers=result.outliers, environment=result.environment,
        statistics=overlaid(session.statistics, result.statistics), ranges={**session.ranges, **result.ranges},
        active_ranges={**session.active_ranges, **result.active_ranges, **manual},
        notes=tuple(dict.fromkeys((*session.notes, *result.notes))),
    )  # fmt: skip


def _python(request: Request[CalibrateOptions, Session]) -> str:
    source = ModelSource(kind="", path="") if request.session is None else request.session.model.source
    opened = request.opening(source.path, source.factory, source.weights)
    return f"{opened}session = wb.calibrate({', '.join(['model', *arguments(request.options)])})"


def _costs(context: Context, options: CalibrateOptions) -> Estimate | None:
    from workbench.steps.preflight.costs import calibration

    model, session = context.model(), context.document
    if options.imatrix and not options.data:
        return None
    reading, start = Reading(column=options.column, window=options.window), clock()
    data = session_data.for_calibration(
        model, options.data, samples=options.samples, seed=options.seed, reading=reading
    )  # fmt: skip
    opening = clock() - start  # as the part for evaluation is
    known = session is not None and any(tap == "weight" for _, tap in session.statistics)
    return calibration(model, data, batch_size=options.batch_size, weights=not known).plus(opening)


CALIBRATE: Step[CalibrateOptions, Session] = Step(
    runs_model=True, spreads=True, costs=_costs,
    name="calibrate", title="Calibrate", options=CalibrateOptions, requires=(RUNS,), join=_join, python=_python,
    summary="Runs the model on a data set and notes, for every layer, histograms of its inputs and outputs, ranges by "
    "every method, and the curvature that the predicted loss needs.",
    run=lambda context, options: calibrate(
        context.model(), session=context.session, progress=context.progress, **asdict(options)
    ),
    heading=lambda options, session: f"Calibrate on {short(options.data) if options.data else 'the bundled data'}",
    needs=lambda session, options: replace(
        without_results(session), statistics=of_tap(session.statistics, "weight")
    ),
    first=lambda session: CalibrateOptions(data=session_data.last_data(session, session.calibration)),
    missing=lambda session, options: {} if options.imatrix else session_data.missing_data(session, options.data),
)  # fmt: skip
