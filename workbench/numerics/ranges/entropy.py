"""The range that keeps the most information: least Kullback-Leibler divergence of the rounded histogram.

After Migacz, "8-bit Inference with TensorRT" (GTC 2017), with the reference and the expansion as described there:
the clipped mass counts in the edge bins of the reference distribution (and only there), and a level's mass is spread
over those of its bins that are not empty.
"""

from __future__ import annotations

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
        scores = _scores(statistics, grids, low * shares, high * shares)
        share = float(shares[int(np.argmin(scores))])
        return clipping_range(statistics, low * share, high * share, self.name)


def _scores(statistics: LayerStatistics, grids: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the divergence with each range ``low`` to ``high``, float64 ``[ranges]``."""
    from workbench.numerics.ranges.compiled import divergences

    half, width = statistics.counts.size // 2, statistics.bin_width
    firsts = np.clip(np.floor(low / width).astype(np.int64) + half, 0, 2 * half)
    lasts = np.clip(np.ceil(high / width).astype(np.int64) + half, firsts + 1, 2 * half)
    return divergences(statistics.counts.astype(np.float64), firsts, lasts, (grids[:, 1:] + grids[:, :-1]) / 2, width)
