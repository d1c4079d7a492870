"""What a rewrite of a model consists of: data, which a quantized model carries and an export writes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from workbench.models.model import Model

if TYPE_CHECKING:
    import torch

    from workbench.models.summary import ModelSummary


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RewrittenTensors:
    """Tensors that stand for a model's own: ``weights`` (layer to matrix of outputs x inputs) and ``kept`` (norms and
    biases by name); ``untied`` layers own their weight from now on."""

    weights: Mapping[str, torch.Tensor] = field(default_factory=dict)
    kept: Mapping[str, torch.Tensor] = field(default_factory=dict)
    untied: tuple[str, ...] = ()

    def apply(self, model: Model) -> Model:
        """Return the view of ``model`` with these tensors."""
        if self.untied:
            model = model.untied(self.untied)
        return model.with_kept(self.kept).with_weights(self.weights) if self.weights or self.kept else model

    def stored(self, summary: ModelSummary, quantized: Collection[str]) -> RewrittenTensors:
        """Return what is left beside ``quantized`` layers, every tensor in the dtype that the model's file has."""
        import torch

        kinds = {tensor.name: tensor.dtype for tensor in summary.kept}
        rest = {name: weight for name, weight in self.weights.items() if name not in quantized}
        return RewrittenTensors(
            weights={name: weight.to(getattr(torch, summary.by_name[name].dtype)) for name, weight in rest.items()},
            kept={name: tensor.to(getattr(torch, kinds[name])) for name, tensor in self.kept.items()},
            untied=self.untied,
        )
