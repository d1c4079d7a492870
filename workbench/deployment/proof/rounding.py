"""What a runtime rounds besides the weights: how far that alone moves our own evaluation.

A runtime's answers may differ from the evaluation by this much and by no more, however coarse the plan is: a bound by
the plan's own loss would let a wrong file pass where that loss is large.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from workbench.models.gguf.tensors import is_unused
from workbench.models.layer import LayerKind
from workbench.models.model import Model, Replacement
from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.gguf.inputs import inputs_beside
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.granularity import PerGroup
from workbench.planning.plan import KEEP, Plan, resolve
from workbench.planning.totals import cached_layers, quantized_inputs
from workbench.quantization.quantized_model import QuantizedModel, decoded

CASTS = {"float16": "fp16", "bfloat16": "bf16", "fp16": "fp16", "bf16": "bf16"}
"""llama.cpp multiplies weights in 16 bits by inputs in 16 bits."""

NOISE = 1e-7
"""How far sums of float32 numbers differ by their order, relative."""


def as_in_llama_cpp(quantized: QuantizedModel) -> QuantizedModel:
    """Return the plan with inputs rounded as llama.cpp rounds them beside each type of weights."""
    return _with_inputs(quantized, {
        layer.name: _beside(_scheme(quantized, layer.tied_to or layer.name), layer.dtype)
        for layer in quantized.summary.layers
        if layer.kind is not LayerKind.EMBEDDING and not is_unused(layer.parameter)
    })  # fmt: skip


def as_in_transformers(quantized: QuantizedModel, model: Model) -> Model | None:
    """Return the model with inputs, keys and values as they are, and NVFP4 in bfloat16, as the library decodes it.

    None where the plan has none of them.
    """
    plain = with_plain_inputs(quantized)
    coarse = {name: stored for name, stored in quantized.tensors.items() if stored.scheme == "nvfp4"}
    if plain is None and not coarse:
        return None
    return (
        (plain or quantized)
        .bind(model)
        .with_weights({name: matrix.bfloat16().float() for name, matrix in decoded(coarse).items()})
    )


def as_in_onnx_runtime(quantized: QuantizedModel, file: Path) -> QuantizedModel | None:
    """Return the plan with inputs as they are, or in 8 bits beside blocks of integers where ``file`` allows that.

    None where neither differs from the plan.
    """
    plain = with_plain_inputs(quantized)
    if not _allows_rounding(file):
        return plain
    blocks = {
        name: f"int8-g{scheme.granularity.size}" for name, stored in quantized.tensors.items()
        if isinstance(scheme := parse_scheme(stored.scheme), ScaledScheme) and isinstance(scheme.granularity, PerGroup)
        and scheme.element.shiftable
    }  # fmt: skip
    tied = {layer.name: blocks[layer.tied_to] for layer in quantized.summary.tied if layer.tied_to in blocks}
    return _with_inputs(plain or quantized, blocks | tied) if blocks else plain


def _allows_rounding(file: Path) -> bool:
    """Return whether ONNX Runtime rounds inputs of the file's products by itself: at accuracy 4, or where a product
    follows blocks of DequantizeLinear, which it joins at that accuracy."""
    import onnx

    graph = onnx.load(str(file), load_external_data=False).graph
    products = {name for node in graph.node if node.op_type in ("MatMul", "Gemm") for name in node.input}
    for node in graph.node:
        numbers = {each.name: each.i for each in node.attribute}
        if node.op_type == "MatMulNBits" and numbers.get("accuracy_level") == 4:
            return True
        if node.op_type == "DequantizeLinear" and numbers.get("block_size") and node.output[0] in products:
            return True
    return False


def with_plain_inputs(quantized: QuantizedModel) -> QuantizedModel | None:
    """Return the plan with inputs, keys and values as they are; None where it rounds none."""
    assignments = resolve(quantized.plan, quantized.summary.layers)
    rounded = quantized_inputs(quantized.summary, assignments)
    cached = cached_layers(quantized.summary.layers, assignments)
    if not rounded and not cached:
        return None
    plain = _with_inputs(quantized, dict.fromkeys(rounded))
    return replace(plain, plan=plain.plan.assign(cached, cache=None)) if cached else plain


def repeated(quantized: QuantizedModel, model: Model) -> Model | None:
    """Return the plan's model with a change of 1e-7 in what each layer rounds; None where no input is rounded.

    Sums in another order make such a difference.  A number near the middle between two codes then goes to the other
    one, which is a change of a whole step, and the layers after it differ by more than rounding of sums.
    """
    if with_plain_inputs(quantized) is None:
        return None
    bound = quantized.bind(model)
    inputs, outputs = bound.overrides.inputs, bound.overrides.outputs
    return bound.with_activations(
        {name: _Disturbed(quantizer) for name, quantizer in inputs.items()},
        {name: _Disturbed(quantizer) for name, quantizer in outputs.items()},
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Disturbed:
    """A quantizer that gets other last bits, the same each time."""

    quantizer: Replacement

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return self.quantizer(tensor)
        noise = torch.randn(tensor.shape, generator=torch.Generator().manual_seed(0)).to(tensor)
        size = tensor.square().mean().sqrt()  # small results of sums of large numbers have errors of these
        return self.quantizer(tensor + NOISE * size * noise)


def _scheme(quantized: QuantizedModel, owner: str) -> str:
    stored = quantized.tensors.get(owner)
    return KEEP if stored is None else stored.scheme


def _beside(weights: str, dtype: str) -> str | None:
    if weights in (KEEP, *CASTS, "fp32"):
        return CASTS.get(dtype if weights == KEEP else weights)
    return inputs_beside(weights)


def _with_inputs(quantized: QuantizedModel, inputs: Mapping[str, str | None]) -> QuantizedModel:
    plan: Plan = quantized.plan
    for scheme in set(inputs.values()):
        plan = plan.assign([name for name, each in inputs.items() if each == scheme], inputs=scheme)
    return replace(quantized, plan=plan)
