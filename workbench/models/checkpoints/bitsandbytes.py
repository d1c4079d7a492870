"""bitsandbytes checkpoints: NF4 and FP4 in blocks, whose scales may be in 8 bits, and LLM.int8's rows.

Layouts: bitsandbytes, ``functional.QuantState`` and ``nn.Linear8bitLt``.  Four bits: ``weight`` of bytes in any dtype,
the first of two codes in the high bits; ``weight.absmax`` float32, one for each block of the flattened matrix, or uint8
beside ``weight.nested_absmax`` and ``weight.nested_quant_map``; ``weight.quant_state.bitsandbytes__nf4`` JSON as uint8.
Eight bits: ``weight`` int8 and ``SCB`` float32, what 127 stands for in each row; ``weight_format`` 0 (rows in order).
"""

from __future__ import annotations

import json
import math
from functools import partial
from typing import Any

import numpy as np
import torch

from workbench.errors import NotAModelError
from workbench.models.checkpoints.packed import Config, Names, Packed, PackedWeight, array, modules_with
from workbench.models.sources.stored import TensorStore
from workbench.numerics.formats.codebook import FP4_BNB, NF4, dynamic_map
from workbench.numerics.quantized_tensor import QuantizedTensor

TABLES = {"nf4": NF4, "fp4": FP4_BNB}
BESIDE = ("absmax", "quant_map", "nested_absmax", "nested_quant_map")
NESTED = 256
"""Scales that share one float32 in ``-dq``."""

OUTLIERS = 6.0
"""The input from which on LLM.int8 multiplies a column in 16 bits, where the configuration says none."""

LARGEST = 1 << 16
"""Bytes of a description; bitsandbytes writes about 200."""


def read_bitsandbytes(store: TensorStore, config: Config, names: Names) -> Packed:
    """Return the packed weights; NotAModelError for other tables, blocks that cross rows and other orders of bytes."""
    packed = {f"{module}.weight": _rows(store, module, config) for module in modules_with(store, "SCB")}
    for weight in modules_with(store, "quant_map"):
        packed[weight] = _blocks(store, weight)
    return packed


def _rows(store: TensorStore, module: str, config: Config) -> PackedWeight:
    weight, order = store.tensors[f"{module}.weight"], f"{module}.weight_format"
    if weight.dtype != "int8" or len(weight.shape) != 2 or (order in store.tensors and int(store.read(order)) != 0):
        raise NotAModelError(f"{module} is in an order of bytes of one kind of GPU; save it again by bitsandbytes 0.43")
    parts, threshold = (weight.name, f"{module}.SCB"), float(config.get("llm_int8_threshold") or OUTLIERS)
    if config.get("llm_int8_threshold") == 0:
        inputs, dropped = "int8-token", ""
    else:
        inputs, dropped = None, f"int of 8 bits by token, those of {threshold:g} and more in 16 bits"
    shape = (weight.shape[0], weight.shape[1])
    return PackedWeight(
        parts=(*parts, order) if order in store.tensors else parts, shape=shape, scheme="int8-channel-sfp32",
        load=partial(_load_rows, store, parts, shape), inputs=inputs, dropped=dropped,
    )  # fmt: skip


def _load_rows(store: TensorStore, parts: tuple[str, str], shape: tuple[int, int]) -> QuantizedTensor:
    scales = store.read(parts[1]).float().reshape(-1, 1) / 127
    unsigned = (store.read(parts[0]).to(torch.int16) + 128).to(torch.uint8)
    arrays = {"codes": array(unsigned), "scales": array(scales)}
    return QuantizedTensor(scheme="int8-channel-sfp32", shape=shape, arrays=arrays)


def _blocks(store: TensorStore, weight: str) -> PackedWeight:
    states = {f"{weight}.quant_state.bitsandbytes__{kind}": kind for kind in TABLES}
    description = next((state for state in states if state in store.tensors), "")
    if not description or math.prod(store.tensors[description].shape) > LARGEST:
        raise NotAModelError(f"{weight} has no quant_state of nf4 or fp4; fetch the checkpoint again")
    kind = states[description]
    said: dict[str, Any] = json.loads(bytes(array(store.read(description))))
    shape, size, nested = tuple(map(int, said["shape"])), int(said["blocksize"]), f"{weight}.nested_absmax"
    is_nested = nested in store.tensors
    others = not np.allclose(store.read(f"{weight}.quant_map").float(), TABLES[kind].table(), rtol=0, atol=1e-4)
    if is_nested:
        levels = store.read(f"{weight}.nested_quant_map").float()
        others |= int(said["nested_blocksize"]) != NESTED or not np.allclose(levels, dynamic_map(), rtol=0, atol=1e-6)
    if others or len(shape) != 2 or shape[1] % size:
        raise NotAModelError(
            f"{weight} has a table of its own or blocks of {size} in rows of {shape[-1]}; bitsandbytes' tables of "
            f"{' and '.join(TABLES)} with blocks that divide the rows are read"
        )
    scheme = f"{TABLES[kind].name}-b{size}{'-dq' if is_nested else ''}"
    beside = (f"{weight}.{part}" for part in BESIDE)
    return PackedWeight(
        parts=(weight, description, *(name for name in beside if name in store.tensors)), shape=shape, scheme=scheme,
        load=partial(_load_blocks, store, weight, scheme, (shape[0], shape[1]), said.get("nested_offset")),
    )  # fmt: skip


def _load_blocks(
    store: TensorStore, weight: str, scheme: str, shape: tuple[int, int], mean: float | None
) -> QuantizedTensor:
    raw = store.read(weight).contiguous().view(torch.uint8).reshape(shape[0], -1)
    scales = store.read(f"{weight}.absmax")
    arrays = {"codes": array(raw >> 4 | raw << 4), "scales": array(scales.reshape(shape[0], -1))}
    if mean is not None and scheme.endswith("-dq"):
        largest = array(store.read(f"{weight}.nested_absmax").float())
        arrays |= {"scales_largest": largest, "scales_mean": np.array([mean], np.float32)}
    return QuantizedTensor(scheme=scheme, shape=shape, arrays=arrays)
