"""Every kernel there is."""

from __future__ import annotations

from . import linear
from .op import Op

OPS: tuple[Op, ...] = (linear.FP32, linear.BF16, linear.INT8, *linear.INT4.values())
