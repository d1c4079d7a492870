"""Half activations times 4-bit weights in groups: for up to 8 rows of activations, tiles for more, cuBLAS for many.

``W[n, k] = scale[n, k // group] * (code[n, k] - zero[n, k // group])``, zero 8 where the weights are symmetric.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...build.source import CudaSource
from ...errors import ArgumentError
from .. import baselines
from ..contract import check_choice, check_count, check_multiple, check_tensor, check_vectors
from ..launch import (
    Baseline,
    CudaOp,
    Executor,
    Int,
    Launch,
    Problem,
    ceil_div,
    drawn,
    drawn_integers,
    generator,
    line,
    nbytes,
)

FEW = 8
MANY = 128
"""From more rows of activations on, weights are dequantized for cuBLAS."""
TILES = (16, 32, 64)
GROUPS = (16, 32, 64, 128, 256)
STAGES = 4
PADDING = 128
SPAN = 64
"""Columns that a kernel takes at a time."""
SOURCE = CudaSource(
    file="w4a16.cu",
    entries=(
        *(f"w4a16_few{warps}{zeros}" for warps in (8, 16) for zeros in ("", "_zeros")),
        *(f"w4a16_tile{t}{fine}{zeros}" for t in TILES for fine in ("", "_fine") for zeros in ("", "_zeros")),
        "w4a16_dequantize", "w4a16_dequantize_zeros", "w4a16_sum",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PackedWeights:
    """Weights ``[rows, columns]`` with ``padded`` rows, rounded up to a multiple of 128.

    ``words`` int32 ``[columns / 16, padded / 32, 32, 2]`` in the order of mma fragments (see w4a16.cu); ``scales``
    float16 ``[columns / group, padded]``; ``zeros`` the same shape, zero point minus 8, None if symmetric.
    """

    words: torch.Tensor
    scales: torch.Tensor
    zeros: torch.Tensor | None
    rows: int
    columns: int
    group: int

    @property
    def padded(self) -> int:
        """Return the rows that are stored."""
        return ceil_div(self.rows, PADDING) * PADDING

    @property
    def suffix(self) -> str:
        """Return what the names of kernels for these weights end with."""
        return "" if self.zeros is None else "_zeros"

    def nbytes(self) -> int:
        """Return the bytes of all tensors."""
        return nbytes(self.words, self.scales, self.zeros)


def pack(codes: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor | None) -> PackedWeights:
    """Bring weights into the kernels' order.

    ``codes`` uint8 ``[rows, columns]``, 0 to 15, columns a multiple of 64; ``scales`` float16 and ``zeros`` uint8
    ``[rows, columns / group]``; any rows.  Raises ArgumentError.
    """
    group = _check_weights(codes, scales, zeros)
    rows, columns = codes.shape
    missing = -rows % PADDING

    def laid(parameters: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.pad(parameters, (0, 0, 0, missing)).T.contiguous()

    return PackedWeights(
        words=_words(torch.nn.functional.pad(codes, (0, 0, 0, missing))), scales=laid(scales),
        zeros=None if zeros is None else laid(zeros.half() - 8), rows=rows, columns=columns, group=group,
    )  # fmt: skip


def stacked(parts: Sequence[PackedWeights]) -> PackedWeights | None:
    """Return weights whose rows are those of all parts, None where they cannot be joined without another order."""
    first = parts[0]
    alike = all((p.columns, p.group, p.suffix) == (first.columns, first.group, first.suffix) for p in parts)
    if not alike or any(p.rows != p.padded for p in parts[:-1]):
        return None
    zeros = [p.zeros for p in parts if p.zeros is not None]
    return PackedWeights(
        words=torch.cat([p.words for p in parts], 1), scales=torch.cat([p.scales for p in parts], 1),
        zeros=torch.cat(zeros, 1) if zeros else None, rows=sum(p.rows for p in parts), columns=first.columns,
        group=first.group,
    )  # fmt: skip


def _check_weights(codes: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor | None) -> int:
    """Return the group."""
    if codes.ndim != 2 or scales.ndim != 2 or codes.dtype != torch.uint8 or scales.dtype != torch.float16:
        raise ArgumentError(
            f"codes are {codes.dtype} {tuple(codes.shape)} and scales {scales.dtype} {tuple(scales.shape)}; expected "
            "uint8 [rows, columns] and float16 [rows, columns / group]"
        )
    rows, columns = codes.shape
    if not codes.numel():
        raise ArgumentError(f"codes are empty (shape {tuple(codes.shape)}); there is nothing to pack")
    check_multiple("columns", columns, SPAN)
    group = columns // scales.shape[1] if scales.shape[1] else 0
    check_choice("group", group, GROUPS)
    if scales.shape != (rows, columns // group) or columns % group:
        raise ArgumentError(f"scales {tuple(scales.shape)} do not fit {rows} x {columns} codes in groups of {group}")
    if zeros is not None and zeros.shape != scales.shape:
        raise ArgumentError(f"zeros {tuple(zeros.shape)} do not fit scales {tuple(scales.shape)}")
    if int(codes.max()) > 15:
        raise ArgumentError(f"codes go to {int(codes.max())}; 4 bits hold 0 to 15")
    return group


def _words(codes: torch.Tensor) -> torch.Tensor:
    rows, columns = codes.shape
    tiles = codes.T.reshape(columns // 16, 16, rows // 16, 16).permute(0, 2, 1, 3).to(torch.int64)  # [k, n, 16, 16]
    lane = torch.arange(32, device=codes.device)
    words = torch.zeros(columns // 16, rows // 16, 32, dtype=torch.int64, device=codes.device)
    for nibble in range(8):
        register, high = nibble % 4, nibble // 4
        k = lane % 4 * 2 + 8 * (register % 2) + high
        words |= tiles[:, :, k, lane // 4 + 8 * (register // 2)] << 4 * nibble
    signed = (words & 0xFFFFFFFF).where(words < 2**31, words - 2**32).to(torch.int32)
    return signed.reshape(columns // 16, rows // 32, 2, 32).transpose(2, 3).contiguous()


@dataclass(frozen=True, slots=True)
class Variant:
    """A kernel (``few8``, ``few16``, ``tile16``, ``tile32``, ``tile64`` or ``dequantize``) and the parts of K."""

    kernel: str
    splits: int = 1


def _units(kernel: str, w: PackedWeights) -> int:
    """Return into how many parts K can be cut at most."""
    return w.columns // max(w.group, SPAN) if kernel.startswith("few") else w.columns // SPAN


def _blocks(kernel: str, m: int, w: PackedWeights) -> int:
    if kernel.startswith("few"):
        return w.padded // 64
    return ceil_div(m, int(kernel[4:])) * (w.padded // 128)


def chosen(m: int, w: PackedWeights, processors: int) -> Variant:
    """Return the variant for ``m`` rows of activations where none was measured: about enough blocks for the device."""
    if m > MANY:
        return Variant("dequantize")
    kernel = "few16" if m <= FEW else f"tile{next((t for t in TILES if m <= t), TILES[-1])}"
    splits = ceil_div(processors if m <= FEW else 4 * processors, _blocks(kernel, m, w))
    return Variant(kernel, max(1, min(splits, _units(kernel, w) // 8)))


def variants(m: int, w: PackedWeights, processors: int) -> tuple[Variant, ...]:
    """Return what is worth measuring for ``m`` rows of activations, the one of ``chosen`` first."""
    kernels = [f"tile{t}" for t in TILES if t < 2 * m or t == TILES[0]] + (["few8", "few16"] if m <= FEW else [])
    variants = [chosen(m, w, processors)]
    for kernel in kernels:
        most = max(1, min(_units(kernel, w) // 4, ceil_div(8 * processors, _blocks(kernel, m, w))))
        variants += [Variant(kernel, splits) for splits in (1, 2, 3, 4, 6, 8, 12, 16) if splits <= most]
    if m > FEW:
        variants.append(Variant("dequantize"))
    return tuple(dict.fromkeys(variants))


def linear(
    x: torch.Tensor, w: PackedWeights, bias: torch.Tensor | None = None, *, on: Executor,
    variant: Variant | None = None,
) -> torch.Tensor:  # fmt: skip
    """Return ``x W^T + bias``, float16 ``[M, rows]``, for float16 ``x`` ``[M, columns]``; K is summed in float32.

    ``variant`` overrides the choice.  Raises ArgumentError.
    """
    _check_linear(x, w, bias, on)
    m = x.shape[0]
    how = chosen(m, w, on.processors) if variant is None else variant
    few = ("few8", "few16") if m <= FEW else ()
    check_choice("kernel", how.kernel, (*few, *(f"tile{tile}" for tile in TILES), "dequantize"))
    if how.kernel == "dequantize":
        return torch.nn.functional.linear(x, dequantize(w, on=on), bias)
    check_choice("splits", how.splits, range(1, _units(how.kernel, w) + 1))
    out = on.empty((m, w.rows), torch.float16)
    per_split = ceil_div(_units(how.kernel, w), how.splits)
    splits = ceil_div(_units(how.kernel, w), per_split)
    part = on.empty((splits, m, w.padded), torch.float32) if splits > 1 else None
    on.run(SOURCE, _launch(how.kernel, x, w, bias, out, part, splits, per_split))
    if part is not None:
        on.run(SOURCE, Launch(entry="w4a16_sum", grid=line(out.numel(), 256), block=256, arguments=(
            part, bias, out, Int(splits), Int(m), Int(w.rows), Int(w.padded))))  # fmt: skip
    return out


def _check_linear(x: torch.Tensor, w: PackedWeights, bias: torch.Tensor | None, on: Executor) -> None:
    check_tensor("x", x, on, (torch.float16,), (None, w.columns))
    check_tensor("words", w.words, on, (torch.int32,), (w.columns // 16, w.padded // 32, 32, 2))
    groups = (w.columns // w.group, w.padded)
    check_vectors(
        on, torch.float16, {"scales": (w.scales, groups), "zeros": (w.zeros, groups), "bias": (bias, (w.rows,))}
    )
    check_count("the result", x.shape[0] * w.rows)


def _launch(
    kernel: str, x: torch.Tensor, w: PackedWeights, bias: torch.Tensor | None, out: torch.Tensor,
    part: torch.Tensor | None, splits: int, per_split: int,
) -> Launch:  # fmt: skip
    m = x.shape[0]
    if kernel.startswith("few"):
        entry, block, shared = f"w4a16_{kernel}{w.suffix}", 32 * int(kernel[3:]), 0
        grid = (w.padded // 64, splits, 1)
    else:
        tile, fine = int(kernel[4:]), "_fine" if w.group < SPAN else ""
        entry, block, shared = f"w4a16_{kernel}{fine}{w.suffix}", 128, STAGES * (tile * 128 + 128 * 32)
        grid = (w.padded // 128, ceil_div(m, tile), splits)
        per_split *= SPAN
    return Launch(entry=entry, grid=grid, block=block, shared=shared, arguments=(
        x, w.words, w.scales, w.zeros, bias, out, part, Int(m), Int(w.rows), Int(w.padded), Int(w.columns),
        Int(w.group), Int(per_split)))  # fmt: skip


def dequantize(w: PackedWeights, *, on: Executor) -> torch.Tensor:
    """Return the weights, float16 ``[rows, columns]``."""
    out = on.empty((w.rows, w.columns), torch.float16)
    grid = (w.padded // 32, ceil_div(w.columns, 4 * SPAN), 1)
    on.run(SOURCE, Launch(entry=f"w4a16_dequantize{w.suffix}", grid=grid, block=128, arguments=(
        w.words, w.scales, w.zeros, out, Int(w.rows), Int(w.padded), Int(w.columns), Int(w.group))))  # fmt: skip
    return out


def reference(
    x: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor | None, bias: torch.Tensor | None
) -> torch.Tensor:
    """Compute the same in float64 from the unpacked weights."""
    grouped = codes.double().reshape(codes.shape[0], scales.shape[1], -1)
    zero = 8.0 if zeros is None else zeros.double()[..., None]
    weight = ((grouped - zero) * scales.double()[..., None]).reshape(codes.shape)
    product = x.double() @ weight.T
    return product if bias is None else product + bias.double()


def drawn_weights(
    on: Executor, seed: int, rows: int, columns: int, group: int, zeros: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Return codes, scales and zero points (None if symmetric) at random, as ``pack`` takes them."""
    codes = drawn_integers(on, seed, 0, 16, rows, columns)
    uniform = torch.rand(rows, columns // group, generator=generator(on, seed + 1), device=on.device)
    scales = (uniform / 50 + 0.01).half()
    return codes, scales, drawn_integers(on, seed + 2, 0, 16, *scales.shape) if zeros else None


def prepare(
    on: Executor, seed: int, *, m: int, rows: int, columns: int, group: int = 128, zeros: bool = False,
    bias: bool = False, kernel: str | None = None, splits: int = 1,
) -> Problem:  # fmt: skip
    """Draw codes, scales, zero points and activations."""
    codes, scales, points = drawn_weights(on, seed, rows, columns, group, zeros)
    x = drawn(on, seed + 1, m, columns, dtype=torch.float16)
    added = drawn(on, seed + 2, rows, dtype=torch.float16) if bias else None
    w = pack(codes, scales, points)
    how = None if kernel is None else Variant(kernel, splits)
    return Problem(
        launch=lambda: (linear(x, w, added, on=on, variant=how),),
        reference=lambda: (reference(x, codes, scales, points, added),),
        read=w.nbytes() + nbytes(x, added), written=m * rows * 2, operations=2 * m * rows * columns,
    )  # fmt: skip


def _baselines(device: torch.device, *, m: int, rows: int, columns: int, **_: object) -> tuple[Baseline, ...]:
    return baselines.linear(device, m=m, n=rows, k=columns)


def _tunables(
    processors: int, *, m: int, rows: int, columns: int, group: int = 128, **_: object
) -> tuple[dict[str, Any], ...]:
    empty = torch.empty(0)
    w = PackedWeights(words=empty, scales=empty, zeros=None, rows=rows, columns=columns, group=group)
    return tuple({"kernel": v.kernel, "splits": v.splits} for v in variants(m, w, processors))


OP = CudaOp(
    name="w4a16 linear", source=SOURCE, tolerance=2e-3, prepare=prepare, baselines=_baselines, tunables=_tunables,
    note="4-bit weights in groups, float16 activations, float32 sums, float16 result",
    variants=(
        {"m": 1, "rows": 128, "columns": 128}, {"m": 3, "rows": 96, "columns": 1088, "group": 64, "zeros": True},
        {"m": 8, "rows": 256, "columns": 512, "bias": True}, {"m": 13, "rows": 128, "columns": 640, "zeros": True},
        {"m": 17, "rows": 130, "columns": 256, "bias": True}, {"m": 65, "rows": 128, "columns": 448, "group": 64},
        {"m": 5, "rows": 128, "columns": 256, "kernel": "tile64", "zeros": True},
        {"m": 2, "rows": 65, "columns": 320, "group": 32, "kernel": "few8", "splits": 3, "zeros": True, "bias": True},
        {"m": 7, "rows": 128, "columns": 192, "group": 16},
        {"m": 20, "rows": 100, "columns": 192, "group": 32, "zeros": True, "kernel": "tile16", "splits": 2},
        {"m": 33, "rows": 200, "columns": 128, "group": 16, "kernel": "tile32"},
        {"m": 129, "rows": 33, "columns": 192, "group": 32, "zeros": True, "bias": True},
        {"m": 130, "rows": 128, "columns": 320, "group": 64},
    ),
    sizes=tuple(
        {"m": m, "rows": 8192, "columns": 8192, "zeros": zeros}
        for m in (1, 4, 16, 128, 1024, 4096) for zeros in (False, True)
    ) + ({"m": 1, "rows": 8192, "columns": 8192, "group": 32}, {"m": 16, "rows": 8192, "columns": 8192, "group": 32}),
)  # fmt: skip
