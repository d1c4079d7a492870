"""Every kernel there is: linear layers on the CPU, and CUDA kernels with their contracts."""

from __future__ import annotations

from . import (
    decode_attention,
    fp4_blocks,
    gemm8,
    gguf_blocks,
    group_quantize,
    linear,
    matmul_nbits,
    norm_quantize,
    onednn,
    statistics,
    w4a16,
)
from .device import unavailable
from .launch import CudaOp
from .op import Op
from .source import CudaSource

OPS: tuple[Op, ...] = (
    linear.FP32, linear.BF16, linear.INT8, onednn.INT8, *linear.INT4.values(), *matmul_nbits.INT4.values()
)  # fmt: skip

SAME_SCHEME: tuple[tuple[Op, ...], ...] = (
    (linear.INT8, onednn.INT8), *((linear.INT4[group], matmul_nbits.INT4[group]) for group in linear.INT4)
)  # fmt: skip
"""Kernels that serve the same weights; ``choice.fastest`` measures which one to take for a shape."""

CUDA_OPS: tuple[CudaOp, ...] = (
    statistics.OP, *group_quantize.OPS, *fp4_blocks.OPS, *gguf_blocks.OPS, w4a16.OP, gemm8.INT8_OP, gemm8.FP8_OP,
    gemm8.WGMMA_OP, decode_attention.OP, norm_quantize.OP,
)  # fmt: skip

SOURCES: tuple[CudaSource, ...] = tuple(dict.fromkeys(op.source for op in CUDA_OPS))
"""Every ``.cu`` file."""


def cuda_reason() -> str | None:
    """Return why no CUDA kernel runs here, None if they do."""
    return unavailable()
