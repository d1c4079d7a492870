"""Quantize, dequantize and fake-quantize in groups: INT8, INT4, FP8; per tensor, channel, token or group of columns.

A group is ``group`` consecutive values of a row.  Per channel and per token: ``group = columns``.  With a scale
that is given (static), one scale serves the tensor.  Values must be finite; ``statistics`` counts those that are not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ...build.source import CudaSource
from ...errors import ArgumentError
from .. import baselines
from ..contract import check_choice, check_groups, check_tensor
from ..exact import divided
from ..launch import (
    FLOATS,
    Argument,
    Baseline,
    CudaOp,
    Executor,
    Int,
    Launch,
    Long,
    Problem,
    drawn,
    line,
    nbytes,
)

EIGHT = 8
BLOCK = 256
SMALLEST_NORMAL = torch.finfo(torch.float32).tiny


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A kind of code: values are ``scale * (code - zero)``, codes from ``low`` to ``high`` before ``offset``."""

    name: str
    low: float
    high: float
    stored: torch.dtype
    per_byte: int = 1
    offset: int = 0
    asymmetric: bool = False
    static: bool = False


CODES = {
    code.name: code
    for code in (
        Code(name="int8", low=-127, high=127, stored=torch.int8, static=True),
        Code(name="int8_asym", low=0, high=255, stored=torch.uint8, asymmetric=True),
        Code(name="int4", low=-7, high=7, stored=torch.uint8, per_byte=2, offset=8),
        Code(name="int4_asym", low=0, high=15, stored=torch.uint8, per_byte=2, asymmetric=True),
        Code(name="e4m3", low=-448, high=448, stored=torch.float8_e4m3fn, static=True),
        Code(name="e5m2", low=-57344, high=57344, stored=torch.float8_e5m2, static=True),
    )
}


def _entries(*names: str) -> tuple[str, ...]:
    actions = ("quantize", "fake_quantize", "dequantize")
    entries = [f"{action}_{name}_{t}" for name in names for action in actions for t in FLOATS.values()]
    return (*entries, *(f"quantize_static_{name}_{t}" for name in names if CODES[name].static for t in FLOATS.values()))


