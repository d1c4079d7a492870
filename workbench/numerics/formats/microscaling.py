"""Microscaling: small blocks along a row with a scale that is itself a very small float.

OCP Microscaling Formats (MX) specification v1.0: blocks of 32, ``value = 2**(scale byte - 127) * element`` with

    scale = 2**(floor(log2(largest magnitude of the block)) - emax),   emax = floor(log2(greatest element))

which is also what torchao (``ScaleCalculationMode.FLOOR``) and Microsoft's microxcaling do; elements round half to
even and saturate.  There is no zero scale: a block of zeros gets ``2**-127``.  The clip search tries the neighbouring
powers of two.

NVFP4: blocks of 16, ``value = scale (E4M3) * tensor scale (float32) * element (E2M1)`` with

    tensor scale = largest magnitude of the matrix / (448 * 6)
    scale = E4M3(largest magnitude of the block / 6 / tensor scale)

as in ModelOpt and torchao; compressed-tensors stores the inverse of the tensor scale, so ours is the inverse of a
float32 number.  Because one number serves the
whole matrix, parameters that were fitted to some of its columns do not fit together: fit once, then round by columns.

Rows whose width is not a multiple of the block end in a shorter block with a scale of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from workbench.numerics.bands import row_tiles, tile_elements
from workbench.numerics.element import Binary, Element
from workbench.numerics.formats.affine import Affine, Rule
from workbench.numerics.formats.families import ListedFamily
from workbench.numerics.formats.floating import FP4_E2M1, FP6_E2M3, FP6_E3M2, FP8_E4M3, FP8_E5M2
from workbench.numerics.formats.scaled import ScaledScheme, are_many
from workbench.numerics.granularity import Granularity, Grid, PerGroup
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.scale_format import E8M0, FP32, Array, ScaleFormat
from workbench.numerics.scheme import Parameters

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class MxInt8Element(Element):
    """A two's complement byte with six fraction bits: -2 to 1.984375 in steps of 1/64."""

    name: str = "int8-q6"
    bits: int = 8
    binary: Binary = Binary(mantissa_bits=6, bias=1, complement=True)

    def table(self) -> np.ndarray:
        return np.arange(256, dtype=np.uint8).view(np.int8).astype(np.float32) / np.float32(64)

    def snap_(self, scaled: torch.Tensor, zero_point: torch.Tensor | None) -> torch.Tensor:
        return scaled.mul_(64.0).round_().clamp_(-128.0, 127.0).mul_(1 / 64).add_(0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MxScheme(ScaledScheme):
    """An element with a power of two for each block of 32."""

    family: ClassVar[str] = "microscaling"
    name: str = field()
    granularity: Granularity = PerGroup(32)
    scale_format: ScaleFormat = E8M0
    nearest: bool = False  # a block whose largest magnitude is 1.75 or more times a power of two takes the next one

    @property
    def _factors(self) -> tuple[float, ...]:
        return (1.0, 2.0, 0.5)

    def _affine(self, low: Array, high: Array, *, signed: bool) -> Affine:
        greatest = self.element.highest
        farther = (-low).clip(high)
        farther = farther / 0.875 if self.nearest else farther
        scale = farther * 2.0 ** -math.floor(math.log2(greatest))
        return Affine(self.scale_format.storable(scale, max(greatest, -self.element.lowest)))


@dataclass(frozen=True, slots=True)
class E4M3Scale(ScaleFormat):
    """A positive FP8 E4M3 number; zero means a block of zeros."""

    def _rounded(self, scale: torch.Tensor) -> torch.Tensor:
        return FP8_E4M3.snap_(scale.clone(), None)

    def _stored(self, scale: np.ndarray) -> np.ndarray:
        import torch

        codes: np.ndarray = FP8_E4M3.codes(torch.from_numpy(scale), None).numpy()
        return codes

    def load(self, stored: np.ndarray) -> np.ndarray:
        scales: np.ndarray = FP8_E4M3.table()[stored]
        return scales


E4M3 = E4M3Scale("e4m3", 8, 2.0**-9, 448.0)

_LEAST_TENSOR_SCALE = 2.0**-117
"""Times the least E4M3 number it is still a normal float32, so block scales are never lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NvScheme(ScaledScheme):
    """An element, E4M3 scales of blocks and one float32 for the tensor."""

    family: ClassVar[str] = "microscaling"
    name: str = field()
    granularity: Granularity = PerGroup(16)
    scale_format: ScaleFormat = E4M3
    largest: float | None = None  # what the scale for the tensor is chosen by; None: the matrix's own

    @property
    def rows_apart(self) -> bool:
        return False  # which share the scale for the tensor

    def _scale_bits(self, entries: int) -> int:
        return self.scale_format.bits * entries + FP32.bits

    def _tensor_scale(self, largest: Array) -> Array:
        """Return the scale for the tensor: a float32 that its inverse, which compressed-tensors stores, gives back."""
        scale = (largest / (self.scale_format.largest * self.element.highest)).clip(_LEAST_TENSOR_SCALE)
        return 1 / (1 / scale)

    def inverse_tensor_scale(self, largest: float) -> np.float32:
        """Return the float32 that files store for a tensor whose largest magnitude is ``largest``."""
        return np.float32(1) / np.float32(self._tensor_scale(np.float32(largest)))

    def _rule(self, low: torch.Tensor, high: torch.Tensor) -> Rule:
        import torch

        largest = torch.maximum(-low.amin(), high.amax()) if low.numel() else low.new_zeros(())
        largest = largest if self.largest is None else torch.full_like(largest, self.largest)
        shared = self._tensor_scale(largest).reshape(1, 1)

        def blocks(least: torch.Tensor, greatest: torch.Tensor) -> Affine:
            if are_many(least):
                from workbench.numerics.formats.compiled import scaled_compiled

                highest = self.element.highest
                scale = scaled_compiled.within_shared(least, greatest, highest, shared, self.scale_format)
                return Affine(scale, None, None, shared)
            scale = torch.empty_like(least)
            # one scale for 16 values: whole temporaries would add up to a copy
            for part in row_tiles(len(least), least.shape[1], elements=tile_elements(least.device)):
                exact = torch.maximum(-least[part], greatest[part]) / self.element.highest / shared
                scale[part] = self.scale_format.storable(exact, 1.0) * shared
            return Affine(scale, None, None, shared)

        return blocks

    def _static_rule(self, low: np.ndarray, high: np.ndarray) -> Affine:
        shared = self._tensor_scale(np.maximum(-low, high).astype(np.float32))
        return Affine(np.float32(self.scale_format.largest) * shared, None, None, shared)

    def _scale_arrays(self, parameters: Parameters, cut: Grid) -> dict[str, np.ndarray]:
        assert parameters.shared is not None
        scales = FP8_E4M3.snap_(cut.stored(parameters.scale) / parameters.shared, None)
        shared = parameters.shared.detach().cpu().reshape(1).numpy()
        return {"scales": self.scale_format.store(scales), "tensor_scale": shared}

    def _loaded_scales(self, stored: QuantizedTensor) -> np.ndarray:
        scales: np.ndarray = self.scale_format.load(stored.arrays["scales"]) * stored.arrays["tensor_scale"]
        return scales


SCHEMES: tuple[MxScheme | NvScheme, ...] = (
    MxScheme(name="mxfp4", element=FP4_E2M1),
    NvScheme(name="nvfp4", element=FP4_E2M1),
    MxScheme(name="mxfp6-e2m3", element=FP6_E2M3),
    MxScheme(name="mxfp6-e3m2", element=FP6_E3M2),
    MxScheme(name="mxfp8-e4m3", element=FP8_E4M3),
    MxScheme(name="mxfp8-e5m2", element=FP8_E5M2),
    MxScheme(name="mxint8", element=MxInt8Element()),
)

FAMILY: ListedFamily[MxScheme | NvScheme] = ListedFamily(name="microscaling", title="Microscaling", schemes=SCHEMES)
