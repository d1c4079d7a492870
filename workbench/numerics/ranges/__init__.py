"""Calibration methods: from statistics to a static range.

One file each.  To add one, write the file and put an instance into ``METHODS``; third parties publish theirs as a
``workbench.ranges`` entry point.
"""

from __future__ import annotations

from workbench.errors import RangeError
from workbench.numerics.formats.microscaling import NvScheme
from workbench.numerics.ranges.batch_mean import BatchMean
from workbench.numerics.ranges.calibrated import Range, RangeMethod
from workbench.numerics.ranges.entropy import Entropy
from workbench.numerics.ranges.loss import Loss
from workbench.numerics.ranges.min_max import MinMax
from workbench.numerics.ranges.mse import Mse
from workbench.numerics.ranges.percentile import Percentile
from workbench.numerics.scheme import Scheme
from workbench.registry import Registry

__all__ = [
    "METHODS", "REGISTRY", "Entropy", "Loss", "MinMax", "BatchMean", "Mse", "Percentile", "Range", "RangeMethod",
    "method_for", "range_method",
]  # fmt: skip

METHODS: tuple[RangeMethod, ...] = (MinMax(), BatchMean(), Percentile(), Entropy(), Mse(), Loss())

REGISTRY: Registry[RangeMethod] = Registry(
    METHODS, "workbench.ranges", kind="range method", error=RangeError, member_type=RangeMethod
)


def range_method(name: str) -> RangeMethod:
    """Return the method called ``name`` with its default options; RangeError that names the closest ones."""
    return REGISTRY.get(name.strip().lower())


def method_for(scheme: Scheme, name: str) -> str:
    """Return the range method that serves ``scheme`` where a plan says ``name``.

    Blocks of NVFP4 have scales of their own, floats whose steps widen with them: a narrower range for the tensor
    clips and makes nothing finer, so the methods that weigh one against the other leave it whole.
    """
    weighs = name.strip().lower() in {Entropy.name, Mse.name, Loss.name}
    return MinMax.name if weighs and isinstance(scheme, NvScheme) else name
