"""Cross-layer equalization on a model; the maths is in numerics/equivalences/equalization.py.

The channels of a convolution or linear layer are followed through its batch norm, ReLU, pooling, padding and flattening
to the layers that take them, depthwise convolutions among them.  Whatever else they meet, ReLU6 or a residual sum,
blocks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from workbench.errors import TransformError
from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSummary
from workbench.models.tracing import LayerCall, Trace
from workbench.numerics.equivalences.equalization import equalizing_scales
from workbench.planning.plan import KEEP
from workbench.quantization.transforms.batch_norms import NormCall, find_norms
from workbench.quantization.transforms.labels import follow
from workbench.quantization.transforms.rewrite import Draft
from workbench.quantization.transforms.transform import FoldReport, Outcome, Setting

SWEEPS = 20
"""How many times chains of layers are swept at most, until the scales stay."""

SETTLED = 1e-3
"""The largest relative step at which they stay."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pair:
    """``consumers`` maps a layer to the channel of ``layer`` behind each weight, int64 ``[groups, columns]``, -1: none.

    A layer's rows fall into as many equal runs as it has groups.  ``free`` bool ``[channels]``.
    """

    layer: str
    vectors: tuple[str, ...]
    norm: NormCall | None
    consumers: Mapping[str, torch.Tensor]
    free: torch.Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Equalize:
    """Gives a channel one largest weight before and behind it, so that one scale for many channels fits better."""

    name: str = "equalize"

    def rewrite(self, draft: Draft, setting: Setting) -> Outcome:
        """Equalize; see the Transform contract.  Raises TransformError naming what each layer's channels met."""
        pairs, obstacles = find_pairs(setting.trace, draft.summary)
        if not pairs:
            met = "; ".join(f"the channels of {name} meet {what}" for name, what in list(obstacles.items())[:3])
            raise TransformError(
                f"{draft.summary.name} has no two layers that could be equalized: "
                f"{met or 'it runs no convolution or linear layer'}; take equalize out of the plan"
            )
        notes, wanted = [], []
        for pair in pairs:
            names = (pair.layer, *pair.consumers)
            bad = _broken(draft, pair)
            if bad is not None:
                notes.append(f"{bad} holds NaN or infinite values: equalize left {', '.join(names)} alone")
            elif any(setting.assignments[name].weights != KEEP for name in names):
                wanted.append(pair)
        before = [_largest(draft, pair) for pair in wanted]
        for _ in range(SWEEPS):
            if max((_step(draft, pair) for pair in wanted), default=0.0) < SETTLED:
                break
        changes = tuple(
            FoldReport(
                transform=self.name, source=pair.layer, layers=tuple(pair.consumers), inputs_before=old.numpy(),
                inputs_after=_largest(draft, pair).numpy(), measure="largest weight that takes the channel",
            )
            for pair, old in zip(wanted, before, strict=True)
        )  # fmt: skip
        return Outcome(changes=changes, notes=tuple(notes))


def find_pairs(trace: Trace, summary: ModelSummary) -> tuple[list[Pair], dict[str, str]]:
    """Return every layer whose channels reach others alone, and what the channels of the rest met."""
    shared = {name for layer in summary.tied for name in (layer.name, layer.tied_to)}
    own = {layer.name: layer for layer in summary.layers if layer.name not in shared and layer.row_axes == 1}
    spatial = {name: _spatial(layer) for name, layer in own.items() if layer.axes == tuple(range(len(layer.shape)))}
    takes = {name: axes for name, axes in spatial.items() if axes is not None}
    norms, calls, uses = find_norms(trace, summary).behind, trace.calls(), trace.uses()
    numbers = {name: number for number, name in trace.names.items()}
    pairs, obstacles = [], {}
    for index, step in enumerate(trace.steps):
        if not isinstance(step, LayerCall) or step.layer not in takes:
            continue
        if calls[step.layer] > 1 or any(uses[numbers[name]] > 1 for name in step.kept):
            obstacles[step.layer] = "no other layer alone: it runs several times or shares its bias"
            continue
        norm = norms.get(step.layer)
        if norm is not None and norm.gamma is None:
            obstacles[step.layer] = f"the batch norm {norm.name}, which has no scale"
            continue
        start, tensor = (index, step.output) if norm is None else (norm.step, norm.output)
        shape = trace.tensors[tensor].shape
        axis = len(shape) - 1 - takes[step.layer]
        view = [1] * len(shape)
        view[axis] = shape[axis]
        labels = torch.arange(shape[axis]).reshape(view).expand(shape)
        flow = follow(trace, start + 1, tensor, labels, takes.keys(), takes)
        free = torch.zeros(shape[axis], dtype=torch.bool)
        for channels in flow.columns.values():
            free[channels[channels >= 0]] = True
        free[sorted(flow.blocked)] = False
        if not free.any() or shape[axis] != own[step.layer].matrix[0]:
            obstacles[step.layer] = ", ".join(flow.obstacles[:2]) or "no layer"
            continue
        consumers = {name: by_weight(own[name], channels) for name, channels in flow.columns.items()}
        pairs.append(Pair(layer=step.layer, vectors=step.kept, norm=norm, consumers=consumers, free=free))
    return pairs, obstacles


