"""AutoRound checkpoints: in the layouts of GPTQ, AWQ, compressed-tensors or FP8, as ``packing_format`` says.

Layouts: intel/auto-round, ``auto_round/export/export_to_autoround`` and ``inference/backend.py``.  Bits and group
sizes of single layers (``extra_config``) show in the tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workbench.models.checkpoints.compressed_tensors import read_group
from workbench.models.checkpoints.float8 import read_float8
from workbench.models.checkpoints.gptq import read_awq, read_gptq
from workbench.models.checkpoints.packed import Config, Names, Packed, PackedWeight, modules_with
from workbench.models.sources.stored import TensorStore

FLOATING = 16
"""Bits from which on inputs are left as they are."""


def read_auto_round(store: TensorStore, config: Config, names: Names) -> Packed:
    """Return the packed weights."""
    packing = str(config.get("packing_format") or config.get("backend") or "auto_round:auto_gptq")
    kind, input_bits = str(config.get("data_type") or "int"), _input_bits(config)
    if kind.startswith(("mx_fp", "nv_fp")):
        blocks = modules_with(store, "weight_scale")
        return {f"{module}.weight": read_group(store, module, _group(config, module, kind)) for module in blocks}
    if kind.startswith("fp"):
        rounded = config.get("activation_scheme") if input_bits < FLOATING else None
        return read_float8(store, {**config, "activation_scheme": rounded}, names)
    if "awq" in packing:
        packed = read_awq(store, config, names)
    else:
        minus_one = "gptq" in packing and "gptqmodel" not in packing
        packed = read_gptq(store, {**config, "checkpoint_format": "gptq" if minus_one else "gptq_v2"}, names)
    extra = config.get("extra_config") or {}
    return {name: _with_inputs(weight, {**config, **extra.get(name.removesuffix(".weight"), {})})
            for name, weight in packed.items()}  # fmt: skip


def _with_inputs(weight: PackedWeight, config: Config) -> PackedWeight:
    """Return a weight of integers with the scheme of its inputs, or what they are where no plan can say it."""
    bits = _input_bits(config)
    kind, size = str(config.get("act_data_type") or "int"), int(config.get("act_group_size") or 0)
    if bits >= FLOATING:
        return weight
    if bits != 8 or not kind.startswith("int") or not config.get("act_dynamic", True) or size > 0:
        when = "computed" if config.get("act_dynamic", True) else "calibrated"
        return replace(weight, dropped=f"{kind} of {bits} bits, scales {when}"[:80])
    return replace(weight, inputs="int8-token" if config.get("act_sym", True) else "int8-token-asym")


def _input_bits(config: Config) -> int:
    bits = config.get("act_bits")
    return FLOATING if bits is None else int(bits)


def _group(config: Config, module: str, kind: str) -> Mapping[str, Any]:
    """Return what compressed-tensors says of a module; its tensors tell the bits of its weight."""
    own = config.get("extra_config", {}).get(module, {})
    bits = _input_bits({**config, **own})
    form = {"type": "float", "strategy": "tensor_group" if kind.startswith("nv") else "group"}
    inputs = {**form, "num_bits": bits, "dynamic": True}
    inputs |= {} if kind.startswith("nv") else {"scale_dtype": "uint8"}
    weights = {**form, "num_bits": int(own.get("bits", config["bits"]))}
    return {"weights": weights, "input_activations": inputs if bits < FLOATING else None}
