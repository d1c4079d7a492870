"""Integrals over a histogram whose values lie evenly within each bin, so that errors come out exactly and fast."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench.numerics.statistics.layer_statistics import LayerStatistics


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """Cumulative integrals of 1, x and x**2 up to each bin edge.

    ``edges`` float64 ``[n + 1]`` of the occupied bins, the outer ones drawn in to the observed extremes; ``start`` and
    ``bin_width`` locate a value's bin; ``counts`` float64 ``[n]``, or their weights; ``sums`` float64 ``[3, n + 1]``.
    """

    edges: np.ndarray
    start: float
    bin_width: float
    counts: np.ndarray
    sums: np.ndarray

    @classmethod
    def of(cls, statistics: LayerStatistics, weights: np.ndarray | None = None) -> Moments:
        """Prepare the integrals of ``statistics``, which must not be empty.

        With ``weights`` float64 ``[BINS]`` every bin counts as much as they say instead of the number of its values.
        """
        bounds, counts = statistics.trimmed()
        edges = bounds.copy()
        edges[0], edges[-1] = max(edges[0], statistics.minimum), min(edges[-1], statistics.maximum)
        low, high = edges[:-1], edges[1:]
        first = int(np.flatnonzero(statistics.counts)[0])
        mass = counts.astype(np.float64) if weights is None else weights[first : first + counts.size]
        steps = np.stack([mass, mass * (low + high) / 2, mass * (low * low + low * high + high * high) / 3])
        sums = np.concatenate([np.zeros((3, 1)), np.cumsum(steps, axis=1)], axis=1)
        return cls(edges=edges, start=float(bounds[0]), bin_width=statistics.bin_width, counts=mass, sums=sums)

    @property
    def count(self) -> float:
        """The number of values."""
        return float(self.sums[0, -1])

    def below(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the integrals of 1, x and x**2 over the values below ``points`` (any shape)."""
        index = np.clip((points - self.start) / self.bin_width, 0, self.counts.size - 1).astype(np.intp)
        low = self.edges[index]
        width = self.edges[index + 1] - low
        inside = np.clip((points - low) / np.where(width > 0, width, 1.0), 0.0, 1.0)
        share = np.where(width > 0, inside, points > low)
        mass = self.counts[index] * share
        reach = width * share
        zeroth, first, second = (row[index] for row in self.sums)
        middle = low + reach / 2
        return zeroth + mass, first + mass * middle, second + mass * (middle * middle + reach * reach / 12)

    def squared_error(self, grids: np.ndarray) -> np.ndarray:
        """Return the sum of squared distances to the nearest grid value: ``grids`` ``[n, levels]``, result ``[n]``."""
        zeroth, first, second = self.sums[:, -1]
        top = grids[:, -1]
        # from the distances to the top value, each step down takes what lies below its border nearer
        gained = (np.diff(grids, axis=1) * self._short_of((grids[:, 1:] + grids[:, :-1]) / 2)).sum(axis=1)
        error: np.ndarray = second - 2 * top * first + top * top * zeroth - 2 * gained
        return error.clip(0.0)

    def _short_of(self, points: np.ndarray) -> np.ndarray:
        """Return the integral of how far the values below ``points`` lie below them."""
        constant, slope, curve = self._parabolas
        inside = np.clip(points, self.edges[0], self.edges[-1])
        index = ((inside - self.start) / self.bin_width).astype(np.intp)
        np.minimum(index, self.counts.size - 1, out=index)
        short = curve[index]
        short *= inside
        short += slope[index]
        short *= inside
        short += constant[index]
        short += self.count * np.maximum(points - inside, 0.0)
        result: np.ndarray = short
        return result

    @cached_property
    def _parabolas(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Coefficients of 1, x and x**2 within each bin of what :meth:`_short_of` returns, float64 ``[n]``."""
        low, width = self.edges[:-1], np.diff(self.edges)
        density = np.divide(self.counts, width, out=np.zeros_like(self.counts), where=width > 0)
        return density * low * low / 2 - self.sums[1, :-1], self.sums[0, :-1] - density * low, density / 2

    def outside(self, low: float, high: float) -> float:
        """Return the share of values below ``low`` or above ``high``."""
        if low <= self.edges[0] and high >= self.edges[-1]:
            return 0.0
        below = self.below(np.array([low, high]))[0]
        return float(np.clip((below[0] + self.count - below[1]) / self.count, 0.0, 1.0))
