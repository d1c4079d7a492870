"""Plans as recipes for other quantizers: llm-compressor, ModelOpt and AutoRound, each layer by its name.

They say which layers get which scheme; the tool itself rounds, so its values are not those that were evaluated.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.deployment.checkpoints.compressed_tensors import cache_args, config_group, input_args, weight_args
from workbench.deployment.targets import is_linear, is_table, what_it_is
from workbench.deployment.tensors import require_that_all_fit
from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSummary
from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.floating import FP8_E4M3
from workbench.numerics.formats.integer import IntegerElement
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.granularity import PerBlock, PerChannel, PerGroup, PerTensor, PerToken
from workbench.planning.groups import FUSED_GATE_UP, FUSED_QKV, FUSED_W1_W3, bonds_of
from workbench.planning.plan import KEEP, Assignment
from workbench.readable import few

Assignments = Mapping[str, Assignment]


def llm_compressor(summary: ModelSummary, assignments: Assignments) -> dict[str, Any]:
    """Return a recipe with one QuantizationModifier; ExportError for schemes that compressed-tensors lacks."""
    layers = _quantized(summary, assignments)
    reasons = _inputs_alone(summary, assignments)
    reasons |= _others(
        layers, "llm-compressor quantizes linear modules and tables", lambda x: is_linear(x) or is_table(x)
    )
    for layer in layers:
        assignment = assignments[layer.name]
        inputs = None if assignment.inputs is None else input_args(parse_scheme(assignment.inputs))
        for args in (weight_args(parse_scheme(assignment.weights)), inputs):
            if isinstance(args, str):
                reasons.setdefault(layer.name, args)
    for bond in bonds_of(summary.layers, (FUSED_QKV, FUSED_GATE_UP, FUSED_W1_W3)):
        same = {assignments[name].weights == "nvfp4" for name in bond}
        if len(same) > 1:
            names = few(bond)
            reasons |= {
                name: f"llm-compressor gives nvfp4 to all of {names} or to none"
                for name in bond if assignments[name].weights == "nvfp4"
            }  # fmt: skip
    require_that_all_fit(reasons, "a recipe for llm-compressor", "vllm")
    groups: dict[str, tuple[dict[str, Any], list[str]]] = {}
    for layer in layers:
        assignment = assignments[layer.name]
        group = config_group(assignment.weights, assignment.inputs)
        groups.setdefault(repr(group), (group, []))[1].append(layer.name)
    quantized = {layer.name for layer in layers}
    unquantized = [each.name for each in summary.layers if each.kind is LayerKind.LINEAR and each.name not in quantized]
    modifier: dict[str, Any] = {
        "config_groups": {
            f"group_{number}": {"targets": names, **group} for number, (group, names) in enumerate(groups.values())
        },
        "ignore": unquantized,
    }  # fmt: skip
    cache = cache_args(summary, assignments)
    if cache is not None:
        modifier["kv_cache_scheme"] = cache
    return {"quantization_stage": {"quantization_modifiers": {"QuantizationModifier": modifier}}}


def modelopt(summary: ModelSummary, assignments: Assignments) -> dict[str, Any]:
    """Return a configuration of ``modelopt.torch.quantization.quantize``; ExportError for what ModelOpt lacks.

    Its rules name quantizers by shell patterns, and the last that matches holds.  It counts axes from the last, in
    whole numbers, which are names in YAML and not in JSON.
    """
    rules: list[dict[str, Any]] = [{"quantizer_name": "*", "enable": False}]
    reasons = _inputs_alone(summary, assignments) | _caches(summary, assignments)
    reasons |= _others(_quantized(summary, assignments), "ModelOpt quantizes modules by their names", _is_module)
    for layer in _quantized(summary, assignments):
        assignment = assignments[layer.name]
        weights = _modelopt_quantizer(assignment.weights, weights=True)
        inputs = None if assignment.inputs is None else _modelopt_quantizer(assignment.inputs, weights=False)
        reason = next((each for each in (weights, inputs) if isinstance(each, str)), None)
        if reason is not None:
            reasons[layer.name] = reason
            continue
        rules += [
            {"quantizer_name": f"{glob.escape(layer.name)}.{part}_quantizer", "cfg": settings, "enable": True}
            for part, settings in (("weight", weights), ("input", inputs)) if settings is not None
        ]  # fmt: skip
    require_that_all_fit(reasons, "a configuration of ModelOpt", "vllm")
    return {"quant_cfg": rules, "algorithm": "max"}


def _modelopt_quantizer(name: str, *, weights: bool) -> dict[str, Any] | str:
    scheme = parse_scheme(name)
    if name in ("nvfp4", "mxfp4", "mxfp8-e4m3"):
        size, scales, bits = (16, [4, 3], [2, 1]) if name == "nvfp4" else (32, [8, 0], [2, 1])
        bits = [4, 3] if name == "mxfp8-e4m3" else bits
        return {"num_bits": bits, "block_sizes": {-1: size, "type": "dynamic", "scale_bits": scales}}
    number = _number(scheme)
    if number is None or not isinstance(scheme, ScaledScheme) or not scheme.symmetric:
        return f"ModelOpt has no {name}: symmetric integers, fp8-e4m3, nvfp4, mxfp4 and mxfp8-e4m3 are known to it"
    width: Any = [4, 3] if number == "fp8" else number
    match scheme.granularity:
        case PerTensor():
            return {"num_bits": width, "axis": None}
        case PerChannel() if weights:
            return {"num_bits": width, "axis": 0}
        case PerToken() if not weights:
            return {"num_bits": width, "block_sizes": {-1: None}, "type": "dynamic"}
        case PerGroup(size):
            return {"num_bits": width, "block_sizes": {-1: size}}
        case PerBlock(rows, columns):
            return {"num_bits": width, "block_sizes": {-1: columns, -2: rows}}
    return f"ModelOpt has no {name} here"


def auto_round(summary: ModelSummary, assignments: Assignments) -> dict[str, Any]:
    """Return ``layer_config`` of ``auto_round.AutoRound``; ExportError for what AutoRound lacks."""
    layers: dict[str, Any] = {}
    reasons = _inputs_alone(summary, assignments) | _caches(summary, assignments)
    reasons |= _others(
        _quantized(summary, assignments), "AutoRound quantizes linear modules",
        lambda layer: layer.kind is LayerKind.LINEAR and _is_module(layer),
    )  # fmt: skip
    for layer in summary.stored:
        assignment = assignments[layer.name]
        if assignment.weights == KEEP:
            if layer.kind is LayerKind.LINEAR:
                layers[layer.name] = {"bits": 16, "data_type": "float"}
            continue
        settings = _auto_round_layer(assignment)
        if isinstance(settings, str):
            reasons[layer.name] = settings
        else:
            layers[layer.name] = settings
    require_that_all_fit(reasons, "a configuration of AutoRound", "vllm")
    return {"layer_config": layers}


def _auto_round_layer(assignment: Assignment) -> dict[str, Any] | str:
    micro = {"mxfp4": (4, 32, "mx_fp"), "mxfp8-e4m3": (8, 32, "mx_fp"), "nvfp4": (4, 16, "nv_fp")}
    acts: dict[str, Any] = {"act_bits": 16}
    if assignment.inputs is not None:
        if assignment.inputs not in ("int8-token", "fp8-e4m3-token", *micro):
            return f"AutoRound has no {assignment.inputs} inputs: int8-token, fp8-e4m3-token and {', '.join(micro)}"
        bits, size, kind = micro.get(assignment.inputs, (8, -1, assignment.inputs[:3]))
        acts = {"act_bits": bits, "act_group_size": size, "act_data_type": kind, "act_dynamic": True, "act_sym": True}
    if assignment.weights in micro:
        bits, size, kind = micro[assignment.weights]
        return {"bits": bits, "group_size": size, "sym": True, "data_type": kind, **acts}
    scheme = parse_scheme(assignment.weights)
    number = _number(scheme)
    if number is None or not isinstance(scheme, ScaledScheme) or scheme.offset_format is not None:
        return f"AutoRound has no {assignment.weights}: integers, whole zero points, fp8-e4m3 and {', '.join(micro)}"
    if not isinstance(scheme.granularity, PerGroup | PerChannel):
        return f"AutoRound has one scale for each group or output, not {assignment.weights}"
    size = scheme.granularity.size if isinstance(scheme.granularity, PerGroup) else -1
    kind, bits = ("fp", 8) if number == "fp8" else ("int", int(number))
    return {"bits": bits, "group_size": size, "sym": scheme.symmetric, "data_type": kind, **acts}


def _is_module(layer: Layer) -> bool:
    """Return whether a layer is the weight of a module of its name; experts in one tensor and routers are not."""
    return layer.parameter == f"{layer.name}.weight"


def _others(layers: Iterable[Layer], what: str, holds: Callable[[Layer], bool]) -> dict[str, str]:
    """Return why layers cannot be said that the tool passes over without a word."""
    return {layer.name: f"{what}, not {what_it_is(layer)}; keep it" for layer in layers if not holds(layer)}


def _inputs_alone(summary: ModelSummary, assignments: Assignments) -> dict[str, str]:
    """Return why layers cannot be said whose inputs alone are quantized."""
    reason = "its inputs are quantized and its weights are not, which these tools cannot express"
    return {
        layer.name: reason for layer in summary.layers
        if assignments[layer.name].inputs is not None and assignments[layer.name].weights == KEEP
    }  # fmt: skip


def _caches(summary: ModelSummary, assignments: Assignments) -> dict[str, str]:
    """Return why layers cannot be said whose keys or values are rounded."""
    cached = [layer.name for layer in summary.layers if assignments[layer.name].cache is not None]
    return dict.fromkeys(cached, "its KV cache is quantized, which the recipe cannot express")


def _number(scheme: object) -> int | str | None:
    """Return the bits of an integer, ``fp8``, or None for other elements."""
    element = getattr(scheme, "element", None)
    if isinstance(element, IntegerElement):
        return element.bits
    return "fp8" if element == FP8_E4M3 else None


def _quantized(summary: ModelSummary, assignments: Assignments) -> list[Layer]:
    return [layer for layer in summary.stored if assignments[layer.name].weights != KEEP]


@dataclass(frozen=True, slots=True)
class Tool:
    """A quantizer of others: how its recipe is made, and whether it is YAML or JSON."""

    make: Callable[[ModelSummary, Assignments], dict[str, Any]]
    yaml: bool = False


TOOLS = {
    "llm-compressor": Tool(llm_compressor, yaml=True), "modelopt": Tool(modelopt, yaml=True),
    "auto-round": Tool(auto_round),
}  # fmt: skip
