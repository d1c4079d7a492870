"""Evaluate: measure a plan against the floating-point model."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cache import cache_folder
from workbench.errors import DataError
from workbench.measurement.evaluation import Evaluation
from workbench.measurement.reference.cache import ArrayCache
from workbench.models.data.reading import Reading
from workbench.models.model import Model
from workbench.models.placement import Placement, place_notes
from workbench.models.sources import reopen
from workbench.planning.plan import Plan
from workbench.preflight import Estimate
from workbench.progress import Progress, part_of, silent
from workbench.sensitivity.metrics import ACTIVATION_METRICS
from workbench.session.calibrated_ranges import identity
from workbench.session.session import Session
from workbench.steps import session_data
from workbench.steps.changed_files import unchanged
from workbench.steps.options import (
    BATCH_SIZE,
    COLUMN,
    EVALUATION_DATA,
    EVALUATION_WINDOW,
    SAMPLES,
    SEED,
    STRIDE,
    OptionInfo,
    option,
)
from workbench.steps.quantize import moments_of, quantize, require_same
from workbench.steps.requirements import PLAN_CALIBRATED, RUNS, tables, with_moments
from workbench.steps.step import Context, Step, plan_name, short

if TYPE_CHECKING:
    from workbench.measurement.reference.cache import ArrayCache
    from workbench.models.data.batches import Data

TASKS = OptionInfo(
    label="Tasks", path="data", metavar="FILE.yaml|FOLDER", form=False, empty="none",
    help="tasks of lm-evaluation-harness in place of data: a task file or a folder of them, with local data; needs "
    "trust",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateOptions:
    """On which data or tasks, and by which metric in addition to the usual ones."""

    data: str = option("", EVALUATION_DATA)
    samples: int | None = option(None, SAMPLES)
    batch_size: int = option(8, BATCH_SIZE)
    seed: int = option(0, SEED)
    column: str = option("", COLUMN)
    window: int | None = option(None, EVALUATION_WINDOW)
    stride: int | None = option(None, STRIDE)
    metric: str | None = option(None, OptionInfo(
        label="Metric file", path="file", flag="metric-file", metavar="FILE.py[:NAME]", form=False, empty="none",
        help="a metric of your own: NAME(outputs, batch) (default metric) returns one number for each sample; needs "
        "trust",
    ))  # fmt: skip
    tasks: str | None = option(None, TASKS)


def evaluate(
    session: Session, plan: Plan | None = None, *, model: Model | None = None, data: str | Path | None = None,
    samples: int | None = None, batch_size: int = 8, seed: int = 0, column: str = "", window: int | None = None,
    stride: int | None = None, metric: str | Path | None = None, tasks: str | Path | None = None, trust: bool = False,
    device: str = "auto", progress: Progress = silent,
) -> Evaluation:  # fmt: skip
    """Measure ``plan`` (default: the session's) against the floating-point model, on ``device`` unless it is given.

    ``data`` defaults to the session's evaluation data, else to the part of the calibration's data that calibration
    never sees.  ``column`` names the columns of a table, ``window`` and ``stride`` are those of perplexity in tokens
    (default: windows of 2,048 side by side where the model has room for them).  ``metric`` is a trusted Python file
    with a function of the user's (``file.py`` or ``file.py:name``, see :mod:`workbench.measurement.user_metric`).
    ``tasks`` are trusted task files of lm-evaluation-harness; they take the place of data, of which ``samples`` bounds
    the documents of each task.
    Raises CannotRunError, DataError, PlanError and its kin.
    """
    from workbench.measurement.evaluate import evaluate as measure
    from workbench.measurement.most_changed import MostChanged
    from workbench.measurement.user_metric import load_metric

    plan = plan or session.plan
    require_same(session.model, plan, None)
    RUNS.require(session)
    sums = session_data.totals_of(session, plan, "predicted_kl")
    model = model or reopen(session.model, trust=trust, placement=Placement(device))
    if tasks is not None:
        return _on_tasks(session, plan, model, tasks, samples, batch_size, seed, trust, progress)
    reading = Reading(column=column, window=window, stride=stride)
    dataset = session_data.for_evaluation(model, session, data, samples=samples, seed=seed, reading=reading)
    user_metrics = () if metric is None else (load_metric(metric, trust=trust),)
    cache = ArrayCache(folder=cache_folder("outputs"))
    changed, notes = MostChanged(session_data.text_of_tokens(model)), place_notes(model, "evaluated")
    with unchanged(model, EVALUATE.title):
        quantized = quantize(model, plan, session=session, progress=part_of(progress, 0.0, 0.3))
        metrics = measure(
            model, quantized.bind(model), dataset, batch_size=batch_size, seed=seed, most_changed=changed,
            user_metrics=user_metrics, notes=notes, cache=cache, progress=part_of(progress, 0.3, 1.0),
        )  # fmt: skip
    predicted = sums.predicted if session_data.prices_all(session, plan, "predicted_kl") else None
    if predicted is not None:
        notes += _confidence_note(session, model, dataset, batch_size, cache)
    return Evaluation(
        plan_name=plan.name, plan_hash=identity(session, plan), data_name=dataset.record.name,
        data_hash=dataset.record.content_hash, bits_per_weight=sums.bits_per_weight, nbytes=sums.nbytes,
        predicted_kl=predicted, metrics=metrics,
        predicted_error=sums.error, predicted_samples=sums.samples, predicted_doubt=sums.doubt,
        changed=changed.units(), notes=tuple(dict.fromkeys((*quantized.notes, *dataset.notes, *notes))),
    )  # fmt: skip


def _on_tasks(
    session: Session, plan: Plan, model: Model, tasks: str | Path, samples: int | None, batch_size: int, seed: int,
    trust: bool, progress: Progress,
) -> Evaluation:  # fmt: skip
    """Return what both models answer to tasks."""
    from workbench.measurement.harness.tasks import TaskFiles, evaluate_tasks

    files, notes = TaskFiles.at(tasks, trust=trust), place_notes(model, "evaluated")
    sums = session_data.totals_of(session, plan, "predicted_kl")
    quantized = quantize(model, plan, session=session, progress=part_of(progress, 0.0, 0.2))
    with unchanged(model, EVALUATE.title):
        metrics = evaluate_tasks(
            model, quantized.bind(model), files, samples=samples, batch_size=batch_size, seed=seed, notes=notes,
            progress=part_of(progress, 0.2, 1.0),
        )  # fmt: skip
    return Evaluation(
        plan_name=plan.name, plan_hash=identity(session, plan), data_name=files.name, data_hash=files.content_hash,
        bits_per_weight=sums.bits_per_weight, nbytes=sums.nbytes, predicted_kl=None, metrics=metrics,
        notes=(*quantized.notes, *notes),
    )  # fmt: skip


def _confidence_note(session: Session, model: Model, dataset: Data, batch_size: int, cache: ArrayCache) -> list[str]:
    """State where the calibration data are easier than the evaluation data; empty where they cannot be reopened."""
    from workbench.measurement.gini_impurity import confidence_note

    if session.calibration is None:
        return []
    try:
        calibration = session_data.recorded(model, session.calibration)
        return list(filter(None, [confidence_note(model, calibration, dataset, batch_size, cache)]))
    except DataError:
        return []


def _costs(context: Context, options: EvaluateOptions) -> Estimate | None:
    from workbench.steps.preflight.costs import evaluation

    if options.tasks is not None:  # how much a task asks is known only to its own code
        return None
    model, session = context.model(), context.session
    reading = Reading(column=options.column, window=options.window, stride=options.stride)
    data = session_data.for_evaluation(
        model, session, options.data, samples=options.samples, seed=options.seed, reading=reading
    )  # fmt: skip
    record, sums = session.calibration, session_data.totals_of(session, session.plan, "predicted_kl")
    calibration = None if record is None else session_data.recorded(model, record)
    return evaluation(
        model, session.plan, data, batch_size=options.batch_size, moments=moments_of(model, session),
        calibration=calibration, looks_again=sums.predicted is not None,
    )  # fmt: skip


def _join(session: Session, options: EvaluateOptions, evaluation: Evaluation) -> Session:
    """Add the evaluation, in place of an earlier one of the same plan on the same data."""
    same = (evaluation.plan_hash, evaluation.data_hash)
    others = (old for old in session.evaluations if (old.plan_hash, old.data_hash) != same)
    return replace(session, evaluations=(*others, evaluation))


EVALUATE: Step[EvaluateOptions, Evaluation] = Step(
    runs_model=True, costs=_costs,
    name="evaluate", title="Evaluate", options=EvaluateOptions, requires=(RUNS, PLAN_CALIBRATED), join=_join,
    call="wb.evaluate",
    summary="Runs the quantized model beside the floating-point model on held-out data.",
    run=lambda context, options: evaluate(
        context.session, model=context.model(), trust=context.trust, progress=context.progress, **asdict(options)
    ),
    heading=lambda options, session: (
        f"Evaluate {plan_name(session)}" + (f" on {short(on)}" if (on := options.tasks or options.data) else "")
    ),
    needs=lambda session, options: replace(
        with_moments(session), sensitivities=tables(session, "predicted_kl", *ACTIVATION_METRICS)
    ),
    first=lambda session: EvaluateOptions(data=session_data.last_data(session, session.evaluation)),
    missing=lambda session, options: (
        {} if options.tasks else session_data.missing_data(session, options.data, held=True)
    ),
)  # fmt: skip
