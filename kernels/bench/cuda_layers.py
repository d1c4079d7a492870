"""Linear layers on a CUDA device under the contract of ``op.Op``: what a plan's schemes cost there."""

from __future__ import annotations

import functools

import torch

from ..gpu.device import CudaDevice, unavailable
from ..gpu.gemm import gemm8, w4a16
from ..gpu.gemm.projections import EightBit, quantized
from ..gpu.launch import drawn
from ..gpu.quantize import group_quantize
from ..gpu.quantize.norm_quantize import Rows
from ..op import Case, Op

SHAPES = ((128, 128, 1), (130, 256, 3), (256, 512, 16), (512, 128, 33))
GROUPS = (32, 64, 128)


@functools.cache
def device() -> CudaDevice:
    """Return the first device; raises BackendUnavailable."""
    return CudaDevice()


def _float_case(rows: int, columns: int, batch: int, seed: int, dtype: torch.dtype) -> Case:
    on = device()
    weight, x = drawn(on, seed, rows, columns, dtype=dtype), drawn(on, seed + 1, batch, columns, dtype=dtype)
    return Case(
        launch=lambda: torch.nn.functional.linear(x, weight), reference=lambda: x.double() @ weight.double().T,
        read=(rows + batch) * columns * dtype.itemsize,
    )  # fmt: skip


def _four_bit_case(rows: int, columns: int, batch: int, seed: int, group: int) -> Case:
    from ..gpu.recording import Recorder, kernel_uses
    from .cuda import tuned_variant

    on = Recorder(device())
    codes, scales, zeros = w4a16.drawn_weights(on, seed, rows, columns, group, True)
    packed = w4a16.pack(codes, scales, zeros)
    x = drawn(on, seed + 1, batch, columns, dtype=torch.float16)
    shape = {"m": batch, "rows": rows, "columns": columns, "group": group, "zeros": True}
    tuned = tuned_variant(device(), w4a16.OP, shape)
    variant = w4a16.Variant(str(tuned["kernel"]), int(tuned["splits"]))
    return Case(
        launch=lambda: w4a16.linear(x, packed, on=on, variant=variant),
        reference=lambda: w4a16.reference(x, codes, scales, zeros, None), read=packed.nbytes(),
        uses=lambda: kernel_uses(device(), on.launches),
    )  # fmt: skip


def _eight_bit_case(rows: int, columns: int, batch: int, seed: int, kind: str, wgmma: bool = False) -> Case:
    from ..gpu.recording import Recorder, kernel_uses

    on = Recorder(device())
    projection, exact = quantized(drawn(on, seed, rows, columns), kind)
    assert isinstance(projection, EightBit)
    x = drawn(on, seed + 1, batch, columns, dtype=torch.float16)
    code = {"int8": "int8", "fp8": "e4m3"}[kind]

    def launch() -> torch.Tensor:
        made = group_quantize.quantize(x, code, columns, on=on)
        scales = made.scales.view(-1)
        if wgmma:
            return gemm8.gemm_wgmma(made.codes, projection.weight, scales, projection.scales, on=on)
        return projection.apply(Rows(values=made.codes, scales=scales), on=on)

    def reference() -> torch.Tensor:
        made = group_quantize.reference_quantize(x, code, columns)
        return made.codes.double() * made.scales.double() @ exact.T

    return Case(
        launch=launch, reference=reference, read=projection.nbytes(), uses=lambda: kernel_uses(device(), on.launches)
    )  # fmt: skip


def _any_shape(rows: int, columns: int) -> str | None:
    return None


def _four_bit_refuses(rows: int, columns: int, group: int) -> str | None:
    if columns % w4a16.SPAN or columns % group:
        return f"the W4A16 kernel wants a multiple of {max(group, w4a16.SPAN)} columns, the layer has {columns}"
    return None


