"""Calibration methods: from statistics to a static range.

One file each.  To add one, write the file and put an instance into ``METHODS``; third parties publish theirs as a
``workbench.ranges`` entry point.
"""

from __future__ import annotations

from workbench.errors import RangeError
from workbench.numerics.ranges.batch_mean import BatchMean
from workbench.numerics.ranges.calibrated import Range, RangeMethod
from workbench.numerics.ranges.entropy import Entropy
from workbench.numerics.ranges.loss import Loss
from workbench.numerics.ranges.min_max import MinMax
from workbench.numerics.ranges.mse import Mse
from workbench.numerics.ranges.percentile import Percentile
from workbench.registry import Registry

__all__ = [
    "METHODS", "REGISTRY", "Entropy", "Loss", "MinMax", "BatchMean", "Mse", "Percentile", "Range", "RangeMethod",
    "range_method",
]  # fmt: skip

METHODS: tuple[RangeMethod, ...] = (MinMax(), BatchMean(), Percentile(), Entropy(), Mse(), Loss())

REGISTRY: Registry[RangeMethod] = Registry(
    METHODS, "workbench.ranges", kind="range method", error=RangeError, member_type=RangeMethod
)


def range_method(name: str) -> RangeMethod:
    """Return the method called ``name`` with its default options; RangeError that names the closest ones."""
    return REGISTRY.get(name.strip().lower())
