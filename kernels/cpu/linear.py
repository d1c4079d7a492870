"""Linear layers on the CPU through torch's own kernels.

``prepare(rows, columns, batch, seed)`` draws weights and inputs, packs them as the kernel wants, and returns the case.
"""

from __future__ import annotations

import functools

import torch

from ..op import Case, Op

SHAPES = ((16, 32, 1), (64, 128, 3), (256, 512, 16), (512, 128, 33))


def _drawn(rows: int, columns: int, batch: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(rows, columns, generator=generator)
    return weight, torch.randn(batch, columns, generator=generator)


def _product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x.double() @ weight.double().T


def float_case(rows: int, columns: int, batch: int, seed: int, dtype: torch.dtype) -> Case:
    """Prepare a plain floating-point product in ``dtype``."""
    weight, x = (tensor.to(dtype) for tensor in _drawn(rows, columns, batch, seed))
    return Case(launch=lambda: torch.nn.functional.linear(x, weight), reference=lambda: _product(x, weight))


def int8_case(rows: int, columns: int, batch: int, seed: int) -> Case:
    """Prepare symmetric INT8 weights (a scale for each row) times activations quantized for each token when seen."""
    weight, x = _drawn(rows, columns, batch, seed)
    scale = weight.abs().amax(dim=1) / 127
    codes = (weight / scale[:, None]).round().to(torch.int8)
    transposed = codes.T

    def quantized() -> tuple[torch.Tensor, torch.Tensor]:
        step = x.abs().amax(dim=1, keepdim=True) / 127
        return (x / step).round().to(torch.int8), step

    def launch() -> torch.Tensor:
        levels, step = quantized()
        return torch._int_mm(levels, transposed).float().mul_(step).mul_(scale)

    def reference() -> torch.Tensor:
        levels, step = quantized()
        return _product(levels, codes) * step.double() * scale.double()

    return Case(launch=launch, reference=reference)


def int4_case(rows: int, columns: int, batch: int, seed: int, group: int) -> Case:
    """Prepare 4-bit weights, ``value = scale * (code - 8) + shift`` in groups of columns, bfloat16 activations."""
    weight, x = _drawn(rows, columns, batch, seed)
    x = x.bfloat16()
    grouped = weight.reshape(rows, -1, group)
    low, high = grouped.amin(dim=2), grouped.amax(dim=2)
    scale = ((high - low) / 15).bfloat16()
    shift = (low + 8 * scale.float()).bfloat16()
    centred = (grouped - shift.float()[..., None]) / scale.float()[..., None]
    codes = (centred.round() + 8).clamp(0, 15).to(torch.int32)
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes.reshape(rows, columns), 1)
    parameters = torch.stack([scale.T, shift.T], dim=2).contiguous()

    def launch() -> torch.Tensor:
        product: torch.Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(x, packed, group, parameters)
        return product

    def reference() -> torch.Tensor:
        values = (codes.double() - 8) * scale.double()[..., None] + shift.double()[..., None]
        return _product(x, values.reshape(rows, columns))

    return Case(launch=launch, reference=reference)


def _always() -> str | None:
    return None


def _any_shape(rows: int, columns: int) -> str | None:
    return None


def _int4_available() -> str | None:
    for name in ("_convert_weight_to_int4pack_for_cpu", "_weight_int4pack_mm_for_cpu"):
        if not hasattr(torch.ops.aten, name):
            return f"this torch ({torch.__version__}) has no {name}"
    return None


def _int4_refuses(rows: int, columns: int, group: int) -> str | None:
    if rows % 16:
        return f"the packed INT4 kernel wants a multiple of 16 rows, the layer has {rows}"
    if columns % group:
        return f"the packed INT4 kernel wants a multiple of {group} columns, the layer has {columns}"
    return None


FP32 = Op(
    name="torch fp32 linear", note="FP32 weights and activations", tolerance=1e-5, available=_always,
    refuses=_any_shape, prepare=functools.partial(float_case, dtype=torch.float32), variants=SHAPES,
)  # fmt: skip
BF16 = Op(
    name="torch bf16 linear", note="bfloat16 weights and activations", tolerance=1e-2, available=_always,
    refuses=_any_shape, prepare=functools.partial(float_case, dtype=torch.bfloat16), variants=SHAPES,
)  # fmt: skip
INT8 = Op(
    name="torch int8 dynamic linear", tolerance=1e-5, available=_always, refuses=_any_shape, prepare=int8_case,
    note="INT8 weights per channel, activations quantized to INT8 per token, FP32 result", variants=SHAPES,
)  # fmt: skip


def int4(group: int) -> Op:
    """Return the packed INT4 kernel for groups of ``group`` columns."""
    return Op(
        name=f"torch int4 group {group} linear", tolerance=1e-2, available=_int4_available,
        note=f"INT4 weight-only, group {group}, bfloat16 activations, scales and shifts",
        refuses=functools.partial(_int4_refuses, group=group), prepare=functools.partial(int4_case, group=group),
        variants=tuple(shape for shape in SHAPES if shape[1] % group == 0),
    )  # fmt: skip


INT4 = {group: int4(group) for group in (32, 64, 128)}
