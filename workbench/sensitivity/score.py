"""The sensitivity table: what each scheme would cost each layer, by one metric."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from workbench.errors import MissingResultError, ModelError, nearest
from workbench.measurement.finite_batches import FiniteBatches
from workbench.measurement.gradients import fitting_batch
from workbench.measurement.partial_results import pieces_of
from workbench.measurement.second_moments import digest_of
from workbench.models.data.batches import Data
from workbench.models.execution.activation_quantizers import Ranges
from workbench.models.execution.dependence import unused_layers
from workbench.models.model import Model
from workbench.models.placement import ran_on
from workbench.models.workers import current as workers_in_use
from workbench.numerics.curvature import Curvature
from workbench.numerics.formats import parse_scheme
from workbench.numerics.rounding import algorithm as find_algorithm
from workbench.progress import Progress, part_of, rising, silent
from workbench.readable import few
from workbench.sensitivity.activations import scored_layers
from workbench.sensitivity.checks.measured_parts import share_filled
from workbench.sensitivity.checks.plan_checks import PlanChecks
from workbench.sensitivity.interaction import Directions
from workbench.sensitivity.metrics import find_metric
from workbench.sensitivity.metrics.metric import OpenCells, Part, SensitivityMetric
from workbench.sensitivity.scoring import Scoring
from workbench.sensitivity.table import Sensitivity
from workbench.sensitivity.worker_scoring import can_spread, fill_spread

Omitted = Mapping[str, Collection[str]]
"""Schemes by layer that need no score."""

SAVED = (Sensitivity, Directions, PlanChecks)
"""What a table that is not full is made of."""


def score(
    model: Model, metric: str, schemes: Sequence[str], *, curvature: Mapping[str, Curvature] | None = None,
    dataset: Data | None = None, ranges: Ranges | None = None, batch_size: int = 8, seed: int = 0,
    algorithm: str = "rtn-clip", layers: Sequence[str] | None = None, previous: Sensitivity | None = None,
    notes: list[str] | None = None, progress: Progress = silent, omitted: Omitted | None = None,
) -> Sensitivity:  # fmt: skip
    """Return the table of ``metric`` for ``layers`` x ``schemes``; the layers default to all that the metric serves.

    ``predicted_kl`` takes ``curvature`` from a calibration, and ``dataset`` for convolutions and weights inside larger
    modules (:func:`workbench.sensitivity.predicted.form_of` tells which form a layer gets); ``measured_kl`` takes
    ``dataset``; ``output_error`` either; ``weight_error`` nothing.  Metrics of activations take ``dataset``, and
    ``ranges`` (a session's ``active_ranges``) for schemes of whole inputs, which are static; others are dynamic.
    ``progress`` is given the table so far, NaN for open cells. Cells of ``previous`` are kept if it was computed the
    same way, and the result has the bits of an uninterrupted run. A layer that the output does not depend on, or that
    changes nothing on the data however it is rounded, costs nothing and is named in ``unused``. A layer with NaN or
    infinite weights, or one that no data reach, has a row of NaN, and cells of ``omitted`` (schemes by layer) stay open
    as well, where a form computes single cells (the directional one has all schemes of a layer at once); ``notes`` gets
    a sentence for every batch that was left out because the model gave NaN or infinity. Raises PlanError for an unknown
    metric or algorithm, SchemeError, ModelError for an unknown layer, MissingResultError, CannotRunError, DataError.
    """
    record = find_metric(metric)
    table = _empty_table(model, record, schemes, dataset, seed, algorithm, layers)
    _require_cells(model, table, record)
    if table.samples:
        table = _without_unused(model, table, dataset)
    saved = pieces_of("scoring", SAVED, lambda: {
        "model": model.summary.fingerprint, "place": ran_on(model), "metric": metric, "layers": table.layers,
        "schemes": table.schemes, "seed": seed, "algorithm": table.algorithm, "data": table.data_hash,
        "samples": table.samples, "batch_size": batch_size, "ranges": repr(ranges),
        "curvature": digest_of(curvature or {}),
    })  # fmt: skip
    interrupted = saved.load("table")
    unchecked = interrupted is not None and interrupted.computed_like(table)
    if interrupted is not None and unchecked:
        previous = interrupted
        cells = int(np.isfinite(interrupted.score).sum())
        saved.goes_on(f"scoring continues after {cells} of {interrupted.score.size} cells")
    if previous is not None and previous.computed_like(table):
        table = _going_on(previous.as_predicted(), table)
    open_cells = _open_cells(model, table, record.part, omitted or {})
    if previous is not None and previous.computed_like(table) and not open_cells and not unchecked:
        table = _as_corrected(previous, table)
    fits = batch_size if dataset is None else fitting_batch(batch_size, dataset, model, gradients=False)
    scoring = Scoring(
        model=model, table=table, curvature=curvature or {}, dataset=dataset, batch_size=fits, seed=seed,
        algorithm=table.algorithm, progress=saved.saving("table", rising(progress)), ranges=ranges or {},
        finite=FiniteBatches(model=model, notes=[] if notes is None else notes),
    )  # fmt: skip
    whole, cells = scoring.progress, sum(map(len, open_cells.values()))
    filled = 1.0 if record.check is None or dataset is None else share_filled(scoring, dataset, cells)
    scoring.progress = part_of(whole, 0.0, filled)
    if open_cells:
        _fill(scoring, record, open_cells)
    unchecked |= bool(open_cells)  # a run that was interrupted after its last cell has checked nothing yet
    if record.check is not None and unchecked:
        scoring.progress = part_of(whole, filled, 1.0)
        record.check(scoring, open_cells)
    if unchecked and layers is None and record.part == "weights" and table.samples:
        _say_if_nothing_counts(scoring)
    if record.part == "weights" and table.samples:
        _set_aside(scoring)
    progress(1.0, "scored", scoring.snapshot())
    return scoring.snapshot()


def _require_cells(model: Model, table: Sensitivity, record: SensitivityMetric) -> None:
    if model.summary.without_layers:
        raise MissingResultError(model.summary.without_layers)
    if record.part != "weights" and not table.score.size:
        raise MissingResultError("there is nothing to score: give at least one layer and one activation scheme")


def _fill(scoring: Scoring, record: SensitivityMetric, open_cells: OpenCells) -> None:
    """Compute the open cells, on workers where there are some that take such tables."""
    workers = workers_in_use()
    if workers is not None and can_spread(scoring):
        fill_spread(workers, scoring, open_cells)
        return
    if workers is not None:
        scoring.finite.notes.append("scored in this process: workers take no tables of this kind")
    record.fill(scoring, open_cells)


def _going_on(previous: Sensitivity, table: Sensitivity) -> Sensitivity:
    """Return ``table`` with the cells that ``previous`` has."""
    known = previous.cells(table.layers, table.schemes)
    error = None if previous.error is None else np.array(
        [previous.error[previous.row[name]] if name in previous.row else np.nan for name in table.layers]
    )  # fmt: skip
    return replace(
        table,
        score=np.where(np.isnan(known), table.score, known),
        directions=previous.directions,
        error=error,
        rerouting=_rerouting(previous, table),
        one_token=previous.one_token,
        measured=previous.measured,
        checks=previous.checks,
    )


def _say_if_nothing_counts(scoring: Scoring) -> None:
    """Add a note where no scheme of any layer changes the output on the data."""
    known = scoring.table.score[np.isfinite(scoring.table.score)]
    if known.size and not known.any():
        scoring.finite.notes.append(
            "every loss is 0: on these data the output is the same whatever the weights, so that no plan can be found "
            "by them; the data may lack what the model answers about (a table's cells, a mask, labels to predict)"
        )


def _set_aside(scoring: Scoring) -> None:
    """Count layers as unused whose rounding changes nothing on the data, and name them.

    States of zeros, or a direction of a recurrent layer that is not read: other data may need them, and the smallest
    scheme would be free.  Where no layer changes anything, and of a layer that every scheme holds exactly, that says
    nothing.
    """
    table = scoring.table
    idle = [name for name, row in zip(table.layers, table.score, strict=True) if not row.any()]
    if len(idle) == len(table.layers):
        return
    idle = [
        name for name in idle
        if name not in table.unused and any(scoring.squared_errors(name, table.schemes).values())
    ]  # fmt: skip
    if idle:
        scoring.table = replace(table, unused=tuple(name for name in table.layers if name in {*table.unused, *idle}))
        scoring.finite.notes.append(
            f"on these data the output is the same however {few(idle)} {'is' if len(idle) == 1 else 'are'} rounded "
            "(states of zeros, a gate that stays shut, a part that is not read): they count as unused, and a search "
            "leaves them as they are"
        )


def _as_corrected(previous: Sensitivity, table: Sensitivity) -> Sensitivity:
    """Return ``table``, all of whose cells ``previous`` has, with what measured cells made of them."""
    if previous.uncorrected is None:
        return table
    score, uncorrected = (
        each.cells(table.layers, table.schemes) for each in (previous, replace(previous, score=previous.uncorrected))
    )
    return replace(table, score=np.where(np.isnan(score), table.score, score), uncorrected=uncorrected)


def _rerouting(previous: Sensitivity, table: Sensitivity) -> np.ndarray | None:
    """Return the parts of the cells of ``previous`` that rerouting costs, as ``table`` has its rows and columns."""
    if previous.rerouting is None:
        return None
    return np.array([[previous.rerouting_of(name, scheme) for scheme in table.schemes] for name in table.layers])


def _empty_table(
    model: Model, metric: SensitivityMetric, schemes: Sequence[str], dataset: Data | None, seed: int, algorithm: str,
    layers: Sequence[str] | None,
) -> Sensitivity:  # fmt: skip
    if metric.part != "weights":
        names = scored_layers(model, metric.part, layers)
    elif layers is None:
        names = tuple(layer.name for layer in model.summary.stored)
    else:
        names = tuple(dict.fromkeys(_owner(model, name) for name in layers))
    columns = tuple(dict.fromkeys(parse_scheme(scheme).name for scheme in schemes))
    used = dataset if metric.needs_data else None
    return Sensitivity(
        metric=metric.name, unit=metric.unit_for(model.summary.output), layers=names, schemes=columns,
        score=np.full((len(names), len(columns)), np.nan), samples=len(used) if used is not None else 0, seed=seed,
        algorithm=find_algorithm(algorithm).name, data_hash=used.record.content_hash if used is not None else "",
    )  # fmt: skip


def _without_unused(model: Model, table: Sensitivity, dataset: Data | None) -> Sensitivity:
    """Return the table with zeros for the layers that the model's output on the data does not depend on."""
    reasons = unused_layers(model, dataset)
    unused = tuple(name for name in table.layers if name in reasons)
    score = np.where(np.isin(table.layers, unused)[:, None], 0.0, table.score)
    return replace(table, score=score, unused=unused)


def _owner(model: Model, name: str) -> str:
    layer = model.summary.by_name.get(name)
    if layer is None:
        raise ModelError(f"the model has no layer {name!r}{nearest(name, model.summary.by_name)}")
    return layer.tied_to or name


def _open_cells(model: Model, table: Sensitivity, part: Part, omitted: Omitted) -> dict[str, tuple[str, ...]]:
    """Return the layers with open cells, each with all schemes that are open; none of weights with NaN."""
    missing: dict[str, tuple[str, ...]] = {}
    for name, row in zip(table.layers, np.isnan(table.score), strict=True):
        due = row & ~np.isin(table.schemes, [*omitted.get(name, ())])
        if due.any():
            missing[name] = tuple(scheme for scheme, is_due in zip(table.schemes, due, strict=True) if is_due)
    if part != "weights":
        return missing
    return {name: schemes for name, schemes in missing.items() if bool(model.held_weight(name).isfinite().all())}
