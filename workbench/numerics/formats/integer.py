"""Integers of 2 to 8 bits, symmetric or with a zero point.

Symmetric codes run from ``-2**(b-1)`` to ``2**(b-1) - 1`` and are stored with ``2**(b-1)`` added (as in Q4_0 and in
packed checkpoints), asymmetric ones from 0 to ``2**b - 1``.  A zero point is an integer of the same width, or, after
``-z``, a floating number that is added: ``int4-g64-asym-zfp16`` is ``scale * code + offset``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.numerics.element import Element
from workbench.numerics.formats.families import ScaledFamily

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class IntegerElement(Element):
    """A two's complement integer of ``width`` bits."""

    width: int

    @property
    def name(self) -> str:
        return f"int{self.width}"

    @property
    def bits(self) -> int:
        return self.width

    @property
    def shiftable(self) -> bool:
        return True

    def table(self) -> np.ndarray:
        """Return float32 ``[2**b]``: stored code minus ``2**(b-1)``."""
        return np.arange(2**self.width, dtype=np.float32) - np.float32(2 ** (self.width - 1))

    def snap_(self, scaled: torch.Tensor, zero_point: torch.Tensor | None) -> torch.Tensor:
        scaled.round_()
        if zero_point is None:
            return scaled.clamp_(self.lowest, self.highest).add_(0.0)  # -0 becomes +0
        return scaled.add_(zero_point).clamp_(0.0, 2.0**self.width - 1).sub_(zero_point)

    def codes(self, snapped: torch.Tensor, zero_point: torch.Tensor | None) -> torch.Tensor:
        import torch

        return (snapped - self.lowest if zero_point is None else snapped + zero_point).to(torch.uint8)

    def decode(self, codes: torch.Tensor, zero_point: torch.Tensor | None) -> torch.Tensor:
        import torch

        value = codes.to(torch.float32)
        return value.add_(self.lowest) if zero_point is None else value.sub_(zero_point)


ELEMENTS = tuple(IntegerElement(width) for width in range(2, 9))

FAMILY = ScaledFamily(
    name="integer", title="Integers", elements=ELEMENTS,
    examples=(
        "int2-g16-asym", "int2-g32-asym", "int2-g32-asym-zfp16", "int3-g32-asym", "int3-g64-asym", "int4-channel",
        "int4-g32", "int4-g32-asym", "int4-g64-asym", "int4-g128-asym", "int4-g64-asym-zfp16", "int4-b128x128",
        "int5-g64-asym", "int5-g32-asym", "int6-g64-asym", "int6-g32-asym", "int8-channel", "int8-g32", "int8-tensor",
        "int8-tensor-asym", "int8-token", "int8-token-asym",
    ),
)  # fmt: skip
