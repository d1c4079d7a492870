"""oneDNN's dynamic INT8 linear layer through torch: INT8 weights per channel, activations quantized per tensor."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import torch

from ..op import Case, Op

SHAPES = ((16, 32, 1), (64, 128, 3), (256, 512, 16), (512, 128, 33))


def missing() -> str | None:
    """Return why it cannot run, None if it can."""
    if "onednn" not in torch.backends.quantized.supported_engines:
        return f"this torch ({torch.__version__}) has no oneDNN"
    if not hasattr(torch.ops.quantized, "linear_dynamic"):
        return f"this torch ({torch.__version__}) has no quantized::linear_dynamic"
    if _saturates():
        return "oneDNN's sums of 8-bit products saturate on this processor, which has no VNNI"
    return None


@functools.cache
def _saturates() -> bool:
    """Return whether the largest codes give another product: without VNNI two products are added in 16 bits."""
    packed = _packed(torch.ones(16, 32), torch.full((16,), 1 / 127))
    return bool((torch.ops.quantized.linear_dynamic(torch.ones(1, 32), packed, False) - 32).abs().max() > 0.5)


def _packed(weight: torch.Tensor, scale: torch.Tensor) -> Any:
    """Return the weights in oneDNN's own order; torch's engine setting is put back."""
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = "onednn"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch announces the end of quantized tensors, not of this operator
            zero = torch.zeros(len(scale), dtype=torch.long)
            return torch.ops.quantized.linear_prepack(
                torch.quantize_per_channel(weight, scale, zero, 0, torch.qint8), None
            )
    finally:
        torch.backends.quantized.engine = before


def prepare(rows: int, columns: int, batch: int, seed: int) -> Case:
    """Draw weights and activations, and pack the weights."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(rows, columns, generator=generator)
    x = torch.randn(batch, columns, generator=generator)
    scale = weight.abs().amax(1) / 127
    packed = _packed(weight, scale)

    def launch() -> torch.Tensor:
        product: torch.Tensor = torch.ops.quantized.linear_dynamic(x, packed, False)
        return product

    def reference() -> torch.Tensor:
        low, high = x.min().clamp_max(0), x.max().clamp_min(0)
        step = (high - low) / 255
        zero = (-low / step).round()
        levels = ((x / step).round() + zero).clamp(0, 255) - zero
        codes = (weight / scale[:, None]).round().clamp(-128, 127)
        return (levels.double() @ codes.double().T) * step.double() * scale.double()

    return Case(launch=launch, reference=reference)


def _any_shape(rows: int, columns: int) -> str | None:
    return None


INT8 = Op(
    name="onednn int8 dynamic linear", tolerance=5e-3, available=missing, refuses=_any_shape, prepare=prepare,
    note="INT8 weights per channel, activations quantized to 8 bits per tensor with a zero point, FP32 result",
    variants=SHAPES,
)  # fmt: skip
