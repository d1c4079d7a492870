"""The gated activation of an MLP fused with quantization per token: ``silu(gate) * up ~ scale[token] * code``."""

from __future__ import annotations

import torch

from ...build.source import CudaSource
from ..contract import check_choice, check_matrix, check_tensor
from ..launch import FLOATS, CudaOp, Executor, Int, Launch, Long, Problem, drawn, line, nbytes
from .norm_quantize import CODES, DTYPES, Rows, empty_rows

BLOCK, EIGHT = 256, 8
SOURCE = CudaSource(
    file="gate_quantize.cu",
    entries=(
        *(f"gate_quantize_{code}_{FLOATS[dtype]}" for code, _ in CODES.values() for dtype in DTYPES),
        *(f"gate_{FLOATS[dtype]}" for dtype in DTYPES),
    ),
)


def gate_quantize(gate: torch.Tensor, up: torch.Tensor, codes: torch.dtype | None, *, on: Executor) -> Rows:
    """Return the rows of ``silu(gate) * up``, both ``[tokens, columns]`` of float16 or bfloat16, columns a multiple of
    8, as ``codes`` (int8, float8_e4m3fn) or plain values (None).  Raises ArgumentError."""
    check_choice("codes", codes, (*CODES, None))
    tokens, columns = check_matrix("gate", gate, on, DTYPES, EIGHT)
    check_tensor("up", up, on, (gate.dtype,), (tokens, columns))
    rows = empty_rows(tokens, columns, gate.dtype, codes, on)
    if codes is None or rows.scales is None:
        grid, entry = line(gate.numel(), EIGHT * BLOCK), f"gate_{FLOATS[gate.dtype]}"
        on.run(SOURCE, Launch(entry=entry, grid=grid, block=BLOCK, arguments=(
            gate, up, rows.values, Long(gate.numel()))))  # fmt: skip
        return rows
    on.run(SOURCE, Launch(
        entry=f"gate_quantize_{CODES[codes][0]}_{FLOATS[gate.dtype]}", grid=(tokens, 1, 1), block=BLOCK,
        arguments=(gate, up, rows.values, rows.scales, Int(columns)),
    ))  # fmt: skip
    return rows


def reference(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Compute ``silu(gate) * up`` in float64."""
    return torch.nn.functional.silu(gate.double()) * up.double()


def prepare(
    on: Executor, seed: int, *, tokens: int, columns: int, codes: torch.dtype | None,
    dtype: torch.dtype = torch.float16,
) -> Problem:  # fmt: skip
    """Draw both inputs; the result is decoded, so that it lies within half a step of the exact one."""
    gate, up = (drawn(on, seed + i, tokens, columns, dtype=dtype) for i in range(2))
    gate[-1, columns // 2] = -30
    written = nbytes(gate) if codes is None else tokens * (columns + 4)
    return Problem(
        launch=lambda: (gate_quantize(gate, up, codes, on=on).decoded(),),
        reference=lambda: (reference(gate, up),), read=nbytes(gate, up), written=written, operations=6 * gate.numel(),
    )  # fmt: skip


def _op(name: str, codes: torch.dtype | None, tolerance: float) -> CudaOp:
    return CudaOp(
        name=name, source=SOURCE, tolerance=tolerance, prepare=prepare,
        note=f"silu(gate) * up, {'plain' if codes is None else 'quantized per token'}",
        variants=tuple(
            {"tokens": tokens, "columns": columns, "codes": codes, "dtype": dtype}
            for tokens, columns, dtype in ((1, 8, torch.float16), (3, 2088, torch.float16), (2, 4096, torch.bfloat16))
        ),
        sizes=tuple({"tokens": t, "columns": 14336, "codes": codes, "dtype": torch.bfloat16} for t in (1, 128, 4096)),
    )  # fmt: skip


OPS = (
    _op("gate", None, 4e-3),
    _op("gate quantize int8", torch.int8, 0.505 / 127),
    _op("gate quantize e4m3", torch.float8_e4m3fn, 16.2 / 448),
)
"""Tolerances: half of bfloat16's last bit; half a step of the codes, of which the largest is 127 or 448 (step 32)."""