INTEGER = CudaSource(file="integer_groups.cu", entries=_entries("int8", "int8_asym", "int4", "int4_asym"))
FLOAT8 = CudaSource(file="float8_groups.cu", entries=_entries("e4m3", "e5m2"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quantized:
    """``value[r, c] = scales[r, c // group] * (code[r, c] - zeros[r, c // group])``.

    ``codes`` ``[rows, columns]`` (INT4: ``columns / 2`` bytes, the first code in the low bits); ``scales`` float32 and
    ``zeros`` uint8 ``[rows, columns / group]``.  Without ``zeros`` the zero point is 8 for INT4 and 0 otherwise.
    """

    codes: torch.Tensor
    scales: torch.Tensor
    zeros: torch.Tensor | None
    code: str
    group: int

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Return the tensors there are, codes as bytes."""
        tensors = (self.codes.view(torch.uint8), self.scales)
        return tensors if self.zeros is None else (*tensors, self.zeros)


def _source(code: str) -> CudaSource:
    return FLOAT8 if code in ("e4m3", "e5m2") else INTEGER


def _check(x: torch.Tensor, code: str, group: int, on: Executor) -> None:
    check_choice("code", code, tuple(CODES))
    check_tensor("x", x, on, tuple(FLOATS), (None, None))
    check_groups("x", x.shape[1], group, EIGHT)


def lanes_for(group: int) -> int:
    """Return how many lanes of a warp share a group: eight values each, at most 32."""
    lanes = 1
    while lanes < 32 and lanes * EIGHT < group:
        lanes *= 2
    return lanes


def quantize(x: torch.Tensor, code: str, group: int, *, on: Executor) -> Quantized:
    """Quantize ``x`` ``[rows, columns]``, finding each group's scale.  Raises ArgumentError."""
    _check(x, code, group, on)
    rows, columns = x.shape
    kind, lanes = CODES[code], lanes_for(group)
    groups = rows * (columns // group)
    made = Quantized(
        codes=on.empty((rows, columns // kind.per_byte), torch.uint8).view(kind.stored),
        scales=on.empty((rows, columns // group), torch.float32),
        zeros=on.empty((rows, columns // group), torch.uint8) if kind.asymmetric else None,
        code=code, group=group,
    )  # fmt: skip
    arguments: tuple[Argument, ...] = (x, made.codes, made.scales, made.zeros, Long(groups), Int(group), Int(lanes))
    entry = f"quantize_{code}_{FLOATS[x.dtype]}"
    on.run(_source(code), Launch(entry=entry, grid=line(groups * lanes, BLOCK), block=BLOCK, arguments=arguments))
    return made


def quantize_static(x: torch.Tensor, code: str, scale: torch.Tensor, *, on: Executor) -> Quantized:
    """Quantize ``x`` ``[rows, columns]`` with one float32 ``scale`` ``[1]``, which stays on the device."""
    check_choice("code", code, tuple(name for name, kind in CODES.items() if kind.static))
    _check(x, code, x.shape[-1] if x.ndim else 0, on)
    check_tensor("scale", scale, on, (torch.float32,), (1,))
    codes = on.empty(tuple(x.shape), torch.uint8)
    entry = f"quantize_static_{code}_{FLOATS[x.dtype]}"
    on.run(_source(code), Launch(entry=entry, grid=line(x.numel() // EIGHT, BLOCK), block=BLOCK, arguments=(
        x, codes, scale, Long(x.numel()))))  # fmt: skip
    scales = scale.expand(x.shape[0], 1).contiguous()
    return Quantized(codes=codes.view(CODES[code].stored), scales=scales, zeros=None, code=code, group=x.shape[1])


def fake_quantize(x: torch.Tensor, code: str, group: int, *, on: Executor) -> torch.Tensor:
    """Return what ``x`` is after quantization, in its own dtype."""
    _check(x, code, group, on)
    out = on.empty(tuple(x.shape), x.dtype)
    groups, lanes = x.numel() // group, lanes_for(group)
    entry = f"fake_quantize_{code}_{FLOATS[x.dtype]}"
    on.run(_source(code), Launch(entry=entry, grid=line(groups * lanes, BLOCK), block=BLOCK, arguments=(
        x, out, Long(groups), Int(group), Int(lanes))))  # fmt: skip
    return out


def dequantize(q: Quantized, dtype: torch.dtype, *, on: Executor) -> torch.Tensor:
    """Return the values ``[rows, columns]``.  Raises ArgumentError."""
    check_choice("code", q.code, tuple(CODES))
    check_choice("dtype", dtype, tuple(FLOATS))
    kind = CODES[q.code]
    check_tensor("codes", q.codes, on, (kind.stored,), (None, None))
    rows, columns = q.codes.shape[0], q.codes.shape[1] * kind.per_byte
    check_groups("codes", columns, q.group, EIGHT)
    check_tensor("scales", q.scales, on, (torch.float32,), (rows, columns // q.group))
    if kind.asymmetric and q.zeros is None:
        raise ArgumentError(f"{q.code} needs zeros, and there are none")
    if q.zeros is not None:
        check_tensor("zeros", q.zeros, on, (torch.uint8,), (rows, columns // q.group))
    out = on.empty((rows, columns), dtype)
    entry = f"dequantize_{q.code}_{FLOATS[dtype]}"
    on.run(_source(q.code), Launch(entry=entry, grid=line(out.numel() // EIGHT, BLOCK), block=BLOCK, arguments=(
        q.codes, q.scales, q.zeros, out, Long(out.numel()), Int(q.group))))  # fmt: skip
    return out


def reference_quantize(x: torch.Tensor, code: str, group: int, scale: torch.Tensor | None = None) -> Quantized:
    """Compute the same codes, scales and zero points with torch, in float32 as the kernel does."""
    kind, grouped = CODES[code], x.float().reshape(x.shape[0], -1, group)
    low, high = grouped.amin(2).clamp_max(0), grouped.amax(2).clamp_min(0)
    span = divided(high - low if kind.asymmetric else torch.maximum(-low, high), kind.high)
    scales = span if scale is None else scale.expand(span.shape)
    scales = torch.where(scales >= SMALLEST_NORMAL, scales, 0)
    inverse = torch.where(scales > 0, 1 / scales, 0)
    zeros = (-low * inverse).round().clamp(kind.low, kind.high) if kind.asymmetric else None
    scaled = grouped * inverse[..., None]
    if kind.stored.is_floating_point:
        codes = scaled.clamp(kind.low, kind.high).to(kind.stored)
    else:
        shift = 0 if zeros is None else zeros[..., None]
        codes = ((scaled.round() + shift).clamp(kind.low, kind.high) + kind.offset).to(kind.stored)
    codes = codes.reshape(x.shape)
    if kind.per_byte == 2:
        codes = codes[:, 0::2] | codes[:, 1::2] << 4
    return Quantized(
        codes=codes, scales=scales.contiguous(), zeros=None if zeros is None else zeros.to(torch.uint8), code=code,
        group=group,
    )  # fmt: skip


def reference_dequantize(q: Quantized, dtype: torch.dtype) -> torch.Tensor:
    """Compute the values with torch, in float32, rounded once to ``dtype``."""
    kind = CODES[q.code]
    codes = torch.stack([q.codes & 15, q.codes >> 4], 2).flatten(1) if kind.per_byte == 2 else q.codes
    zero = float(kind.offset) if q.zeros is None else q.zeros.float()[..., None]
    values = (codes.float().reshape(codes.shape[0], -1, q.group) - zero) * q.scales[..., None]
    return values.reshape(codes.shape).to(dtype)


def prepare_quantize(
    on: Executor, seed: int, *, rows: int, columns: int, group: int, code: str, dtype: torch.dtype = torch.float32,
    static: bool = False,
) -> Problem:  # fmt: skip
    """Draw a matrix whose first group is too small for a scale, its first half zero, and whose last value is large."""
    x = drawn(on, seed, rows, columns, dtype=dtype)
    x[0, :group], x[-1, -1] = 1e-39, 50
    x[0, : group // 2] = 0
    scale = torch.full((1,), 3.0 / CODES[code].high, device=on.device)
    expected = reference_quantize(x, code, columns if static else group, scale if static else None)

    def launch() -> tuple[torch.Tensor, ...]:
        return (quantize_static(x, code, scale, on=on) if static else quantize(x, code, group, on=on)).tensors()

    written = nbytes(*expected.tensors())
    return Problem(launch=launch, reference=expected.tensors, read=nbytes(x), written=written, operations=4 * x.numel())


def prepare_dequantize(
    on: Executor, seed: int, *, rows: int, columns: int, group: int, code: str, dtype: torch.dtype = torch.float32
) -> Problem:
    """Quantize a random matrix with torch."""
    q = reference_quantize(drawn(on, seed, rows, columns), code, group)
    return Problem(
        launch=lambda: (dequantize(q, dtype, on=on),), reference=lambda: (reference_dequantize(q, dtype),),
        read=nbytes(*q.tensors()), written=rows * columns * dtype.itemsize, operations=2 * rows * columns,
    )  # fmt: skip


def prepare_fake(
    on: Executor, seed: int, *, rows: int, columns: int, group: int, code: str, dtype: torch.dtype = torch.float32
) -> Problem:
    """Draw a matrix; the reference quantizes and dequantizes."""
    x = drawn(on, seed, rows, columns, dtype=dtype)
    return Problem(
        launch=lambda: (fake_quantize(x, code, group, on=on),),
        reference=lambda: (reference_dequantize(reference_quantize(x, code, group), dtype),),
        read=nbytes(x), written=nbytes(x), operations=6 * x.numel(),
    )  # fmt: skip


ODD: tuple[dict[str, Any], ...] = (
    {"rows": 1, "columns": 8, "group": 8}, {"rows": 3, "columns": 120, "group": 24},
    {"rows": 5, "columns": 776, "group": 776, "dtype": torch.float16},
    {"rows": 7, "columns": 256, "group": 128, "dtype": torch.bfloat16},
)  # fmt: skip


def _variants(code: str) -> tuple[dict[str, Any], ...]:
    return tuple({**shape, "code": code} for shape in ODD)


Baselines = Callable[..., tuple[Baseline, ...]]


def _of_a_matrix(function: Callable[[torch.Tensor, str, int], object]) -> Baselines:
    """Return what times ``torch.compile`` of a function of the matrix, the code and the group."""

    def made(
        device: torch.device, *, rows: int, columns: int, group: int, code: str, dtype: torch.dtype, **_: object
    ) -> tuple[Baseline, ...]:
        def draw(seed: int) -> tuple[torch.Tensor]:
            return (baselines.drawn(device, seed, rows, columns, dtype=dtype),)

        return baselines.compiled(lambda x: function(x, code, group), draw, rows * columns * dtype.itemsize)

    return made


def _dequantize_baselines(
    device: torch.device, *, rows: int, columns: int, group: int, code: str, dtype: torch.dtype, **_: object
) -> tuple[Baseline, ...]:
    """Return ``torch.compile`` of the reference, on the tensors that the kernel reads."""

    def draw(seed: int) -> tuple[torch.Tensor | None, ...]:
        q = reference_quantize(baselines.drawn(device, seed, rows, columns), code, group)
        return q.codes, q.scales, q.zeros

    def values(codes: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor | None) -> torch.Tensor:
        return reference_dequantize(Quantized(codes=codes, scales=scales, zeros=zeros, code=code, group=group), dtype)

    return baselines.compiled(values, draw, rows * columns // CODES[code].per_byte + 4 * rows * columns // group)


_QUANTIZED = _of_a_matrix(lambda x, code, group: reference_quantize(x, code, group).tensors())
_FAKED = _of_a_matrix(lambda x, code, group: reference_dequantize(reference_quantize(x, code, group), x.dtype))


def _ops(code: str) -> tuple[CudaOp, ...]:
    kind, source = CODES[code], _source(code)
    real = tuple(
        {"rows": 8192, "columns": 8192, "code": code, "group": group, "dtype": torch.bfloat16} for group in (128, 8192)
    )
    static = ({"rows": 3, "columns": 40, "group": 40, "code": code, "static": True},) if kind.static else ()
    note = f"{code} in groups of columns, {'with a zero point' if kind.asymmetric else 'symmetric'}"
    return (
        CudaOp(name=f"quantize {code}", note=note, source=source, tolerance=0, prepare=prepare_quantize,
               variants=_variants(code) + static, sizes=real, baselines=_QUANTIZED),
        CudaOp(name=f"dequantize {code}", note=note, source=source, tolerance=0, prepare=prepare_dequantize,
               variants=_variants(code), sizes=real, baselines=_dequantize_baselines),
        CudaOp(name=f"fake-quantize {code}", note=note, source=source, tolerance=0, prepare=prepare_fake,
               variants=_variants(code), sizes=real, baselines=_FAKED),
    )  # fmt: skip


OPS = tuple(op for code in CODES for op in _ops(code))
