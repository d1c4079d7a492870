"""A table of losses filled by workers: each scores some layers, with the bits of a run in one process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from workbench.errors import MissingResultError
from workbench.measurement.finite_batches import FiniteBatches
from workbench.measurement.second_moments import SecondMoments
from workbench.models.data.batches import Data
from workbench.models.execution.activation_quantizers import Ranges
from workbench.models.layer import ROUTER
from workbench.models.model import Model
from workbench.models.workers import Workers
from workbench.numerics.curvature import Curvature
from workbench.sensitivity.metrics import find_metric
from workbench.sensitivity.metrics.metric import OpenCells
from workbench.sensitivity.metrics.predicted_kl import PREDICTED_KL
from workbench.sensitivity.predicted import split_forms
from workbench.sensitivity.scoring import Scoring
from workbench.sensitivity.table import Sensitivity

PIECES = 4
"""How many pieces there are for each worker: one that is slow or lost then delays little.

One for each where a piece runs the network over all data, as the directional form does.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    """Layers to score: a table with their rows and open ``cells``, and what these are computed from."""

    table: Sensitivity
    cells: OpenCells
    curvature: dict[str, Curvature]
    dataset: Data | None
    batch_size: int
    ranges: Ranges


def fill_spread(workers: Workers, scoring: Scoring, cells: OpenCells) -> None:
    """Fill the open cells of a table piece by piece."""
    runs = scoring.table.metric == PREDICTED_KL.name and bool(split_forms(scoring, tuple(cells))[1])
    pieces = list(_pieces(scoring, cells, workers.count * (1 if runs else PIECES)))
    scored, missing = 0, list[str]()
    for part, notes, lacks in workers.map(scoring.model, score_piece, pieces):
        missing += [lacks] if lacks else []
        if len(missing) == len(pieces):  # as in one process, where some layers cannot be scored and others can
            raise MissingResultError(lacks)
        _join(scoring, part, cells)
        scoring.finite.notes += [note for note in notes if note not in scoring.finite.notes]
        scored += len(part.layers)
        scoring.progress(scored / len(cells), f"scored {scored} of {len(cells)} layers", scoring.snapshot())


def can_spread(scoring: Scoring) -> bool:
    """Return whether workers can fill a table: one that needs data, but no whole second moments, group by group."""
    return scoring.dataset is not None and not isinstance(scoring.curvature, SecondMoments)


def score_piece(model: Model, piece: Piece) -> tuple[Sensitivity, list[str], str]:
    """Return a piece's table, the notes of its run, and what is missing where none of its layers can be scored."""
    notes: list[str] = []
    scoring = Scoring(
        model=model, table=piece.table, curvature=piece.curvature, dataset=piece.dataset, batch_size=piece.batch_size,
        seed=piece.table.seed, algorithm=piece.table.algorithm, progress=lambda *report: None, ranges=piece.ranges,
        finite=FiniteBatches(model=model, notes=notes),
    )  # fmt: skip
    try:
        find_metric(piece.table.metric).fill(scoring, piece.cells)
    except MissingResultError as error:
        return scoring.snapshot(), notes, str(error)
    return scoring.snapshot(), notes, ""


def _pieces(scoring: Scoring, cells: OpenCells, count: int) -> Iterator[Piece]:
    """Yield pieces of about as many weights; layers of one block, which share rounding and runs, stay together."""
    by_name, names = scoring.model.summary.by_name, list(cells)
    each = sum(by_name[name].parameters for name in names if name in by_name) / count
    run, weights = list[str](), 0
    for name in names:
        run.append(name)
        weights += by_name[name].parameters if name in by_name else 0
        if weights >= each:
            yield _piece(scoring, cells, run)
            run, weights = [], 0
    if run:
        yield _piece(scoring, cells, run)


def _piece(scoring: Scoring, cells: OpenCells, names: Sequence[str]) -> Piece:
    table = scoring.table
    empty = Sensitivity(
        metric=table.metric, unit=table.unit, layers=tuple(names), schemes=table.schemes,
        score=table.score[[table.row[name] for name in names]], samples=table.samples, seed=table.seed,
        algorithm=table.algorithm, data_hash=table.data_hash,
    )  # fmt: skip
    return Piece(
        table=empty, cells={name: cells[name] for name in names},
        curvature=_curvature(scoring, set(names)),
        dataset=scoring.dataset, batch_size=scoring.batch_size, ranges=dict(scoring.ranges),
    )  # fmt: skip


def _curvature(scoring: Scoring, names: Set[str]) -> dict[str, Curvature]:
    """Return the curvature that scoring ``names`` needs: theirs and that of the layers tied to them.

    What errors do to a router depends on the layers before it: where there is one, all of it.
    """
    layers = scoring.model.summary.layers
    if any(layer.keep == ROUTER for layer in layers):
        return dict(scoring.curvature)
    needed = names | {layer.name for layer in layers if layer.tied_to in names}
    return {name: known for name, known in scoring.curvature.items() if name in needed}


def _join(scoring: Scoring, part: Sensitivity, cells: Mapping[str, Sequence[str]]) -> None:
    """Add a piece's rows to the table."""
    for name in part.layers:
        row, own = scoring.table.row[name], part.row[name]
        for scheme in cells[name]:
            column = scoring.table.column[scheme]
            scoring.table.score[row, column] = part.of(name, scheme)
            if part.rerouting is not None:
                scoring.rerouted[row, column] = part.rerouting_of(name, scheme)
        if part.directions is not None and name in part.directions.layers:
            scoring.slopes[name] = {**scoring.slopes.get(name, {}), **part.directions.row(name)}
        if part.error is not None and not np.isnan(part.error[own]):
            scoring.errors[name] = float(part.error[own])
    scoring.table = replace(scoring.table, one_token=max(scoring.table.one_token, part.one_token))
    scoring.measured.update(part.measured)
