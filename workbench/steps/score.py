"""Sensitivity: score what each scheme would cost each layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import CannotRunError, MissingResultError, PlanError
from workbench.models.sources import reopen
from workbench.numerics.rounding import canonical
from workbench.planning.plan import KEEP, Plan, resolve
from workbench.progress import Progress, silent
from workbench.sensitivity.metrics import BY_NAME, SCORED, TABLE_METRICS, find_metric, metric_phrase
from workbench.sensitivity.table import Sensitivity
from workbench.session.calibrated_ranges import ranges_in_force
from workbench.session.session import Session
from workbench.steps import session_data
from workbench.steps.needs import moments, without_results
from workbench.steps.options import (
    BATCH_SIZE,
    SAMPLES,
    SEED,
    Choice,
    OptionInfo,
    hyphenated,
    option,
    scheme_choices,
    scheme_name,
    scheme_names,
)
from workbench.steps.step import Context, Step

if TYPE_CHECKING:
    from workbench.models.data.datasets import Dataset
    from workbench.models.model import Model

DYNAMIC_SCHEMES = ("int8-token", "int6-token", "int4-token", "fp8-e4m3-token")
"""Activation schemes that are scored by default: they need no calibrated range."""


def metric_choices() -> tuple[Choice, ...]:
    """Return the metrics that a table can be computed by."""
    return tuple(Choice(name, f"{BY_NAME[name].title} ({BY_NAME[name].unit})") for name in SCORED)


def metric_name(text: str) -> str:
    """Return a metric's name from its spelling on the command line, which may have hyphens."""
    return text.strip().replace("-", "_")


METRIC = OptionInfo(
    label="Metric", choices=metric_choices, parse=metric_name,
    help="what is computed for each layer and scheme; higher is worse. ..._inputs and ..._cache score activation "
    "schemes: of each layer's input, or of the keys or values that it gives the KV cache",
)  # fmt: skip
SCHEMES = OptionInfo(
    label="Schemes", choices=scheme_choices, suggested=True, parse=scheme_name, metavar="A,B,...",
    help="the columns of the table",
    empty="a dozen; for activations int8-, int6-, int4- and fp8-e4m3-token",
)  # fmt: skip
ALGORITHM = OptionInfo(
    label="Rounding", metavar="NAME", form=False, parse=hyphenated, help="the algorithm that rounds each weight"
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOptions:
    """By which metric, for which schemes, on how much of the calibration data."""

    metric: str = option("predicted_kl", METRIC)
    schemes: tuple[str, ...] = option((), SCHEMES)
    samples: int | None = option(None, SAMPLES)
    batch_size: int = option(8, BATCH_SIZE)
    seed: int = option(0, SEED)
    algorithm: str = option("rtn-clip", ALGORITHM)

    def __post_init__(self) -> None:
        object.__setattr__(self, "algorithm", canonical(self.algorithm))


def score(
    session: Session,
    metric: str = "predicted_kl",
    *,
    model: Model | None = None,
    schemes: Sequence[str] | None = None,
    samples: int | None = None,
    batch_size: int = 8,
    seed: int = 0,
    algorithm: str = "rtn-clip",
    trust: bool = False,
    progress: Progress = silent,
) -> Session:
    """Score every layer under every scheme by ``metric`` and return the session with the table.

    The metrics are those of :mod:`workbench.sensitivity.metrics`, of weights and of activations.  ``schemes`` default
    to the standard ones.  An earlier table of the same metric, algorithm, seed and data is extended.  Metrics that run
    the model use the calibration's data, which must be unchanged (DataError).  Raises MissingResultError naming the
    missing step, CannotRunError for what a weights-only model cannot do.
    """
    options = ScoreOptions(
        metric=metric, schemes=tuple(schemes or ()), samples=samples, batch_size=batch_size, seed=seed,
        algorithm=algorithm,
    )  # fmt: skip
    notes: list[str] = []
    by_part = _weight_table if find_metric(metric).part == "weights" else _activation_table
    table = by_part(session, options, model, trust, notes, progress)
    return replace(
        session, sensitivities={**session.sensitivities, metric: table},
        notes=tuple(dict.fromkeys((*session.notes, *(f"{metric}: {note}" for note in notes)))),
    )  # fmt: skip


def _weight_table(
    session: Session, options: ScoreOptions, model: Model | None, trust: bool, notes: list[str], progress: Progress
) -> Sensitivity:
    """Score weights; the columns of an earlier table on the same data are kept, and its finished cells too."""
    from workbench.sensitivity.score import score as score_cells

    names, metric = scheme_names(options.schemes), options.metric
    dataset = None
    if find_metric(metric).needs_data:
        _require_calibrated(session, metric)
        model = model or reopen(session.model, trust=trust)
        dataset = _data(model, session, options)
    model = model or reopen(session.model, trust=trust)
    earlier = session.sensitivities.get(metric)
    if earlier is not None and _extends(earlier, options, dataset):
        names = (*earlier.schemes, *(name for name in names if name not in earlier.column))
    return score_cells(
        model, metric, names, curvature=session.curvature, dataset=dataset, batch_size=options.batch_size,
        seed=options.seed, algorithm=options.algorithm, previous=earlier, notes=notes, progress=progress,
    )  # fmt: skip


def _activation_table(
    session: Session, options: ScoreOptions, model: Model | None, trust: bool, notes: list[str], progress: Progress
) -> Sensitivity:
    """Score activations with the ranges in force; other columns of an earlier table on the same data are kept."""
    from workbench.sensitivity.score import score as score_cells

    metric = options.metric
    _require_calibrated(session, metric)
    if options.algorithm != "rtn-clip":
        raise PlanError(
            f"the algorithm {options.algorithm} rounds weights, and {metric} scores activations; leave it out"
        )
    model = model or reopen(session.model, trust=trust)
    in_force = ranges_in_force(model.summary, session.plan, session.ranges, session.active_ranges)
    table = score_cells(
        model, metric, scheme_names(options.schemes or DYNAMIC_SCHEMES), dataset=_data(model, session, options),
        ranges={**session.active_ranges, **in_force}, batch_size=options.batch_size, seed=options.seed, notes=notes,
        progress=progress,
    )  # fmt: skip
    return _beside(session.sensitivities.get(metric), table)


def _require_calibrated(session: Session, metric: str) -> None:
    if session.model.cannot_run is not None:
        raise CannotRunError(
            f"{session.model.name} cannot be scored by {metric}: {session.model.cannot_run}; the metric weight_error "
            "needs weights only"
        )
    if session.calibration is None:
        raise MissingResultError(
            f"the metric {metric} needs calibration data, and the session was not calibrated yet; calibrate first, or "
            "use the metric weight_error",
            command="workbench calibrate MODEL --data DATA --out S.qwb",
        )


def _data(model: Model, session: Session, options: ScoreOptions) -> Dataset:
    assert session.calibration is not None
    return session_data.recorded(model, session.calibration, samples=options.samples)


def _extends(earlier: Sensitivity, options: ScoreOptions, dataset: Dataset | None) -> bool:
    """Tell whether cells of the earlier table may stand beside new ones."""
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
    session: Session,
    plan: Plan,
    metric: str | None = None,
    *,
    model: Model | None = None,
    trust: bool = False,
    progress: Progress = silent,
) -> Session:
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


