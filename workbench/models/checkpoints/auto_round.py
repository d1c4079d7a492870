"""AutoRound checkpoints: in the layouts of GPTQ, AWQ, compressed-tensors or FP8, as ``packing_format`` says.

Layouts: intel/auto-round, ``auto_round/export/export_to_autoround`` and ``inference/backend.py``.  Bits and group
sizes of single layers (``extra_config``) show in the tensors; what it says of their inputs goes by names, then by
expressions that are found in them (``inference/utils.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from workbench.models.checkpoints.compressed_tensors import matches, read_group
from workbench.models.checkpoints.float8 import read_float8
from workbench.models.checkpoints.gptq import read_awq, read_gptq
from workbench.models.checkpoints.packed import Config, Names, Packed, PackedWeight, modules_with
from workbench.models.sources.stored import TensorStore

FLOATING = 16
"""Bits from which on inputs are left as they are."""

WEIGHTS = ("weight", "qweight", "weight_packed")
"""What the tensor of a layer's weight is called."""


def read_auto_round(store: TensorStore, config: Config, names: Names) -> Packed:
    """Return the packed weights."""
    packing = str(config.get("packing_format") or config.get("backend") or "auto_round:auto_gptq")
    kind, input_bits = str(config.get("data_type") or "int"), _input_bits(config)
    of = _of_layers(store, config, names)
    if kind.startswith(("mx_fp", "nv_fp")):
        blocks = modules_with(store, "weight_scale")
        return {f"{module}.weight": read_group(store, module, _group(of(module), kind)) for module in blocks}
    if kind.startswith("fp"):
        rounded = config.get("activation_scheme") if input_bits < FLOATING else None
        return read_float8(store, {**config, "activation_scheme": rounded}, names)
    if "awq" in packing:
        packed = read_awq(store, config, names)
    else:
        minus_one = "gptq" in packing and "gptqmodel" not in packing
        packed = read_gptq(store, {**config, "checkpoint_format": "gptq" if minus_one else "gptq_v2"}, names)
    return {name: _with_inputs(weight, of(name.removesuffix(".weight"))) for name, weight in packed.items()}


def _of_layers(store: TensorStore, config: Config, names: Names) -> Callable[[str], Config]:
    """Return what gives a module's settings: those of its name, or of the first expression found in it, before all
    others'.

    NotAModelError is raised for what is not an expression.
    """
    extra: Config = config.get("extra_config") or {}
    expressions = {
        name: settings for name, settings in extra.items()
        if settings and not any(f"{name}.{part}" in store.tensors for part in WEIGHTS)
    }  # fmt: skip

    def settings_of(module: str) -> Config:
        known = dict.fromkeys((module, names(module))) if extra else {}
        named = (extra[name] for name in known if name in extra)
        found = (
            settings for expression, settings in expressions.items()
            if any(matches(f".*(?:{expression})", name) for name in known)
        )  # fmt: skip
        return {**config, **next(chain(named, found), {})}

    return settings_of


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


def _group(config: Config, kind: str) -> Mapping[str, Any]:
    """Return what compressed-tensors says of a module with these settings."""
    bits = _input_bits(config)
    form = {"type": "float", "strategy": "tensor_group" if kind.startswith("nv") else "group"}
    inputs = {**form, "num_bits": bits, "dynamic": True}
    inputs |= {} if kind.startswith("nv") else {"scale_dtype": "uint8"}
    weights = {**form, "num_bits": int(config["bits"])}
    return {"weights": weights, "input_activations": inputs if bits < FLOATING else None}
