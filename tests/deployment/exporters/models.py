"""A model of a few tensors and its quantized form, for the exporters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from workbench.errors import CannotRunError
from workbench.models.layer import Layer, LayerKind, StoredTensor
from workbench.models.summary import ModelSource, ModelSummary, OutputKind
from workbench.numerics.curvature import Curvature
from workbench.planning.plan import Assignment, Plan, Rule
from workbench.quantization.quantize import quantize
from workbench.quantization.quantized_model import QuantizedModel

FINGERPRINT = "sha256:" + "ab" * 32


@dataclass(frozen=True, kw_only=True, eq=False)
class TensorModel:
    """Tensors by stored name behind the part of the Model contract that exporters use."""

    summary: ModelSummary
    tensors: Mapping[str, torch.Tensor]

    def weight(self, layer: str) -> torch.Tensor:
        facts = self.summary.by_name[layer]
        return self.tensors[facts.parameter].permute(facts.axes).reshape(facts.matrix)

    def aliases(self) -> dict[str, str]:
        return {layer.parameter: self.summary.by_name[layer.tied_to].parameter for layer in self.summary.tied
                if layer.tied_to}  # fmt: skip

    def encoded(self, layer: str) -> None:
        return None

    @property
    def online(self) -> Mapping[str, Mapping[str, Any]]:
        return {}

    def other(self, name: str) -> torch.Tensor:
        return self.tensors[name]

    def run(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        raise CannotRunError("tensors only")

    def with_weights(self, weights: Mapping[str, torch.Tensor]) -> TensorModel:
        raise CannotRunError("tensors only")


def tensor_model() -> TensorModel:
    """Return tensors of every dtype: an odd matrix, a transposed one, a convolution, a tied embedding, kept ones."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    tensors = {
        "odd.weight": normal(7, 37),
        "c_attn.weight": normal(32, 48).to(torch.bfloat16),
        "conv.weight": normal(6, 4, 3, 3).to(torch.float16),
        "embed.weight": normal(20, 16),
        "head.weight": torch.empty(0),
        "плотный.weight": normal(16, 16),
        "norm.weight": normal(5).to(torch.bfloat16),
        "norm.count": torch.tensor(3),
        "mask": torch.tensor([True, False, True]),
        "empty": torch.zeros(0, 4),
    }
    tensors["head.weight"] = tensors["embed.weight"]
    layers = (
        _layer("odd", tensors, LayerKind.LINEAR, (0, 1)),
        _layer("c_attn", tensors, LayerKind.LINEAR, (1, 0)),
        _layer("conv", tensors, LayerKind.CONV2D, (0, 1, 2, 3)),
        _layer("embed", tensors, LayerKind.EMBEDDING, (0, 1)),
        _layer("head", tensors, LayerKind.LINEAR, (0, 1), tied_to="embed"),
        _layer("плотный", tensors, LayerKind.LINEAR, (0, 1)),
    )
    others = tuple(
        StoredTensor(name=name, shape=tuple(tensors[name].shape), dtype=str(tensors[name].dtype).removeprefix("torch."))
        for name in ("norm.weight", "norm.count", "mask", "empty")
    )
    source = ModelSource(kind="safetensors", path="models/some.safetensors")
    summary = ModelSummary(
        name="some", source=source, fingerprint=FINGERPRINT, output=OutputKind.NONE, layers=layers, others=others
    )
    return TensorModel(summary=summary, tensors=tensors)


def _layer(
    name: str, tensors: Mapping[str, torch.Tensor], kind: LayerKind, axes: tuple[int, ...], tied_to: str | None = None
) -> Layer:
    tensor = tensors[f"{name}.weight"]
    return Layer(
        name=name, kind=kind, parameter=f"{name}.weight", shape=tuple(tensor.shape),
        dtype=str(tensor.dtype).removeprefix("torch."), axes=axes, tied_to=tied_to,
    )  # fmt: skip


def plan_of(inputs: str | None = None, **schemes: str) -> Plan:
    """Return a plan with one rule for each layer."""
    rules = tuple(
        Rule(pattern=name, assignment=Assignment(weights=scheme, inputs=inputs)) for name, scheme in schemes.items()
    )
    return Plan(name="мой план 4.5", rules=rules, fingerprint=FINGERPRINT)


def quantized(model: TensorModel, plan: Plan) -> QuantizedModel:
    """Carry the plan out; the linear layers are calibrated."""
    curvature = {
        layer.name: Curvature(rows=np.ones(layer.matrix[0]), columns=np.ones(layer.matrix[1]), full=None, count=8)
        for layer in model.summary.layers if layer.kind is LayerKind.LINEAR
    }  # fmt: skip
    return replace(quantize(model, plan), curvature=curvature)