def with_table(session: Session, table: Sensitivity) -> Session:
    """Return the session with the table in place of an earlier one of its metric."""
    return replace(session, sensitivities={**session.sensitivities, table.metric: table})


def with_more_cells(session: Session, table: Sensitivity) -> Session:
    """Return the session with a partial table, as it is if its own has no fewer computed cells."""
    known = session.sensitivities.get(table.metric)
    if known is not None and np.isfinite(known.score).sum() >= np.isfinite(table.score).sum():
        return session
    return with_table(session, table)


def _run(context: Context, options: ScoreOptions) -> Sensitivity:
    scored = score(
        context.session, options.metric, model=context.model(), schemes=options.schemes or None,
        samples=options.samples, batch_size=options.batch_size, seed=options.seed, algorithm=options.algorithm,
        progress=context.progress,
    )  # fmt: skip
    context.notes.extend(note for note in scored.notes if note not in context.session.notes)
    return scored.sensitivities[options.metric]


def _heading(options: ScoreOptions, session: Session | None) -> str:
    return f"Sensitivity by {metric_phrase(options.metric)}"


def _needs(session: Session, options: ScoreOptions) -> Session:
    """Keep the data's record, the metric's earlier table, and curvature or ranges where the metric reads them."""
    return without_results(
        session, curvature=moments(session, {options.algorithm}, options.metric),
        sensitivities={name: table for name, table in session.sensitivities.items() if name == options.metric},
        ranges=session.ranges if BY_NAME[options.metric].part == "inputs" else {},
    )  # fmt: skip


def _join(session: Session, options: ScoreOptions, table: Sensitivity) -> Session:
    return with_table(session, table)


def _keep(session: Session, options: ScoreOptions, table: Sensitivity) -> Session:
    return with_more_cells(session, table)


def _first(session: Session) -> ScoreOptions:
    table = next((session.sensitivities[name] for name in TABLE_METRICS if name in session.sensitivities), None)
    return ScoreOptions(schemes=scheme_names(None if table is None else table.schemes))


SCORE = Step(
    name="sensitivity",
    title="Sensitivity",
    summary="Quantizes each layer alone with each scheme and scores the damage. Predicted KL needs a calibration; "
    "measured KL runs the model for every cell and takes much longer. What rounding inputs costs adds to the plan's "
    "totals.",
    options=ScoreOptions,
    run=_run,
    heading=_heading,
    needs=_needs,
    join=_join,
    keep=_keep,
    first=_first,
    call="wb.score",
)