def _eight_bit_refuses(rows: int, columns: int) -> str | None:
    return f"the 8-bit kernels want a multiple of 16 columns, the layer has {columns}" if columns % 16 else None


def _wgmma_refuses(rows: int, columns: int) -> str | None:
    return f"the wgmma kernels want a multiple of 128 columns, the layer has {columns}" if columns % 128 else None


def _wgmma_available() -> str | None:
    if reason := unavailable():
        return reason
    have = device().capability
    return None if have == (9, 0) else f"wgmma needs compute capability 9.0, the device has {have[0]}.{have[1]}"


def _fp8_available() -> str | None:
    if reason := unavailable():
        return reason
    have = device().capability
    return None if have >= (8, 9) else f"FP8 needs compute capability 8.9, the device has {have[0]}.{have[1]}"


def _plain(name: str, dtype: torch.dtype, tolerance: float) -> Op:
    return Op(
        name=f"cuda torch {name} linear", tolerance=tolerance,
        note=f"{str(dtype).removeprefix('torch.')} weights and activations, cuBLAS", refuses=_any_shape,
        prepare=functools.partial(_float_case, dtype=dtype), available=unavailable, variants=SHAPES, device="cuda",
    )  # fmt: skip


def _four_bit(group: int) -> Op:
    return Op(
        name=f"cuda w4a16 group {group} linear", tolerance=2e-3, available=unavailable, device="cuda",
        note=f"INT4 weight-only, group {group}, float16 activations",
        prepare=functools.partial(_four_bit_case, group=group),
        refuses=functools.partial(_four_bit_refuses, group=group), variants=SHAPES, sources=(w4a16.SOURCE,),
    )  # fmt: skip


FP32 = _plain("fp32", torch.float32, 1e-2)
FP16 = _plain("fp16", torch.float16, 1e-2)
BF16 = _plain("bf16", torch.bfloat16, 2e-2)
INT4 = {group: _four_bit(group) for group in GROUPS}
INT8 = Op(
    name="cuda w8a8 int8 linear", tolerance=4e-3, available=unavailable, device="cuda", variants=SHAPES,
    note="INT8 weights per channel, activations quantized to INT8 per token, float16 result",
    prepare=functools.partial(_eight_bit_case, kind="int8"), refuses=_eight_bit_refuses,
    sources=(group_quantize.INTEGER, gemm8.INT8, gemm8.GEMV[torch.int8]),
)  # fmt: skip
FP8 = Op(
    name="cuda fp8 linear", tolerance=4e-3, available=_fp8_available, device="cuda", variants=SHAPES,
    note="E4M3 weights per channel, activations quantized to E4M3 per token, float16 result",
    prepare=functools.partial(_eight_bit_case, kind="fp8"), refuses=_eight_bit_refuses,
    sources=(group_quantize.FLOAT8, gemm8.FP8, gemm8.GEMV[torch.float8_e4m3fn]),
)  # fmt: skip


def _wgmma(kind: str, name: str, codes: str) -> Op:
    dtype = {"int8": torch.int8, "fp8": torch.float8_e4m3fn}[kind]
    return Op(
        name=f"cuda {name} wgmma linear", tolerance=1e-2, available=_wgmma_available, device="cuda", variants=SHAPES,
        note=f"{codes} weights per channel, activations quantized to {codes} per token, by wgmma, bfloat16 result",
        prepare=functools.partial(_eight_bit_case, kind=kind, wgmma=True), refuses=_wgmma_refuses,
        sources=(group_quantize.INTEGER if kind == "int8" else group_quantize.FLOAT8, gemm8.WGMMA[dtype]),
    )  # fmt: skip


INT8_WGMMA, FP8_WGMMA = _wgmma("int8", "w8a8 int8", "INT8"), _wgmma("fp8", "fp8", "E4M3")
OPS = (FP32, FP16, BF16, *INT4.values(), INT8, FP8, INT8_WGMMA, FP8_WGMMA)
