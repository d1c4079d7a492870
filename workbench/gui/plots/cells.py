"""What a heatmap shows: scores, choices, the logarithmic colour scale.  Arrays only; no widgets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, groupby

import numpy as np
import pyqtgraph as pg


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """``score`` float64 ``[rows, columns]`` (NaN: not computed); ``chosen`` the column of each row's scheme, -1: none.

    ``low`` and ``high`` are the ends of the logarithmic colour scale.  ``groups`` are the titles of the columns'
    families, equal ones side by side; empty where there are none.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    score: np.ndarray
    chosen: np.ndarray
    low: float
    high: float
    groups: tuple[str, ...] = ()

    def spans(self) -> Iterator[tuple[str, int, int]]:
        """Yield ``(title, first column, number of columns)`` of every family."""
        first = 0
        for title, columns in groupby(self.groups):
            count = len(list(columns))
            yield title, first, count
            first += count


def headings(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names without the dotted prefix that most of them share (``model.layers.``)."""
    middle = sorted(names)[len(names) // 2] if names else ""  # what most names begin with, it begins with
    prefixes = accumulate(f"{part}." for part in middle.split(".")[:-1])
    common = [prefix for prefix in prefixes if sum(name.startswith(prefix) for name in names) > 0.6 * len(names)]
    return tuple(name.removeprefix(common[-1]) for name in names) if common else names


def colour_scale(score: np.ndarray) -> tuple[float, float]:
    """Return the ends of a log scale over the positive finite scores: at most six decades below the largest."""
    positive = score[np.isfinite(score) & (score > 0)]
    if not positive.size:
        return 1e-6, 1.0
    high = float(positive.max())
    low = max(float(positive.min()), high * 1e-6)
    return (low, high) if high > low * 1.0001 else (high / 10, high)


def levels(score: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return uint8 colour indices on the log scale; zero and negative scores (no loss at all) get the first."""
    with np.errstate(divide="ignore", invalid="ignore"):
        position = np.log(np.maximum(score, low) / low) / np.log(high / low)
    indices: np.ndarray = np.nan_to_num(np.clip(position, 0, 1) * 255, nan=0).astype(np.uint8)
    return indices


@cache
def lookup(name: str = "viridis") -> np.ndarray:
    """Return a colour map as uint8 ``[256, 4]`` RGBA; the names are those of HEAT_COLOURS."""
    table: np.ndarray = pg.colormap.get(name).getLookupTable(0.0, 1.0, 256, alpha=True)
    return table
