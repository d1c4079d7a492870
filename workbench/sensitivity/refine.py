"""Measured losses where a decision is close: the predicted table first, then one cell after another.

Which cells are measured, and in which order, follows from the prediction alone.  So a cancelled refinement, resumed
with what it had, ends with the same bits as one that was never interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from workbench.errors import PlanError
from workbench.measurement.finite_batches import FiniteBatches
from workbench.models.data.batches import Data, require_data
from workbench.models.model import Model
from workbench.models.summary import ModelSummary
from workbench.numerics.curvature import Curvature
from workbench.numerics.formats import parse_scheme
from workbench.progress import Progress, silent
from workbench.sensitivity.measured import measured_rows
from workbench.sensitivity.scoring import Scoring
from workbench.sensitivity.table import Sensitivity

ROUND = 16
"""How many cells are measured between two reports of the table."""


def close_cells(
    summary: ModelSummary, table: Sensitivity, bits_per_weight: float, *, tolerance: float = 0.3
) -> list[tuple[str, str]]:
    """Return the (layer, scheme) cells whose error could change the plan of this size, the closest decision first.

    At the size's shadow price each layer takes the scheme of least ``loss + price * bits``.  A rival is close when
    prediction errors of ``tolerance`` times both losses could reverse that order; then both cells are listed.  A layer
    with an unknown cell is left out of the decision but for its known cells.
    """
    layers, schemes = [summary.by_name[name] for name in table.layers], [parse_scheme(name) for name in table.schemes]
    bits = np.array([[float(scheme.bits(layer.matrix)) for scheme in schemes] for layer in layers])
    loss = np.where(np.isnan(table.score), np.inf, table.score)
    total = loss + bits * price_within(loss, bits, bits_per_weight * sum(layer.parameters for layer in layers))
    closeness: dict[tuple[str, str], float] = {}
    for row, layer in enumerate(table.layers):
        best = int(total[row].argmin())
        if not np.isfinite(total[row, best]):
            continue
        for column, scheme in enumerate(table.schemes):
            doubt = tolerance * (table.score[row, best] + table.score[row, column])
            margin = total[row, column] - total[row, best]
            if column == best or not margin < doubt:
                continue
            for cell in ((layer, table.schemes[best]), (layer, scheme)):
                closeness[cell] = min(closeness.get(cell, np.inf), float(margin / doubt))
    return sorted(closeness, key=lambda cell: (closeness[cell], table.row[cell[0]], table.column[cell[1]]))


def refine(
    model: Model, table: Sensitivity, data: Data, cells: Sequence[tuple[str, str]], *, batch_size: int = 8,
    algorithm: str = "rtn-clip", curvature: Mapping[str, Curvature] | None = None,
    previous: Sensitivity | None = None, progress: Progress = silent,
) -> Sensitivity:  # fmt: skip
    """Measure ``cells`` in their order and return a table of measured losses, NaN elsewhere.

    ``table`` gives layers and schemes.  ``progress`` is given the table so far; a cancelled call leaves it as the last
    report had it, to be handed back as ``previous``.  Raises CannotRunError and DataError, PlanError for a ``previous``
    of other data.
    """
    require_data(model, data, "a measured loss")
    measured = Sensitivity(
        metric="measured_kl", unit=table.unit, layers=table.layers, schemes=table.schemes,
        score=np.full(table.score.shape, np.nan), samples=len(data), seed=table.seed, algorithm=algorithm,
        data_hash=data.record.content_hash, complete=previous is None or previous.complete,
    )  # fmt: skip
    if previous is not None and not previous.computed_like(measured):
        raise PlanError("the measured table to go on with was made with other data or options; start a new one")
    if previous is not None:
        measured.score[:] = previous.cells(measured.layers, measured.schemes)
    for start in range(0, len(cells), ROUND):
        done = start / len(cells)
        scoring = Scoring(
            model=model, table=measured, curvature=curvature or {}, dataset=data, batch_size=batch_size,
            seed=table.seed, algorithm=algorithm, progress=progress, finite=FiniteBatches(model=model),
        )  # fmt: skip
        open_cells = _open_cells(measured, cells[start : start + ROUND])
        for name, losses in measured_rows(scoring, data, open_cells, partial(progress, done)):
            for scheme, loss in losses.items():
                measured.score[measured.row[name], measured.column[scheme]] = loss
            progress(done, f"measured {name}", replace(measured, score=measured.score.copy()))
    progress(1.0, "refined", replace(measured, score=measured.score.copy()))
    return measured


def _open_cells(measured: Sensitivity, cells: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the schemes of each layer that has an open cell among ``cells``, in the order of the table.

    Schemes of one layer share their runs, so a row is measured as a whole, or its bits might differ.
    """
    schemes: dict[str, list[str]] = {}
    for layer, scheme in cells:
        schemes.setdefault(layer, []).append(scheme)
    return {
        name: schemes[name] for name in measured.layers
        if name in schemes and any(np.isnan(measured.of(name, scheme)) for scheme in schemes[name])
    }  # fmt: skip


def price_within(loss: np.ndarray, bits: np.ndarray, budget: float) -> float:
    """Return the loss for each bit at which the layers' choices just fit into ``budget`` bits."""
    rows = np.flatnonzero(np.isfinite(loss).any(axis=1))
    low, high = 0.0, float(np.max(loss, where=np.isfinite(loss), initial=0.0)) + 1e-300
    for _ in range(100):
        price = (low + high) / 2
        picks = (loss[rows] + price * bits[rows]).argmin(axis=1)
        low, high = (price, high) if bits[rows, picks].sum() > budget else (low, price)
    return high
