"""The range that keeps the most information: least Kullback-Leibler divergence of the rounded histogram.

After Migacz, "8-bit Inference with TensorRT" (GTC 2017), with the reference and the expansion as described there:
the clipped mass counts in the edge bins of the reference distribution (and only there), and a level's mass is spread
over those of its bins that are not empty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workbench.errors import RangeError
from workbench.numerics.ranges.calibrated import Range, clipping_range, full_range
from workbench.numerics.scheme import Scheme
from workbench.numerics.statistics.layer_statistics import LayerStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Entropy:
    """Tries ``candidates`` shares of the full range, down to where a level is as narrow as a bin."""

    name: ClassVar[str] = "entropy"
    candidates: int = 64

    def __post_init__(self) -> None:
        if self.candidates < 2:
            raise RangeError(f"expected at least 2 candidates; got {self.candidates}")

    def range(self, statistics: LayerStatistics, scheme: Scheme) -> Range:
        """Return the range with the least divergence; the full one if the histogram is too coarse to choose."""
        low, high = full_range(statistics, scheme)
        levels = scheme.grids(np.array([low]), np.array([high])).shape[1]
        bins = (high - low) / statistics.bin_width
        if not levels or bins <= levels:
            return clipping_range(statistics, low, high, self.name)
        shares = np.linspace(1.0, levels / bins, self.candidates)
        grids = scheme.grids(low * shares, high * shares)
        ranges = zip(grids, low * shares, high * shares, strict=True)
        scores = [_score(statistics, *each) for each in ranges]
        share = float(shares[int(np.argmin(scores))])
        return clipping_range(statistics, low * share, high * share, self.name)


def _score(statistics: LayerStatistics, grid: np.ndarray, low: float, high: float) -> float:
    """Return the divergence with the range ``low`` to ``high``; edges and centres of bins are whole and half widths."""
    half, width = statistics.counts.size // 2, statistics.bin_width
    first = min(max(math.floor(low / width) + half, 0), 2 * half)
    last = min(max(math.ceil(high / width) + half, first + 1), 2 * half)
    borders = (grid[1:] + grid[:-1]) / 2
    # a bin's level is the number of borders below its centre
    reached = np.searchsorted((np.arange(first - half, last - half) + 0.5) * width, borders, side="right")
    steps = np.bincount(reached, minlength=last - first + 1)
    return divergence(statistics.counts, first, last, np.cumsum(steps)[: last - first])


def divergence(counts: np.ndarray, first: int, last: int, level: np.ndarray) -> float:
    """Return KL(reference || expanded) in nats of the bins ``first`` to ``last`` (exclusive).

    ``level`` int ``[last - first]`` is the level that each bin rounds to.  An edge bin that holds clipped mass, in a
    level without any of its own, would make the divergence infinite for one outlier; it counts as half a value.
    """
    inside = counts[first:last].astype(np.float64)
    reference = inside.copy()
    reference[0] += counts[:first].sum()
    reference[-1] += counts[last:].sum()
    occupied = reference > 0
    size = int(level[-1]) + 1
    mass = np.bincount(level, weights=inside, minlength=size)
    sharers = np.bincount(level, weights=occupied, minlength=size)
    if not mass.any():
        return math.inf
    expanded = (mass / np.maximum(sharers, 1.0))[level][occupied]
    expanded[expanded == 0] = 0.5
    p, q = reference[occupied] / reference.sum(), expanded / expanded.sum()
    return float((p * np.log(p / q)).sum())
