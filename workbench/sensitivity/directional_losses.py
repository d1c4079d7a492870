"""The directional form of the predicted loss, for weights whose positions are correlated.

    loss of D = 1/2 * mean over samples of < gradient of the sample's log-likelihood at W, D > ** 2

One backward pass for each batch serves every scheme: a layer's gradient is formed for each sample from its input and
its output gradient, and multiplied with all differences at once.  Weights that no tap sees are differentiated one
sample at a time.  Nothing is assumed of positions, only that the loss is quadratic in D (the Fisher information's
definition).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from workbench.measurement.gradients import GradientPass, drawn_gradients, fitting_batch, sample_generators
from workbench.measurement.shared_ids import repeatable
from workbench.measurement.weight_gradients import GRADIENT_CELLS, ConvolutionGeometry, linear_gradients
from workbench.models.data.batches import (
    Data,
    batches_of,
    numbered_batches,
    require_shape,
    samples_of,
    tappable,
    units_of,
)
from workbench.models.execution.gradient_flow import Flow, flow_of
from workbench.models.layer import Layer, LayerKind
from workbench.models.model import Batch, Model
from workbench.progress import Progress, silent
from workbench.sensitivity.differences import Differences
from workbench.sensitivity.interaction import MOST_DRAWS

DIFFERENCE_BYTES = 1 << 29
"""The most bytes of differences that are held at once; more take another pass over the data."""

SLOPES_BYTES = 1 << 27
"""About how much memory a pass takes beside the differences: batches of three windows of MiniLM, of 256 tokens.

