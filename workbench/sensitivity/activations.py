"""What quantized activations would cost: the noise at each quantizer, weighted by the gradient's second moment there.

    loss of e = 1/2 * mean over units of sum_tj g_tj ** 2 * e_tj ** 2

``e = Q(x) - x`` is what the plan's quantizer does to the layer's input (or, for a KV cache, to what the
layers of keys and values give), and ``g`` the gradient of the log-likelihood at that place, labels drawn from the model
itself.  Rounding errors of different activations are taken as independent, so their products drop out: the diagonal of
the Fisher information, of activations instead of weights.  One backward pass for each batch serves every scheme.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch

from workbench.errors import ModelError, nearest
from workbench.measurement.divergence import Divergence
from workbench.measurement.gradients import drawn_gradient, sample_generators
from workbench.models.data.batches import Data, routed, tappable, units_of
from workbench.models.execution.activation_quantizers import Ranges, cache_quantizer, input_quantizer
from workbench.models.execution.gradient_flow import Flow, flow_of
from workbench.models.kv_cache import makes_keys_or_values, no_cache
from workbench.models.layer import LayerKind
from workbench.models.model import Batch, Model, Replacement
from workbench.sensitivity.metrics.metric import OpenCells, Part
from workbench.sensitivity.scoring import Scoring

Quantizers = Mapping[str, Mapping[str, Replacement]]
"""What each scheme does to a layer's activations, by layer and scheme."""

Losses = dict[str, dict[str, float]]


def scored_layers(model: Model, part: Part, layers: Sequence[str] | None) -> tuple[str, ...]:
    """Return the layers whose activations are scored.

    They default to all whose input a tap sees, or to the layers of keys and values by their usual names (``k_proj``,
    ``v_proj``, ``key``, ``value``).  Raises ModelError for a layer that no tap sees, and where there are no keys and
    values by such names.
    """
    tapped = {layer.name: layer for layer in tappable(model)}
    tapped |= {layer.name: layer for layer in routed(model)} if part == "inputs" else {}
    if layers is None and part == "inputs":
        return tuple(name for name, layer in tapped.items() if layer.kind is not LayerKind.EMBEDDING)
    if layers is None:
        layers = [name for name, layer in tapped.items() if makes_keys_or_values(layer)]
        if not layers:
            raise ModelError(
                f"{model.summary.name} has no decoder layer that makes keys or values alone (k_proj, v_proj, key, "
                f"value){no_cache(tapped.values())}; its cache stays as computed"
            )
    for name in layers:
        if name not in tapped:
            raise ModelError(f"no tap sees the activations of a layer {name!r}{nearest(name, tapped)}")
    return tuple(dict.fromkeys(layers))


def quantizers_of(model: Model, part: Part, cells: OpenCells, ranges: Ranges) -> Quantizers:
    """Return the functions that a plan with these schemes would quantize the inputs, or the KV cache, with.

    Raises MissingResultError for a static scheme of inputs without a range, PlanError for a static one of the cache.
    """
    layers = model.summary.by_name
    quantizer = partial(input_quantizer, ranges=ranges) if part == "inputs" else cache_quantizer
    return {name: {scheme: quantizer(layers[name], scheme) for scheme in cells[name]} for name in cells}


def predicted_losses(scoring: Scoring, quantizers: Quantizers, part: Part, data: Data) -> Losses:
    """Return the predicted loss of every cell that the data reach, by layer and scheme."""
    model, sums, units = scoring.model, dict[str, dict[str, float]](), 0

    def weigh(name: str, values: torch.Tensor, gradient: torch.Tensor) -> None:
        squares, losses = gradient.float().square(), sums.setdefault(name, {})
        for scheme, quantizer in quantizers[name].items():
            noise = (quantizer(values) - values).float().square_()
            losses[scheme] = losses.get(scheme, 0.0) + 0.5 * float((squares * noise).sum(dtype=torch.float64))

    gradients = ActivationGradients(model=model, layers=tuple(quantizers), part=part, weigh=weigh)
    batches = scoring.finite.of(
        data, scoring.batch_size, lambda _, batch: gradients.forward(batch), progress=scoring.progress,
        text="noise and gradients",
    )  # fmt: skip
    for number, batch, output in batches:
        if gradients.backward(output, batch, number * scoring.batch_size, scoring.seed):
            units += units_of(batch, model.summary)
    return {name: {scheme: loss / units for scheme, loss in losses.items()} for name, losses in sums.items()}


