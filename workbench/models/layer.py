"""Facts about the layers and other tensors of a model; importing it loads no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from workbench.models.dtypes import DTYPES

if TYPE_CHECKING:
    import torch


class LayerKind(StrEnum):
    """What the weight does; the field's usual names."""

    LINEAR = "linear"
    CONV1D = "conv1d"
    CONV2D = "conv2d"
    CONV3D = "conv3d"
    CONV_TRANSPOSE = "conv_transpose"
    EMBEDDING = "embedding"
    RECURRENT = "recurrent"
    ATTENTION = "attention"
    EXPERTS = "experts"
    MATRIX = "matrix"

    @property
    def is_convolution(self) -> bool:
        """Whether axis 1 of inputs and outputs holds the channels."""
        return self.value.startswith("conv")


ROUTER = "a router: its outputs are ranked, and rounding it sends tokens to other experts"
"""Why a router is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One weight that a plan can give a scheme.

    ``name`` is unique in the model: the module's path (``model.layers.0.self_attn.q_proj``) where the module has one
    weight, the parameter's path where it has several.  ``shape`` is as stored; ``axes`` is the permutation of the
    stored axes that puts the output axes first and ``row_axes`` how many of them make the rows, so that
    ``tensor.permute(axes).reshape(rows, columns)`` is the matrix of outputs x inputs that every scheme sees.
    ``macs`` are the multiply-adds for each token, None where they depend on the input's size (convolutions) or there
    are none (embeddings).  ``tied_to`` is the layer that owns the weight, None for one that owns it.  ``shares_with``
    names layers that must have the same scheme.  ``keep`` says why the layer stays in floating point unless a rule
    names it (a router, a table of positions, a state-space parameter); empty for all others.  ``unused`` says why the
    output that was scored does not depend on the weight, empty where it does or nothing was scored yet.
    ``calls`` is how often one forward pass multiplies with the weight through this layer.  ``view`` is the shape that
    ``axes`` number where it is not the stored one: experts that are stored one below the other.
    """

    name: str
    kind: LayerKind
    parameter: str
    shape: tuple[int, ...]
    dtype: str
    axes: tuple[int, ...]
    row_axes: int = 1
    block: str = ""
    macs: int | None = None
    tied_to: str | None = None
    shares_with: tuple[str, ...] = ()
    keep: str = ""
    unused: str = ""
    calls: int = 1
    view: tuple[int, ...] = ()

    @property
    def viewed(self) -> tuple[int, ...]:
        """The shape that ``axes`` number."""
        return self.view or self.shape

    @property
    def experts(self) -> int:
        """How many matrices lie in the weight, each for tokens of its own; 1 for all but experts."""
        return self.viewed[self.axes[0]] if self.kind is LayerKind.EXPERTS else 1

    @property
    def matrix(self) -> tuple[int, int]:
        """Rows (outputs) and columns (inputs) of the matrix view."""
        return _matrix(self.viewed, self.axes, self.row_axes)

    @property
    def parameters(self) -> int:
        """How many weights there are."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the weight as the model stores it."""
        return self.parameters * DTYPES[self.dtype].bits // 8

    def matrix_of(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a stored tensor (of ``shape``) as the matrix of outputs x inputs; a view where possible."""
        return tensor.reshape(self.viewed).permute(self.axes).reshape(self.matrix)

    def tensor_of(self, matrix: torch.Tensor) -> torch.Tensor:
        """Return a matrix of outputs x inputs as the stored tensor: the inverse of ``matrix_of``.

        Contiguous, as a file gives it: products of the same numbers in another order of memory differ in their last
        bits.
        """
        back = [self.axes.index(axis) for axis in range(len(self.axes))]
        tensor = matrix.reshape([self.viewed[axis] for axis in self.axes]).permute(back)
        return tensor.reshape(self.shape).contiguous()


@lru_cache(maxsize=4096)
def _matrix(viewed: tuple[int, ...], axes: tuple[int, ...], row_axes: int) -> tuple[int, int]:
    """Return rows and columns; kept, as the sums of a plan ask for those of every layer and few shapes differ."""
    sizes = [viewed[axis] for axis in axes]
    return math.prod(sizes[:row_axes]), math.prod(sizes[row_axes:])


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """A named tensor as a file or a network stores it; ``dtype`` by torch's name."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor."""
        return math.prod(self.shape) * DTYPES[self.dtype].bits // 8
