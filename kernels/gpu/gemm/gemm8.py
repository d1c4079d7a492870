"""Products of one-byte operands with the scales, the bias and the conversion fused: W8A8 INT8 and FP8 (E4M3).

``out[m, n] = left[m] * right[n] * sum_k a[m, k] b[n, k] + bias[n]``: ``left`` per token, ``right`` per channel.
"""

from __future__ import annotations

import functools

import torch

from ...build.source import CudaSource
from .. import baselines
from ..contract import (
    check_choice,
    check_count,
    check_matrix,
    check_multiple,
    check_tensor,
    check_vectors,
)
from ..launch import (
    FLOATS,
    Baseline,
    CudaOp,
    Executor,
    Int,
    Launch,
    Problem,
    ceil_div,
    drawn,
    drawn_integers,
    line,
    nbytes,
)

SIDES = (64, 128)
STAGES = 3
OUTPUTS = (torch.float16, torch.bfloat16)


def _entries(prefix: str) -> tuple[str, ...]:
    return tuple(f"{prefix}_{side}_{FLOATS[dtype]}" for side in SIDES for dtype in OUTPUTS)


INT8 = CudaSource(file="gemm_int8.cu", entries=_entries("gemm_int8"))
FP8 = CudaSource(file="gemm_fp8.cu", entries=_entries("gemm_fp8"), architectures=("sm_89", "sm_90", "sm_100", "sm_120"))
FEW = (1, 4, 8)
"""Rows of activations that the kernels without tensor cores are made for."""
GEMV_OUTPUTS = 8


def _few_entries(code: str) -> tuple[str, ...]:
    return tuple(f"gemv_{code}_{rows}_{FLOATS[dtype]}" for rows in FEW for dtype in OUTPUTS)


GEMV = {
    torch.int8: CudaSource(file="gemv_int8.cu", entries=_few_entries("int8")),
    torch.float8_e4m3fn: CudaSource(file="gemv_fp8.cu", entries=_few_entries("e4m3"), architectures=FP8.architectures),
}
WGMMA = {
    dtype: CudaSource(file=f"gemm_{name}_wgmma.cu", entries=(f"gemm_{name}_wgmma_bf16",), architectures=("sm_90a",))
    for dtype, name in ((torch.int8, "int8"), (torch.float8_e4m3fn, "fp8"))
}
WGMMA_SIDE, WGMMA_STAGES = 128, 4
_KINDS = {torch.int8: (INT8, "gemm_int8"), torch.float8_e4m3fn: (FP8, "gemm_fp8")}


def check_operands(
    a: torch.Tensor, b: torch.Tensor, left: torch.Tensor, right: torch.Tensor, bias: torch.Tensor | None, on: Executor
) -> tuple[int, int, int]:
    """Return M, N and K; raises ArgumentError."""
    m, k = check_matrix("a", a, on, tuple(_KINDS), 16, "K, the columns of a,")
    check_tensor("b", b, on, (a.dtype,), (None, k))
    n = b.shape[0]
    check_vectors(on, torch.float32, {"left": (left, (m,)), "right": (right, (n,)), "bias": (bias, (n,))})
    check_count("the result", m * n)
    return m, n, k