@dataclass(slots=True, kw_only=True)
class ActivationGradients:
    """Calls ``weigh(layer, activations, gradient)`` for the inputs of ``layers``, or for their keys and values."""

    model: Model
    layers: tuple[str, ...]
    part: Part
    weigh: Callable[[str, torch.Tensor, torch.Tensor], None]
    leaves: list[torch.Tensor] = field(default_factory=list)

    def forward(self, batch: Batch) -> torch.Tensor:
        """Run a batch and return the output, with its graph."""
        self.leaves = []
        flow = flow_of(self.model)
        with torch.set_grad_enabled(flow is not Flow.NONE), flow.mode():
            if self.part == "inputs":
                return self.model.run(batch, inputs={name: partial(self._entering, name) for name in self.layers})
            starts = dict.fromkeys(self.layers, self._started)
            return self.model.run(batch, tap=self._leaving, inputs=starts, layers=self.layers)

    def backward(self, output: torch.Tensor, batch: Batch, first: int, seed: int) -> bool:
        """Let the random gradient of a batch flow back; False where the output depends on none of the layers."""
        if not output.requires_grad or not self.leaves:
            return False
        gradient = drawn_gradient(output, batch, self.model.summary.output, sample_generators(seed, first, batch))
        torch.autograd.grad(output, self.leaves, gradient, allow_unused=True)
        return True

    def _started(self, tensor: torch.Tensor) -> torch.Tensor:
        """Let gradients flow back to here, and the graph begin where it has not begun before."""
        if not tensor.is_floating_point():
            return tensor
        leaf = tensor if tensor.requires_grad else tensor.detach().requires_grad_()
        self.leaves.append(leaf)
        return leaf

    def _entering(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        own = self._started(tensor)
        own = own.view_as(own)  # a node of the graph for this layer alone
        self._watch(name, own)
        return own

    def _leaving(self, name: str, tensor: torch.Tensor, output: torch.Tensor) -> None:
        self._watch(name, output)

    def _watch(self, name: str, tensor: torch.Tensor) -> None:
        values = tensor.detach()
        tensor.register_hook(lambda gradient: self.weigh(name, values, gradient.detach()))  # type: ignore[no-untyped-call]


def measured_losses(scoring: Scoring, quantizers: Quantizers, part: Part, data: Data) -> Losses:
    """Return the measured loss of every cell that the data reach: the divergence of the model run with it quantized."""
    model, units = scoring.model, 0
    sums = {name: dict.fromkeys(schemes, 0.0) for name, schemes in quantizers.items()}
    reached: set[str] = set()
    total = -(-len(data) // scoring.batch_size)
    for number, batch, reference in scoring.finite.of(data, scoring.batch_size):
        units += units_of(batch, model.summary)
        distance = Divergence(reference, batch, model.summary.output)
        for place, (name, schemes) in enumerate(quantizers.items()):
            done = (number + place / len(quantizers)) / total
            scoring.progress(done, f"the {part} of {name}, batch {number + 1}")
            for scheme, quantizer in schemes.items():
                rounded = {name: partial(_noting, reached, name, quantizer)}
                with torch.no_grad():
                    output = model.run(batch, inputs=rounded) if part == "inputs" else model.run(batch, outputs=rounded)
                sums[name][scheme] += float(distance.of(output).sum())
    sums = {name: losses for name, losses in sums.items() if name in reached}
    return {name: {scheme: loss / units for scheme, loss in losses.items()} for name, losses in sums.items()}


def _noting(reached: set[str], name: str, quantizer: Replacement, tensor: torch.Tensor) -> torch.Tensor:
    reached.add(name)
    return quantizer(tensor)
