"""Float32 to GGUF's Q4_K, Q3_K and Q6_K on the device, byte for byte as llama.cpp without an importance matrix."""

from __future__ import annotations

import torch

from ...build.source import CudaSource
from ..contract import check_choice, check_matrix
from ..launch import CudaOp, Executor, Launch, Long, Problem, drawn, line, nbytes
from . import k_quant_reference
from .gguf_blocks import FORMATS

BLOCK = 128
LANES = {"q4_k": 8, "q3_k": 16, "q6_k": 16}
"""Threads that share a block of 256 values: one for each sub-block."""
SOURCE = CudaSource(file="k_quants.cu", entries=tuple(f"quantize_{name}" for name in LANES))
_WRITERS = {"q4_k": k_quant_reference.q4_k, "q3_k": k_quant_reference.q3_k, "q6_k": k_quant_reference.q6_k}
_OPERATIONS = {"q4_k": 560, "q3_k": 170, "q6_k": 210}
"""Additions and multiplications of a value, counted from the searches: about the same for every input."""


def quantize(x: torch.Tensor, name: str, *, on: Executor) -> torch.Tensor:
    """Return the blocks of ``x``, finite float32 ``[rows, columns]``, as uint8 ``[rows, bytes]``; columns a multiple of
    256.  Raises ArgumentError."""
    check_choice("format", name, tuple(LANES))
    form = FORMATS[name]
    check_matrix("x", x, on, (torch.float32,), form.values)
    count = x.numel() // form.values
    out = on.empty((x.shape[0], x.shape[1] // form.values * form.size), torch.uint8)
    grid = line(count * LANES[name], BLOCK)
    on.run(SOURCE, Launch(entry=f"quantize_{name}", grid=grid, block=BLOCK, arguments=(x, out, Long(count))))
    return out


def reference(x: torch.Tensor, name: str) -> torch.Tensor:
    """Compute the blocks with torch."""
    return _WRITERS[name](x.reshape(-1, 256)).reshape(x.shape[0], -1)


def prepare(on: Executor, seed: int, *, rows: int, columns: int, name: str) -> Problem:
    """Draw rows of very different size; the first block begins with zeros, a constant and equal peaks."""
    x = drawn(on, seed, rows, columns) * torch.logspace(0, -6, rows, device=on.device)[:, None]
    x[0, :32], x[0, 32:64] = 0, 0.25
    x[0, 70], x[0, 75] = 3.5, -3.5
    written = x.numel() // 256 * FORMATS[name].size
    return Problem(
        launch=lambda: (quantize(x, name, on=on),), reference=lambda: (reference(x, name),), read=nbytes(x),
        written=written, operations=_OPERATIONS[name] * x.numel(),
    )  # fmt: skip


def _op(name: str) -> CudaOp:
    return CudaOp(
        name=f"quantize {name}", note=f"float32 to GGUF {name} blocks, searching their scales", source=SOURCE,
        tolerance=0, prepare=prepare,
        variants=({"rows": 1, "columns": 256, "name": name}, {"rows": 7, "columns": 768, "name": name}),
        sizes=({"rows": 8192, "columns": 8192, "name": name},),
    )  # fmt: skip


OPS = tuple(map(_op, LANES))
