"""Whether two metrics rank the cells of a session alike."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from workbench.insight import quantities
from workbench.insight.schemes import reference_bits
from workbench.sensitivity.metrics import BY_NAME, SCORED
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemeAgreement:
    """How two tables agree on one scheme over the layers: Spearman's rank correlation, median of x over y."""

    scheme: str
    rank: float
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """The cells that two tables have in common: ``x`` and ``y`` float64 ``[layers, schemes]``."""

    layers: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    x: np.ndarray
    y: np.ndarray

    def layer(self, index: int) -> str:
        """Return the layer of a cell, counted row by row."""
        return self.layers[index // len(self.schemes)]

    def text(self, index: int) -> str:
        """Return a cell in words."""
        values = (quantities.number(float(scores.flat[index])) for scores in (self.x, self.y))
        return f"{self.layer(index)}, {self.schemes[index % len(self.schemes)]}: {' against '.join(values)}"

    def by_scheme(self) -> tuple[SchemeAgreement, ...]:
        """Return the agreement of each scheme, fewest bits first."""
        columns = zip(self.schemes, self.x.T, self.y.T, strict=True)
        rows = [SchemeAgreement(scheme=name, rank=rank_agreement(x, y), ratio=_ratio(x, y)) for name, x, y in columns]
        return tuple(sorted(rows, key=lambda row: reference_bits(row.scheme)))


def common_cells(first: Sensitivity, second: Sensitivity) -> Cells:
    """Return the layers and schemes that both tables hold, with both scores in one order."""
    schemes = tuple(name for name in first.schemes if name in second.column)
    layers = tuple(name for name in first.layers if name in second.row)
    x, y = (
        table.score[np.ix_([table.row[name] for name in layers], [table.column[name] for name in schemes])]
        for table in (first, second)
    )
    return Cells(layers=layers, schemes=schemes, x=x, y=y)


def comparable_metrics(session: Session) -> dict[str, tuple[str, ...]]:
    """Return for every metric of the session the others that score the same thing: weights, inputs or KV cache."""
    metrics = [name for name in SCORED if name in session.sensitivities]
    others = {a: tuple(b for b in metrics if b != a and BY_NAME[b].part == BY_NAME[a].part) for a in metrics}
    return {metric: names for metric, names in others.items() if names}


def _ratio(x: np.ndarray, y: np.ndarray) -> float:
    known = np.isfinite(x) & np.isfinite(y) & (y > 0)
    return float(np.median(x[known] / y[known])) if known.any() else math.nan


def _ranks(values: np.ndarray) -> np.ndarray:
    """Return average ranks, float64, equal values sharing theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    averages: np.ndarray = np.cumsum(counts) - (counts - 1) / 2.0
    return averages[inverse]


def rank_agreement(x: np.ndarray, y: np.ndarray) -> float:
    """Return Spearman's rank correlation of two float64 ``[n]``; NaN for fewer than three pairs or equal values.

    Not by scipy.stats, which takes a second to import.
    """
    known = np.isfinite(x) & np.isfinite(y)
    if known.sum() < 3:
        return math.nan
    a, b = (ranks - ranks.mean() for ranks in (_ranks(x[known]), _ranks(y[known])))
    norm = math.sqrt(float((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / norm if norm else math.nan
