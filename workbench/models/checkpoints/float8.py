"""FP8 checkpoints as DeepSeek's (blocks with ``weight_scale_inv``), and gpt-oss's MXFP4 (``_blocks`` and ``_scales``).

FP8: ``weight`` float8_e4m3fn, ``weight_scale_inv`` float32, one for each block of ``weight_block_size``, which despite
its name multiplies; with ``scale_fmt`` ue8m0 it is a power of two, float8_e8m0fnu or its byte, which makes blocks of
1 x 32 MXFP8.  Static inputs have an ``input_scale``, in transformers an ``activation_scale``.  MXFP4:
``<parameter>_blocks`` uint8 ``[experts, outputs, blocks, 16]``, two codes a byte, the even column in the low bits, and
``<parameter>_scales`` uint8 ``[experts, outputs, blocks]``; the network stores the parameter as experts x inputs x
outputs.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import torch

from workbench.errors import NotAModelError
from workbench.models.checkpoints.packed import Config, Names, Packed, PackedWeight, array, modules_with, named
from workbench.models.sources.stored import TensorStore
from workbench.numerics.formats.floating import FP8_E4M3
from workbench.numerics.quantized_tensor import QuantizedTensor

STATIC = ("input_scale", "activation_scale")
EXPONENTS = ("float8_e8m0fnu", "uint8")  # scales that are powers of two
MXFP8 = "mxfp8-e4m3"


def read_float8(store: TensorStore, config: Config, names: Names) -> Packed:
    """Return the packed weights; NotAModelError for blocks that do not fit."""
    parts = [(module, part) for part in ("weight_scale_inv", "weight_scale") for module in modules_with(store, part)]
    return {f"{module}.weight": read_module(store, module, part, config) for module, part in parts}


def read_fbgemm(store: TensorStore, config: Config, names: Names) -> Packed:
    """Return the packed weights of FBGEMM's FP8: a scale for each output, inputs rounded by token up to a bound."""
    packed, bound = read_float8(store, {"activation_scheme": "dynamic"}, names), config.get("activation_scale_ub")
    told = "" if bound is None else f"FP8 by token, clipped at {float(bound):g}"
    return {name: replace(weight, dropped=told) for name, weight in packed.items()}


def read_module(store: TensorStore, module: str, part: str, config: Config) -> PackedWeight:
    """Return the packed weight of a module whose scales are called ``part``; NotAModelError where it is none."""
    both = (f"{module}.weight", f"{module}.{part}")
    weight = store.tensors.get(both[0])
    if weight is None or weight.dtype != "float8_e4m3fn" or len(weight.shape) != 2:
        raise NotAModelError(f"{module} has scales and no matrix of float8_e4m3fn; fetch the checkpoint again")
    scheme = _scheme(store, both[1], config)
    static = next((name for part in STATIC if (name := f"{module}.{part}") in store.tensors), "")
    clipped = _input_range(store, static, config)
    inputs = _inputs(config, scheme) if clipped is None else "fp8-e4m3-tensor"
    return PackedWeight(
        parts=(*both, static) if static else both, shape=weight.shape, scheme=scheme, inputs=inputs,
        input_range=clipped, dropped=_dropped(store.tensors[both[1]].dtype, config, inputs),
        load=partial(_float8, store, both, scheme, (weight.shape[0], weight.shape[1])),
    )  # fmt: skip


def _dropped(scales: str, config: Config, inputs: str | None) -> str:
    """Return what the files do to inputs and ``inputs`` does not say."""
    if config.get("activation_scheme") is not None and inputs is None:
        return f"FP8 ({config['activation_scheme']})"[:80]
    blocks = inputs is not None and inputs.startswith("fp8-e4m3-g")
    return "FP8 whose scales are powers of two" if blocks and scales in EXPONENTS else ""


def _scheme(store: TensorStore, name: str, config: Config) -> str:
    scales = store.tensors[name]
    dtype, block = getattr(torch, scales.dtype), config.get("weight_block_size")
    dtype = torch.float32 if scales.dtype in EXPONENTS else dtype
    if len(scales.shape) == 2 and block and scales.shape[-1] >= 1 and name.endswith("_inv"):
        if scales.dtype in EXPONENTS and list(block) == [1, 32]:
            return MXFP8
        return named("fp8-e4m3", f"b{block[0]}x{block[1]}", dtype)
    single = all(size == 1 for size in scales.shape)
    return named("fp8-e4m3", "tensor" if single else "channel", dtype)


def _inputs(config: Config, scheme: str) -> str | None:
    if config.get("activation_scheme") != "dynamic":
        return None
    block = config.get("weight_block_size")
    if scheme == MXFP8:
        return scheme
    return f"fp8-e4m3-g{block[1]}-sfp32" if block and "-b" in scheme else "fp8-e4m3-token"


def _input_range(store: TensorStore, name: str, config: Config) -> tuple[float, float] | None:
    """Return what static inputs are clipped to; None where they have no scale of their own that is a number."""
    if config.get("activation_scheme") != "static" or name not in store.tensors:
        return None
    scale = store.read(name).double().reshape(-1)
    if len(scale) != 1 or not (math.isfinite(float(scale)) and float(scale) > 0):
        return None
    return FP8_E4M3.lowest * float(scale), FP8_E4M3.highest * float(scale)


def _float8(store: TensorStore, names: tuple[str, str], scheme: str, shape: tuple[int, int]) -> QuantizedTensor:
    scales = store.read(names[1])
    scales = scales if scales.ndim == 2 else scales.reshape(-1, 1)
    if scheme != MXFP8 and store.tensors[names[1]].dtype in EXPONENTS:
        scales = scales.view(torch.float8_e8m0fnu).float()
    arrays = {"codes": array(store.read(names[0])), "scales": array(scales)}
    return QuantizedTensor(scheme=scheme, shape=shape, arrays=arrays)


def read_mxfp4(store: TensorStore, config: Config, names: Names) -> Packed:
    """Return the packed weights of all experts of a layer as one."""
    packed = {}
    for name in store.tensors:
        if not name.endswith("_blocks"):
            continue
        parameter = name.removesuffix("_blocks")
        parts, shape = (name, f"{parameter}_scales"), store.tensors[name].shape
        if parts[1] not in store.tensors or len(shape) != 4 or shape[3] != 16:
            raise NotAModelError(
                f"{parameter} is not an MXFP4 weight: its blocks are {shape}; fetch the checkpoint again"
            )
        experts, outputs, blocks, _ = shape
        packed[parameter] = PackedWeight(
            parts=parts, shape=(experts, 32 * blocks, outputs), scheme="mxfp4", axes=(0, 2, 1),
            load=partial(_mxfp4, store, parts, (experts * outputs, 32 * blocks)),
        )  # fmt: skip
    return packed


def _mxfp4(store: TensorStore, parts: tuple[str, str], shape: tuple[int, int]) -> QuantizedTensor:
    codes = array(store.read(parts[0])).reshape(shape[0], shape[1] // 2)
    scales = array(store.read(parts[1])).reshape(shape[0], shape[1] // 32)
    return QuantizedTensor(scheme="mxfp4", shape=shape, arrays={"codes": codes, "scales": scales})
