"""compressed-tensors checkpoints: packed or whole integers, FP8, MXFP4, 6 and 8, NVFP4, one scheme a config group.

Layouts: the package compressed-tensors (its compressors); see ``deployment/checkpoints/compressed_tensors``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
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
    words_as_rows,
)
from workbench.models.sources.stored import TensorStore
from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.floating import FP8_E4M3
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.packing import pack, unpack
from workbench.numerics.quantized_tensor import QuantizedTensor

CLASSES = ("Linear", "Embedding")
MICROSCALING = {4: "mxfp4", 6: "mxfp6-e2m3", 8: "mxfp8-e4m3"}
TABLE = re.compile(r"(emb|wte|wpe)[^.]*$")  # a checkpoint does not say of which class a module is

PARTS = ("weight_packed", "weight", "weight_scale", "weight_zero_point", "weight_global_scale", "weight_shape",
         "weight_g_idx", "input_scale", "input_zero_point", "input_global_scale")  # fmt: skip


def read_compressed_tensors(store: TensorStore, config: Config, names: Names) -> Packed:
    """Return the packed weights, without a scheme where columns name their group (``weight_g_idx``); NotAModelError
    for formats that are not read yet."""
    packed = {}
    for module in modules_with(store, "weight_scale"):
        packed[f"{module}.weight"] = read_group(store, module, _group_of(config, module, names))
    return packed


def cache_scheme(config: Config) -> tuple[str | None, str]:
    """Return the scheme of keys and values that are rounded token by token; None for others, which no plan can say,
    with what they are.
    """
    args = config.get("kv_cache_scheme")
    if not isinstance(args, Mapping) or not {"type", "symmetric"} <= args.keys():
        return None, "" if args is None else "an unknown form"
    scheme = _input_scheme(args) if args.get("strategy") == "token" and args.get("num_bits") == 8 else None
    return scheme, "" if scheme else _described(args)


def _described(args: Mapping[str, Any]) -> str:
    """Return what settings say in words: ``float of 8 bits, one calibrated scale for each tensor``."""
    when = "a computed" if args.get("dynamic") is True else "one calibrated"
    kind, bits, strategy = (str(args.get(key))[:40] for key in ("type", "num_bits", "strategy"))
    return f"{kind} of {bits} bits, {when} scale for each {strategy}"


def _group_of(config: Config, module: str, names: Names) -> Mapping[str, Any]:
    """Return the config group of a linear module or a table; NotAModelError where none is for it.

    Targets name it as the checkpoint does, or as the network: names come before expressions, and both before classes.
    """
    targets = {target: group for group in config.get("config_groups", {}).values() for target in group["targets"]}
    naming = sorted((target for target in targets if target not in CLASSES), key=lambda each: ("re:" in each, each))
    for known in (module, names(module)) if naming else ():
        for target in naming:
            if matches(target[3:], known) if target.startswith("re:") else target == known:
                return dict(targets[target])
    for target in reversed(CLASSES) if TABLE.search(module) else CLASSES:
        if target in targets:
            return dict(targets[target])
    raise NotAModelError(f"{module} has quantized tensors, and no config group of config.json is for it")


def matches(expression: str, module: str) -> bool:
    """Return whether an expression of an untrusted file matches, in linear time."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(expression, options).match(module) is not None
    except re2.error:
        raise NotAModelError(f"{expression[:80]!r} in config.json is not a regular expression that is read") from None


