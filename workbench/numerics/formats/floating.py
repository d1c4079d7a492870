"""Small floating-point elements with a scale, each defined by its exponent bits, mantissa bits and bias.

FP8 as in the OCP 8-bit Floating Point Specification (OFP8), revision 1.0: E4M3 has no infinities and one NaN for each
sign (``E4M3FN`` elsewhere), E5M2 follows IEEE 754.  The FNUZ kinds (Graphcore, AMD MI300) have one more in the bias, no
infinities, no negative zero, and its code for NaN.  FP6 and FP4 as in the OCP Microscaling specification v1.0: every
code is a finite number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from workbench.numerics.element import Binary, Element
from workbench.numerics.formats.families import ScaledFamily

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class FloatElement(Element):
    """Sign, ``exponent_bits``, ``mantissa_bits``; ``specials`` codes at the top of each sign are infinity or NaN.

    Without ``negative_zero`` that code is NaN.
    ``value = (-1)**sign * 2**(exponent - bias) * (1 + mantissa / 2**mantissa_bits)``; an exponent field of 0 means
    ``2**(1 - bias) * mantissa / 2**mantissa_bits`` (subnormal).
    """

    name: str = field()
    exponent_bits: int
    mantissa_bits: int
    bias: int
    specials: int
    negative_zero: bool = True

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def binary(self) -> Binary:
        return Binary(self.mantissa_bits, self.bias)

    @property
    def smallest_normal(self) -> float:
        """The least magnitude with a full mantissa."""
        return 2.0 ** (1 - self.bias)

    def _magnitudes(self) -> np.ndarray:
        code = np.arange(2 ** (self.exponent_bits + self.mantissa_bits) - self.specials)
        exponent, mantissa = code >> self.mantissa_bits, code & (2**self.mantissa_bits - 1)
        fraction = mantissa / 2.0**self.mantissa_bits + (exponent > 0)
        magnitudes: np.ndarray = fraction * 2.0 ** (np.maximum(exponent, 1) - self.bias)
        return magnitudes.astype(np.float32)

    def table(self) -> np.ndarray:
        """Return float32 ``[2**bits]``; NaN for infinities and NaNs."""
        positive = np.full(2 ** (self.bits - 1), np.nan, np.float32)
        magnitudes = self._magnitudes()
        positive[: magnitudes.size] = magnitudes
        negative = -positive
        negative[0] = -0.0 if self.negative_zero else np.nan
        return np.concatenate([positive, negative])

    def snap_(self, scaled: torch.Tensor, zero_point: torch.Tensor | None) -> torch.Tensor:
        """Round half to even and saturate, in place.

        Adding and taking away ``1.5 * 2**(23 - m)`` times the value's power of two lets float32 itself round to
        ``m`` mantissa bits, exactly.
        """
        import torch

        scaled.clamp_(self.lowest, self.highest)
        shift = (scaled.view(torch.int32) & 0x7F800000).view(torch.float32)
        shift.clamp_(min=self.smallest_normal).mul_(1.5 * 2.0 ** (23 - self.mantissa_bits))
        return scaled.add_(shift).sub_(shift)


FP8_E4M3 = FloatElement("fp8-e4m3", exponent_bits=4, mantissa_bits=3, bias=7, specials=1)
FP8_E5M2 = FloatElement("fp8-e5m2", exponent_bits=5, mantissa_bits=2, bias=15, specials=4)
FP8_E4M3FNUZ = FloatElement("fp8-e4m3fnuz", exponent_bits=4, mantissa_bits=3, bias=8, specials=0, negative_zero=False)
FP8_E5M2FNUZ = FloatElement("fp8-e5m2fnuz", exponent_bits=5, mantissa_bits=2, bias=16, specials=0, negative_zero=False)
FP6_E2M3 = FloatElement("fp6-e2m3", exponent_bits=2, mantissa_bits=3, bias=1, specials=0)
FP6_E3M2 = FloatElement("fp6-e3m2", exponent_bits=3, mantissa_bits=2, bias=3, specials=0)
FP4_E2M1 = FloatElement("fp4-e2m1", exponent_bits=2, mantissa_bits=1, bias=1, specials=0)

ELEMENTS = (FP8_E4M3, FP8_E5M2, FP8_E4M3FNUZ, FP8_E5M2FNUZ, FP6_E2M3, FP6_E3M2, FP4_E2M1)

FAMILY = ScaledFamily(
    name="floating", title="Small floats", elements=ELEMENTS,
    examples=(
        "fp4-e2m1-channel", "fp4-e2m1-g32", "fp4-e2m1-g16", "fp6-e2m3-channel", "fp6-e2m3-g32", "fp6-e3m2-channel",
        "fp8-e4m3-channel", "fp8-e4m3-tensor", "fp8-e4m3-token", "fp8-e4m3-g128", "fp8-e4m3-b128x128",
        "fp8-e4m3fnuz-channel", "fp8-e4m3fnuz-tensor", "fp8-e5m2-channel", "fp8-e5m2-tensor", "fp8-e5m2fnuz-channel",
    ),
)  # fmt: skip
