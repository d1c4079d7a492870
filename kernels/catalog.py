"""Every kernel there is: linear layers on the CPU, and CUDA kernels with their contracts."""

from __future__ import annotations

from .bench import cuda_layers as cuda_linear
from .build.source import CudaSource
from .cpu import linear, matmul_nbits, onednn
from .gpu.attention import block, cache_append, decode_attention
from .gpu.device import unavailable
from .gpu.gemm import gemm8, w4a16
from .gpu.launch import CudaOp
from .gpu.quantize import (
    fp4_blocks,
    gate_quantize,
    gguf_blocks,
    group_quantize,
    k_quants,
    norm_quantize,
    statistics,
)
from .op import Op

OPS: tuple[Op, ...] = (
    linear.FP32, linear.BF16, linear.INT8, onednn.INT8, *linear.INT4.values(), *matmul_nbits.INT4.values()
)  # fmt: skip

SAME_SCHEME: tuple[tuple[Op, ...], ...] = (
    (linear.INT8, onednn.INT8), *((linear.INT4[group], matmul_nbits.INT4[group]) for group in linear.INT4)
)  # fmt: skip
"""Kernels that serve the same weights; ``choice.fastest`` measures which one to take for a shape."""

_CPU: dict[str, tuple[Op, ...]] = {
    "bf16": (linear.BF16,), "int8": SAME_SCHEME[0],
    **{f"int4 group {group}": (linear.INT4[group], matmul_nbits.INT4[group]) for group in linear.INT4},
}  # fmt: skip
_CUDA: dict[str, tuple[Op, ...]] = {
    "fp16": (cuda_linear.FP16,), "bf16": (cuda_linear.BF16,),
    "int8": (cuda_linear.INT8, cuda_linear.INT8_WGMMA), "fp8": (cuda_linear.FP8, cuda_linear.FP8_WGMMA),
    **{f"int4 group {group}": (op,) for group, op in cuda_linear.INT4.items()},
}  # fmt: skip


def candidates(scheme: str) -> tuple[Op, ...]:
    """Return the kernels that serve a scheme on this machine: on its CUDA device if it has one, else on the CPU.

    ``scheme`` is fp16, bf16, int8 (per channel, activations per token), fp8 or ``int4 group N``; () for others.  Hand
    the result to ``choice.fastest``.
    """
    return (_CPU if cuda_reason() else _CUDA).get(scheme, ())


CUDA_OPS: tuple[CudaOp, ...] = (
    statistics.OP, *group_quantize.OPS, *fp4_blocks.OPS, *gguf_blocks.OPS, *k_quants.OPS, w4a16.OP,
    gemm8.INT8_OP, gemm8.FP8_OP, *gemm8.WGMMA_OPS, *gemm8.GEMV_OPS, decode_attention.OP, norm_quantize.OP,
    norm_quantize.PLAIN_OP, *gate_quantize.OPS, cache_append.OP, block.OP,
)  # fmt: skip

SOURCES: tuple[CudaSource, ...] = tuple(dict.fromkeys(op.source for op in CUDA_OPS))
"""Every ``.cu`` file."""


def cuda_reason() -> str | None:
    """Return why no CUDA kernel runs here, None if they do."""
    return unavailable()
