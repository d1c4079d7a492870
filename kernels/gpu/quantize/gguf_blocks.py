"""GGUF's block formats on the device: Q4_0, Q8_0, Q4_K, Q3_K, Q6_K to values; values to Q4_0 and Q8_0.

Layouts and arithmetic: ``ggml-quants.c`` of llama.cpp.  A row is ``columns / values`` blocks, one after another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from ...build.source import CudaSource
from .. import baselines
from ..contract import check_choice, check_count, check_matrix
from ..exact import divided
from ..launch import FLOATS, Baseline, CudaOp, Executor, Launch, Long, Problem, drawn, line, nbytes

BLOCK = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFormat:
    """``values`` values in ``size`` bytes, decoded by ``lanes`` threads; float16 fields are at ``halves``."""

    name: str
    values: int
    size: int
    lanes: int
    halves: tuple[int, ...]


FORMATS = {
    f.name: f
    for f in (
        BlockFormat(name="q4_0", values=32, size=18, lanes=4, halves=(0,)),
        BlockFormat(name="q8_0", values=32, size=34, lanes=8, halves=(0,)),
        BlockFormat(name="q4_k", values=256, size=144, lanes=32, halves=(0, 2)),
        BlockFormat(name="q3_k", values=256, size=110, lanes=32, halves=(108,)),
        BlockFormat(name="q6_k", values=256, size=210, lanes=32, halves=(208,)),
    )
}
ENCODED = ("q4_0", "q8_0")
SOURCE = CudaSource(
    file="gguf_blocks.cu",
    entries=(
        *(f"dequantize_{name}_{t}" for name in FORMATS for t in FLOATS.values()),
        *(f"quantize_{name}" for name in ENCODED),
    ),
)


def dequantize(blocks: torch.Tensor, name: str, dtype: torch.dtype, *, on: Executor) -> torch.Tensor:
    """Return the values ``[rows, columns]`` of ``blocks``, uint8 ``[rows, bytes]``.  Raises ArgumentError."""
    check_choice("format", name, tuple(FORMATS))
    check_choice("dtype", dtype, tuple(FLOATS))
    form = FORMATS[name]
    check_matrix("blocks", blocks, on, (torch.uint8,), form.size, f"the bytes of a row of {name}")
    count = blocks.numel() // form.size
    check_count("the result", count * form.values)
    out = on.empty((blocks.shape[0], blocks.shape[1] // form.size * form.values), dtype)
    on.run(SOURCE, Launch(
        entry=f"dequantize_{name}_{FLOATS[dtype]}", grid=line(count * form.lanes, BLOCK), block=BLOCK,
        arguments=(blocks, out, Long(count)),
    ))  # fmt: skip
    return out


def quantize(x: torch.Tensor, name: str, *, on: Executor) -> torch.Tensor:
    """Return the blocks of ``x``, float32 ``[rows, columns]``, as uint8 ``[rows, bytes]``.  Raises ArgumentError."""
    check_choice("format", name, ENCODED)
    form = FORMATS[name]
    check_matrix("x", x, on, (torch.float32,), form.values)
    count = x.numel() // form.values
    out = on.empty((x.shape[0], x.shape[1] // form.values * form.size), torch.uint8)
    on.run(SOURCE, Launch(entry=f"quantize_{name}", grid=line(count * 8, BLOCK), block=BLOCK,
                          arguments=(x, out, Long(count))))  # fmt: skip
    return out


def _half(blocks: torch.Tensor, at: int) -> torch.Tensor:
    return blocks[:, at : at + 2].contiguous().view(torch.float16).float()


def _nibbles(raw: torch.Tensor) -> torch.Tensor:
    return torch.stack([raw & 15, raw >> 4], -2)


def _q4_0(b: torch.Tensor) -> torch.Tensor:
    return _half(b, 0) * (_nibbles(b[:, 2:]).flatten(1).float() - 8)


def _q8_0(b: torch.Tensor) -> torch.Tensor:
    return _half(b, 0) * b[:, 2:].contiguous().view(torch.int8).float()


def _q4_k(b: torch.Tensor) -> torch.Tensor:
    packed = b[:, 4:16]
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = torch.cat([first & 63, third & 15 | first >> 6 << 4], 1).float() * _half(b, 0)
    minima = torch.cat([second & 63, third >> 4 | second >> 6 << 4], 1).float() * _half(b, 2)
    codes = _nibbles(b[:, 16:].reshape(-1, 4, 32)).reshape(-1, 8, 32).float()
    return (codes * scales[..., None] - minima[..., None]).flatten(1)


def _q3_k(b: torch.Tensor) -> torch.Tensor:
    packed = b[:, 96:108]
    low = torch.cat([packed[:, :8] & 15, packed[:, :8] >> 4], 1)
    high = torch.cat([packed[:, 8:] >> shift & 3 for shift in (0, 2, 4, 6)], 1)
    scales = (low | high << 4).float() - 32
    pairs = torch.stack([b[:, 32:96].reshape(-1, 2, 32) >> shift & 3 for shift in (0, 2, 4, 6)], 2)
    top = torch.stack([b[:, :32] >> bit & 1 for bit in range(8)], 1).reshape(-1, 2, 4, 32)
    codes = (pairs.float() - 4 * (1 - top.float())).reshape(-1, 16, 16)
    return ((_half(b, 108) * scales)[..., None] * codes).flatten(1)


def _q6_k(b: torch.Tensor) -> torch.Tensor:
    low = _nibbles(b[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    high = torch.stack([b[:, 128:192].reshape(-1, 2, 32) >> shift & 3 for shift in (0, 2, 4, 6)], 2)
    scales = b[:, 192:208].contiguous().view(torch.int8).float()
    codes = ((low | high << 4).float() - 32).reshape(-1, 16, 16)
    return ((_half(b, 208) * scales)[..., None] * codes).flatten(1)


_DECODERS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "q4_0": _q4_0, "q8_0": _q8_0, "q4_k": _q4_k, "q3_k": _q3_k, "q6_k": _q6_k,
}  # fmt: skip


def reference_dequantize(blocks: torch.Tensor, name: str, dtype: torch.dtype) -> torch.Tensor:
    """Compute the values with torch in float32, rounded once to ``dtype``."""
    values = _DECODERS[name](blocks.reshape(-1, FORMATS[name].size))
    return values.reshape(blocks.shape[0], -1).to(dtype)


def reference_quantize(x: torch.Tensor, name: str) -> torch.Tensor:
    """Compute the blocks with torch in float32."""
    blocks = x.reshape(-1, 32)
    if name == "q4_0":
        peak = blocks.gather(1, blocks.abs().argmax(1, keepdim=True))
        scale = torch.where(peak == 0, 0, peak) / -8  # of a block of zeros: minus zero, whatever their signs
        codes = (blocks * _inverse(scale) + 8.5).to(torch.int8).clamp_max(15).to(torch.uint8)
        codes = codes[:, :16] | codes[:, 16:] << 4
    else:
        scale = divided(blocks.abs().amax(1, keepdim=True), 127)
        scaled = blocks * _inverse(scale)
        codes = (scaled.sign() * (scaled.abs() + 0.5).floor()).to(torch.int8).view(torch.uint8)
    return torch.cat([scale.half().view(torch.uint8), codes], 1).reshape(x.shape[0], -1)


def _inverse(scale: torch.Tensor) -> torch.Tensor:
    inverse = 1 / scale
    return torch.where(inverse.isfinite(), inverse, 0)


def random_blocks(seed: int, rows: int, columns: int, name: str) -> torch.Tensor:
    """Return blocks with any codes, and scales that are finite numbers; uint8 ``[rows, bytes]``."""
    form, generator = FORMATS[name], torch.Generator().manual_seed(seed)
    blocks = torch.randint(0, 256, (rows * columns // form.values, form.size), generator=generator, dtype=torch.uint8)
    for at in form.halves:
        scale = torch.randn(len(blocks), 1, generator=generator).half()
        blocks[:, at : at + 2] = scale.view(torch.uint8)
    return blocks.reshape(rows, -1)


def prepare_dequantize(
    on: Executor, seed: int, *, rows: int, columns: int, name: str, dtype: torch.dtype = torch.float32
) -> Problem:
    """Draw blocks at random."""
    blocks = random_blocks(seed, rows, columns, name).to(on.device)
    return Problem(
        launch=lambda: (dequantize(blocks, name, dtype, on=on),),
        reference=lambda: (reference_dequantize(blocks, name, dtype),),
        read=nbytes(blocks), written=rows * columns * dtype.itemsize, operations=2 * rows * columns,
    )  # fmt: skip


def prepare_quantize(on: Executor, seed: int, *, rows: int, columns: int, name: str) -> Problem:
    """Draw values; the first block is zero, the second has its largest magnitude twice, the last has halves."""
    x = drawn(on, seed, rows, columns)
    x[0, :32] = 0
    if columns > 32:
        x[0, 40], x[0, 63] = 9.0, -9.0
        x[-1, -32:] = torch.arange(32) - 15.5
        x[-1, -1] = 127
    written = rows * columns // 32 * FORMATS[name].size
    return Problem(
        launch=lambda: (quantize(x, name, on=on),), reference=lambda: (reference_quantize(x, name),),
        read=nbytes(x), written=written, operations=4 * x.numel(),
    )  # fmt: skip


def _baselines(
    device: torch.device, *, rows: int, columns: int, name: str, dtype: torch.dtype, **_: object
) -> tuple[Baseline, ...]:
    """Return ``torch.compile`` of the reference that decodes."""
    read = rows * columns // FORMATS[name].values * FORMATS[name].size
    return baselines.compiled(
        lambda blocks: reference_dequantize(blocks, name, dtype),
        lambda seed: (random_blocks(seed, rows, columns, name).to(device),), read,
    )  # fmt: skip


def _dequantize_op(name: str) -> CudaOp:
    values = FORMATS[name].values
    return CudaOp(
        name=f"dequantize {name}", note=f"GGUF {name} blocks to values", source=SOURCE, tolerance=0,
        prepare=prepare_dequantize,
        variants=(
            {"rows": 1, "columns": values, "name": name}, {"rows": 3, "columns": 5 * values, "name": name},
            {"rows": 7, "columns": values, "name": name, "dtype": torch.float16},
            {"rows": 2, "columns": 3 * values, "name": name, "dtype": torch.bfloat16},
        ),
        sizes=({"rows": 8192, "columns": 8192, "name": name, "dtype": torch.bfloat16},), baselines=_baselines,
    )  # fmt: skip


def _quantize_op(name: str) -> CudaOp:
    return CudaOp(
        name=f"quantize {name}", note=f"float32 to GGUF {name} blocks", source=SOURCE, tolerance=0,
        prepare=prepare_quantize,
        variants=({"rows": 1, "columns": 32, "name": name}, {"rows": 5, "columns": 224, "name": name}),
        sizes=({"rows": 8192, "columns": 8192, "name": name},),
    )  # fmt: skip


OPS = (*map(_dequantize_op, FORMATS), *map(_quantize_op, ENCODED))
