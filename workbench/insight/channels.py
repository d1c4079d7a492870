"""Which channels of a tensor stick out: arrays in, records out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from workbench.numerics.statistics.layer_statistics import LayerStatistics

FACTOR = 4.0
"""A channel whose largest magnitude is this many times the median channel's is an outlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """One channel's extremes, largest magnitude over the median channel's, and share of the error (NaN: unknown)."""

    number: int
    low: float
    high: float
    times: float
    error: float = math.nan


def typical(statistics: LayerStatistics) -> float:
    """Return the median of the channels' largest magnitudes; 0 where there is no channel."""
    finite = statistics.channel_absmax[np.isfinite(statistics.channel_absmax)]
    return float(np.median(finite)) if finite.size else 0.0


def outliers(
    statistics: LayerStatistics, factor: float = FACTOR, errors: np.ndarray | None = None
) -> tuple[Channel, ...]:
    """Return the channels of at least ``factor`` times the median magnitude, largest first."""
    middle = typical(statistics)
    if middle <= 0:
        return ()
    times = statistics.channel_absmax.astype(np.float64) / middle
    places = np.flatnonzero(times >= factor)
    order = places[np.argsort(-times[places], kind="stable")]
    return tuple(channel(statistics, int(number), middle, errors) for number in order)


def brushed(
    statistics: LayerStatistics, first: int, last: int, errors: np.ndarray | None = None
) -> tuple[Channel, ...]:
    """Return the channels from ``first`` to ``last``, both included."""
    middle = typical(statistics)
    return tuple(channel(statistics, number, middle, errors) for number in range(first, last + 1))


def channel(statistics: LayerStatistics, number: int, middle: float, errors: np.ndarray | None = None) -> Channel:
    """Return one channel's record; ``middle`` is the :func:`typical` magnitude."""
    return Channel(
        number=number, low=float(statistics.channel_minimum[number]), high=float(statistics.channel_maximum[number]),
        times=float(statistics.channel_absmax[number]) / middle if middle else float("nan"),
        error=float("nan") if errors is None else float(errors[number]),
    )  # fmt: skip


def by_channel(errors: np.ndarray, channels: int) -> np.ndarray | None:
    """Return errors of a matrix's columns summed over each channel's run of them; None where they do not divide."""
    if not channels or errors.size % channels:
        return None
    summed: np.ndarray = errors.reshape(channels, -1).sum(axis=1)
    return summed


def pooled(low: np.ndarray, high: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``(first channel, low, high)`` of at most ``most`` runs of neighbouring channels, for drawing."""
    step = max(-(-low.size // max(most, 1)), 1)
    starts = np.arange(0, low.size, step)
    if not low.size:
        return starts, low.astype(np.float64), high.astype(np.float64)
    return starts, np.minimum.reduceat(low, starts).astype(float), np.maximum.reduceat(high, starts).astype(float)
