"""Floating point of 16 and 32 bits without scales: what a tensor has before it is quantized, or a plain cast."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from workbench.errors import NonFiniteError
from workbench.numerics.bands import row_tiles, tile_elements
from workbench.numerics.formats.compiled.output_memory import uninitialised
from workbench.numerics.formats.families import ListedFamily
from workbench.numerics.granularity import Granularity, PerTensor
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.scale_format import BF16, FP16, FP32, ScaleFormat, torch_dtype
from workbench.numerics.scheme import Parameters, Scheme, check_static_range

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class CastScheme(Scheme):
    """A cast: ``value = the nearest number of the format``, saturating at its greatest finite one; no parameters."""

    family: ClassVar[str] = "cast"
    element: ScaleFormat

    @property
    def name(self) -> str:
        return self.element.name

    @property
    def granularity(self) -> Granularity:
        """There is no scale; by convention one for the whole tensor."""
        return PerTensor()

    @property
    def rows_apart(self) -> bool:
        return True

    def bits(self, shape: tuple[int, int]) -> int:
        return self.element.bits * shape[0] * shape[1]

    def values(self) -> np.ndarray:
        """Return all finite values of a 16-bit format; an empty array for fp32, whose grid is too fine to draw."""
        if self.element.bits > 16:
            return np.zeros(0, np.float32)
        patterns = np.arange(1 << 16, dtype=np.uint16)
        stored = patterns.view(np.float16) if self.element is FP16 else patterns
        values = self.element.load(stored)
        return np.unique(values[np.isfinite(values)])

    def fit(
        self, weight: torch.Tensor, importance: torch.Tensor | None = None, *, clip_search: bool = False
    ) -> Parameters:
        """Return the scale 1; raises NonFiniteError for NaN or infinity."""
        for part in row_tiles(*self.matrix_shape(weight), elements=tile_elements(weight.device)):
            if not bool(weight[part].isfinite().all()):
                raise NonFiniteError(f"a matrix of shape {tuple(weight.shape)} holds NaN or infinite values")
        return _unit()

    def fit_range(self, low: float, high: float) -> Parameters:
        check_static_range(low, high)
        return _unit()

    def round(self, weight: torch.Tensor, parameters: Parameters) -> torch.Tensor:
        import torch

        rows, columns = self.matrix_shape(weight)
        on_cpu = weight.device.type == "cpu"
        out = torch.from_numpy(uninitialised(rows, columns)) if on_cpu else weight.new_empty(rows, columns).float()
        for part in row_tiles(rows, columns, elements=tile_elements(weight.device)):
            out[part] = self._cast(weight[part])
        return out

    def encode(self, weight: torch.Tensor, parameters: Parameters) -> QuantizedTensor:
        """Return ``codes``: float32, float16, or bfloat16 bit patterns in uint16."""
        import torch

        rows, columns = self.matrix_shape(weight)
        codes = torch.empty(rows, columns, dtype=torch_dtype(self.element))
        for part in row_tiles(rows, columns, elements=tile_elements(weight.device)):
            codes[part] = self._cast(weight[part])
        plain = codes.view(torch.uint16) if codes.dtype == torch.bfloat16 else codes
        return QuantizedTensor(scheme=self.name, shape=(rows, columns), arrays={"codes": plain.numpy()})

    def decode(self, stored: QuantizedTensor) -> torch.Tensor:
        import torch

        rows, columns = stored.shape
        codes = torch.from_numpy(np.require(stored.arrays["codes"], requirements=["C", "W"]))
        exact = codes.view(torch.bfloat16) if codes.dtype == torch.uint16 else codes
        return torch.from_numpy(uninitialised(rows, columns)).copy_(exact)

    def _cast(self, tile: torch.Tensor) -> torch.Tensor:
        exact = tile.detach().float()
        return exact.clamp(-self.element.largest, self.element.largest).to(torch_dtype(self.element))


def _unit() -> Parameters:
    import torch

    return Parameters(scale=torch.ones(1, 1), zero_point=None, width=sys.maxsize)


FAMILY = ListedFamily(
    name="cast", title="16- and 32-bit floats", schemes=tuple(CastScheme(element) for element in (FP32, FP16, BF16))
)
