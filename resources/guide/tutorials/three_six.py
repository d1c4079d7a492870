"""A number format in one file: 3-bit values with a 6-bit scale for each block of 32.

    value[r, c] = row_scale[r] * block_scale[r, c // 32] * code[r, c]

``code`` is -4 to 3 in 3 bits, ``block_scale`` -32 to 31 in 6 bits, ``row_scale`` a float16: 3.19 bits a weight and two
bytes a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import NonFiniteError, RangeError, SchemeError
from workbench.numerics.granularity import Granularity, PerGroup
from workbench.numerics.packing import pack, packed_width, unpack
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.scheme import Parameters, Scheme

if TYPE_CHECKING:
    import torch

BLOCK = 32
NUDGES = (0, -1, 1, -2, 2, -3, 3, -4, 4)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ThreeSixParameters(Parameters):
    """``scale`` is ``row * block``: float32 ``[rows or 1, 1]`` times whole numbers ``[rows or 1, groups]``."""

    row: torch.Tensor
    block: torch.Tensor


@dataclass(frozen=True, slots=True)
class ThreeSix(Scheme):
    """3-bit values, 6-bit block scales, a float16 for each row."""

    @property
    def name(self) -> str:
        """``three-six``."""
        return "three-six"

    @property
    def family(self) -> str:
        """``tutorial``."""
        return "tutorial"

    @property
    def granularity(self) -> Granularity:
        """Blocks of 32 columns."""
        return PerGroup(BLOCK)

    def bits(self, shape: tuple[int, int]) -> int:
        """Return the exact bits: every array of ``encode`` fills whole bytes."""
        rows, columns = shape
        return 8 * rows * (packed_width(columns, 3) + packed_width(-(-columns // BLOCK), 6) + 2)

    def values(self) -> np.ndarray:
        """Return -4 to 3."""
        return np.arange(-4, 4, dtype=np.float32)

    def grids(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the values of static ranges."""
        row = _half(np.maximum(-low / 4, high / 3) / 31)
        grids: np.ndarray = (row * np.float32(31)).astype(np.float64)[:, None] * np.arange(-4, 4)
        return grids

    def fit(
        self, weight: torch.Tensor, importance: torch.Tensor | None = None, *, clip_search: bool = False
    ) -> Parameters:
        """Put the value of each block that is farthest from zero on code -4; then maybe try scales beside that."""
        import torch

        blocks = _blocks(weight)
        if not bool(blocks.isfinite().all()):
            raise NonFiniteError(f"a matrix of shape {tuple(weight.shape)} holds NaN or infinite values")
        extreme = (
            blocks.gather(-1, blocks.abs().argmax(-1, keepdim=True)).squeeze(-1) if blocks.numel() else blocks.sum(-1)
        )
        scales = extreme / -4
        most = scales.abs().amax(dim=1, keepdim=True) if scales.numel() else scales.new_zeros(len(weight), 1)
        row = torch.from_numpy(_half(most.numpy() / 31))
        block = (scales / torch.where(row > 0, row, 1.0)).round().clamp(-32, 31)
        if clip_search and blocks.numel():
            mass = torch.ones(()) if importance is None else _blocks(importance.float().expand(weight.shape))
            block = _best(blocks, mass, row, block)
        return _parameters(row, block)

    def fit_range(self, low: float, high: float) -> Parameters:
        """Return one scale for the range."""
        import torch

        if not (np.isfinite([low, high]).all() and low <= high):
            raise RangeError(f"expected a finite range with low <= high; got [{low}, {high}]")
        row = _half(np.maximum(-min(low, 0.0) / 4, max(high, 0.0) / 3).reshape(1, 1) / 31)
        return _parameters(torch.from_numpy(row), torch.full((1, 1), 31.0))

    def round(self, weight: torch.Tensor, parameters: Parameters) -> torch.Tensor:
        """Return the nearest values, float32; any columns of one block, or of whole blocks."""
        scale = parameters.scale.unsqueeze(-1)
        return (_codes(_blocks(weight), scale) * scale).flatten(1)[:, : weight.shape[1]].contiguous()

    def encode(self, weight: torch.Tensor, parameters: Parameters) -> QuantizedTensor:
        """Return ``codes`` and ``block_scales``, packed row by row, and ``row_scales``."""
        import torch

        assert isinstance(parameters, ThreeSixParameters)
        rows, columns = weight.shape
        if bool(weight.isnan().any()):
            raise NonFiniteError(f"a matrix of shape {rows} x {columns} holds NaN; it has no code")
        codes = _codes(_blocks(weight), parameters.scale.unsqueeze(-1)).flatten(1)[:, :columns] + 4
        block = parameters.block.expand(rows, -(-columns // BLOCK)) + 32
        arrays = {
            "codes": pack(codes.to(torch.uint8), 3).numpy(),
            "block_scales": pack(block.to(torch.uint8), 6).numpy(),
            "row_scales": parameters.row.expand(rows, 1).numpy().astype(np.float16),
        }
        return QuantizedTensor(scheme=self.name, shape=(rows, columns), arrays=arrays)

    def decode(self, stored: QuantizedTensor) -> torch.Tensor:
        """Return what ``round`` returned, bit for bit."""
        import torch

        rows, columns = stored.shape
        codes = unpack(stored.arrays["codes"], columns, 3).float() - 4
        block = unpack(stored.arrays["block_scales"], -(-columns // BLOCK), 6).float() - 32
        scale = torch.from_numpy(stored.arrays["row_scales"].astype(np.float32)) * block
        return (_blocks(codes) * scale.unsqueeze(-1)).flatten(1)[:, :columns].contiguous()


def _blocks(weight: torch.Tensor) -> torch.Tensor:
    """Return float32 ``[rows, groups, 32]``, filled up with zeros; a narrower part of one block stays narrow."""
    import torch

    if weight.dim() != 2 or not weight.is_floating_point():
        raise SchemeError(
            f"three-six stores a floating-point matrix; got {weight.dtype} of shape {tuple(weight.shape)}"
        )
    rows, columns = weight.shape
    padded = torch.nn.functional.pad(weight.detach().float(), (0, -columns % BLOCK))
    return padded.reshape(rows, padded.shape[1] // BLOCK, BLOCK)


def _codes(blocks: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return the nearest codes, -4 to 3; 0 where the scale is 0."""
    return (blocks / (scale + (scale == 0))).round().clamp(-4, 3) * (scale != 0) + 0.0


def _best(blocks: torch.Tensor, mass: torch.Tensor, row: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
    """Return the block scales near ``block`` with the least weighted squared error."""
    import torch

    nearby = torch.stack([(block + nudge).clamp(-32, 31) for nudge in NUDGES])
    errors = []
    for candidate in nearby:
        scale = (row * candidate).unsqueeze(-1)
        errors.append(((_codes(blocks, scale) * scale - blocks).square() * mass).sum(-1))
    return nearby.gather(0, torch.stack(errors).argmin(0, keepdim=True)).squeeze(0)


def _parameters(row: torch.Tensor, block: torch.Tensor) -> ThreeSixParameters:
    return ThreeSixParameters(scale=row * block, zero_point=None, width=BLOCK, row=row, block=block)


def _half(scale: np.ndarray) -> np.ndarray:
    """Return the nearest float16 of positive scales, as float32, kept finite."""
    return scale.clip(0, 65504).astype(np.float16).astype(np.float32)


@dataclass(frozen=True, slots=True)
class TutorialFamily:
    """What the entry point names: the family's title, its schemes for menus, and the reading of names."""

    name: str = "tutorial"
    title: str = "Tutorial"
    examples: tuple[str, ...] = ("three-six",)

    def parse(self, name: str) -> Scheme | None:
        """Return the scheme called ``name`` (lower case), or None."""
        return ThreeSix() if name == "three-six" else None


FAMILY = TutorialFamily()
