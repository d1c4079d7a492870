"""Places where a factor for each channel can be moved from one set of weights into another without changing the model.

A producer (the weight of a norm, or the rows of a linear layer) may be divided by a vector ``s`` if all layers that its
channels reach have the matching columns multiplied by ``s``.  Found by following channels through the recorded graph
(:mod:`workbench.quantization.transforms.labels`), never by names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from workbench.errors import TransformError
from workbench.models.layer import LayerKind
from workbench.models.summary import ModelSummary
from workbench.models.tracing import LayerCall, Operation, Ref, Trace
from workbench.quantization.transforms.labels import Flow, follow


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fold:
    """``vectors`` (other tensors ``[channels]``) and the rows of ``layer`` can be divided by what ``columns`` take.

    ``name`` says what produces the channels.  A norm multiplies by its first vector plus ``offset`` (1 where a norm is
    stored as the difference from one).  ``columns`` maps a layer to the channel of each of its inputs, int64
    ``[columns]``, -1 for none.  ``free`` bool ``[channels]``: which channels may be scaled.  ``heads``, int64
    ``[heads, size]``: sets of channels that may be rotated among themselves, empty where there are none.
    """

    name: str
    layer: str | None
    vectors: tuple[str, ...]
    columns: Mapping[str, torch.Tensor]
    free: torch.Tensor
    offset: float = 0.0
    heads: torch.Tensor = field(default_factory=lambda: torch.zeros(0, 0, dtype=torch.int64))

    @property
    def consumers(self) -> tuple[str, ...]:
        """The layers whose columns take the factor."""
        return tuple(self.columns)

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers that take part."""
        return self.consumers if self.layer is None else (self.layer, *self.consumers)


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


class _Producer(NamedTuple):
    """Where channels arise: in tensor ``tensor``, after step ``step``; the others are fields of its fold."""

    name: str
    step: int
    tensor: int
    layer: str | None
    vectors: tuple[str, ...]
    offset: float


def find_folds(trace: Trace, summary: ModelSummary, *, tied: bool = False) -> Folds:
    """Return every fold, producers in the order of the network; ``tied``: layers that share their weight may take part
    (who folds into them has to cut the tie)."""
    linear = {layer.name for layer in summary.layers if layer.kind is LayerKind.LINEAR and layer.row_axes == 1}
    own = linear - summary.sharing
    folds: list[Fold] = []
    obstacles: dict[str, str] = {}
    for producer in _producers(trace, own):
        shape = trace.tensors[producer.tensor].shape
        labels = torch.arange(shape[-1]).expand(shape)
        flow = follow(trace, producer.step + 1, producer.tensor, labels, linear if tied else own)
        free = free_channels(flow, shape[-1])
        if free.any():
            folds.append(_fold(producer, flow, free))
        else:
            obstacles[producer.name] = ", ".join(flow.obstacles[:2]) or "no layer"
    return Folds(folds=tuple(folds), obstacles=obstacles)


def free_channels(flow: Flow, count: int) -> torch.Tensor:
    """Return which of ``count`` channels end in columns of layers and met no obstacle, bool ``[channels]``."""
    free = torch.zeros(count, dtype=torch.bool)
    for labels in flow.columns.values():
        free[labels[labels >= 0]] = True
    free[sorted(flow.blocked)] = False
    return free


def _fold(producer: _Producer, flow: Flow, free: torch.Tensor) -> Fold:
    columns = {}
    for name, labels in flow.columns.items():
        used = (labels >= 0) & free[labels.clamp_min(0)]
        if bool(used.any()):
            columns[name] = torch.where(used, labels, -1)
    return Fold(
        name=producer.name, layer=producer.layer, vectors=producer.vectors, offset=producer.offset, columns=columns,
        free=free, heads=_heads(flow, free),
    )  # fmt: skip


def _heads(flow: Flow, free: torch.Tensor) -> torch.Tensor:
    """Return sets of free channels that are disjoint and of one size; none if any operation told channels apart."""
    heads = [head for head in flow.heads if min(head) >= 0 and bool(free[list(head)].all())]
    members = [channel for head in heads for channel in head]
    if flow.elementwise or not heads or len(set(map(len, heads))) > 1 or len(set(members)) < len(members):
        return torch.zeros(0, 0, dtype=torch.int64)
    return torch.tensor(heads)


def _producers(trace: Trace, linear: Collection[str]) -> Iterator[_Producer]:
    """Yield the linear layers and the norms (any other vector that multiplies an activation) that are used once."""
    calls, uses = trace.calls(), trace.uses()
    once = {name for number, name in trace.names.items() if uses[number] == 1}
    vectors = _vectors(trace)
    for index, step in enumerate(trace.steps):
        if isinstance(step, LayerCall):
            if step.layer in linear and calls[step.layer] == 1 and once.issuperset(step.others):
                yield _Producer(step.layer, index, step.output, step.layer, step.others, 0.0)
        else:
            names, offset = _norm(trace, step, vectors)
            if names and once.issuperset(names):
                yield _Producer(names[0], index, step.outputs[0], None, names, offset)


def _vectors(trace: Trace) -> dict[int, tuple[str, float]]:
    """Return the tensors that are another vector, or one plus a number, with the vector's name and the number."""
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


def _norm(trace: Trace, step: Operation, vectors: Mapping[int, tuple[str, float]]) -> tuple[tuple[str, ...], float]:
    """Return the names of the vectors that a step scales its channels with, none if it does not, and the offset of the
    first."""
    if step.name == "mul" and len(step.inputs) == 2 and trace.tensors[step.outputs[0]].ndim > 1:
        scales = [vectors[number] for number in step.inputs if number in vectors]
        if len(scales) == 1:
            return scales[0][:1], scales[0][1]
    places = _NORM_VECTORS.get(step.name, ())
    members = [step.args[place] for place in places if place < len(step.args)]
    numbers = [member.number for member in members if isinstance(member, Ref)]
    if not numbers or not isinstance(members[0], Ref) or any(number not in vectors for number in numbers):
        return (), 0.0
    return tuple(vectors[number][0] for number in numbers), vectors[numbers[0]][1]


_NORM_VECTORS = {"native_layer_norm": (2, 3), "layer_norm": (2, 3), "_fused_rms_norm": (2,), "rms_norm": (2,)}
"""Where fused norms have their weight and bias."""
