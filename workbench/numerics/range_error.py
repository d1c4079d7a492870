"""What a static range costs, read off a histogram: fast enough to follow a handle that is being dragged."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from workbench.errors import RangeError
from workbench.numerics.scheme import Scheme, check_static_range, is_symmetric
from workbench.numerics.statistics.histogram_moments import Moments
from workbench.numerics.statistics.layer_statistics import LayerStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeQuality:
    """``clipped``: share of the values outside the range (0 to 1); ``mean_squared_error`` in squared units of the
    tensor; ``sqnr_db``: ``10 log10(mean square / mean squared error)``, infinite without error."""

    clipped: float
    mean_squared_error: float
    sqnr_db: float


def histogram_error(statistics: LayerStatistics, scheme: Scheme, low: float, high: float) -> RangeQuality:
    """Return the quality of the static range ``[low, high]`` of ``scheme`` for what ``statistics`` saw.

    The range is widened to hold zero, and mirrored for a symmetric scheme, as ``scheme.fit_range`` does.
    Values are taken as spread evenly within each of the 2048 bins.  A format without a scale has no range: it clips
    nothing, and its own rounding, below the resolution of the histogram, counts as 0.  Raises RangeError if nothing
    was seen, or for a range that is not finite with ``low <= high``.
    """
    if not statistics.count:
        raise RangeError("nothing was observed, so a range has no error; calibrate first")
    check_static_range(low, high)
    grid = scheme.grid(low, high)
    if not grid.size:
        return RangeQuality(clipped=0.0, mean_squared_error=0.0, sqnr_db=math.inf)
    moments = Moments.of(statistics)
    error = float(moments.squared_error(grid[None])[0]) / statistics.count
    return RangeQuality(
        clipped=moments.outside(*range_in_force(scheme, low, high)),
        mean_squared_error=error,
        sqnr_db=decibels(statistics.total_squares / statistics.count, error),
    )


def histogram_loss(statistics: LayerStatistics, weights: np.ndarray, scheme: Scheme, low: float, high: float) -> float:
    """Return what the static range ``[low, high]`` of ``scheme`` costs, in the unit of ``weights`` times a square.

    ``weights`` float64 ``[BINS]`` say what a squared error of 1 costs at all values of each bin together (see
    :mod:`workbench.numerics.statistics.input_costs`); errors are taken as :func:`histogram_error` does.
    """
    grid = scheme.grid(low, high)
    if not grid.size or not statistics.count:
        return 0.0
    return float(Moments.of(statistics, weights).squared_error(grid[None])[0])


def range_in_force(scheme: Scheme, low: float, high: float) -> tuple[float, float]:
    """Return the range that ``scheme`` makes of ``[low, high]``: widened to zero, mirrored for a symmetric scheme."""
    low, high = min(low, 0.0), max(high, 0.0)
    return (min(low, -high), max(-low, high)) if is_symmetric(scheme) else (low, high)


def decibels(signal: float, noise: float) -> float:
    """Return ``10 log10(signal / noise)`` of two powers; +inf without noise, -inf without signal."""
    if noise <= 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal > 0 else -math.inf
