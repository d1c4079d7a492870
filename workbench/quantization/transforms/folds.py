"""Places where a factor for each channel can be moved from one set of weights into another without changing the model.

A producer (the weight of a norm, or the rows of a linear layer) may be divided by a vector ``s`` if all layers that its
channels reach have the matching columns multiplied by ``s``.  Found by following channels through the recorded graph
(:mod:`workbench.quantization.transforms.labels`), never by names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import torch

from workbench.errors import TransformError
from workbench.models.layer import LayerKind
from workbench.models.summary import ModelSummary
from workbench.models.tracing import LayerCall, Operation, Ref, Trace
from workbench.quantization.transforms.labels import Flow, follow


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fold:
    """``vectors`` (kept tensors ``[channels]``) and the rows of ``layer`` can be divided by what ``columns`` take.

    ``name`` says what produces the channels.  A norm multiplies by its first vector plus ``offset`` (1 where a norm is
    stored as the difference from one).  ``columns`` maps a layer to the channel of each of its inputs, int64
    ``[columns]``, -1 for none.  ``free`` bool ``[channels]``: which channels may be scaled.  ``heads``, int64
    ``[heads, size]``: sets of channels that may be rotated among themselves, empty where there are none.
    """

    name: str
    layer: str | None
    vectors: tuple[str, ...]
    offset: float
    columns: Mapping[str, torch.Tensor]
    free: torch.Tensor
    heads: torch.Tensor

    @property
    def consumers(self) -> tuple[str, ...]:
        """The layers whose columns take the factor."""
        return tuple(self.columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Folds:
    """What a model offers, and why the rest offers nothing: ``obstacles`` maps a producer to what its channels met."""

    folds: tuple[Fold, ...]
    obstacles: Mapping[str, str]

    def require(self, summary: ModelSummary) -> tuple[Fold, ...]:
        """Return the folds; raises TransformError telling what was found if there are none."""
        if self.folds:
            return self.folds
        met = "; ".join(f"{name} meets {what}" for name, what in list(self.obstacles.items())[:3])
        reason = f"of {len(self.obstacles)} norms and linear layers, {met}" if met else "it has no norm or linear layer"
        raise TransformError(
            f"{summary.name} has no place where a scale can be moved from one layer into another: {reason}; take the "
            "transform out of the plan"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Producer:
    """Where channels arise: after step ``step``, in tensor ``tensor``."""

    name: str
    step: int
    tensor: int
    layer: str | None = None
    vectors: tuple[str, ...] = ()
    offset: float = 0.0


def find_folds(trace: Trace, summary: ModelSummary, *, tied: bool = False) -> Folds:
    """Return every fold, producers in the order of the network; ``tied``: layers that share their weight may take part
    (who folds into them has to cut the tie)."""
    linear = {layer.name for layer in summary.layers if layer.kind is LayerKind.LINEAR and layer.row_axes == 1}
    shared = {layer.tied_to for layer in summary.layers if layer.tied_to}
    shared |= {layer.name for layer in summary.layers if layer.tied_to}
    allowed = linear if tied else linear - shared
    folds: list[Fold] = []
    obstacles: dict[str, str] = {}
    for producer in _producers(trace, linear - shared):
        channels = trace.tensors[producer.tensor].shape[-1]
        labels = torch.arange(channels).expand(trace.tensors[producer.tensor].shape)
        flow = follow(trace, producer.step + 1, producer.tensor, labels, allowed)
        fold = _fold(producer, flow, channels)
        if fold is not None:
            folds.append(fold)
        else:
            obstacles[producer.name] = ", ".join(flow.obstacles[:2]) or "no layer"
    return Folds(folds=tuple(folds), obstacles=obstacles)


def _fold(producer: _Producer, flow: Flow, channels: int) -> Fold | None:
    free = torch.zeros(channels, dtype=torch.bool)
    for labels in flow.columns.values():
        free[labels[labels >= 0]] = True
    free[sorted(flow.blocked)] = False
    if not free.any():
        return None
    columns = {name: _only(labels, free) for name, labels in flow.columns.items()}
    return Fold(
        name=producer.name, layer=producer.layer, vectors=producer.vectors, offset=producer.offset,
        columns={name: labels for name, labels in columns.items() if bool((labels >= 0).any())}, free=free,
        heads=_heads(flow, free),
    )  # fmt: skip


def _only(labels: torch.Tensor, free: torch.Tensor) -> torch.Tensor:
    return torch.where((labels >= 0) & free[labels.clamp_min(0)], labels, -1)


def _heads(flow: Flow, free: torch.Tensor) -> torch.Tensor:
    """Return sets of free channels that are disjoint and of one size; none if any operation told channels apart."""
    heads = [head for head in flow.heads if min(head) >= 0 and bool(free[list(head)].all())]
    members = [channel for head in heads for channel in head]
    if flow.elementwise or not heads or len(set(map(len, heads))) > 1 or len(set(members)) < len(members):
        return torch.zeros(0, 0, dtype=torch.int64)
    return torch.tensor(heads)


def _producers(trace: Trace, linear: Collection[str]) -> Iterator[_Producer]:
    """Yield the linear layers and the norms (any kept vector that multiplies an activation) that are used once."""
    calls, uses = trace.calls(), trace.uses()
    numbers = {name: number for number, name in trace.names.items()}
    vectors = _vectors(trace)
    for index, step in enumerate(trace.steps):
        if isinstance(step, LayerCall):
            once = calls[step.layer] == 1 and all(uses[numbers[name]] == 1 for name in step.kept)
            if step.layer in linear and once:
                yield _Producer(name=step.layer, step=index, tensor=step.output, layer=step.layer, vectors=step.kept)
        else:
            norm = _norm(trace, step, vectors)
            if norm is not None and all(uses[numbers[name]] == 1 for name in norm[0]):
                names, offset = norm
                yield _Producer(name=names[0], step=index, tensor=step.outputs[0], vectors=names, offset=offset)


def _vectors(trace: Trace) -> dict[int, tuple[str, float]]:
    """Return the tensors that are a kept vector, or one plus a number, with the vector's name and the number."""
    vectors = {number: (name, 0.0) for number, name in trace.names.items() if trace.tensors[number].ndim == 1}
    for step in trace.steps:
        if isinstance(step, Operation) and step.outputs and isinstance(next(iter(step.args), None), Ref):
            known = vectors.get(step.args[0].number)
            if known is None:
                continue
            if step.name in ("_to_copy", "detach", "alias"):
                vectors[step.outputs[0]] = known
            elif step.name == "add" and isinstance(step.args[1], int | float):
                vectors[step.outputs[0]] = (known[0], known[1] + step.args[1])
            elif step.name == "add" and isinstance(step.args[1], Ref):
                other = trace.tensors[step.args[1].number]
                if other.numel() == 1:
                    vectors[step.outputs[0]] = (known[0], known[1] + float(other))
    return vectors


def _norm(
    trace: Trace, step: Operation, vectors: Mapping[int, tuple[str, float]]
) -> tuple[tuple[str, ...], float] | None:
    """Return the names of the vectors that a step scales its channels with, and the offset of the first."""
    if step.name == "mul" and len(step.inputs) == 2:
        hit = [number for number in step.inputs if number in vectors]
        if len(hit) == 1 and trace.tensors[step.outputs[0]].ndim > 1:
            name, offset = vectors[hit[0]]
            return (name,), offset
    places = {"native_layer_norm": (2, 3), "layer_norm": (2, 3), "_fused_rms_norm": (2,), "rms_norm": (2,)}
    given = [step.args[place] for place in places.get(step.name, ()) if place < len(step.args)]
    refs = [each for each in given if isinstance(each, Ref)]
    if not refs or any(ref.number not in vectors for ref in refs) or not isinstance(given[0], Ref):
        return None
    return tuple(vectors[ref.number][0] for ref in refs), vectors[refs[0].number][1]
