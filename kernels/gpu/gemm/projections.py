"""The linear layers of a transformer block: the same call for every kind of weights and activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from ...errors import ArgumentError
from ..contract import check_choice, check_tensor
from ..launch import Executor, nbytes
from ..quantize import group_quantize
from ..quantize.norm_quantize import Rows
from . import gemm8, w4a16


class Projection(Protocol):
    """``y = x W^T``, ``W`` of ``rows x columns``; ``codes`` is the form of ``x`` that it wants, None for float16."""

    @property
    def rows(self) -> int:
        """Outputs."""
        ...

    @property
    def columns(self) -> int:
        """Inputs."""
        ...

    @property
    def codes(self) -> torch.dtype | None:
        """int8, float8_e4m3fn or None."""
        ...

    def apply(self, x: Rows, *, on: Executor) -> torch.Tensor:
        """Return float16 ``[tokens, rows]``.  Raises ArgumentError."""
        ...

    def nbytes(self) -> int:
        """Return the bytes of the weights."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """float16 weights ``[rows, columns]``, the product is torch's."""

    weight: torch.Tensor

    @property
    def rows(self) -> int:
        """Outputs."""
        return self.weight.shape[0]

    @property
    def columns(self) -> int:
        """Inputs."""
        return self.weight.shape[1]

    @property
    def codes(self) -> torch.dtype | None:
        """Plain activations."""
        return None

    def apply(self, x: Rows, *, on: Executor) -> torch.Tensor:
        """Return float16 ``[tokens, rows]``."""
        values = _plain(x, self.columns, on)
        return torch.matmul(values, self.weight.T, out=on.empty((values.shape[0], self.rows), torch.float16))

    def nbytes(self) -> int:
        """Return the bytes of the weights."""
        return nbytes(self.weight)


@dataclass(frozen=True, slots=True, eq=False)
class FourBit:
    """4-bit weights in groups, float16 activations."""

    weights: w4a16.PackedWeights
    variant: w4a16.Variant | None = None

    @property
    def rows(self) -> int:
        """Outputs."""
        return self.weights.rows

    @property
    def columns(self) -> int:
        """Inputs."""
        return self.weights.columns

    @property
    def codes(self) -> torch.dtype | None:
        """Plain activations."""
        return None

    def apply(self, x: Rows, *, on: Executor) -> torch.Tensor:
        """Return float16 ``[tokens, rows]``."""
        return w4a16.linear(_plain(x, self.columns, on), self.weights, on=on, variant=self.variant)

    def nbytes(self) -> int:
        """Return the bytes of the weights."""
        return self.weights.nbytes()


@dataclass(frozen=True, slots=True, eq=False)
class EightBit:
    """INT8 or E4M3 weights ``[rows, columns]`` with a float32 scale for each row; activations are codes alike."""

    weight: torch.Tensor
    scales: torch.Tensor

    @property
    def rows(self) -> int:
        """Outputs."""
        return self.weight.shape[0]

    @property
    def columns(self) -> int:
        """Inputs."""
        return self.weight.shape[1]

    @property
    def codes(self) -> torch.dtype | None:
        """Activations have the weights' codes."""
        return self.weight.dtype

    def apply(self, x: Rows, *, on: Executor) -> torch.Tensor:
        """Return float16 ``[tokens, rows]``."""
        if x.scales is None:
            raise ArgumentError(f"this projection takes {self.weight.dtype} activations with scales; got plain values")
        return gemm8.gemm(x.values, self.weight, x.scales, self.scales, on=on)

    def nbytes(self) -> int:
        """Return the bytes of the weights."""
        return nbytes(self.weight, self.scales)


def _plain(x: Rows, columns: int, on: Executor) -> torch.Tensor:
    if x.scales is not None:
        raise ArgumentError(f"this projection takes plain float16 activations; got {x.values.dtype} codes")
    check_tensor("x", x.values, on, (torch.float16,), (None, columns))
    return x.values


def stacked(parts: Sequence[Projection]) -> Projection | None:
    """Return one projection with the outputs of all parts, one after another, so that one launch serves all.

    None where the parts are of different kinds, or where their outputs would not begin at multiples of 16 bytes.
    """
    if any(part.rows % 8 for part in parts):
        return None
    plain = [part.weight for part in parts if isinstance(part, Plain)]
    if len(plain) == len(parts):
        return Plain(torch.cat(plain))
    eight = [part for part in parts if isinstance(part, EightBit)]
    if len(eight) == len(parts) and len({part.codes for part in eight}) == 1:
        weights = torch.cat([part.weight.view(torch.uint8) for part in eight]).view(eight[0].weight.dtype)
        return EightBit(weights, torch.cat([part.scales for part in eight]))
    four = [part.weights for part in parts if isinstance(part, FourBit)]
    joined = w4a16.stacked(four) if len(four) == len(parts) else None
    return None if joined is None else FourBit(joined)


KINDS = ("plain", "w4a16", "int8", "fp8")


def quantized(weight: torch.Tensor, kind: str, group: int = 128) -> tuple[Projection, torch.Tensor]:
    """Round ``weight`` float32 ``[rows, columns]`` to nearest as ``kind`` stores it; return the projection and the
    weights that it stands for, float64."""
    check_choice("kind", kind, KINDS)
    columns = weight.shape[1]
    if kind == "plain":
        return Plain(weight.half()), weight.half().double()
    if kind == "w4a16":
        quantized = group_quantize.reference_quantize(weight, "int4_asym", group)
        assert quantized.zeros is not None
        codes = torch.stack([quantized.codes & 15, quantized.codes >> 4], 2).flatten(1)
        scales = quantized.scales.half()
        centred = codes.double().reshape(*scales.shape, group) - quantized.zeros.double()[..., None]
        exact = (centred * scales.double()[..., None]).reshape(weight.shape)
        return FourBit(w4a16.pack(codes, scales, quantized.zeros)), exact
    rounded = group_quantize.reference_quantize(weight, {"int8": "int8", "fp8": "e4m3"}[kind], columns)
    exact = rounded.codes.double() * rounded.scales.double()
    return EightBit(rounded.codes, rounded.scales.reshape(-1).contiguous()), exact
