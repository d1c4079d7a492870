"""Which elements of a weight matrix share one scale, as types and as geometry: a grid of equal tiles.

Everything here speaks of the matrix view of a weight, ``rows x columns`` = outputs x inputs, in which
:class:`workbench.models.layer.Layer` presents every tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from workbench.errors import SchemeError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class PerTensor:
    """One scale for the whole tensor."""


@dataclass(frozen=True, slots=True)
class PerChannel:
    """One scale for each row, that is for each output channel."""


@dataclass(frozen=True, slots=True)
class PerGroup:
    """One scale for ``size`` neighbouring columns of a row; the last group of a row may be shorter."""

    size: int


@dataclass(frozen=True, slots=True)
class PerBlock:
    """One scale for each tile of ``rows x columns`` elements; tiles at the far edges may be smaller."""

    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class PerToken:
    """One scale for each activation vector, computed when it is seen (dynamic quantization)."""


Granularity = PerTensor | PerChannel | PerGroup | PerBlock | PerToken

Reduction = Literal["min", "max", "sum"]


@dataclass(frozen=True, slots=True)
class Grid:
    """How a ``rows x columns`` matrix is cut: ``height x width`` elements share a scale; edge tiles may be smaller."""

    rows: int
    columns: int
    height: int
    width: int

    @property
    def bands(self) -> int:
        """Stored rows of scales."""
        return -(-self.rows // self.height)

    @property
    def groups(self) -> int:
        """Scales along a row."""
        return -(-self.columns // self.width)

    def spread(self, stored: torch.Tensor) -> torch.Tensor:
        """Return stored entries ``[bands, groups]`` as parameters ``[rows, groups]`` (``[1, 1]`` if all share one)."""
        if self.height == 1 or self.bands * self.groups == 1:
            return stored
        return stored.repeat_interleave(self.height, dim=0)[: self.rows]

    def stored(self, spread: torch.Tensor) -> torch.Tensor:
        """Return parameters (any shape that broadcasts to ``[rows, groups]``) as stored entries ``[bands, groups]``."""
        return spread.expand(self.rows, self.groups)[:: self.height].contiguous()


def grid(granularity: Granularity, shape: tuple[int, int]) -> Grid:
    """Return the grid by which ``granularity`` cuts a matrix of ``shape``."""
    rows, columns = shape
    match granularity:
        case PerTensor():
            return Grid(rows, columns, max(rows, 1), max(columns, 1))
        case PerChannel() | PerToken():
            return Grid(rows, columns, 1, max(columns, 1))
        case PerGroup(size):
            return Grid(rows, columns, 1, size)
        case PerBlock(height, width):
            return Grid(rows, columns, height, width)


def granularity_name(granularity: Granularity) -> str:
    """Return the granularity's part of a scheme's name."""
    match granularity:
        case PerTensor():
            return "tensor"
        case PerChannel():
            return "channel"
        case PerToken():
            return "token"
        case PerGroup(size):
            return f"g{size}"
        case PerBlock(rows, columns):
            return f"b{rows}x{columns}"


def check_granularity(granularity: Granularity) -> None:
    """Raise SchemeError for a group or a block without elements."""
    match granularity:
        case PerGroup(size) if size < 1:
            raise SchemeError(f"a group of {size} columns is not possible; expected at least 1")
        case PerBlock(rows, columns) if rows < 1 or columns < 1:
            raise SchemeError(f"a block of {rows} x {columns} is not possible; expected at least 1 x 1")


def grouped(tile: torch.Tensor, width: int, fill: Literal["zeros", "edge"] = "zeros") -> torch.Tensor:
    """Return ``[rows, columns]`` as ``[rows, groups, width]``, the last group filled with zeros or the last value."""
    import torch

    rows, columns = tile.shape
    if columns <= width:
        return tile.unsqueeze(1)
    padding = -columns % width
    padded = tile
    if padding:
        more = tile[:, -1:].expand(rows, padding) if fill == "edge" else tile.new_zeros(rows, padding)
        padded = torch.cat([tile, more], dim=1)
    return padded.reshape(rows, padded.shape[1] // width, width)


def pooled(per_row: torch.Tensor, height: int, reduction: Reduction) -> torch.Tensor:
    """Reduce ``[..., rows, groups]`` over bands of ``height`` rows: ``[..., bands, groups]``."""
    import torch

    if height == 1:
        return per_row
    rows, groups = per_row.shape[-2:]
    height = min(height, max(rows, 1))
    neutral = {"min": torch.inf, "max": -torch.inf, "sum": 0.0}[reduction]
    padded = torch.nn.functional.pad(per_row, (0, 0, 0, -rows % height), value=neutral)
    bands = padded.reshape(*per_row.shape[:-2], padded.shape[-2] // height, height, groups)
    return bands.amin(-2) if reduction == "min" else bands.amax(-2) if reduction == "max" else bands.sum(-2)
