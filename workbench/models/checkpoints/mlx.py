"""MLX checkpoints, as mlx-lm writes them: words of codes, scales and biases; see ``deployment/checkpoints/mlx``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch

from workbench.errors import NotAModelError
from workbench.models.checkpoints.packed import Config, Names, Packed, PackedWeight, array, modules_with
from workbench.models.checkpoints.switched import switched_name
from workbench.models.sources.stored import TensorStore
from workbench.numerics.formats import parse_scheme
from workbench.numerics.quantized_tensor import QuantizedTensor

MODES = {"mxfp4": "mxfp4", "mxfp8": "mxfp8-e4m3", "nvfp4": "nvfp4"}
"""The modes whose scales are floating-point numbers of 8 bits, and our schemes."""

BITS = {"mxfp8": 8}
"""The bits of a mode where none are stated; those of the others are 4."""

SCALES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}


def read_mlx(store: TensorStore, config: Config, names: Names) -> Packed:
    """Return the packed weights, embeddings and experts included; NotAModelError for modes that are not known.

    Biases that are minus half the range of the codes times the scale are what a symmetric scheme has.
    """
    packed = {}
    for module in modules_with(store, "scales"):
        words = store.tensors.get(f"{module}.weight")
        if words is None or words.dtype != "uint32" or len(words.shape) < 2:
            raise NotAModelError(f"{module} has scales and no words of codes (uint32); fetch the checkpoint again")
        settings = _settings(config, module)
        mode = str(settings.get("mode") or "affine")
        bits = int(settings.get("bits") or BITS.get(mode, 4))
        columns = 32 * words.shape[-1] // bits
        shape = (math.prod(words.shape[:-1]), columns)
        scheme = _scheme(store, module, mode, bits, columns)
        places = (f"{module}.{part}" for part in ("weight", "scales", "biases"))
        packed[f"{module}.weight"] = PackedWeight(
            parts=tuple(name for name in places if name in store.tensors), shape=(*words.shape[:-1], columns),
            scheme=scheme, load=partial(_load, store, module, scheme, shape),
        )  # fmt: skip
    return packed


def _settings(config: Config, module: str) -> Mapping[str, Any]:
    """Return what holds for a module, an expert's being that of all: its own settings, or those of the whole."""
    own = config.get(module, config.get(switched_name(f"{module}.weight").removesuffix(".weight")))
    return own if isinstance(own, Mapping) else config


def _scheme(store: TensorStore, module: str, mode: str, bits: int, columns: int) -> str:
    """Return the scheme; the group's size is what the scales say, as mlx-lm's recipes write none (``null``)."""
    if mode in MODES:
        return MODES[mode]
    if mode != "affine":
        raise NotAModelError(f"{module} is stored in MLX's mode {mode}, and affine, {', '.join(MODES)} are read")
    scales, groups = store.tensors[f"{module}.scales"].dtype, store.tensors[f"{module}.scales"].shape[-1]
    if f"{module}.biases" not in store.tensors or scales not in SCALES:
        raise NotAModelError(f"{module} has no biases beside scales of 16 or 32 bits; fetch the checkpoint again")
    if not groups or columns % groups:
        raise NotAModelError(f"{module} has {groups} scales for {columns} columns; fetch the checkpoint again")
    stored, group = SCALES[scales], f"int{bits}-g{columns // groups}"
    symmetric = parse_scheme(f"{group}-s{stored}").name
    same = store.tensors[f"{module}.biases"].dtype == scales and _is_symmetric(store, module, bits)
    return symmetric if same else parse_scheme(f"{group}-asym-z{stored}-s{stored}").name


def _is_symmetric(store: TensorStore, module: str, bits: int) -> bool:
    scales, biases = store.read(f"{module}.scales"), store.read(f"{module}.biases")
    return torch.equal(biases, scales * -(2.0 ** (bits - 1)))


def _load(store: TensorStore, module: str, scheme: str, shape: tuple[int, int]) -> QuantizedTensor:
    codes = store.read(f"{module}.weight").contiguous().view(torch.uint8).reshape(shape[0], -1).numpy()
    arrays = {"codes": codes, "scales": array(store.read(f"{module}.scales")).reshape(shape[0], -1)}
    if "-asym" in scheme:
        biases = store.read(f"{module}.biases").to(getattr(torch, store.tensors[f"{module}.scales"].dtype))
        arrays["offsets"] = array(biases).reshape(shape[0], -1)
    if scheme == "nvfp4":
        arrays["tensor_scale"] = np.ones(1, np.float32)
    return QuantizedTensor(scheme=scheme, shape=shape, arrays=arrays)
