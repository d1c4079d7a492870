"""What a runtime rounds besides the weights: how far that alone moves our own evaluation.

A runtime's answers may differ from the evaluation by this much and by no more, however coarse the plan is: a bound by
the plan's own loss would let a wrong file pass where that loss is large.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.models.layer import LayerKind
from workbench.planning.plan import KEEP, Plan, resolve
from workbench.planning.totals import quantized_inputs
from workbench.quantization.quantized_model import QuantizedModel, decoded

if TYPE_CHECKING:
    from workbench.models.model import Model

CASTS = {"float16": "fp16", "bfloat16": "bf16", "fp16": "fp16", "bf16": "bf16"}
"""llama.cpp multiplies weights in 16 bits by inputs in 16 bits."""

BLOCKS_OF_256 = ("q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq1_", "iq2_", "iq3_", "iq4_xs", "tq")
"""Types whose inputs llama.cpp rounds to 8 bits in blocks of 256; those of the others in blocks of 32."""


def as_in_llama_cpp(quantized: QuantizedModel) -> QuantizedModel:
    """Return the plan with inputs rounded as llama.cpp rounds them beside each type of weights."""
    return _with_inputs(quantized, {
        layer.name: _beside(_scheme(quantized, layer.tied_to or layer.name), layer.dtype)
        for layer in quantized.summary.layers if layer.kind is not LayerKind.EMBEDDING
    })  # fmt: skip


def as_in_transformers(quantized: QuantizedModel, model: Model) -> Model | None:
    """Return the model with inputs as they are, and NVFP4 in bfloat16, in which compressed-tensors decodes it.

    None where the plan has neither.
    """
    plain = with_plain_inputs(quantized)
    coarse = {name: stored for name, stored in quantized.tensors.items() if stored.scheme == "nvfp4"}
    if plain is None and not coarse:
        return None
    return (plain or quantized).bind(model).with_weights(
        {name: matrix.bfloat16().float() for name, matrix in decoded(coarse).items()}
    )


def with_plain_inputs(quantized: QuantizedModel) -> QuantizedModel | None:
    """Return the plan with inputs as they are; None where it rounds none."""
    assignments = resolve(quantized.plan, quantized.summary.layers)
    rounded = quantized_inputs(quantized.summary, assignments)
    return _with_inputs(quantized, dict.fromkeys(rounded)) if rounded else None


def _scheme(quantized: QuantizedModel, owner: str) -> str:
    stored = quantized.tensors.get(owner)
    return KEEP if stored is None else stored.scheme


def _beside(weights: str, dtype: str) -> str | None:
    if weights in (KEEP, *CASTS, "fp32"):
        return CASTS.get(dtype if weights == KEEP else weights)
    return "int8-g256" if weights.startswith(BLOCKS_OF_256) else "int8-g32"


def _with_inputs(quantized: QuantizedModel, inputs: Mapping[str, str | None]) -> QuantizedModel:
    plan: Plan = quantized.plan
    for scheme in set(inputs.values()):
        plan = plan.assign([name for name, each in inputs.items() if each == scheme], inputs=scheme)
    return replace(quantized, plan=plan)
