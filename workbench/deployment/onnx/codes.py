"""The stored arrays of a quantized matrix as tensors of an ONNX file, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from workbench.deployment.packed_layout import unpack
from workbench.errors import ExportError
from workbench.models.dtypes import tensor_bytes
from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.granularity import PerBlock, PerGroup, PerTensor, grid
from workbench.numerics.packing import pack
from workbench.numerics.quantized_tensor import QuantizedTensor

FLOATS = {
    "fp8-e4m3": "FLOAT8E4M3FN", "fp8-e5m2": "FLOAT8E5M2", "fp8-e4m3fnuz": "FLOAT8E4M3FNUZ",
    "fp8-e5m2fnuz": "FLOAT8E5M2FNUZ",
}  # fmt: skip
"""ONNX's names of our small floats; their codes are the same bits."""

STORED = {"float32": "FLOAT", "float16": "FLOAT16", "bfloat16": "BFLOAT16", "float64": "DOUBLE",
          "float8_e4m3fn": "FLOAT8E4M3FN", "float8_e5m2": "FLOAT8E5M2"}  # fmt: skip
"""ONNX's names of torch's dtypes."""

SCALES = {"fp32": "FLOAT", "fp16": "FLOAT16", "bf16": "BFLOAT16"}

AT_ONCE = 1 << 20
"""Codes that are unpacked at a time to see whether they are zeros."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Initializer:
    """One tensor of the file: ``load`` returns its bytes as the file has them (uint8), read when they are written."""

    name: str
    type: str
    shape: tuple[int, ...]
    load: Callable[[], np.ndarray]

    def tensor(self) -> Any:
        """Return it as onnx_ir's tensor that is read when it is written."""
        import onnx_ir

        kind, shape = onnx_ir.DataType[self.type], onnx_ir.Shape(self.shape)

        def load() -> Any:
            data = self.load()
            if kind.bitwidth < 8:
                return onnx_ir.PackedTensor(data, kind, shape=shape)
            return onnx_ir.Tensor(data.view(kind.numpy()).reshape(self.shape), kind, shape=shape)

        return onnx_ir.LazyTensor(load, kind, shape, name=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Codes:
    """A quantized matrix ``rows x columns`` by scheme and arrays; ``name`` is that of its parameter."""

    name: str
    stored: QuantizedTensor

    @property
    def scheme(self) -> ScaledScheme:
        """The scheme; ExportError for one that ONNX does not know."""
        scheme = parse_scheme(self.stored.scheme)
        if not isinstance(scheme, ScaledScheme):
            raise ExportError(f"ONNX has no representation for {scheme.name}")
        return scheme

    @property
    def group(self) -> int:
        """Columns that share a scale; 0 for one a row or one for all."""
        granularity = self.scheme.granularity
        return granularity.size if isinstance(granularity, PerGroup) else 0

    @property
    def is_integer(self) -> bool:
        """Whether codes are integers."""
        return self.scheme.element.shiftable

    @property
    def per_row(self) -> bool:
        """Whether every row has a scale of its own."""
        return not isinstance(self.scheme.granularity, PerTensor)

    @property
    def groups(self) -> int:
        """Scales along a row."""
        return grid(self.scheme.granularity, self.stored.shape).groups

    def _type(self) -> str:
        if not self.is_integer:
            return FLOATS[self.scheme.element.name]
        return f"{'INT' if self.scheme.symmetric else 'UINT'}{self.scheme.element.bits}"

    def _numbers(self, packed: np.ndarray, count: int) -> np.ndarray:
        """Return codes as ONNX has them, uint8 ``[rows, count]``: symmetric integers in two's complement."""
        bits = self.scheme.element.bits
        codes = unpack(packed, count, bits)
        if self.is_integer and self.scheme.symmetric:
            codes = (codes ^ np.uint8(1 << (bits - 1))) & np.uint8((1 << bits) - 1)
        return codes

    def _packed(self, numbers: np.ndarray) -> np.ndarray:
        bits = self.scheme.element.bits
        return pack(torch.from_numpy(np.ascontiguousarray(numbers)).reshape(1, -1), bits).reshape(-1).numpy()

    def codes(self, shape: tuple[int, ...], *, transposed: bool = False) -> Initializer:
        """Return the codes of ``shape``, or of the matrix as inputs x outputs."""
        rows, columns = self.stored.shape

        def load() -> np.ndarray:
            numbers = self._numbers(self.stored.arrays["codes"], columns)
            return self._packed(numbers.T if transposed else numbers)

        return Initializer(
            name=f"{self.name}.codes", type=self._type(), load=load, shape=(columns, rows) if transposed else shape
        )

    def blocks(self) -> Initializer:
        """Return the codes as MatMulNBits has them: uint8 ``[rows, groups, bytes of a group]``."""
        rows = self.stored.shape[0]
        return Initializer(
            name=f"{self.name}.codes", type="UINT8",
            shape=(rows, self.groups, self.group * self.scheme.element.bits // 8),
            load=lambda: np.ascontiguousarray(self.stored.arrays["codes"]).reshape(-1),
        )  # fmt: skip

    def scales(self, *, transposed: bool = False) -> Initializer:
        """Return the scales in their stored dtype: none, ``[rows]``, ``[rows, groups]`` or ``[groups, rows]``."""
        shape = self._scale_shape(transposed)

        def load() -> np.ndarray:
            array = self._without_zeros(self.stored.arrays["scales"])
            own = array.reshape(-1, self.groups).T if transposed and self.group else array
            return np.ascontiguousarray(own).reshape(-1).view(np.uint8)

        kind = SCALES[self.scheme.scale_format.name]
        return Initializer(name=f"{self.name}.scales", type=kind, shape=shape, load=load)

    def _without_zeros(self, scales: np.ndarray) -> np.ndarray:
        """Return scales with 1 in place of 0 for rows, or a tensor, of zeros.

        Where ONNX Runtime moves DequantizeLinear behind an operator, it quantizes the table again, and 0 / 0 is NaN.
        It does not move grouped tables, and integers with a scale of 0 decode to 0 whatever their zero point.
        """
        empty = np.flatnonzero(scales.reshape(-1) == 0)
        if self.group or not self.scheme.symmetric or not empty.size:
            return scales
        codes, filled = self.stored.arrays["codes"], scales.reshape(-1).copy()
        rows = empty if self.per_row else np.arange(len(codes))
        parts = np.array_split(rows, -(-rows.size * self.stored.shape[1] // AT_ONCE))
        zero = np.concatenate([self._are_zero(codes[part]) for part in parts])
        one = np.uint16(0x3F80) if filled.dtype == np.uint16 else 1  # bfloat16
        filled[empty[zero] if self.per_row else empty[: int(zero.all())]] = one
        return filled

    def _are_zero(self, packed: np.ndarray) -> np.ndarray:
        """Return which rows of symmetric codes are of zeros alone."""
        numbers = self._numbers(packed, self.stored.shape[1])
        return np.asarray(~(numbers & (0xFF if self.is_integer else 0x7F)).any(1))

    def _scale_shape(self, transposed: bool) -> tuple[int, ...]:
        rows = self.stored.shape[0]
        if self.group:
            return (self.groups, rows) if transposed else (rows, self.groups)
        return (rows,) if self.per_row else ()

    def zero_points(self, *, transposed: bool = False) -> Initializer | None:
        """Return the zero points in the codes' dtype and the scales' shape; None for symmetric schemes."""
        if self.scheme.symmetric:
            return None
        shape = self._scale_shape(transposed)

        def load() -> np.ndarray:
            count = max(int(np.prod(shape)), 1)
            numbers = unpack(self.stored.arrays["zero_points"].reshape(1, -1), count, self.scheme.element.bits)
            return self._packed(numbers.reshape(-1, self.groups).T if transposed and self.group else numbers)

        return Initializer(name=f"{self.name}.zero_points", type=self._type(), shape=shape, load=load)

    def block_zero_points(self) -> Initializer | None:
        """Return the zero points as MatMulNBits has them, rows on whole bytes; None for symmetric schemes."""
        if self.scheme.symmetric:
            return None
        nbytes = self.stored.shape[0] * (self.groups * self.scheme.element.bits // 8)
        return Initializer(
            name=f"{self.name}.zero_points", type="UINT8", shape=(nbytes,),
            load=lambda: self.stored.arrays["zero_points"].reshape(-1),
        )  # fmt: skip

    @property
    def fits_blocks(self) -> bool:
        """Whether MatMulNBits has room for it: whole groups of 16 to 256, a row's zero points on whole bytes."""
        group, bits = self.group, self.scheme.element.bits
        sized = group in (16, 32, 64, 128, 256) and self.stored.shape[1] % group == 0
        shifts = self.scheme.symmetric or self.groups * bits % 8 == 0
        return self.is_integer and bits in (2, 4, 8) and sized and shifts


def refusal(scheme_name: str) -> str | None:
    """Return why ONNX has no form for a scheme at all, None where it has one."""
    scheme = parse_scheme(scheme_name)
    if scheme.family == "cast":
        return None
    if not isinstance(scheme, ScaledScheme) or (
        not scheme.element.shiftable and scheme.element.name not in FLOATS
    ) or (scheme.element.shiftable and scheme.element.bits not in (2, 4, 8)):  # fmt: skip
        return f"ONNX has no representation for {scheme_name}; it has int2, int4, int8, fp8, fp16 and bf16"
    if scheme.scale_format.name not in SCALES:
        return f"ONNX Runtime reads scales in {', '.join(SCALES)}, not in {scheme.scale_format.name}"
    if scheme.offset_format is not None:
        return "ONNX has no floating zero points"
    if isinstance(scheme.granularity, PerBlock):
        return "ONNX has no scales of blocks of rows and columns"
    return None


def plain(name: str, dtype: str, shape: tuple[int, ...], load: Callable[[], torch.Tensor]) -> Initializer:
    """Return a tensor in floating point (or integers) as a file of ONNX has it; ``dtype`` by torch's name."""
    kind = STORED.get(dtype) or dtype.upper()
    return Initializer(name=name, type=kind, shape=shape, load=lambda: tensor_bytes(load()))
