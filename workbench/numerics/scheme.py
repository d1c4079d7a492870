"""The contract of a number format: how ONE tensor is stored.

A family of formats is one file in :mod:`workbench.numerics.formats`; its schemes are frozen dataclasses that implement
:class:`Scheme`.  ``fit`` and ``round`` are separate so that an algorithm such as GPTQ can fix the parameters of a group
and then round one column at a time.  Nothing here imports torch when it is imported: the window reads names, bits and
value tables without it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import RangeError, SchemeError
from workbench.numerics.granularity import Granularity
from workbench.numerics.quantized_tensor import QuantizedTensor

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parameters:
    """What ``fit`` decides for a matrix: ``value = scale * (code - zero_point)``, element by element.

    ``scale`` and ``zero_point`` (None for symmetric schemes) are float32 tensors of shape ``(rows, groups)``,
    ``(rows, 1)`` or ``(1, 1)``; ``width`` is the number of columns that one entry serves (at least that many where
    there is one entry a row).  Schemes with blocks of rows repeat an entry for every row.  A scale may be negative or
    zero (all values are 0 then).  Schemes with floating zero points have an ``offset`` of the same shape instead of a
    ``zero_point``: ``value = scale * code + offset``.  ``shared``, ``(1, 1)``, is a factor that all scales contain and
    that is stored once (NVFP4).  It holds only values that the scheme's formats can store, so rounding with it equals
    decoding what was written.  A family that needs more derives a class of its own.
    """

    scale: torch.Tensor
    zero_point: torch.Tensor | None
    width: int
    offset: torch.Tensor | None = None
    shared: torch.Tensor | None = None

    def on(self, device: torch.device) -> Parameters:
        """Return the parameters on ``device``."""
        members = {item.name: getattr(self, item.name) for item in fields(self)}
        tensors = {name: each.to(device) for name, each in members.items() if hasattr(each, "to")}
        return replace(self, **tensors)

    def columns(self, start: int, stop: int) -> Parameters:
        """Return the parameters of columns ``start`` to ``stop``, which must lie inside one group or on group edges."""
        if self.scale.shape[-1] == 1:
            return self
        first, last = start // self.width, -(-stop // self.width)
        zero_point = None if self.zero_point is None else self.zero_point[:, first:last]
        offset = None if self.offset is None else self.offset[:, first:last]
        return replace(self, scale=self.scale[:, first:last], zero_point=zero_point, offset=offset)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockParameters(Parameters, ABC):
    """Parameters of blocks of ``block`` columns, each of several groups that are fitted together (K-quants)."""

    block: int

    @abstractmethod
    def joined(self, others: Sequence[Parameters]) -> Parameters:
        """Return the parameters of neighbouring columns, these and the ``others``, as those of all of them."""


class Scheme(ABC):
    """How one tensor is stored: element format, granularity, symmetric or not, scale format.

    Implementations are frozen dataclasses, hash and compare by value, and are picklable.  ``weight`` is always a
    floating-point tensor of shape ``(rows, columns)`` in any of float16, bfloat16, float32, float64.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """The canonical name, for example ``int4-g128-asym``; ``parse_scheme(name)`` gives this scheme back."""

    @property
    @abstractmethod
    def family(self) -> str:
        """The family for grouping in tables: ``cast``, ``integer``, ``floating``, ..."""

    @property
    def is_quick(self) -> bool:
        """Whether rounding takes well below a microsecond a weight: other schemes are scored only where they are asked
        for."""
        return True

    @property
    @abstractmethod
    def granularity(self) -> Granularity:
        """Which elements share one scale."""

    @property
    def rows_apart(self) -> bool:
        """Whether every row is fitted and stored by itself, so that a matrix may be encoded in bands of 8 rows."""
        return False

    @abstractmethod
    def bits(self, shape: tuple[int, int]) -> int:
        """Return the exact bits that a ``rows x columns`` matrix takes, with scales, zero points and padding.

        Always equal to ``8 * encode(...).nbytes``; a whole number of bytes for each stored array.
        """

    def values(self) -> np.ndarray:
        """Return the values that the element format represents at scale 1, ascending, float32 (to draw the grid).

        None here: a code that stands for a whole vector, or for an entry of a learned codebook, has no such value.
        """
        return np.zeros(0, np.float32)

    def grids(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the representable values of many static ranges, ascending, float64 ``[n, levels]``.

        ``low <= 0 <= high`` are float64 ``[n]``.  A format without a scale returns ``[n, 0]``: a range means nothing
        to it.  Numpy only; equal to what ``round`` gives with ``fit_range(low, high)``.
        """
        return np.zeros((low.size, 0))

    def grid(self, low: float, high: float) -> np.ndarray:
        """Return the representable values of the static range ``[low, high]``, ascending, float64 ``[levels]``."""
        grid: np.ndarray = self.grids(np.array([min(low, 0.0)]), np.array([max(high, 0.0)]))[0]
        return grid

    @abstractmethod
    def fit(
        self, weight: torch.Tensor, importance: torch.Tensor | None = None, *, clip_search: bool = False
    ) -> Parameters:
        """Choose scales (and zero points) for ``weight``.

        ``importance`` (broadcastable to ``weight``, >= 0) weighs the squared error of each element.  ``clip_search``
        tries smaller ranges than the full one and keeps, for each group, the one with the least weighted error.
        Raises NonFiniteError if ``weight`` holds NaN or infinity.
        """

    def fit_range(self, low: float, high: float) -> Parameters:
        """Return the parameters of one static per-tensor range ``[low, high]`` (activation quantization).

        Raises SchemeError where every block has scales of its own.
        """
        raise SchemeError(
            f"{self.name} stores weights in blocks with scales of their own; it cannot hold activations of a fixed "
            "range. Choose an int8, fp8 or 16-bit format for inputs"
        )

    @abstractmethod
    def round(self, weight: torch.Tensor, parameters: Parameters) -> torch.Tensor:
        """Return the nearest representable values, float32, of the shape of ``weight``: ``decode(encode(weight))``."""

    @abstractmethod
    def encode(self, weight: torch.Tensor, parameters: Parameters) -> QuantizedTensor:
        """Return the packed codes and parameters of ``weight``."""

    @abstractmethod
    def decode(self, stored: QuantizedTensor) -> torch.Tensor:
        """Return the float32 matrix that ``stored`` stands for."""

    def quantize(
        self, weight: torch.Tensor, importance: torch.Tensor | None = None, *, clip_search: bool = False
    ) -> torch.Tensor:
        """Return ``round(weight, fit(weight))``: round-to-nearest in one call, float32."""
        return self.round(weight, self.fit(weight, importance, clip_search=clip_search))

    def matrix_shape(self, weight: torch.Tensor) -> tuple[int, int]:
        """Return the shape of ``weight``; SchemeError for anything but a floating-point matrix."""
        if weight.dim() != 2 or not weight.is_floating_point():
            raise SchemeError(
                f"{self.name} stores a floating-point matrix; got {weight.dtype} of shape {tuple(weight.shape)}"
            )
        return weight.shape[0], weight.shape[1]


def check_static_range(low: float, high: float) -> None:
    """Raise RangeError unless ``low <= high``, both finite."""
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise RangeError(f"expected a finite range with low <= high; got [{low}, {high}]")


def is_symmetric(scheme: Scheme) -> bool:
    """Return whether a static range of ``scheme`` lies evenly on both sides of zero, whatever was asked for."""
    values = scheme.values()
    return bool(values.size) and bool(values[0] < 0)
