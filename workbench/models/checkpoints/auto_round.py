"""AutoRound checkpoints: in the layouts of GPTQ, AWQ, compressed-tensors or FP8, as ``packing_format`` says.

Layouts: intel/auto-round, ``auto_round/export/export_to_autoround`` and ``inference/backend.py``.  Bits and group
sizes of single layers (``extra_config``) show in the tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.errors import NotAModelError
from workbench.models.checkpoints.compressed_tensors import read_group
from workbench.models.checkpoints.float8 import read_float8
from workbench.models.checkpoints.gptq import read_awq, read_gptq
from workbench.models.checkpoints.packed import Config, Names, Packed, modules_with
from workbench.models.sources.stored import TensorStore

FLOATING = 16
"""Bits from which on inputs are left as they are."""


def read_auto_round(store: TensorStore, config: Config, names: Names) -> Packed:
    """Return the packed weights; NotAModelError for integers whose inputs are rounded too."""
    packing = str(config.get("packing_format") or config.get("backend") or "auto_round:auto_gptq")
    kind, input_bits = str(config.get("data_type") or "int"), _input_bits(config)
    if kind.startswith(("mx_fp", "nv_fp")):
        blocks = modules_with(store, "weight_scale")
        return {f"{module}.weight": read_group(store, module, _group(config, module, kind)) for module in blocks}
    if kind.startswith("fp"):
        rounded = config.get("activation_scheme") if input_bits < FLOATING else None
        return read_float8(store, {**config, "activation_scheme": rounded}, names)
    if input_bits < FLOATING:
        raise NotAModelError(
            f"AutoRound checkpoints of integers ({packing[:40]}) whose inputs have {input_bits} bits are not read yet"
        )
    if "awq" in packing:
        return read_awq(store, config, names)
    minus_one = "gptq" in packing and "gptqmodel" not in packing
    return read_gptq(store, {**config, "checkpoint_format": "gptq" if minus_one else "gptq_v2"}, names)


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
