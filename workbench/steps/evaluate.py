"""Evaluate: measure a plan against the floating-point model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.measurement.evaluation import Evaluation
from workbench.models.sources import reopen
from workbench.planning.plan import Plan
from workbench.planning.totals import plan_totals
from workbench.progress import Progress, part_of, silent
from workbench.sensitivity.metrics import ACTIVATION_METRICS
from workbench.session.session import Session
from workbench.steps import session_data
from workbench.steps.needs import moments_of_plan, without_results
from workbench.steps.options import BATCH_SIZE, EVALUATION_DATA, SAMPLES, SEED, OptionInfo, option
from workbench.steps.quantize import quantize, require_same
from workbench.steps.requirements import RUNS
from workbench.steps.step import Context, Step, plan_name, short

if TYPE_CHECKING:
    from workbench.models.model import Model

METRIC = OptionInfo(
    label="Metric file", path="file", flag="metric-file", metavar="FILE.py[:NAME]", form=False, empty="none",
    help="a metric of your own: NAME(outputs, batch) (default metric) returns one number for each sample; needs trust",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateOptions:
    """On which data, and by which metric in addition to the usual ones."""

    data: str = option("", EVALUATION_DATA)
    samples: int | None = option(None, SAMPLES)
    batch_size: int = option(8, BATCH_SIZE)
    seed: int = option(0, SEED)
    metric: str | None = option(None, METRIC)


def evaluate(
    session: Session,
    plan: Plan | None = None,
    *,
    model: Model | None = None,
    data: str | Path | None = None,
    samples: int | None = None,
    batch_size: int = 8,
    seed: int = 0,
    metric: str | Path | None = None,
    trust: bool = False,
    progress: Progress = silent,
) -> Evaluation:
    """Measure ``plan`` (default: the session's) against the floating-point model.

    ``data`` defaults to the session's evaluation data, else to the part of the calibration's data that calibration
    never sees.  ``metric`` is a trusted Python file with a function of the user's (``file.py`` or ``file.py:name``, see
    :mod:`workbench.measurement.user_metric`).  Raises CannotRunError, DataError, PlanError and its kin.
    """
    from workbench.measurement.evaluate import evaluate as measure
    from workbench.measurement.most_changed import MostChanged
    from workbench.measurement.user_metric import load_metric
    from workbench.models.data.inputs import InputSpec
    from workbench.models.data.samples import decoder

    plan = plan or session.plan
    require_same(session.model, plan, None)
    RUNS.require(session)
    sums = plan_totals(
        session.model, plan, session.sensitivities.get("predicted_kl"), session.inputs_table("predicted_kl"),
        session.cache_table("predicted_kl"),
    )  # fmt: skip
    model = model or reopen(session.model, trust=trust)
    dataset = session_data.for_evaluation(model, session, data, samples=samples, seed=seed)
    user_metrics = () if metric is None else (load_metric(metric, trust=trust),)
    spec = getattr(model, "inputs", InputSpec())
    changed = MostChanged(decoder(spec) if spec.tokenizer is not None else None)
    quantized = quantize(model, plan, session=session, progress=part_of(progress, 0.0, 0.3))
    notes: list[str] = []
    metrics = measure(
        model, quantized.bind(model), dataset, batch_size=batch_size, seed=seed, most_changed=changed,
        user_metrics=user_metrics, notes=notes, progress=part_of(progress, 0.3, 1.0),
    )  # fmt: skip
    return Evaluation(
        plan_name=plan.name, plan_hash=plan.hash, data_name=dataset.record.name, data_hash=dataset.record.content_hash,
        bits_per_weight=sums.bits_per_weight, nbytes=sums.nbytes, predicted_kl=sums.predicted, metrics=metrics,
        changed=changed.units(), notes=tuple(dict.fromkeys((*quantized.notes, *dataset.notes, *notes))),
    )  # fmt: skip


def with_evaluation(known: tuple[Evaluation, ...], new: Evaluation) -> tuple[Evaluation, ...]:
    """Return the evaluations with ``new`` last, in place of an earlier one of the same plan on the same data."""
    same = (new.plan_hash, new.data_hash)
    return (*(old for old in known if (old.plan_hash, old.data_hash) != same), new)


def _run(context: Context, options: EvaluateOptions) -> Evaluation:
    return evaluate(
        context.session, model=context.model(), data=options.data or None, samples=options.samples,
        batch_size=options.batch_size, seed=options.seed, metric=options.metric, trust=context.trust,
        progress=context.progress,
    )  # fmt: skip


def _heading(options: EvaluateOptions, session: Session | None) -> str:
    return f"Evaluate {plan_name(session)}" + (f" on {short(options.data)}" if options.data else "")


def _needs(session: Session, options: EvaluateOptions) -> Session:
    """Keep the plan, the active ranges, the predictions, and the moments that its algorithms look at."""
    names = ("predicted_kl", *ACTIVATION_METRICS)
    tables = {name: table for name, table in session.sensitivities.items() if name in names}
    return without_results(session, sensitivities=tables, curvature=moments_of_plan(session))


def _join(session: Session, options: EvaluateOptions, evaluation: Evaluation) -> Session:
    """Add the evaluation, in place of an earlier one of the same plan on the same data."""
    return replace(session, evaluations=with_evaluation(session.evaluations, evaluation))


def _first(session: Session) -> EvaluateOptions:
    return EvaluateOptions(data=session_data.last_data(session, session.evaluation))


EVALUATE = Step(
    name="evaluate",
    title="Evaluate",
    summary="Runs the quantized model beside the floating-point model on held-out data.",
    options=EvaluateOptions,
    run=_run,
    heading=_heading,
    needs=_needs,
    join=_join,
    first=_first,
    requires=(RUNS,),
    call="wb.evaluate",
)