def _spatial(layer: Layer) -> int | None:
    """Return how many axes follow the channels' in a layer's input; None for what takes part in no pair."""
    kinds = {LayerKind.LINEAR: 0, LayerKind.CONV1D: 1, LayerKind.CONV2D: 2, LayerKind.CONV3D: 3}
    return kinds.get(layer.kind)


def by_weight(layer: Layer, channels: torch.Tensor) -> torch.Tensor:
    """Return the channel behind each weight, ``[groups, columns]``, from that of each input channel ``[inputs]``."""
    width = layer.shape[1]
    kernel = layer.matrix[1] // width
    return channels.reshape(-1, width).repeat_interleave(kernel, dim=1)


def _broken(draft: Draft, pair: Pair) -> str | None:
    for name in (pair.layer, *pair.consumers):
        if not bool(draft.weight(name).isfinite().all()):
            return name
    vectors = (*pair.vectors, *(pair.norm.tensors if pair.norm else ()))
    return next((name for name in vectors if not bool(draft.vector(name).isfinite().all())), None)


def _largest(draft: Draft, pair: Pair) -> torch.Tensor:
    """Return the largest magnitude of the weights that take each channel, float32 ``[channels]``."""
    found = torch.zeros(pair.free.numel())
    for name, channels in pair.consumers.items():
        weight = draft.weight(name)
        largest = weight.abs().reshape(len(channels), -1, weight.shape[1]).amax(dim=1)
        used = channels >= 0
        found.scatter_reduce_(0, channels[used], largest[used], reduce="amax")
    return found


def _step(draft: Draft, pair: Pair) -> float:
    """Equalize one pair and return the largest change of a scale, relative."""
    scales = equalizing_scales(draft.weight(pair.layer), _largest(draft, pair)[None])
    scales = torch.where(pair.free, scales, 1.0)
    if _measures(draft, pair.norm):  # its variance shrinks by the square, and may not become negative
        assert pair.norm is not None
        room = (draft.vector(pair.norm.variance).clamp_min(0) / pair.norm.epsilon + 1).sqrt()
        scales = torch.minimum(scales, room)
    draft.weights[pair.layer] = draft.weight(pair.layer) / scales[:, None]
    draft.scale_rows(pair.layer, scales)
    for name in pair.vectors:
        draft.kept[name] = draft.vector(name) / scales
    if pair.norm is not None:
        _scale_norm(draft, pair.norm, scales)
    for name, channels in pair.consumers.items():
        factor = torch.where(channels >= 0, scales[channels.clamp_min(0)], 1.0)
        draft.multiply_columns(name, factor)
    return float((scales.log().abs()).max())


def _measures(draft: Draft, norm: NormCall | None) -> bool:
    """Tell whether a norm's statistics are of what it sees: not once it is folded."""
    return norm is not None and norm.name not in draft.folded


def _scale_norm(draft: Draft, norm: NormCall, scales: torch.Tensor) -> None:
    """Make a norm of inputs that were divided by ``scales`` give outputs that are divided by them too."""
    for name in (norm.mean, norm.beta):
        if name is not None:
            draft.kept[name] = draft.vector(name) / scales
    if _measures(draft, norm) and norm.gamma is not None:
        old = draft.vector(norm.variance).double() + norm.epsilon
        draft.kept[norm.variance] = (old / scales.double().square() - norm.epsilon).clamp_min(0).float()
        draft.kept[norm.gamma] = draft.vector(norm.gamma) / scales
