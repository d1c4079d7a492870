"""torchao checkpoints, as transformers saves them; see ``deployment/checkpoints/torchao``.

The files' metadata say of every weight which tensor subclass it is (``_type``), its blocks and what becomes of its
inputs; ``_weight_qdata``, ``_weight_scale`` and ``_weight_zero_point`` lie beside it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from workbench.errors import NotAModelError
from workbench.models.checkpoints.packed import (
    Config,
    Names,
    Packed,
    PackedWeight,
    array,
    integers,
    modules_with,
    named,
)
from workbench.models.sources.stored import TensorStore
from workbench.numerics.packing import pack
from workbench.numerics.quantized_tensor import QuantizedTensor

PREFIX = "_weight_"
INTEGERS, BYTES, FLOATS = "IntxUnpackedToInt8Tensor", "Int8Tensor", "Float8Tensor"
"""The subclasses that are read: integers of 1 to 8 bits, a byte each; those of 8 bits alone; FP8."""


def read_torchao(store: TensorStore, config: Config, names: Names) -> Packed:
    """Return the packed weights; NotAModelError for subclasses that are not read yet."""
    packed = {}
    for module in modules_with(store, f"{PREFIX}qdata"):
        kind, facts = _described(store, module, names)
        codes = store.tensors[f"{module}.{PREFIX}qdata"]
        if len(codes.shape) != 2 or f"{module}.{PREFIX}act_pre_scale" in store.tensors:
            raise NotAModelError(f"{module} is not a matrix, or its inputs are scaled first; neither can be read yet")
        shape, bits = (codes.shape[0], codes.shape[1]), _bits(facts, kind)
        shifts = _shifts(store, module, bits)
        scheme = named(
            f"int{bits}" if bits else "fp8-e4m3",
            _granularity(store.tensors[f"{module}.{PREFIX}scale"].shape, shape, _is_grouped(config, names(module))),
            getattr(torch, store.tensors[f"{module}.{PREFIX}scale"].dtype), symmetric=shifts is None,
        )  # fmt: skip
        inputs, clipped = _inputs(store, module, facts)
        packed[f"{module}.weight"] = PackedWeight(
            parts=tuple(name for name in store.tensors if name.startswith(f"{module}.{PREFIX}")), shape=shape,
            scheme=scheme, load=partial(_load, store, module, scheme, shape, bits), inputs=inputs, input_range=clipped,
        )  # fmt: skip
    return packed


def _described(store: TensorStore, module: str, names: Names) -> tuple[str, Mapping[str, Any]]:
    """Return a weight's subclass and what the metadata say of it; NotAModelError for one that is not read."""
    text = store.metadata.get(f"{module}.weight") or store.metadata.get(f"{names(module)}.weight")
    if text is None:
        raise NotAModelError(f"the file's metadata do not describe {module}.weight; fetch the checkpoint again")
    described, known = json.loads(text), (INTEGERS, BYTES, FLOATS)
    if described["_type"] not in known:
        kind = str(described["_type"])[:80]
        raise NotAModelError(f"{module} is stored as torchao's {kind}, and of its tensors {', '.join(known)} are read")
    return described["_type"], described["_data"]


def _bits(facts: Mapping[str, Any], kind: str) -> int:
    """Return the width of integers, 0 for FP8."""
    if kind != INTEGERS:
        return 8 if kind == BYTES else 0
    return int(str(facts["target_dtype"]["_data"]).removeprefix("int"))


def _is_grouped(config: Config, module: str) -> bool:
    """Return whether config.json says that a module has scales for groups, of which there may be one alone."""
    settings = config.get("quant_type", {}).get("default", {})
    if settings.get("_type") == "FqnToConfig":
        settings = settings["_data"]["fqn_to_config"].get(module) or {}
    facts = settings.get("_data", {})
    return any((facts.get(key) or {}).get("_type") == "PerGroup" for key in ("granularity", "weight_granularity"))


def _granularity(scales: tuple[int, ...], shape: tuple[int, int], grouped: bool) -> str:
    """Return what a scale is for, from how many there are."""
    (bands, groups), (rows, columns) = scales if len(scales) == 2 else (math.prod(scales), 1), shape
    if not bands or not groups or rows % bands or columns % groups:
        raise ValueError(f"{scales} scales for {shape} weights")
    if bands == rows:
        return "channel" if groups == 1 and not grouped else f"g{columns // groups}"
    return "tensor" if bands == groups == 1 else f"b{rows // bands}x{columns // groups}"


def _shifts(store: TensorStore, module: str, bits: int) -> torch.Tensor | None:
    """Return unsigned zero points ``[bands, groups]``; None where all are in the middle of the codes."""
    name = f"{module}.{PREFIX}zero_point"
    if name not in store.tensors:
        return None
    zeros = store.read(name)
    whole = zeros.to(torch.int8)
    if not torch.equal(whole.to(zeros.dtype), zeros):
        raise NotAModelError(f"{module} has zero points other than 8-bit integers, which cannot be read yet")
    return whole.to(torch.int16) + 2 ** (bits - 1) if bool(whole.any()) else None


def _inputs(store: TensorStore, module: str, facts: Mapping[str, Any]) -> tuple[str | None, tuple[float, float] | None]:
    """Return the scheme of a layer's inputs, and what static ones are clipped to; None for what no plan says."""
    if facts.get("activation_quantization"):
        return "int8-token-asym", None  # the only one that there is
    settings = facts.get("act_quant_kwargs")
    if not settings:
        return None, None
    integer, each = settings["_type"] == "QuantizeTensorToInt8Kwargs", settings["_data"]["granularity"]["_type"]
    if f"{module}.{PREFIX}act_quant_scale" in store.tensors:
        return _static(store, module) if integer else (None, None)
    if each != "PerRow":
        return None, None
    if not integer:
        return "fp8-e4m3-token", None
    mapping = (settings["_data"].get("mapping_type") or {}).get("_data", "SYMMETRIC")
    return "int8-token-asym" if mapping == "ASYMMETRIC" else "int8-token", None


def _static(store: TensorStore, module: str) -> tuple[str | None, tuple[float, float] | None]:
    """Return the scheme and the range of static inputs of 8 bits with one scale."""
    scales = store.read(f"{module}.{PREFIX}act_quant_scale").double().reshape(-1)
    zeros = f"{module}.{PREFIX}act_quant_zero_point"
    zero = store.read(zeros).double().reshape(-1) if zeros in store.tensors else torch.zeros(1)
    if len(scales) != 1 or len(zero) != 1 or not float(scales[0]) > 0:
        return None, None
    scale, shift = float(scales[0]), float(zero[0])
    return f"int8-tensor{'-asym' if shift else ''}", ((-128 - shift) * scale, (127 - shift) * scale)


def _load(store: TensorStore, module: str, scheme: str, shape: tuple[int, int], bits: int) -> QuantizedTensor:
    codes, scales = store.read(f"{module}.{PREFIX}qdata"), store.read(f"{module}.{PREFIX}scale")
    scales = scales if scales.ndim == 2 else scales.reshape(-1, 1)
    if not bits:
        return QuantizedTensor(scheme=scheme, shape=shape, arrays={"codes": array(codes), "scales": array(scales)})
    packed = pack((codes.to(torch.int16) + 2 ** (bits - 1)).to(torch.uint8), bits).numpy()
    return integers(scheme, packed, shape, scales, _shifts(store, module, bits))
