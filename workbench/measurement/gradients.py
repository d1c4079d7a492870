"""Gradients of a model's own log-likelihood: what curvature and directional losses are made of.

Gradients at the output are drawn with the covariance that those of labels from the model's own distribution have, so
that the second moment of the gradient is the Fisher information and not the empirical one (Kunstner, Hennig and
Balles, "Limitations of the empirical Fisher approximation", NeurIPS 2019).
Outputs that are not logits get random vectors of unit variance: the second moment is then the Gauss-Newton matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Protocol

import torch
from torch import nn

from workbench.measurement.shared_ids import repeated
from workbench.memory import available_memory, limit
from workbench.models.data.batches import Data, output_mask, routed, samples_of, tappable
from workbench.models.data.datasets import Dataset
from workbench.models.execution.gradient_flow import Flow, flow_of, may_fail
from workbench.models.execution.saved import SavedTensors
from workbench.models.execution.stopped_gradients import ThroughStops
from workbench.models.layer import LayerKind
from workbench.models.model import Batch, Model, Replacement, Routed, Tap
from workbench.models.summary import OutputKind
from workbench.numerics.detections import detection_root

PASS_BYTES = 1 << 30
"""About how much memory a pass may take: activations that wait for their gradients, or logits.

In float32 two windows of 2,048 tokens of a vocabulary of 49,152 have logits of as much.
"""

WATCHED = 4
"""Where so many times as much is free, nothing is watched."""

SAVED_SHARE = 0.25
"""The part of the memory that may be taken which may hold what waits for its gradient."""

SIGNS = 1 << 20
"""So many random signs are held at a time."""

PASS_SHARE = 4
"""Of a limit of the memory, or of what is free, a pass may take one part in so many, if that is less than PASS_BYTES.

