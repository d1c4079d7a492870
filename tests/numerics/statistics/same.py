"""Whether two results are the same in every field, bit for bit."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.numerics.statistics.outliers import TokenOutliers


def same(first: LayerStatistics | TokenOutliers, second: LayerStatistics | TokenOutliers) -> bool:
    """Return whether every field is the same, bit for bit."""
    return all(np.array_equal(getattr(first, each.name), getattr(second, each.name)) for each in fields(first))
