"""Sensitivity: score what each scheme would cost each layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import PlanError
from workbench.insight.legality import left_out, quick_schemes
from workbench.measurement.units import loss_unit
from workbench.models.model import Model
from workbench.models.placement import Placement, place_notes
from workbench.numerics.formats import parse_scheme
from workbench.numerics.ranges import method_for
from workbench.numerics.rounding import canonical
from workbench.planning.plan import KEEP, Plan, resolve
from workbench.preflight import Estimate
from workbench.progress import Progress, rising, silent
from workbench.sensitivity.metrics import BY_NAME, SCORED, TABLE_METRICS, find_metric, metric_phrase
from workbench.sensitivity.table import Sensitivity
from workbench.session.calibrated_ranges import LOSS, ranges_in_force
from workbench.session.session import Session
from workbench.steps import session_data
from workbench.steps.options import BATCH_SIZE, SAMPLES, SCHEMES, SEED, TARGET, Choice, OptionInfo, option, scheme_names
from workbench.steps.requirements import CALIBRATED, RUNS, Requirement, moments, tables, without_results
from workbench.steps.step import Context, Step

if TYPE_CHECKING:
    from workbench.models.data.datasets import Dataset

UNUSED = "the output does not depend on it"

DYNAMIC_SCHEMES = ("int8-token", "int6-token", "int4-token", "fp8-e4m3-token")
"""Activation schemes that are scored by default: they need no calibrated range."""


def metric_name(text: str) -> str:
    """Return a metric's name from its spelling on the command line, which may have hyphens."""
    return text.strip().replace("-", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOptions:
    """By which metric, for which schemes, on how much of the calibration data."""

    metric: str = option("predicted_kl", OptionInfo(
        label="Metric", parse=metric_name,
        choices=lambda: tuple(Choice(name, f"{BY_NAME[name].title} ({BY_NAME[name].unit})") for name in SCORED),
        help="what is computed for each layer and scheme; higher is worse. ..._inputs and ..._cache score activation "
        "schemes: of each layer's input, or of the keys or values that it gives the KV cache",
    ))  # fmt: skip
    schemes: tuple[str, ...] = option((), replace(
        SCHEMES, help="the columns of the table",
        empty="a dozen, or those that the target runs; for activations int8-, int6-, int4- and fp8-e4m3-token",
    ))  # fmt: skip
    samples: int | None = option(None, SAMPLES)
    batch_size: int = option(8, BATCH_SIZE)
    seed: int = option(0, SEED)
    target: str | None = option(None, replace(
        TARGET, form=False, help="leave out the cells of weights that this refuses: vllm, gguf, nvidia-9.0. A scheme "
        "that it refuses everywhere is scored: whoever names it wants to see it",
    ))  # fmt: skip
    algorithm: str = option("rtn-clip", OptionInfo(
        label="Rounding", metavar="NAME", form=False, parse=lambda text: text.strip().replace("_", "-"),
        help="the algorithm that rounds each weight",
    ))  # fmt: skip

    def __post_init__(self) -> None:
        object.__setattr__(self, "algorithm", canonical(self.algorithm))


def score(
    session: Session, metric: str = "predicted_kl", *, model: Model | None = None,
    schemes: Sequence[str] | None = None, samples: int | None = None, batch_size: int = 8, seed: int = 0,
    target: str | None = None, algorithm: str = "rtn-clip", trust: bool = False, device: str = "auto",
    progress: Progress = silent,
) -> Session:  # fmt: skip
    """Score every layer under every scheme by ``metric`` and return the session with the table.

    The metrics are those of :mod:`workbench.sensitivity.metrics`, of weights and of activations.  ``schemes`` default
    to those that ``target`` runs, without one to the standard ones; cells of weights that ``target`` refuses stay NaN
    where they cost time, but for schemes that it refuses everywhere.
    An earlier table of the same metric, algorithm, seed and data is extended.  Metrics that run
    the model use the calibration's data, which must be unchanged (DataError).  Raises MissingResultError naming the
    missing step, CannotRunError for what a weights-only model cannot do.  The model runs on ``device`` unless it is
    given.
    """
    options = ScoreOptions(
        metric=metric, schemes=tuple(schemes or ()), samples=samples, batch_size=batch_size, seed=seed,
        target=target, algorithm=algorithm,
    )  # fmt: skip
    notes: list[str] = []
    place = Placement(device)
    table = SCORE(session, options, model=model, trust=trust, placement=place, notes=notes, progress=progress)
    return replace(with_table(session, options, table), notes=tuple(dict.fromkeys((*session.notes, *notes))))


def _run(context: Context, options: ScoreOptions) -> Sensitivity:
    metric, notes = find_metric(options.metric), list[str]()
    table = (_weight_table if metric.part == "weights" else _activation_table)(context, options, notes)
    notes += place_notes(context.model(), "computed")
    noted = (f"{metric.name}: {note}" for note in dict.fromkeys(notes))
    context.notes.extend(note for note in noted if note not in context.session.notes)
    return table


def _weight_table(context: Context, options: ScoreOptions, notes: list[str]) -> Sensitivity:
    """Score weights; the columns of an earlier table on the same data are kept, and its finished cells too."""
    from workbench.sensitivity.score import score as score_cells

    names, metric, session = _columns(context, options), options.metric, context.session
    dataset = _data(context, options) if find_metric(metric).needs_data and session.calibration else None
    earlier = session.sensitivities.get(metric)
    if earlier is not None and _extends(earlier, options, dataset):
        names = (*earlier.schemes, *(name for name in names if name not in earlier.column))
    model, progress = context.model(), rising(context.progress)
    return score_cells(
        model, metric, names, dataset=dataset, batch_size=options.batch_size, seed=options.seed,
        algorithm=options.algorithm, previous=earlier, notes=notes, progress=progress,
        omitted=left_out(model.summary.layers, options.target, names),
        curvature=session_data.curvature_for(model, session, {options.algorithm}, metric, progress),
    )  # fmt: skip


def _columns(context: Context, options: ScoreOptions) -> tuple[str, ...]:
    """Return the schemes of weights to score."""
    layers = context.session.model.layers
    return scheme_names(options.schemes or (quick_schemes(layers, options.target) if options.target else ()))


def _activation_table(context: Context, options: ScoreOptions, notes: list[str]) -> Sensitivity:
    """Score activations with the ranges in force; other columns of an earlier table on the same data are kept."""
    from workbench.sensitivity.score import score as score_cells

    session, metric = context.session, options.metric
    if options.algorithm != "rtn-clip":
        raise PlanError(
            f"the algorithm {options.algorithm} rounds weights, and {metric} scores activations; leave it out"
        )
    table, data = session.sensitivities.get(metric), _data(context, options)
    names = scheme_names(options.schemes or DYNAMIC_SCHEMES)
    whole = [name for name in names if method_for(parse_scheme(name), LOSS) != LOSS]
    for part in filter(None, ([name for name in names if name not in whole], whole)):
        in_force = ranges_in_force(session.model, session.plan, session.ranges, session.active_ranges, part[0])
        table = _beside(table, score_cells(
            context.model(), metric, part, dataset=data, ranges={**session.active_ranges, **in_force},
            batch_size=options.batch_size, seed=options.seed, notes=notes, progress=context.progress,
        ))  # fmt: skip
    assert table is not None
    return table


def _cannot_run(session: Session) -> str | None:
    reason = RUNS.unmet(session)
    return reason and f"{reason}; the metric weight_error needs the weights alone"


_RUNS = replace(RUNS, unmet=_cannot_run)


def _wants(session: Session, options: ScoreOptions) -> tuple[Requirement, ...]:
    """Return what a metric needs: a model that runs, and a calibration; an importance matrix may stand in for that."""
    metric = find_metric(options.metric)
    from_imatrix = metric.moments and session.calibration is None and session.curvature
    return (_RUNS, CALIBRATED) if metric.part != "weights" or (metric.needs_data and not from_imatrix) else ()


def _data(context: Context, options: ScoreOptions) -> Dataset:
    assert context.session.calibration is not None
    return session_data.recorded(context.model(), context.session.calibration, samples=options.samples)


def _extends(earlier: Sensitivity, options: ScoreOptions, dataset: Dataset | None) -> bool:
    """Return whether cells of the earlier table may stand beside new ones."""
    data_hash, samples = (dataset.record.content_hash, len(dataset)) if dataset is not None else ("", 0)
    alike = (options.algorithm, options.seed, data_hash, samples)
    return (earlier.algorithm, earlier.seed, earlier.data_hash, earlier.samples) == alike


def _beside(earlier: Sensitivity | None, table: Sensitivity) -> Sensitivity:
    """Return ``table`` after the columns of ``earlier`` that it lacks, if both are of the same data."""
    if earlier is None or _basis(earlier) != _basis(table):
        return table
    names = [name for name in earlier.schemes if name not in table.column]
    columns = [earlier.column[name] for name in names]
    return replace(
        table, schemes=(*names, *table.schemes), score=np.hstack([earlier.score[:, columns], table.score])
    )  # fmt: skip


def _basis(table: Sensitivity) -> tuple[tuple[str, ...], int, int, str]:
    return table.layers, table.samples, table.seed, table.data_hash


def complete_table(
    session: Session, plan: Plan, metric: str | None = None, *, model: Model | None = None, trust: bool = False,
    progress: Progress = silent,
) -> Session:  # fmt: skip
    """Return the session with a table that covers every scheme of ``plan``; as it is if it has none of that metric."""
    if metric is None and not session.sensitivities.keys() & set(TABLE_METRICS):
        return session
    table = session.require_table(metric)
    used = {assignment.weights for assignment in resolve(plan, session.model.layers).values()} - {KEEP}
    missing = sorted(used - set(table.schemes))
    if not missing:
        return session
    return score(
        session, table.metric, model=model, schemes=(*table.schemes, *missing), samples=table.samples or None,
        seed=table.seed, algorithm=table.algorithm, trust=trust, progress=progress,
    )  # fmt: skip


def with_table(session: Session, options: object, table: Sensitivity) -> Session:
    """Return the session with the table in place of an earlier one of its metric; its model knows the unused layers."""
    session = replace(session, sensitivities={**session.sensitivities, table.metric: table})
    if BY_NAME[table.metric].part != "weights" or not table.samples:
        return session
    return replace(session, model=session.model.with_unused(dict.fromkeys(table.unused, UNUSED)))


def with_more_cells(session: Session, options: object, table: Sensitivity) -> Session:
    """Return the session with a partial table, as it is if its own has no fewer computed cells."""
    known = session.sensitivities.get(table.metric)
    if known is not None and np.isfinite(known.score).sum() >= np.isfinite(table.score).sum():
        return session
    return with_table(session, options, table)


def _unfinished(session: Session, options: object, table: Sensitivity) -> Session:
    """Return the session with the table that a cancelled scoring left, as it is if its own has no fewer cells."""
    return with_more_cells(session, options, replace(table, complete=False))


def _needs(session: Session, options: ScoreOptions) -> Session:
    """Add the metric's earlier table, and curvature or ranges where the metric reads them."""
    return replace(
        without_results(session), curvature=moments(session, {options.algorithm}, options.metric),
        sensitivities=tables(session, options.metric),
        ranges=session.ranges if BY_NAME[options.metric].part == "inputs" else {},
    )  # fmt: skip


def _costs(context: Context, options: ScoreOptions) -> Estimate | None:
    """Estimate the cells that an earlier table lacks, of the metrics that take long."""
    from workbench.steps.preflight import costs

    if options.metric not in ("predicted_kl", "measured_kl") or context.session.calibration is None:
        return None
    model, names = context.model(), _columns(context, options)
    data = _data(context, options)
    earlier = context.session.sensitivities.get(options.metric)
    if earlier is not None and _extends(earlier, options, data):
        names = tuple(name for name in names if name not in earlier.column)
    if options.metric == "predicted_kl":
        return costs.predicted_table(
            model, data, names, algorithm=options.algorithm, batch_size=options.batch_size,
            omitted=left_out(model.summary.layers, options.target, names),
        )  # fmt: skip
    cells = [(layer.name, scheme) for layer in model.summary.stored for scheme in names]
    return costs.measured_cells(model, data, cells, algorithm=options.algorithm, batch_size=options.batch_size)


SCORE = Step(
    runs_model=True, spreads=True, costs=_costs,
    name="sensitivity", title="Sensitivity", options=ScoreOptions, call="wb.score",
    summary="Quantizes each layer alone with each scheme and scores the damage. Predictions need a calibration; "
    "measuring runs the model for every cell and takes much longer. What rounding inputs costs adds to the plan's "
    "totals.",
    run=_run, needs=_needs, wants=_wants, join=with_table, keep=_unfinished,
    heading=lambda options, session: (
        f"Sensitivity by {metric_phrase(options.metric, loss_unit(session.model.output) if session else '')}"
    ),
)  # fmt: skip