The limit, and not what is left of it: a run that is gone on with has the same batches.
"""

COPIES_OF_LOGITS = 4
"""Logits, their probabilities, the drawn gradient and what the loss keeps."""


def fitting_batch(
    batch_size: int, dataset: Data, model: Model, *, gradients: bool, most: int | None = None
) -> int:  # fmt: skip
    """Return at most ``batch_size`` samples, so few that a pass fits ``most`` bytes (PASS_BYTES) and PASS_SHARE.

    At least one.

    Counts the logits of token models, and where ``gradients`` flow back the linear layers' inputs and outputs; other
    data are taken as they are.  Results do not depend on it, but for the order in which numbers are added.
    """
    if model.inputs.batch is not None:  # a program that was exported for so many runs no other number at once
        return model.inputs.batch
    ids = dataset.tensors.get("input_ids") if isinstance(dataset, Dataset) else None
    if ids is None or ids.ndim != 2:
        return batch_size
    summary = model.summary
    linear = (layer for layer in summary.layers if layer.kind is LayerKind.LINEAR)
    values = sum(sum(layer.matrix) for layer in linear) if gradients else 0
    if summary.output.per_token:
        values += (COPIES_OF_LOGITS if gradients else 1) * (model.inputs.vocabulary or 0)
    room = min(PASS_BYTES if most is None else most, (limit() or available_memory()) // PASS_SHARE)
    return max(1, min(batch_size, room // max(4 * values * ids.shape[1], 1)))


def batch_generator(seed: int, batch: int) -> torch.Generator:
    """Return the random numbers of one batch, or of one sample: the same whichever ran before it."""
    generator = torch.Generator()
    generator.manual_seed((seed * 1_000_003 + batch) % 2**63)
    return generator


def sample_generators(seed: int, first: int, batch: Batch) -> list[torch.Generator]:
    """Return the random numbers of each sample of a batch that starts with sample ``first``.

    A sample has the same ones in batches of any size.
    """
    return [batch_generator(seed, first + number) for number in range(samples_of(batch))]


def drawn_gradient(
    output: torch.Tensor, batch: Batch, kind: OutputKind, generators: Sequence[torch.Generator]
) -> torch.Tensor:
    """Return one of :func:`drawn_gradients`."""
    return next(drawn_gradients(output, batch, kind, generators, 1))


@torch.no_grad()
def drawn_gradients(
    output: torch.Tensor, batch: Batch, kind: OutputKind, generators: Sequence[torch.Generator], draws: int
) -> Iterator[torch.Tensor]:
    """Yield random gradients at ``output``, of its shape, with the covariance that curvature is made of.

    Logits: ``(diag sqrt p - p sqrt p^T) z``, 0 at padding, whose covariance is ``diag p - p p^T`` as that of
    ``onehot(drawn label) - p``, but whose square scatters less where the network is sure of itself: a drawn label would
    be the likely one nearly always, and say nothing.  (The layers of a tiny MiniCPM3 with random weights were predicted
    at 0.03 of what is measured by drawn labels, at 1.2 by these.)  Detections: ``z`` times the root of their diagonal
    Fisher information.  Otherwise ``z`` itself.

    The ``z`` of tokens are independent signs.  Those of a sample's outputs or classes are of unit variance, at right
    angles to each other (and to ``sqrt p`` of a sample's classes, which does not count) and all of one length: with few
    outputs their squares scatter much less than those of independent normal numbers.  Of five classes two draws have a
    third of the variance; of two one draw is exact.

    ``generators`` are those of the samples; an output of another number of rows is drawn by the first of them.
    """
    if len(output) != len(generators):
        generators = generators[:1]
    if kind is OutputKind.DETECTIONS or not kind.is_logits:
        root = detection_root(output.detach()) if kind is OutputKind.DETECTIONS else torch.ones_like(output)
        yield from (root * z.reshape(output.shape).to(output) for z in _right_angles(output.shape, draws, generators))
        return
    probabilities = torch.softmax(output.detach().float(), dim=-1).contiguous()
    mask = None if kind is OutputKind.CLASS_LOGITS else output_mask(batch, output)
    if not kind.per_token:
        root = probabilities.sqrt() if mask is None else probabilities.sqrt() * mask.unsqueeze(-1)
        alone = root.cpu() if kind is OutputKind.CLASS_LOGITS else None
        scaled = (root * z.to(root).reshape(root.shape) for z in _right_angles(root.shape, draws, generators, alone))
        yield from ((each - probabilities * each.sum(dim=-1, keepdim=True)).to(output.dtype) for each in scaled)
        return
    for draw in range(draws):  # the last one overwrites the probabilities
        gradient = probabilities if draw + 1 == draws else probabilities.clone()
        for part, generator in zip(gradient.chunk(len(generators)), generators, strict=True):
            _signed(part.view(-1, output.shape[-1]), generator)
        yield (gradient if mask is None else gradient.mul_(mask.unsqueeze(-1))).to(output.dtype)


def _signed(probabilities: torch.Tensor, generator: torch.Generator) -> None:
    """Write ``(diag sqrt p - p sqrt p^T) z`` of each row over it, with ``z`` of random signs.

    A random byte, drawn on the host, looks up eight signs.
    """
    signs = 1 - 2 * (torch.arange(256)[:, None] >> torch.arange(8) & 1).to(probabilities)
    size = probabilities.shape[1]
    for part in torch.split(probabilities, max(SIGNS // size, 1)):
        drawn = torch.randint(256, (len(part), -(-size // 8)), generator=generator, dtype=torch.int32)
        root = part.sqrt()
        root *= nn.functional.embedding(drawn.to(root.device), signs).flatten(1)[:, :size]
        part.mul_(root.sum(dim=-1, keepdim=True)).neg_().add_(root)


def _right_angles(
    shape: torch.Size, draws: int, generators: Sequence[torch.Generator], without: torch.Tensor | None = None
) -> list[torch.Tensor]:
    """Return random vectors ``[samples, outputs]`` of unit variance, each sample's at right angles to each other.

    Where there are more ``draws`` than directions, a new set begins.  ``without``, of unit length, is a direction that
    no vector has a part in.
    """
    basis = [] if without is None else [without]
    fixed, vectors, size = len(basis), list[torch.Tensor](), math.prod(shape[1:])
    for _ in range(draws):
        z = torch.stack([torch.randn(size * shape[0] // len(generators), generator=each) for each in generators])
        z = z.reshape(shape[0], size)
        if len(basis) >= max(size, fixed + 1):
            del basis[fixed:]
        for other in basis * 2:  # twice, for what rounding leaves
            z -= (z * other).sum(dim=1, keepdim=True) * other
        unit = z / z.norm(dim=1, keepdim=True).clamp_min(torch.finfo(z.dtype).tiny)
        basis.append(unit)
        vectors.append(unit * math.sqrt(max(size - fixed, 1)))
    return vectors


Listener = Callable[[torch.Tensor, torch.Tensor], None]
"""Receives a tensor and a gradient."""


def _going_back(
    tensor: torch.Tensor, output: torch.Tensor, saved: SavedTensors | None,
    call: Listener,
) -> None:  # fmt: skip
    """Call ``call`` with a layer's input and the gradient at its output once that is known."""
    if output.requires_grad:
        values = saved.pack(tensor) if saved is not None else tensor.detach()
        output.register_hook(lambda gradient: call(SavedTensors.unpack(values), gradient.detach()))  # type: ignore[no-untyped-call]


Targets = Callable[[torch.Tensor], Iterator[tuple[torch.Tensor, torch.Tensor]]]
"""From the output to tensors of the same run, each with the gradient that goes back from it."""


class ExpertListeners(Protocol):
    """Hears of the products of mixtures of experts: whose rows they are, the input, the output or its gradient."""

    def forward(self, name: str, routed: Routed, x: torch.Tensor, output: torch.Tensor) -> None:
        """Receive a product after it ran."""
        ...

    def backward(self, name: str, routed: Routed, x: torch.Tensor, gradient: torch.Tensor) -> None:
        """Receive the gradient at its output."""
        ...


class _Leaves:
    """The tensors that gradients flow back to; none where they do not flow.  ``everywhere``: the input of every layer.

    Otherwise they are the inputs from which nothing before has begun to flow; no weight needs a gradient of its own.
    """

    def __init__(self, flow: Flow, *, everywhere: bool) -> None:
        self.tensors: list[torch.Tensor] = []
        self._flow, self._everywhere = flow, everywhere

    def start(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the input of a layer, from which gradients are known."""
        if self._flow is Flow.NONE or not tensor.is_floating_point():
            return tensor
        if not tensor.requires_grad:
            tensor = tensor.detach().requires_grad_()
        elif not self._everywhere and self.tensors:
            return tensor
        self.tensors.append(tensor)
        return tensor

    def watched(self, saved: SavedTensors | None, call: Listener) -> Replacement:
        """Return what starts at a layer's input and gives ``call`` it and the gradient through that layer alone."""

        def enter(tensor: torch.Tensor) -> torch.Tensor:
            tensor = self.start(tensor)
            own = tensor.view_as(tensor)  # a node of the graph for this layer
            _going_back(own, own, saved, call)
            return own

        return enter

    def looked_up(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy of an embedding's output: networks may write into what they looked up."""
        if self._flow is Flow.NONE:
            return tensor
        self.tensors.append(tensor.detach().requires_grad_())
        return self.tensors[-1].clone()


class GradientPass:
    """Runs batches forward and backward, and hands every layer's input, output and output gradient to its listeners.

    The user's model is never changed, and no gradient at a weight is formed.  Gradients flow back to the outputs of the
    embeddings and to the input of the first layer after them, or of every layer where the network has weights that no
    tap sees.  Beyond what memory there is, what waits for its gradient lies on the disk.  Where they do not flow
    through the network at all (:mod:`workbench.models.execution.gradient_flow`), passes only go forward.
    """

    def __init__(self, model: Model) -> None:
        self._summary = model.summary
        self._layers = tappable(model)
        self._model = model
        self._flow: Flow | None = None  # the one that is tried

    def run(
        self, batch: Batch, first: int, seed: int, forward: Tap | None,
        backward: Callable[[str, torch.Tensor, torch.Tensor], None] | None, layers: Sequence[str] | None = None,
        proceed: Callable[[torch.Tensor], bool] = lambda output: True, draws: int = 1,
        drawn: Callable[[], None] = lambda: None, experts: ExpertListeners | None = None,
        all_experts: bool = False, targets: Targets | None = None, apart: Collection[str] = (),
        entering: Callable[[str, torch.Tensor, torch.Tensor], None] | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Run a batch whose first sample is ``first``; ``backward(layer, input, gradient at output)`` is called on the
        way back; without it no input is held until then.

        ``proceed(output)`` decides after the forward pass whether to go back at all; ``draws`` random gradients go back
        one after another, and ``drawn()`` is called after each.  ``experts`` listen to the products of mixtures, which
        ``all_experts`` lets see all tokens once more.  ``targets(output)`` are tensors and gradients to start from in
        place of the random ones.  Ids that samples share are repeated for each in the embeddings ``apart``.
        ``entering(layer, input, gradient)`` has the gradient that reaches an input through that layer alone.  Returns
        the detached output.
        """
        flow = self._flow or self.tried(batch, layers)
        saved = self._saved()
        leaves = _Leaves(flow, everywhere=len(self._layers) < len(self._summary.layers))

        def tap(name: str, tensor: torch.Tensor, output: torch.Tensor) -> None:
            if forward is not None:
                forward(name, tensor.detach(), output)
            if backward is not None:
                _going_back(tensor, output, saved, partial(backward, name))

        def mixed(name: str, rows: Routed, tensor: torch.Tensor, output: torch.Tensor) -> None:
            if experts is not None:
                experts.forward(name, rows, tensor.detach(), output)
                _going_back(tensor, output, saved, partial(experts.backward, name, rows))

        names = tuple(layers) if layers is not None else tuple(x.name for x in (*self._layers, *routed(self._model)))
        tables = [layer.name for layer in self._layers if layer.kind is LayerKind.EMBEDDING]
        entered = self._layers if entering is None else (*self._layers, *routed(self._model))
        inner = [layer.name for layer in entered if layer.name not in tables]
        starts: dict[str, Replacement] = {
            name: leaves.start if entering is None else leaves.watched(saved, partial(entering, name)) for name in inner
        }
        starts |= dict.fromkeys(apart, repeated(samples_of(batch)))
        with (
            torch.enable_grad(), self._weights_alone(inner), flow.mode() as stops,
            nullcontext() if saved is None else saved.saving(),
        ):  # fmt: skip
            output = self._model.run(
                batch, tap=tap, inputs=starts, layers=names, outputs=dict.fromkeys(tables, leaves.looked_up),
                experts=None if experts is None else mixed, everywhere=all_experts,
            )  # fmt: skip
        if not proceed(output.detach()) or not output.requires_grad or not leaves.tensors:
            return output.detach()
        ignored = isinstance(stops, ThroughStops) and stops.ignored
        if self._flow is Flow.THROUGH_STOPS and not ignored and not may_fail(output):
            return output.detach()  # only tried: torch has the derivative of all that it saw
        if targets is not None:
            for start_at, gradient in targets(output):
                torch.autograd.grad(start_at, leaves.tensors, gradient, allow_unused=True, retain_graph=True)
        else:
            self._draw(output, leaves.tensors, batch, sample_generators(seed, first, batch), draws, drawn)
        return output.detach()

    def _draw(
        self, output: torch.Tensor, leaves: Sequence[torch.Tensor], batch: Batch,
        generators: Sequence[torch.Generator], draws: int, drawn: Callable[[], None],
    ) -> None:  # fmt: skip
        """Let random gradients flow back from ``output``, one after another."""
        for draw, gradient in enumerate(drawn_gradients(output, batch, self._summary.output, generators, draws)):
            torch.autograd.grad(output, leaves, gradient, allow_unused=True, retain_graph=draw + 1 < draws)
            drawn()

    def tried(self, batch: Batch, layers: Sequence[str] | None = None) -> Flow:
        """Return how far gradients flow through the network, tried with the first sample where it is not known yet."""
        return flow_of(self._model, partial(self._attempt, batch, layers))

    def _attempt(self, batch: Batch, layers: Sequence[str] | None, flow: Flow) -> None:
        """Go forward and back with the first sample; raises what torch raises where it cannot."""
        sample = batch if self._model.inputs.batch is not None else {name: each[:1] for name, each in batch.items()}
        tried = GradientPass(self._model)
        tried._flow = flow
        tried.run(sample, 0, 0, None, None, layers)

    @contextmanager
    def _weights_alone(self, names: Sequence[str]) -> Iterator[None]:
        """Ask for no gradient of linear weights that start at an input: their products would hold it until the end."""
        body = getattr(self._model, "body", None)
        modules = [body.network.get_submodule(body.hooks[name]) for name in names if name in body.hooks] if body else []
        weights = [each.weight for each in modules if type(each) is nn.Linear and each.weight.requires_grad]
        try:
            for weight in weights:
                weight.requires_grad_(False)
            yield
        finally:
            for weight in weights:
                weight.requires_grad_(True)

    def _saved(self) -> SavedTensors | None:
        """Return what holds the pass's tensors where memory is limited, None where it need not be watched."""
        available = available_memory()
        if limit() is None and available > WATCHED * PASS_BYTES:
            return None
        own = (each.values() for each in (getattr(self._model, "_parameters", {}), self._model.overrides.weights))
        return SavedTensors(room=int(available * SAVED_SHARE), own=[tensor for part in own for tensor in part])
