"""FP4 in blocks: MXFP4 (OCP Microscaling v1.0: 32 values, a power of two), NVFP4 (16 values, E4M3 and one float32)."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch

from ...build.source import CudaSource
from ...errors import ArgumentError
from .. import baselines
from ..contract import check_choice, check_matrix, check_tensor
from ..exact import divided
from ..launch import FLOATS, Baseline, CudaOp, Executor, Launch, Long, Problem, drawn, line, nbytes

SIZES = {"mxfp4": 32, "nvfp4": 16}
VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
EIGHT, BLOCK = 8, 256
SOURCE = CudaSource(
    file="fp4_blocks.cu",
    entries=tuple(f"{act}_{name}_{t}" for name in SIZES for act in ("quantize", "dequantize") for t in FLOATS.values()),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fp4:
    """``value = scale * tensor_scale * element``.

    ``codes`` uint8 ``[rows, columns / 2]``, the first in the low bits; ``scales`` uint8 ``[rows, columns / block]``:
    the exponent plus 127 (MXFP4) or E4M3 codes (NVFP4); ``tensor_scale`` float32 ``[1]``, None for MXFP4.
    """

    name: str
    codes: torch.Tensor
    scales: torch.Tensor
    tensor_scale: torch.Tensor | None


def _check_tensor_scale(name: str, tensor_scale: torch.Tensor | None, on: Executor) -> None:
    if (tensor_scale is None) != (name == "mxfp4"):
        raise ArgumentError(f"{name} takes {'no' if name == 'mxfp4' else 'a'} tensor_scale")
    if tensor_scale is not None:
        check_tensor("tensor_scale", tensor_scale, on, (torch.float32,), (1,))


def quantize(x: torch.Tensor, name: str, tensor_scale: torch.Tensor | None = None, *, on: Executor) -> Fp4:
    """Quantize ``x`` ``[rows, columns]``; NVFP4's ``tensor_scale`` is largest / 2688.  Raises ArgumentError."""
    check_choice("name", name, tuple(SIZES))
    rows, columns = check_matrix("x", x, on, tuple(FLOATS), SIZES[name])
    _check_tensor_scale(name, tensor_scale, on)
    codes = on.empty((rows, columns // 2), torch.uint8)
    scales = on.empty((rows, columns // SIZES[name]), torch.uint8)
    on.run(SOURCE, Launch(
        entry=f"quantize_{name}_{FLOATS[x.dtype]}", grid=line(x.numel(), EIGHT * BLOCK), block=BLOCK,
        arguments=(x, codes, scales, tensor_scale, Long(x.numel())),
    ))  # fmt: skip
    return Fp4(name=name, codes=codes, scales=scales, tensor_scale=tensor_scale)


def dequantize(q: Fp4, dtype: torch.dtype, *, on: Executor) -> torch.Tensor:
    """Return the values ``[rows, columns]``.  Raises ArgumentError."""
    check_choice("name", q.name, tuple(SIZES))
    check_choice("dtype", dtype, tuple(FLOATS))
    rows, pairs = check_matrix("codes", q.codes, on, (torch.uint8,), SIZES[q.name] // 2, "the bytes of a row of codes")
    columns = 2 * pairs
    _check_tensor_scale(q.name, q.tensor_scale, on)
    check_tensor("scales", q.scales, on, (torch.uint8,), (rows, columns // SIZES[q.name]))
    out = on.empty((rows, columns), dtype)
    on.run(SOURCE, Launch(
        entry=f"dequantize_{q.name}_{FLOATS[dtype]}", grid=line(out.numel(), EIGHT * BLOCK), block=BLOCK,
        arguments=(q.codes, q.scales, q.tensor_scale, out, Long(out.numel())),
    ))  # fmt: skip
    return out


def _scales(q_scales: torch.Tensor, tensor_scale: torch.Tensor | None) -> torch.Tensor:
    if tensor_scale is None:
        return torch.ldexp(torch.ones_like(q_scales, dtype=torch.float32), q_scales.int() - 127)
    return q_scales.view(torch.float8_e4m3fn).float() * tensor_scale


def _codes(scaled: torch.Tensor) -> torch.Tensor:
    """Return the nearest codes: of two values equally near the one with the even code."""
    values = torch.tensor(VALUES, device=scaled.device)
    middles = (values[1:] + values[:-1]) / 2
    magnitude = scaled.abs()[..., None]
    up = torch.tensor([False, True] * 3 + [False], device=scaled.device)
    code = ((magnitude > middles) | ((magnitude == middles) & up)).sum(-1).to(torch.uint8)
    return torch.where((scaled < 0) & (code > 0), code + 8, code)


def reference_quantize(x: torch.Tensor, name: str, tensor_scale: torch.Tensor | None) -> Fp4:
    """Compute the same with torch in float32."""
    blocks = x.float().reshape(x.shape[0], -1, SIZES[name])
    largest = blocks.abs().amax(2)
    if tensor_scale is None:
        stored = (torch.frexp(largest).exponent + 124).clamp(0, 254).where(largest > 0, 0).to(torch.uint8)
    else:
        scales = (divided(largest, 6) / tensor_scale).clamp_max(448).to(torch.float8_e4m3fn).view(torch.uint8)
        stored = torch.where((scales == 0) & (largest > 0), 1, scales).to(torch.uint8)
    scale = _scales(stored, tensor_scale)[..., None]
    codes = torch.where(scale > 0, _codes(blocks / scale), 0).reshape(x.shape).to(torch.uint8)
    return Fp4(name=name, codes=codes[:, 0::2] | codes[:, 1::2] << 4, scales=stored, tensor_scale=tensor_scale)


def reference_dequantize(q: Fp4, dtype: torch.dtype) -> torch.Tensor:
    """Compute the values with torch in float32, rounded once to ``dtype``."""
    table = torch.tensor([*VALUES, *(-value for value in VALUES)], device=q.codes.device)
    codes = torch.stack([q.codes & 15, q.codes >> 4], 2).reshape(*q.scales.shape, SIZES[q.name])
    values = table[codes.long()] * _scales(q.scales, q.tensor_scale).to(q.codes.device)[..., None]
    return values.reshape(q.codes.shape[0], -1).to(dtype)


def prepare_quantize(
    on: Executor, seed: int, *, rows: int, columns: int, name: str, dtype: torch.dtype = torch.float32
) -> Problem:
    """Draw a matrix; its first block is zero, its last holds every value and every middle between two."""
    x = drawn(on, seed, rows, columns, dtype=dtype)
    x[0, :16] = 0
    middles = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6])
    x[-1, -16:] = torch.cat([middles, -middles])
    tensor = None if name == "mxfp4" else (x.abs().amax().float() / 2688).reshape(1)
    expected = reference_quantize(x, name, tensor)

    def launch() -> tuple[torch.Tensor, ...]:
        q = quantize(x, name, tensor, on=on)
        return q.codes, q.scales

    return Problem(
        launch=launch, reference=lambda: (expected.codes, expected.scales), read=nbytes(x),
        written=nbytes(expected.codes, expected.scales), operations=4 * x.numel(),
    )  # fmt: skip


def prepare_dequantize(
    on: Executor, seed: int, *, rows: int, columns: int, name: str, dtype: torch.dtype = torch.float32
) -> Problem:
    """Quantize a random matrix with torch."""
    tensor = None if name == "mxfp4" else torch.full((1,), 0.0017, device=on.device)
    q = reference_quantize(drawn(on, seed, rows, columns), name, tensor)
    return Problem(
        launch=lambda: (dequantize(q, dtype, on=on),), reference=lambda: (reference_dequantize(q, dtype),),
        read=nbytes(q.codes, q.scales), written=rows * columns * dtype.itemsize, operations=2 * rows * columns,
    )  # fmt: skip


def _baselines(
    device: torch.device, *, rows: int, columns: int, name: str, dtype: torch.dtype, action: str, **_: object
) -> tuple[Baseline, ...]:
    """Return ``torch.compile`` of the reference."""
    tensor = None if name == "mxfp4" else torch.full((1,), 0.0017, device=device)

    def draw(seed: int) -> tuple[torch.Tensor, ...]:
        x = baselines.drawn(device, seed, rows, columns, dtype=dtype)
        if action == "quantize":
            return (x,)
        q = reference_quantize(x, name, tensor)
        return q.codes, q.scales

    def encoded(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        q = reference_quantize(x, name, tensor)
        return q.codes, q.scales

    def decoded(codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        return reference_dequantize(Fp4(name=name, codes=codes, scales=scales, tensor_scale=tensor), dtype)

    if action == "quantize":
        return baselines.compiled(encoded, draw, rows * columns * dtype.itemsize)
    return baselines.compiled(decoded, draw, rows * columns // 2 + rows * columns // SIZES[name])


def _op(name: str, action: str) -> CudaOp:
    return CudaOp(
        name=f"{action} {name}", note=f"{name}: FP4 in blocks of {SIZES[name]}", source=SOURCE, tolerance=0,
        prepare=prepare_quantize if action == "quantize" else prepare_dequantize,
        variants=(
            {"rows": 1, "columns": 32, "name": name}, {"rows": 3, "columns": 160, "name": name, "dtype": torch.float16},
            {"rows": 5, "columns": 544, "name": name, "dtype": torch.bfloat16},
        ),
        sizes=({"rows": 8192, "columns": 8192, "name": name, "dtype": torch.bfloat16},),
        baselines=functools.partial(_baselines, action=action),
    )  # fmt: skip


OPS = tuple(_op(name, action) for name in SIZES for action in ("quantize", "dequantize"))