def read_group(store: TensorStore, module: str, group: Mapping[str, Any]) -> PackedWeight:
    """Return the packed weight of a module that a config group says the form of; NotAModelError where it does not."""
    parts = tuple(f"{module}.{part}" for part in PARTS if f"{module}.{part}" in store.tensors)
    args = group["weights"]
    scheme = _scheme(store, module, args)
    wide = f"{module}.weight_packed" in store.tensors
    stored = store.tensors.get(f"{module}.weight_packed") or store.tensors.get(f"{module}.weight")
    if stored is None or len(stored.shape) != 2:
        raise NotAModelError(f"{module} has scales and no matrix that they are for; fetch the checkpoint again")
    shape = (stored.shape[0], stored.shape[1])
    if wide and stored.dtype == "uint8":
        shape = (stored.shape[0], 8 * stored.shape[1] // int(args["num_bits"]))
    elif wide:
        rows, columns = store.read(f"{module}.weight_shape").tolist()
        shape = int(rows), int(columns)
    load = partial(_load, store, module, scheme, shape, int(args["num_bits"]))
    values = partial(_ordered, store, module, load) if f"{module}.weight_g_idx" in store.tensors else None
    args = group.get("input_activations")
    clipped = _input_range(store, module, args) or _nvfp4_range(store, module, args)
    inputs = _static_scheme(args) if args and clipped else _input_scheme(args)
    dropped = _described(args) if args and inputs is None else ""
    return PackedWeight(
        parts=parts, shape=shape, scheme=None if values else scheme, load=None if values else load, values=values,
        inputs=inputs, input_range=clipped, dropped=dropped,
    )  # fmt: skip


def _scheme(store: TensorStore, module: str, args: Mapping[str, Any]) -> str:
    bits, kind, strategy = int(args["num_bits"]), args["type"], args["strategy"]
    size, scales = args.get("group_size"), store.tensors[f"{module}.weight_scale"].dtype
    if kind == "float" and scales == "uint8":
        return MICROSCALING[bits]
    if kind == "float" and strategy == "tensor_group":
        return "nvfp4"
    element = f"int{bits}" if kind == "int" else "fp8-e4m3" if bits == 8 else ""
    if not element or not 2 <= bits <= 8:
        raise NotAModelError(f"{module} is stored as {kind} of {bits} bits in strategy {strategy}, which is not read")
    granularity = {
        "group": f"g{size}", "tensor": "tensor", "channel": "channel",
        "block": "b" + "x".join(map(str, args.get("block_structure") or ())),
    }  # fmt: skip
    if strategy not in granularity:
        raise NotAModelError(f"{module} has one scale for each {strategy}, which is not read yet")
    return named(element, granularity[strategy], getattr(torch, scales), symmetric=bool(args["symmetric"]))


def _load(store: TensorStore, module: str, scheme: str, shape: tuple[int, int], bits: int) -> QuantizedTensor:
    scales = store.read(f"{module}.weight_scale")
    if scheme.startswith(("mxfp", "nvfp")):
        part = "weight_packed" if f"{module}.weight_packed" in store.tensors else "weight"
        arrays = {"codes": array(store.read(f"{module}.{part}")), "scales": array(scales)}
        if scheme == "nvfp4":
            arrays["tensor_scale"] = _inverse(store.read(f"{module}.weight_global_scale").numpy())
        return QuantizedTensor(scheme=scheme, shape=shape, arrays=arrays)
    scales = scales.reshape(-1, 1) if scales.ndim < 2 else scales
    if scheme.startswith("fp8"):
        codes = array(store.read(f"{module}.weight"))
        return QuantizedTensor(scheme=scheme, shape=shape, arrays={"codes": codes, "scales": array(scales)})
    if f"{module}.weight_packed" in store.tensors:
        codes = words_as_rows(store.read(f"{module}.weight_packed"), bits, shape[1])
    else:
        signed = store.read(f"{module}.weight").to(torch.int16) + 2 ** (bits - 1)
        codes = pack(signed.to(torch.uint8), bits).numpy()
    return integers(scheme, codes, shape, scales, _shifts(store, module, scales, bits))


def _ordered(store: TensorStore, module: str, load: Callable[[], QuantizedTensor]) -> torch.Tensor:
    """Return the values of integers each of whose columns names its group."""
    stored = load()
    scheme = parse_scheme(stored.scheme)
    assert isinstance(scheme, ScaledScheme)
    codes, scales, shifts = scheme.unpacked(stored)
    group = store.read(f"{module}.weight_g_idx").long()
    middle = 2 ** (scheme.element.bits - 1) if shifts is None else shifts[:, group]
    return scales[:, group] * (codes.float() - middle)


def _shifts(store: TensorStore, module: str, scales: torch.Tensor, bits: int) -> torch.Tensor | None:
    """Return unsigned zero points ``[bands, groups]``, None where there are none."""
    name = f"{module}.weight_zero_point"
    if name not in store.tensors:
        return None
    stored = store.read(name)
    if stored.dtype == torch.int32:
        bands = scales.shape[0]
        return unpack(words_as_rows(stored.T, bits, bands), bands, bits).T.contiguous()
    return stored.to(torch.int16).add(2 ** (bits - 1)).reshape(scales.shape)


def _inverse(stored: np.ndarray) -> np.ndarray:
    """Return the scale whose inverse, rounded to float32, is ``stored`` (so that it is written again as it was)."""
    near = np.float32(1) / stored.reshape(1).astype(np.float32)
    close = (near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(np.inf)))
    return next((each for each in close if np.float32(1) / each == stored), near)