Batches of eight take a fifth less time, and 300 MB more.
"""

DRAWS = 2
"""Random gradients for each sample: they halve the variance, and share the forward pass."""


def directional_losses(
    model: Model, differences: Mapping[str, Differences], data: Data, *, batch_size: int, seed: int,
    progress: Progress = silent,
) -> dict[str, Directional]:  # fmt: skip
    """Return the loss of every difference and its slopes, for each layer.

    ``differences`` belong to layers that own their weight; of an embedding they hold at least the rows that ``data``
    look up.  Nats per token for token logits, else per sample.
    """
    sums = _Dots(model=model, differences=differences, most=min(MOST_DRAWS, DRAWS * len(data)))
    seen = {layer.name for layer in tappable(model)}
    gradients, batch_size = GradientPass(model), slopes_batch(batch_size, data, model)
    first = next(batches_of(model, data, batch_size), None)
    apart = frozenset[str]() if first is None else repeatable(model, first, sums.watched(seen))
    for number, batch in numbered_batches(model, data, batch_size, progress, "gradients"):
        sums.begin(batch)
        output = gradients.run(
            batch, number * batch_size, seed, sums.forward, sums.backward, layers=sums.watched(seen), draws=DRAWS,
            drawn=sums.finish, apart=apart,
        )  # fmt: skip
        unseen = sums.unseen(seen)
        if unseen:
            sums.add_one_by_one(unseen, batch, sample_generators(seed, number * batch_size, batch), output)
    return sums.losses()


def slopes_batch(batch_size: int, data: Data, model: Model) -> int:
    """Return how many samples, of at most ``batch_size``, run at once."""
    return fitting_batch(batch_size, data, model, gradients=True, most=SLOPES_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Directional:
    """``losses`` float64 ``[schemes]``, NaN where no data reach the layer; ``slopes`` float32 ``[schemes, draws]`` of
    the first MOST_DRAWS draws, those of a sample side by side, None where the layer has no loss."""

    losses: torch.Tensor
    slopes: torch.Tensor | None


@dataclass(slots=True, kw_only=True)
class SampleProducts:
    """Scalar products of differences with gradients at the weight, sample by sample, of one batch and draw."""

    model: Model
    differences: Mapping[str, Differences]
    refused: set[str] = field(default_factory=set)
    _batch: dict[str, torch.Tensor] = field(default_factory=dict)
    _geometry: dict[str, ConvolutionGeometry | None] = field(default_factory=dict)
    _samples: int = 0
    _room: torch.Tensor | None = None

    def watched(self, seen: set[str]) -> tuple[str, ...]:
        """Return the layers to tap: those asked for and what is tied to them, where a tap sees every use."""
        owners = self.differences.keys() - self.unseen(seen)
        return tuple(x.name for x in self.model.summary.layers if x.name in seen and (x.tied_to or x.name) in owners)

    def unseen(self, seen: set[str]) -> tuple[str, ...]:
        """Return the layers to differentiate one sample at a time: those with a use that no tap sees."""
        hidden = {layer.tied_to or layer.name for layer in self.model.summary.layers if layer.name not in seen}
        return tuple(name for name in self.differences if name in hidden or name in self.refused)

    def begin(self, batch: Batch) -> None:
        self._batch, self._samples = {}, samples_of(batch)

    def taken(self) -> dict[str, torch.Tensor]:
        """Return the products since the last time, ``[samples, schemes]`` by layer, and forget them."""
        batch, self._batch = self._batch, {}
        return batch

    def forward(self, name: str, tensor: torch.Tensor, output: torch.Tensor) -> None:
        layer = self.model.summary.by_name[name]
        shared = layer.kind is LayerKind.EMBEDDING and tensor.ndim < 2  # positions, the same for all samples
        if shared or tensor.shape[0] != self._samples:  # or tokens of all samples in one row, as experts get them
            self.refused.add(layer.tied_to or name)
        if layer.kind.is_convolution:
            self._geometry[name] = ConvolutionGeometry.of(layer, tensor, output)
            if self._geometry[name] is None:
                self.refused.add(name)

    def backward(self, name: str, tensor: torch.Tensor, gradient: torch.Tensor) -> None:
        layer = self.model.summary.by_name[name]
        owner = layer.tied_to or name
        if owner in self.refused:
            return
        dots = self._dots(layer, self.differences[owner], tensor, gradient.float())
        self._batch[owner] = self._batch[owner] + dots if owner in self._batch else dots

    def _dots(self, layer: Layer, differences: Differences, x: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
        """Return ``<gradient of sample n, difference s>``, ``[samples, schemes]``."""
        samples = x.shape[0]
        if layer.kind is LayerKind.EMBEDDING:
            return differences.looked_up(x.reshape(samples, -1), d.reshape(samples, -1, d.shape[-1]))
        geometry = self._geometry.get(layer.name)
        if geometry is not None:
            return differences.products(geometry.weight_gradients(layer, x.float(), d))
        step = max(GRADIENT_CELLS // layer.parameters, 1)
        parts, room = zip(torch.split(x.float(), step), torch.split(d, step), strict=True), self._gradients(x.device)
        return torch.cat([differences.products(linear_gradients(*part, room)) for part in parts])

    def _gradients(self, device: torch.device) -> torch.Tensor:
        """Return room for the gradients of as many samples as are formed at once, the same for all layers."""
        if self._room is None:
            largest = max(self.model.summary.by_name[name].parameters for name in self.differences)
            most = max(GRADIENT_CELLS, largest)
            self._room = torch.empty(most, device=device)
        return self._room


@dataclass(slots=True, kw_only=True)
class _Dots(SampleProducts):
    """Sums over samples of squared scalar products, for each layer, and the first ``most`` products themselves."""

    most: int
    slopes: dict[str, torch.Tensor] = field(default_factory=dict)
    drawn: int = 0
    squares: dict[str, torch.Tensor] = field(default_factory=dict)
    units: int = 0
    _units: int = 0
    _first: int = 0

    def begin(self, batch: Batch) -> None:
        SampleProducts.begin(self, batch)
        self._first, self._units = self.drawn, units_of(batch, self.model.summary)

    def finish(self) -> None:
        """Add one draw of the batch unless something in it is NaN or infinite."""
        dots_of = self.taken()
        draw = (self.drawn - self._first) // max(self._samples, 1)
        self.drawn += self._samples
        if not all(bool(dots.isfinite().all()) for dots in dots_of.values()):
            return
        self.units += self._units
        for name, dots in dots_of.items():
            if name not in self.refused:
                self._add(name, dots, self._first + draw)

    def _add(self, name: str, dots: torch.Tensor, first: int) -> None:
        """Add squares, and keep the products as far as there is room: from ``first`` on, DRAWS places for a sample."""
        squares = dots.double().square().sum(dim=0)
        self.squares[name] = self.squares[name] + squares if name in self.squares else squares
        slopes = self.slopes.setdefault(name, dots.new_zeros(dots.shape[1], self.most))
        room = slopes[:, first : first + DRAWS * len(dots) : DRAWS]
        room.copy_(dots[: room.shape[1]].T)

    def add_one_by_one(
        self, names: Sequence[str], batch: Batch, generators: Sequence[torch.Generator], output: torch.Tensor
    ) -> None:
        """Differentiate each sample at the weights ``names``, by the draws that the batch got for ``output``."""
        kind, flow = self.model.summary.output, flow_of(self.model)
        if flow is Flow.NONE:
            return
        draws = list(drawn_gradients(output, batch, kind, generators, DRAWS))
        leaves = {name: self.model.held_weight(name).detach().float().clone().requires_grad_() for name in names}
        view = self.model.with_weights(leaves)
        for index in range(samples_of(batch)):
            sample = {key: tensor[index : index + 1] for key, tensor in batch.items()}
            with torch.enable_grad(), flow.mode():
                alone = view.run(sample)
            require_shape(output, alone)
            if not alone.requires_grad:  # a graph that another library runs
                return
            for draw, gradient in enumerate(draws):
                gradients = torch.autograd.grad(
                    alone, list(leaves.values()), gradient[index : index + 1], allow_unused=True,
                    retain_graph=draw + 1 < DRAWS,
                )  # fmt: skip
                for name, at_weight in zip(names, gradients, strict=True):
                    if at_weight is not None and bool(at_weight.isfinite().all()):
                        dots = self.differences[name].products(at_weight[None])
                        self._add(name, dots, self._first + DRAWS * index + draw)

    def losses(self) -> dict[str, Directional]:
        """Return half the mean squares and the slopes; NaN for a layer whose gradient was zero throughout."""
        losses = {}
        for name, differences in self.differences.items():
            squares = self.squares.get(name)
            acts = squares is not None and (bool((squares > 0).any()) or not bool(differences.values.any()))
            if squares is None or not self.units or not acts:
                nothing = torch.full((len(differences.values),), math.nan, dtype=torch.float64)
                losses[name] = Directional(losses=nothing, slopes=None)
            else:
                losses[name] = Directional(losses=0.5 * squares / self.units, slopes=self.slopes.get(name))
        return losses