def gemm(
    a: torch.Tensor, b: torch.Tensor, left: torch.Tensor, right: torch.Tensor, bias: torch.Tensor | None = None, *,
    out: torch.dtype = torch.float16, kernel: str | None = None, on: Executor,
) -> torch.Tensor:  # fmt: skip
    """Return the product ``[M, N]`` of ``a`` ``[M, K]`` and ``b`` ``[N, K]``, both int8 or both float8_e4m3fn.

    ``left`` ``[M]``, ``right`` and ``bias`` ``[N]`` are float32; ``kernel`` (``few`` for up to 8 rows, ``tile64``,
    ``tile128``) overrides the choice.  Raises ArgumentError.
    """
    m, n, k = check_operands(a, b, left, right, bias, on)
    check_choice("out", out, OUTPUTS)
    name = chosen(m, n, on.processors) if kernel is None else kernel
    check_choice("kernel", name, kernels(m))
    source, prefix = _KINDS[a.dtype]
    made = on.empty((m, n), out)
    if name == "few":
        rows = next(rows for rows in FEW if m <= rows)
        entry = f"gemv_{'int8' if a.dtype == torch.int8 else 'e4m3'}_{rows}_{FLOATS[out]}"
        on.run(GEMV[a.dtype], Launch(entry=entry, grid=line(n, GEMV_OUTPUTS), block=128, arguments=(
            a, b, left, right, bias, made, Int(m), Int(n), Int(k))))  # fmt: skip
        return made
    tile = int(name[4:])
    on.run(source, Launch(
        entry=f"{prefix}_{tile}_{FLOATS[out]}", grid=(ceil_div(n, tile), ceil_div(m, tile), 1), block=2 * tile,
        shared=STAGES * 2 * tile * 64, arguments=(a, b, left, right, bias, made, Int(m), Int(n), Int(k)),
    ))  # fmt: skip
    return made


def kernels(m: int) -> tuple[str, ...]:
    """Return the kernels that take ``m`` rows of activations."""
    tiles = tuple(f"tile{side}" for side in SIDES)
    return ("few", *tiles) if m <= FEW[-1] else tiles


def chosen(m: int, n: int, processors: int) -> str:
    """Return the kernel where none was measured."""
    if m <= FEW[-1]:
        return "few"
    return f"tile{SIDES[ceil_div(m, 128) * ceil_div(n, 128) >= processors]}"


def gemm_wgmma(
    a: torch.Tensor, b: torch.Tensor, left: torch.Tensor, right: torch.Tensor, bias: torch.Tensor | None = None, *,
    on: Executor,
) -> torch.Tensor:  # fmt: skip
    """Return the same in bfloat16 through Hopper's own instructions (sm_90a); K a multiple of 128."""
    m, n, k = check_operands(a, b, left, right, bias, on)
    check_multiple("K, the columns of a,", k, 128)
    made = on.empty((m, n), torch.bfloat16)
    source = WGMMA[a.dtype]
    on.run(source, Launch(
        entry=source.entries[0], grid=(ceil_div(n, WGMMA_SIDE), ceil_div(m, WGMMA_SIDE), 1), block=256,
        shared=WGMMA_STAGES * 2 * WGMMA_SIDE * 128,
        arguments=(a, b, left, right, bias, made, Int(m), Int(n), Int(k)),
    ))  # fmt: skip
    return made