def _input_scheme(args: Mapping[str, Any] | None) -> str | None:
    """Return the scheme of dynamic inputs; None for those with a calibrated scale."""
    if not args or args.get("dynamic") is not True:
        return None
    bits, kind, strategy, size = args["num_bits"], args["type"], args["strategy"], args.get("group_size")
    if kind == "float" and str(args.get("scale_dtype", "")).endswith("uint8"):
        return MICROSCALING.get(bits)
    element = f"int{bits}" if kind == "int" else "fp8-e4m3"
    if strategy == "token":
        return f"{element}-token" + ("" if args["symmetric"] else "-asym")
    return f"{element}-g{size}-sfp32" if strategy == "group" else None


def _static_scheme(args: Mapping[str, Any]) -> str:
    if args["num_bits"] == 4:
        return "nvfp4"
    element = "int8" if args["type"] == "int" else "fp8-e4m3"
    return f"{element}-tensor" + ("" if args["symmetric"] else "-asym")


def _nvfp4_range(store: TensorStore, module: str, args: Mapping[str, Any] | None) -> tuple[float, float] | None:
    """Return the range of NVFP4 inputs, whose scale for the tensor is calibrated; its inverse is stored."""
    name = f"{module}.input_global_scale"
    if not args or name not in store.tensors or math.prod(store.tensors[name].shape) != 1:
        return None
    if (args.get("num_bits"), args.get("type"), args.get("strategy")) != (4, "float", "tensor_group"):
        return None
    inverse = float(store.read(name).double().reshape(()))
    largest = FP8_E4M3.highest * 6.0 / inverse if math.isfinite(inverse) and inverse > 0 else 0.0
    return (-largest, largest) if largest else None


def _input_range(store: TensorStore, module: str, args: Mapping[str, Any] | None) -> tuple[float, float] | None:
    """Return the range of static inputs with one scale; None if they have another form or the scale is not a number."""
    if not args or args.get("dynamic") or args.get("strategy") != "tensor" or args.get("num_bits") != 8:
        return None
    scales, zeros = (store.tensors.get(f"{module}.input_{part}") for part in ("scale", "zero_point"))
    if scales is None or math.prod(scales.shape) != 1:
        return None
    scale = float(store.read(scales.name).double().reshape(()))
    if not (math.isfinite(scale) and scale > 0):
        return None
    if args["type"] != "int":
        return FP8_E4M3.lowest * scale, FP8_E4M3.highest * scale
    shifted = zeros is not None and math.prod(zeros.shape) == 1 and not args["symmetric"]
    zero = float(store.read(zeros.name).reshape(())) if zeros is not None and shifted else 0.0
    return (-128 - zero) * scale, (127 - zero) * scale
