"""Streaming statistics of a tensor: exact to merge, in any order.

The histogram has 2048 equal bins over ``[-2**exponent, 2**exponent)``, where ``2**exponent`` is the smallest power of
two above the largest magnitude.  Doubling the range sums pairs of bins, and a value's bin follows from an exact
power-of-two scaling, so merging histograms of parts gives the exact counts of the whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

BINS = 2048
LOWEST_EXPONENT = -100
"""Magnitudes below ``2**-100`` share one histogram range, so that every scaling stays inside float32."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerStatistics:
    """What was seen of one tensor; NaN and infinite values are counted in ``non_finite`` and nowhere else.

    ``count`` finite values with ``minimum``, ``maximum`` (+inf and -inf while there are none), ``total`` and
    ``total_squares`` (sums of values and of squares); ``counts`` int64 ``[2048]``; ``channel_minimum``,
    ``channel_maximum`` and ``channel_absmax`` float32 ``[channels]``, +inf, -inf and 0 for a channel without values.
    ``batches`` counts the observed tensors that held finite values; ``minimum_total`` and ``maximum_total`` are sums of
    their least and greatest values (0 batches in statistics that an earlier version stored).  ``costs`` float64
    ``[2048]`` is what a squared error of 1 costs at all values of each bin, in nats (see
    :mod:`workbench.numerics.statistics.input_costs`); empty where no gradients were noted, and in merged statistics.
    """

    count: int
    non_finite: int
    minimum: float
    maximum: float
    total: float
    total_squares: float
    exponent: int
    counts: np.ndarray
    channel_absmax: np.ndarray
    channel_minimum: np.ndarray
    channel_maximum: np.ndarray
    batches: int = 0
    minimum_total: float = 0.0
    maximum_total: float = 0.0
    costs: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if self.counts.shape != (BINS,) or self.counts.dtype != np.int64:
            raise ValueError(f"counts: expected int64 [{BINS}], got {self.counts.dtype} {self.counts.shape}")
        if int(self.counts.sum()) != self.count:
            raise ValueError(f"the histogram holds {int(self.counts.sum())} values, count says {self.count}")

    @classmethod
    def empty(cls, channels: int) -> LayerStatistics:
        """Return the statistics of nothing: the neutral element of ``merge``."""
        return cls(
            count=0, non_finite=0, minimum=math.inf, maximum=-math.inf, total=0.0, total_squares=0.0,
            exponent=LOWEST_EXPONENT, counts=np.zeros(BINS, np.int64), channel_absmax=np.zeros(channels, np.float32),
            channel_minimum=np.full(channels, np.inf, np.float32),
            channel_maximum=np.full(channels, -np.inf, np.float32),
        )  # fmt: skip

    @property
    def channels(self) -> int:
        """The number of channels."""
        return int(self.channel_absmax.size)

    @property
    def absmax(self) -> float:
        """The largest magnitude; 0 while nothing was seen."""
        return max(-self.minimum, self.maximum) if self.count else 0.0

    @property
    def mean(self) -> float:
        """The mean of the finite values; 0 while there are none."""
        return self.total / self.count if self.count else 0.0

    @property
    def variance(self) -> float:
        """The population variance of the finite values; 0 while there are none."""
        return max(self.total_squares / self.count - self.mean**2, 0.0) if self.count else 0.0

    @property
    def edges(self) -> np.ndarray:
        """Return the edges of the bins, float64 ``[2049]``."""
        edges: np.ndarray = np.arange(-BINS // 2, BINS // 2 + 1, dtype=np.float64) * self.bin_width
        return edges

    @property
    def bin_width(self) -> float:
        """The width of one bin, a power of two."""
        return 2.0 ** (self.exponent + 1) / BINS

    def merge(self, other: LayerStatistics) -> LayerStatistics:
        """Return the statistics of both together; ValueError if the channels differ."""
        if self.channels != other.channels:
            raise ValueError(f"cannot merge statistics of {self.channels} and of {other.channels} channels")
        exponent = max(self.exponent, other.exponent)
        added = ("count", "non_finite", "total", "total_squares", "batches", "minimum_total", "maximum_total")
        return LayerStatistics(
            minimum=min(self.minimum, other.minimum), maximum=max(self.maximum, other.maximum), exponent=exponent,
            counts=grown(self.counts, exponent - self.exponent) + grown(other.counts, exponent - other.exponent),
            channel_absmax=np.maximum(self.channel_absmax, other.channel_absmax),
            channel_minimum=np.minimum(self.channel_minimum, other.channel_minimum),
            channel_maximum=np.maximum(self.channel_maximum, other.channel_maximum),
            **{name: getattr(self, name) + getattr(other, name) for name in added},
        )  # fmt: skip

    def trimmed(self) -> tuple[np.ndarray, np.ndarray]:
        """Return ``(edges float64 [n + 1], counts int64 [n])`` of the occupied bins only; n is 0 if empty."""
        occupied = np.flatnonzero(self.counts)
        if not occupied.size:
            return np.zeros(1), np.zeros(0, np.int64)
        first, last = int(occupied[0]), int(occupied[-1]) + 1
        return self.edges[first : last + 1], self.counts[first:last]

    def display(self, bins: int) -> tuple[np.ndarray, np.ndarray]:
        """Return ``trimmed()`` with neighbouring bins summed so that at most ``bins`` are left, for drawing."""
        edges, counts = self.trimmed()
        step = max(-(-counts.size // max(bins, 1)), 1)
        if step == 1:
            return edges, counts
        padding = -counts.size % step
        width = self.bin_width * step
        summed = np.pad(counts, (0, padding)).reshape(-1, step).sum(axis=1)
        return edges[0] + np.arange(summed.size + 1) * width, summed


def grown(counts: np.ndarray, doublings: int) -> np.ndarray:
    """Return the counts over a range that is ``2**doublings`` times as wide."""
    for _ in range(min(doublings, BINS.bit_length())):
        counts = np.pad(counts.reshape(-1, 2).sum(axis=1), BINS // 4)
    return counts


def histogram_exponent(absmax: float) -> int:
    """Return the exponent of the smallest power of two above ``absmax``, at least ``LOWEST_EXPONENT``."""
    return max(math.frexp(absmax)[1], LOWEST_EXPONENT) if absmax > 0 else LOWEST_EXPONENT
