"""What quantizing leaves: the stored form of every weight, and the model that runs with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from workbench.memory import Spill
from workbench.models.execution.activation_quantizers import Ranges, cache_quantizer, input_quantizer
from workbench.models.model import Model, Replacement
from workbench.models.summary import ModelSummary
from workbench.numerics.curvature import Curvature
from workbench.numerics.formats import parse_scheme
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.rounding.algorithm import Rounded
from workbench.planning.plan import Plan, resolve
from workbench.planning.totals import cached_layers, quantized_inputs
from workbench.quantization.transforms.rewrite import RewrittenTensors


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuantizedModel:
    """Data, not a network: the stored form of every quantized weight of the model that ``summary`` describes.

    ``tensors`` maps a layer that owns its weight; layers that are tied to it share it.  ``ranges`` serve static input
    schemes.  ``left`` maps each layer that the plan quantizes but that stayed in floating point to why: NaN or infinite
    weights, an algorithm or a format that cannot serve it; ``notes`` say the same and what else there is to tell.
    ``others`` maps norms, biases and buffers to corrected ones.
    ``changes`` are what the plan's transforms made of the model before; ``summary`` is then of the rewritten model,
    where tied layers may have got a weight of their own.  ``curvature`` is that of the calibration on the data called
    ``calibrated_on``, for forms that write it.
    """

    summary: ModelSummary
    plan: Plan
    tensors: Mapping[str, QuantizedTensor]
    ranges: Ranges = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    left: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, torch.Tensor] = field(default_factory=dict)
    changes: RewrittenTensors = field(default_factory=RewrittenTensors)
    curvature: Mapping[str, Curvature] = field(default_factory=dict)
    calibrated_on: str = ""

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the model."""
        return self.summary.fingerprint

    def bind(self, model: Model) -> Model:
        """Return a view of ``model`` that runs with the decoded weights, quantized layer inputs, keys and values.

        Raises FingerprintMismatchError for another model, MissingResultError for a static scheme without a range.
        """
        model = self.rewritten(model)
        view = model.with_others(self.others).with_weights(decoded(self.tensors))
        inputs = input_quantizers(self.summary, self.plan, self.ranges)
        return view.with_activations(inputs, cache_quantizers(self.summary, self.plan))

    def rewritten(self, model: Model) -> Model:
        """Return ``model`` as the plan's transforms left it, still in floating point; what is not quantized is exact.

        Raises FingerprintMismatchError for another model.
        """
        model.summary.require_fingerprint(self.fingerprint, "the quantized model")
        return self.changes.apply(model)


def encoded(scheme: str, rounded: Rounded) -> QuantizedTensor:
    """Return the stored form of a weight that is on the grid of ``scheme``."""
    return parse_scheme(scheme).encode(rounded.values, rounded.parameters)


def decoded(tensors: Mapping[str, QuantizedTensor]) -> dict[str, torch.Tensor]:
    """Return the float32 matrices that ``tensors`` stand for; beyond a part of the free memory they lie in files."""
    spill = Spill()
    return {name: spill.keep(parse_scheme(stored.scheme).decode(stored)) for name, stored in tensors.items()}


def input_quantizers(summary: ModelSummary, plan: Plan, ranges: Ranges) -> dict[str, Replacement]:
    """Return the function that quantizes each layer's input, for the layers whose inputs ``plan`` quantizes."""
    rounded = quantized_inputs(summary, resolve(plan, summary.layers))
    return {name: input_quantizer(summary.by_name[name], scheme, ranges) for name, scheme in rounded.items()}


def cache_quantizers(summary: ModelSummary, plan: Plan) -> dict[str, Replacement]:
    """Return the function that rounds what each layer of keys or values gives the cache, where ``plan`` says so."""
    cached = cached_layers(summary.layers, resolve(plan, summary.layers))
    return {name: cache_quantizer(summary.by_name[name], scheme) for name, scheme in cached.items()}
