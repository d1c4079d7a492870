"""Plans as recipes for other quantizers: llm-compressor, ModelOpt and AutoRound, each layer by its name.

They say which layers get which scheme; the tool itself rounds, so its values are not those that were evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.deployment.checkpoints.compressed_tensors import cache_args, config_group, input_args, weight_args
from workbench.deployment.tensors import require_that_all_fit
from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSummary
from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.floating import FP8_E4M3
from workbench.numerics.formats.integer import IntegerElement
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.granularity import PerBlock, PerChannel, PerGroup, PerTensor, PerToken
from workbench.planning.plan import KEEP, Assignment

Assignments = Mapping[str, Assignment]


def llm_compressor(summary: ModelSummary, assignments: Assignments) -> dict[str, Any]:
    """Return a recipe with one QuantizationModifier; ExportError for schemes that compressed-tensors lacks."""
    layers = _quantized(summary, assignments)
    reasons: dict[str, str] = {}
    for layer in layers:
        assignment = assignments[layer.name]
        inputs = None if assignment.inputs is None else input_args(parse_scheme(assignment.inputs))
        for args in (weight_args(parse_scheme(assignment.weights)), inputs):
            if isinstance(args, str):
                reasons.setdefault(layer.name, args)
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
    """Return a configuration of ``modelopt.torch.quantization.quantize``; ExportError for what ModelOpt lacks."""
    rules: dict[str, Any] = {"default": {"enable": False}}
    reasons = {}
    for layer in _quantized(summary, assignments):
        assignment = assignments[layer.name]
        weights = _modelopt_quantizer(assignment.weights, weights=True)
        inputs = None if assignment.inputs is None else _modelopt_quantizer(assignment.inputs, weights=False)
        reason = next((each for each in (weights, inputs) if isinstance(each, str)), None)
        if reason is not None:
            reasons[layer.name] = reason
            continue
        rules[f"*{layer.name}.weight_quantizer"] = weights
        rules[f"*{layer.name}.input_quantizer"] = {"enable": False} if inputs is None else inputs
    require_that_all_fit(reasons, "a configuration of ModelOpt", "vllm")
    return {"quant_cfg": rules, "algorithm": "max"}


def _modelopt_quantizer(name: str, *, weights: bool) -> dict[str, Any] | str:
    scheme = parse_scheme(name)
    if name in ("nvfp4", "mxfp4", "mxfp8-e4m3"):
        size, scales, bits = (16, [4, 3], [2, 1]) if name == "nvfp4" else (32, [8, 0], [2, 1])
        bits = [4, 3] if name == "mxfp8-e4m3" else bits
        return {"num_bits": bits, "block_sizes": {"-1": size, "type": "dynamic", "scale_bits": scales}, "enable": True}
    number = _number(scheme)
    if number is None or not isinstance(scheme, ScaledScheme) or not scheme.symmetric:
        return f"ModelOpt has no {name}: symmetric integers, fp8-e4m3, nvfp4, mxfp4 and mxfp8-e4m3 are known to it"
    width: Any = [4, 3] if number == "fp8" else number
    match scheme.granularity:
        case PerTensor():
            return {"num_bits": width, "axis": None, "enable": True}
        case PerChannel() if weights:
            return {"num_bits": width, "axis": 0, "enable": True}
        case PerToken() if not weights:
            return {"num_bits": width, "block_sizes": {"-1": None}, "type": "dynamic", "enable": True}
        case PerGroup(size):
            return {"num_bits": width, "block_sizes": {"-1": size}, "enable": True}
        case PerBlock(rows, columns):
            return {"num_bits": width, "block_sizes": {"-1": columns, "-2": rows}, "enable": True}
    return f"ModelOpt has no {name} here"


def auto_round(summary: ModelSummary, assignments: Assignments) -> dict[str, Any]:
    """Return ``layer_config`` of ``auto_round.AutoRound``; ExportError for what AutoRound lacks."""
    layers: dict[str, Any] = {}
    reasons = {}
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
        kind = micro[assignment.inputs][2] if assignment.inputs in micro else assignment.inputs[:3].strip("-")
        acts = {"act_bits": 4 if assignment.inputs in ("mxfp4", "nvfp4") else 8, "act_data_type": kind,
                "act_dynamic": True, "act_sym": True}  # fmt: skip
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


TOOLS = {"llm-compressor": Tool(llm_compressor, yaml=True), "modelopt": Tool(modelopt), "auto-round": Tool(auto_round)}
