"""Half activations times 4-bit weights in groups: a kernel for up to 8 rows of activations, tiles for more.

``W[n, k] = scale[n, k // group] * (code[n, k] - zero[n, k // group])``, zero 8 where the weights are symmetric.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .errors import ArgumentError
from .launch import (
    CudaOp,
    Executor,
    Int,
    Launch,
    Long,
    Problem,
    ceil_div,
    check_choice,
    check_multiple,
    check_tensor,
    drawn,
    nbytes,
)
from .source import CudaSource

FEW = 8
TILES = (16, 32, 64)
GROUPS = (64, 128, 256)
STAGES = 4
SOURCE = CudaSource(
    file="w4a16.cu",
    entries=(*(f"w4a16_{kind}{zeros}" for kind in ("few", *(f"tile{t}" for t in TILES)) for zeros in ("", "_zeros")),
             "w4a16_sum"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PackedWeights:
    """``words`` int32 ``[columns / 16, rows / 16, 32]`` in the order of mma fragments (see w4a16.cu); ``scales``
    float16 ``[columns / group, rows]``; ``zeros`` the same shape, zero point minus 8, None if symmetric."""

    words: torch.Tensor
    scales: torch.Tensor
    zeros: torch.Tensor | None
    rows: int
    columns: int
    group: int

    def nbytes(self) -> int:
        """Return the bytes of all tensors."""
        return nbytes(self.words, self.scales, self.zeros)


def pack(codes: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor | None) -> PackedWeights:
    """Bring weights into the kernels' order.

    ``codes`` uint8 ``[rows, columns]``, 0 to 15; ``scales`` float16 and ``zeros`` uint8 ``[rows, columns / group]``.
    Raises ArgumentError.
    """
    if codes.ndim != 2 or scales.ndim != 2 or codes.dtype != torch.uint8 or scales.dtype != torch.float16:
        raise ArgumentError(
            f"codes are {codes.dtype} {tuple(codes.shape)} and scales {scales.dtype} {tuple(scales.shape)}; expected "
            "uint8 [rows, columns] and float16 [rows, columns / group]"
        )
    rows, columns = codes.shape
    check_multiple("rows", rows, 128)
    check_multiple("columns", columns, 64)
    group = columns // scales.shape[1] if scales.shape[1] else 0
    check_choice("group", group, GROUPS)
    if scales.shape != (rows, columns // group) or (zeros is not None and zeros.shape != scales.shape):
        raise ArgumentError(f"scales {tuple(scales.shape)} or zeros do not fit {rows} rows and groups of {group}")
    if int(codes.max()) > 15:
        raise ArgumentError(f"codes go to {int(codes.max())}; 4 bits hold 0 to 15")
    shifted = None if zeros is None else (zeros.half() - 8).T.contiguous()
    return PackedWeights(
        words=_words(codes), scales=scales.T.contiguous(), zeros=shifted, rows=rows, columns=columns, group=group
    )


def _words(codes: torch.Tensor) -> torch.Tensor:
    rows, columns = codes.shape
    tiles = codes.T.reshape(columns // 16, 16, rows // 16, 16).permute(0, 2, 1, 3).to(torch.int64)  # [k, n, 16, 16]
    lane = torch.arange(32, device=codes.device)
    words = torch.zeros(columns // 16, rows // 16, 32, dtype=torch.int64, device=codes.device)
    for nibble in range(8):
        register, high = nibble % 4, nibble // 4
        k = lane % 4 * 2 + 8 * (register % 2) + high
        words |= tiles[:, :, k, lane // 4 + 8 * (register // 2)] << 4 * nibble
    return (words & 0xFFFFFFFF).where(words < 2**31, words - 2**32).to(torch.int32)


def _splits(on: Executor, blocks: int, most: int) -> int:
    """Return in how many parts to cut K, so that every multiprocessor has about four blocks."""
    return max(1, min(most, ceil_div(4 * on.processors, blocks)))


def variant(m: int) -> str:
    """Return the kernel for ``m`` rows of activations."""
    return "few" if m <= FEW else f"tile{next((t for t in TILES if m <= t), TILES[-1])}"


def linear(
    x: torch.Tensor, w: PackedWeights, bias: torch.Tensor | None = None, *, on: Executor, kernel: str | None = None
) -> torch.Tensor:
    """Return ``x W^T + bias``, float16 ``[M, rows]``, for float16 ``x`` ``[M, columns]``; K is summed in float32.

    ``kernel`` overrides the choice of ``variant``.  Raises ArgumentError.
    """
    half = (torch.float16,)
    check_tensor("x", x, on, half, (None, w.columns))
    check_tensor("words", w.words, on, (torch.int32,), (w.columns // 16, w.rows // 16, 32))
    check_tensor("scales", w.scales, on, half, (w.columns // w.group, w.rows))
    if w.zeros is not None:
        check_tensor("zeros", w.zeros, on, half, (w.columns // w.group, w.rows))
    if bias is not None:
        check_tensor("bias", bias, on, half, (w.rows,))
    m = x.shape[0]
    name = variant(m) if kernel is None else kernel
    tiles = tuple(f"tile{tile}" for tile in TILES)
    check_choice("kernel", name, ("few", *tiles) if m <= FEW else tiles)
    out = on.empty((m, w.rows), torch.float16)
    part, splits = _few(x, w, on) if name == "few" else _tiles(x, w, int(name[4:]), on)
    on.run(SOURCE, Launch(entry="w4a16_sum", grid=(ceil_div(out.numel(), 256), 1, 1), block=256, arguments=(
        part, bias, out, Int(splits), Long(out.numel()), Int(w.rows))))  # fmt: skip
    return out


def _few(x: torch.Tensor, w: PackedWeights, on: Executor) -> tuple[torch.Tensor, int]:
    groups = w.columns // w.group
    per_split = ceil_div(groups, _splits(on, w.rows // 64, ceil_div(groups, 8)))
    splits = ceil_div(groups, per_split)
    return _run("few", x, w, on, (w.rows // 64, splits, 1), 256, 0, per_split, splits), splits


def _tiles(x: torch.Tensor, w: PackedWeights, tile: int, on: Executor) -> tuple[torch.Tensor, int]:
    down = ceil_div(x.shape[0], tile)
    steps = w.columns // 64
    per_split = ceil_div(steps, _splits(on, down * w.rows // 128, ceil_div(steps, 8)))
    splits = ceil_div(steps, per_split)
    shared = STAGES * (tile * 128 + 128 * 32)
    grid = (w.rows // 128, down, splits)
    return _run(f"tile{tile}", x, w, on, grid, 128, shared, 64 * per_split, splits), splits


def _run(
    name: str, x: torch.Tensor, w: PackedWeights, on: Executor, grid: tuple[int, int, int], block: int, shared: int,
    per_split: int, splits: int,
) -> torch.Tensor:  # fmt: skip
    part = on.empty((splits, x.shape[0], w.rows), torch.float32)
    entry = f"w4a16_{name}{'' if w.zeros is None else '_zeros'}"
    on.run(SOURCE, Launch(entry=entry, grid=grid, block=block, shared=shared, arguments=(
        x, w.words, w.scales, w.zeros, part, Int(x.shape[0]), Int(w.rows), Int(w.columns), Int(w.group),
        Int(per_split))))  # fmt: skip
    return part


def reference(
    x: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor | None, bias: torch.Tensor | None
) -> torch.Tensor:
    """Compute the same in float64 from the unpacked weights."""
    grouped = codes.double().reshape(codes.shape[0], scales.shape[1], -1)
    zero = 8.0 if zeros is None else zeros.double()[..., None]
    weight = ((grouped - zero) * scales.double()[..., None]).reshape(codes.shape)
    product = x.double() @ weight.T
    return product if bias is None else product + bias.double()


def prepare(
    on: Executor, seed: int, *, m: int, rows: int, columns: int, group: int = 128, zeros: bool = False,
    bias: bool = False, kernel: str | None = None,
) -> Problem:  # fmt: skip
    """Draw codes, scales, zero points and activations."""
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(0, 16, (rows, columns), generator=generator, dtype=torch.uint8).to(on.device)
    scales = (torch.rand(rows, columns // group, generator=generator) / 50 + 0.01).half().to(on.device)
    points = torch.randint(0, 16, tuple(scales.shape), generator=generator, dtype=torch.uint8).to(on.device)
    x = drawn(on, seed + 1, m, columns, dtype=torch.float16)
    added = drawn(on, seed + 2, rows, dtype=torch.float16) if bias else None
    w = pack(codes, scales, points if zeros else None)
    return Problem(
        launch=lambda: (linear(x, w, added, on=on, kernel=kernel),),
        reference=lambda: (reference(x, codes, scales, points if zeros else None, added),),
        read=w.nbytes() + nbytes(x, added), written=m * rows * 2, operations=2 * m * rows * columns,
    )  # fmt: skip


OP = CudaOp(
    name="w4a16 linear", source=SOURCE, tolerance=2e-3, prepare=prepare,
    note="4-bit weights in groups, float16 activations, float32 sums, float16 result",
    variants=(
        {"m": 1, "rows": 128, "columns": 128}, {"m": 3, "rows": 128, "columns": 1088, "group": 64, "zeros": True},
        {"m": 8, "rows": 256, "columns": 512, "bias": True}, {"m": 13, "rows": 128, "columns": 640, "zeros": True},
        {"m": 17, "rows": 128, "columns": 256, "bias": True}, {"m": 65, "rows": 128, "columns": 448, "group": 64},
        {"m": 5, "rows": 128, "columns": 256, "kernel": "tile64", "zeros": True},
    ),
    sizes=tuple(
        {"m": m, "rows": 8192, "columns": 8192, "zeros": zeros}
        for m in (1, 4, 8, 16, 32, 64, 128) for zeros in (False, True)
    ),
)  # fmt: skip
