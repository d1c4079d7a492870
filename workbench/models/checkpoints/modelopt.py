"""ModelOpt checkpoints: FP8 with a scale for the tensor or each output, and NVFP4.

Layouts: NVIDIA/Model-Optimizer, ``modelopt/torch/export``.  FP8: ``weight``, ``weight_scale``, ``input_scale`` float32.
NVFP4: ``weight`` uint8 ``[outputs, inputs / 2]``, the even column in the low bits, ``weight_scale`` float8_e4m3fn
``[outputs, inputs / 16]``, ``weight_scale_2`` and ``input_scale`` float32, which multiply.
"""

from __future__ import annotations

import math
from functools import partial

from workbench.errors import NotAModelError
from workbench.models.checkpoints.float8 import read_module
from workbench.models.checkpoints.packed import Config, Names, Packed, PackedWeight, array, modules_with
from workbench.models.sources.stored import TensorStore
from workbench.numerics.formats.floating import FP8_E4M3
from workbench.numerics.quantized_tensor import QuantizedTensor

LARGEST = FP8_E4M3.highest * 6.0
"""The largest value of NVFP4, in units of the scale for the tensor."""


def read_modelopt(store: TensorStore, config: Config, names: Names) -> Packed:
    """Return the packed weights; NotAModelError for other formats, and where inputs are scaled before (AWQ)."""
    method = str(config.get("quant_algo") or "an unknown one")[:40]
    if scaled := modules_with(store, "pre_quant_scale"):
        raise NotAModelError(f"ModelOpt's {method} scales the inputs of {scaled[0]} and others first: not read yet")
    inputs = "dynamic" if method.upper() == "FP8_PER_CHANNEL_PER_TOKEN" else "static"
    packed = {}
    for module in modules_with(store, "weight_scale"):
        weight = store.tensors.get(f"{module}.weight")
        weight = None if weight is None or len(weight.shape) != 2 else weight
        if weight is not None and weight.dtype == "uint8" and f"{module}.weight_scale_2" in store.tensors:
            packed[weight.name] = _nvfp4(store, module, (weight.shape[0], 2 * weight.shape[1]))
        elif (
            weight is not None
            and weight.dtype == "float8_e4m3fn"
            and store.tensors[f"{module}.weight_scale"].dtype != "uint8"
        ):
            scheme = inputs if inputs == "dynamic" or f"{module}.input_scale" in store.tensors else None
            packed[weight.name] = read_module(store, module, "weight_scale", {"activation_scheme": scheme})
        else:
            raise NotAModelError(f"{module} is in ModelOpt's {method}; of its formats FP8 and NVFP4 are read")
    return packed


def cache_settings(config: Config) -> Config:
    """Return what is said of keys and values as compressed-tensors says it."""
    said = config.get("kv_cache_quant_algo") or config.get("kv_cache_scheme")
    kind = {"type": "int" if "int" in str(said).lower() else "float", "num_bits": 4 if "4" in str(said) else 8,
            "strategy": "tensor"}  # fmt: skip
    return {"kv_cache_scheme": {**kind, "symmetric": True, "dynamic": False} if said else None}


def _nvfp4(store: TensorStore, module: str, shape: tuple[int, int]) -> PackedWeight:
    parts = (f"{module}.weight", f"{module}.weight_scale", f"{module}.weight_scale_2")
    static, scale = f"{module}.input_scale", 0.0
    if static in store.tensors and math.prod(store.tensors[static].shape) == 1:
        scale = float(store.read(static).double().reshape(()))
    known = math.isfinite(scale) and scale > 0
    return PackedWeight(
        parts=(*parts, static) if static in store.tensors else parts, shape=shape, scheme="nvfp4",
        load=partial(_load, store, parts, shape), inputs="nvfp4" if known else None,
        input_range=(-LARGEST * scale, LARGEST * scale) if known else None,
    )  # fmt: skip


def _load(store: TensorStore, parts: tuple[str, str, str], shape: tuple[int, int]) -> QuantizedTensor:
    codes, scales = (array(store.read(name)) for name in parts[:2])
    whole = store.read(parts[2]).float().reshape(1).numpy()
    return QuantizedTensor(
        scheme="nvfp4", shape=shape, arrays={"codes": codes, "scales": scales, "tensor_scale": whole}
    )