def reference(
    a: torch.Tensor, b: torch.Tensor, left: torch.Tensor, right: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """Compute the same in float64, in which integer sums are exact."""
    product = (a.double() @ b.double().T) * left.double()[:, None] * right.double()
    return product if bias is None else product + bias.double()


def prepare(
    on: Executor, seed: int, *, m: int, n: int, k: int, dtype: torch.dtype, out: torch.dtype = torch.float16,
    bias: bool = False, kernel: str | None = None, wgmma: bool = False,
) -> Problem:  # fmt: skip
    """Draw operands over the whole range of their codes."""
    if dtype == torch.int8:
        a, b = (drawn_integers(on, seed + i, -128, 128, r, k, dtype=dtype) for i, r in enumerate((m, n)))
    else:
        a, b = (drawn(on, seed + i, r, k).to(dtype) for i, r in enumerate((m, n)))
    left, right = (drawn(on, seed + 2 + i, r).abs() / 100 + 0.001 for i, r in enumerate((m, n)))
    added = drawn(on, seed + 4, n) if bias else None
    launch = (
        functools.partial(gemm_wgmma, a, b, left, right, added, on=on) if wgmma
        else functools.partial(gemm, a, b, left, right, added, out=out, kernel=kernel, on=on)
    )  # fmt: skip
    return Problem(
        launch=lambda: (launch(),), reference=lambda: (reference(a, b, left, right, added),),
        read=nbytes(a, b, left, right, added), written=2 * m * n, operations=2 * m * n * k,
    )  # fmt: skip


def _baselines(
    device: torch.device, *, m: int, n: int, k: int, dtype: torch.dtype = torch.float8_e4m3fn, **_: object
) -> tuple[Baseline, ...]:
    return baselines.eight_bit(device, m=m, n=n, k=k, dtype=dtype)


def _op(name: str, source: CudaSource, dtype: torch.dtype, note: str) -> CudaOp:
    return CudaOp(
        name=name, note=note, source=source, tolerance=4e-3, prepare=prepare, baselines=_baselines,
        tunables=lambda processors, **shape: tuple({"kernel": name} for name in kernels(shape["m"])),
        variants=(
            {"m": 1, "n": 1, "k": 16, "dtype": dtype, "kernel": "tile64"},
            {"m": 33, "n": 70, "k": 208, "dtype": dtype, "kernel": "tile64", "bias": True},
            {"m": 64, "n": 65, "k": 448, "dtype": dtype, "kernel": "tile64", "out": torch.bfloat16},
            {"m": 100, "n": 131, "k": 336, "dtype": dtype, "kernel": "tile128", "bias": True, "out": torch.bfloat16},
            {"m": 130, "n": 40, "k": 64, "dtype": dtype, "kernel": "tile128"},
        ),
        sizes=tuple(
            {"m": m, "n": 8192, "k": 8192, "dtype": dtype, "out": torch.bfloat16}
            for m in (1, 4, 16, 128, 1024, 4096, 8192)
        ),
    )  # fmt: skip


def _few_op(dtype: torch.dtype, name: str) -> CudaOp:
    return CudaOp(
        name=f"w8a8 {name} gemv", source=GEMV[dtype], tolerance=4e-3, prepare=prepare, baselines=_baselines,
        note=f"{name} x {name} for up to 8 rows of activations, scales per token and channel, bias",
        variants=(
            {"m": 1, "n": 1, "k": 16, "dtype": dtype}, {"m": 3, "n": 21, "k": 528, "dtype": dtype, "bias": True},
            {"m": 8, "n": 16, "k": 1552, "dtype": dtype, "out": torch.bfloat16},
            {"m": 5, "n": 70, "k": 64, "dtype": dtype, "bias": True, "out": torch.bfloat16},
        ),
        sizes=tuple({"m": m, "n": 8192, "k": 8192, "dtype": dtype, "kernel": "few"} for m in (1, 4, 8)),
    )  # fmt: skip


GEMV_OPS = (_few_op(torch.int8, "int8"), _few_op(torch.float8_e4m3fn, "fp8"))
INT8_OP = _op("w8a8 int8 gemm", INT8, torch.int8, "INT8 x INT8, 32-bit sums, scales per token and channel, bias")
FP8_OP = _op("fp8 gemm", FP8, torch.float8_e4m3fn, "E4M3 x E4M3 by mma.sync, scales per token and channel, bias")


def _wgmma_op(name: str, dtype: torch.dtype, tolerance: float) -> CudaOp:
    return CudaOp(
        name=f"{name} gemm wgmma", note=f"{name} x {name} by wgmma, Hopper only", source=WGMMA[dtype],
        tolerance=tolerance, prepare=prepare, variants=(), baselines=_baselines,
        sizes=tuple({"m": m, "n": 8192, "k": 8192, "dtype": dtype, "wgmma": True} for m in (1, 128, 1000, 4096, 8192)),
    )  # fmt: skip


WGMMA_OPS = (_wgmma_op("w8a8 int8", torch.int8, 4e-3), _wgmma_op("fp8", torch.float8_e4m3fn, 1e-2))
"""Not modelled by the emulator of the tests: compiled only, until they have run on a device."""
