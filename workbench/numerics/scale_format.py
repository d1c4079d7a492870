"""How a scale (or a floating zero point) is stored: float32, float16, bfloat16, or a power of two in one byte."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

Array = Any  # a numpy array or a torch tensor: the rules below are written once, with methods that both have


@dataclass(frozen=True, slots=True)
class ScaleFormat:
    """A floating-point format for scales.

    ``smallest`` is the least positive scale that is used: for a group that is not all zero a smaller one is raised to
    it.  ``largest`` is the greatest finite value; larger scales saturate.
    """

    name: str
    bits: int
    smallest: float
    largest: float

    def storable(self, scale: Array, headroom: float) -> Array:
        """Return the nearest storable scales, float32, keeping signs and exact zeros.

        ``headroom`` is the largest magnitude that will be multiplied by the scale: the product stays finite.
        """
        magnitude = abs(scale)
        stored = self._rounded(magnitude.clip(self.smallest, self.limit(headroom))) * (magnitude > 0)
        return stored * (scale >= 0) - stored * (scale < 0)

    def limit(self, headroom: float) -> float:
        """Return the largest scale whose product with ``headroom`` is finite."""
        return min(self.largest, _FLOAT32_MAX / headroom * (1.0 - 2.0**-7))

    def nearest(self, value: Array) -> Array:
        """Return the nearest value of either sign, float32, saturating; unlike a scale it may vanish."""
        return self._rounded(value.clip(-self.largest, self.largest))

    def _rounded(self, scale: Array) -> Array:
        if isinstance(scale, np.ndarray):
            return self.load(self._stored(scale.astype(np.float32)))
        return scale.float().to(torch_dtype(self)).float()

    def store(self, scale: torch.Tensor) -> np.ndarray:
        """Return storable scales as they lie in a file: float32, float16, or bfloat16 bit patterns in uint16."""
        return self._stored(np.ascontiguousarray(scale.detach().cpu().numpy()))

    def _stored(self, scale: np.ndarray) -> np.ndarray:
        if self.name == "fp16":
            return scale.astype(np.float16)
        if self.name == "bf16":
            pattern = scale.view(np.uint32)
            return ((pattern + 0x7FFF + ((pattern >> 16) & 1)) >> 16).astype(np.uint16)
        return scale

    def load(self, stored: np.ndarray) -> np.ndarray:
        """Return stored scales as float32."""
        if self.name == "bf16":
            return (stored.astype(np.uint32) << 16).view(np.float32)
        return stored.astype(np.float32)


@dataclass(frozen=True, slots=True)
class PowerOfTwoFormat(ScaleFormat):
    """E8M0 of the OCP Microscaling specification v1.0: ``2**(byte - 127)``; 255 is NaN and there is no zero."""

    def storable(self, scale: Array, headroom: float) -> Array:
        """Return the greatest powers of two that do not exceed ``scale`` (``2**-127`` where it is smaller), float32."""
        limit = 2.0 ** min(127, math.floor(math.log2(_FLOAT32_MAX / headroom)))
        return self._rounded(scale).clip(self.smallest, limit)

    def _rounded(self, scale: Array) -> Array:
        if isinstance(scale, np.ndarray):
            return (scale.astype(np.float32).view(np.uint32) & 0x7F800000).view(np.float32)
        return _without_mantissa(scale)

    def _stored(self, scale: np.ndarray) -> np.ndarray:
        return (scale.view(np.uint32) >> 23).astype(np.uint8)

    def load(self, stored: np.ndarray) -> np.ndarray:
        """Return stored exponents as float32 powers of two, NaN for 255."""
        pattern = np.where(stored == 0, 0x00400000, stored.astype(np.uint32) << 23)
        return np.where(stored == 255, 0x7FC00000, pattern).astype(np.uint32).view(np.float32)


_FLOAT32_MAX = float(np.finfo(np.float32).max)

FP32 = ScaleFormat("fp32", 32, 2.0**-126, _FLOAT32_MAX)
FP16 = ScaleFormat("fp16", 16, 2.0**-24, 65504.0)
BF16 = ScaleFormat("bf16", 16, 2.0**-126, float.fromhex("0x1.fep127"))

E8M0 = PowerOfTwoFormat("e8m0", 8, 2.0**-127, 2.0**127)

SCALE_FORMATS = (FP32, FP16, BF16)


def scale_format(name: str) -> ScaleFormat | None:
    """Return the scale format that a name may ask for (``fp32``, ``fp16``, ``bf16``), or None."""
    return next((known for known in SCALE_FORMATS if known.name == name), None)


def torch_dtype(stored: ScaleFormat) -> torch.dtype:
    """Return the torch type of a format in ``SCALE_FORMATS``."""
    import torch

    return {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[stored.name]


def _without_mantissa(scale: torch.Tensor) -> torch.Tensor:
    import torch

    return (scale.to(torch.float32).view(torch.int32) & 0x7F800000).view(torch.float32)
