"""Cross-layer equalization on a model; the maths is in numerics/equivalences/equalization.py.

The channels of a convolution or linear layer are followed through its batch norm, ReLU, pooling, padding and flattening
to the layers that take them, depthwise convolutions among them.  Whatever else they meet, ReLU6 or a residual sum,
blocks them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch

from workbench.errors import TransformError
from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSummary
from workbench.models.tracing import LayerCall, Trace
from workbench.numerics.equivalences.equalization import equalizing_scales
from workbench.numerics.equivalences.scaling import largest
from workbench.planning.plan import KEEP
from workbench.quantization.transforms.batch_norms import NormCall, find_norms
from workbench.quantization.transforms.folds import Fold, free_channels
from workbench.quantization.transforms.labels import follow
from workbench.quantization.transforms.rewrite import Draft
from workbench.quantization.transforms.transform import FoldReport, Outcome, Setting, non_finite_note

SWEEPS = 20
"""How many times chains of layers are swept at most, until the scales stay."""

SETTLED = 1e-3
"""The largest relative step at which they stay."""


class Pair(NamedTuple):
    """A fold of a layer whose channels pass through ``norm``; its ``columns`` are ``[groups, columns]``.

    A consumer's rows fall into as many equal runs as it has groups.
    """

    fold: Fold
    norm: NormCall | None


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
        notes, chosen = [], []
        for fold, norm in pairs:
            tensor = draft.non_finite(fold.layers, (*fold.vectors, *(norm.tensors if norm else ())))
            if tensor is not None:
                notes.append(non_finite_note(tensor, self.name, fold.layers))
            elif any(setting.assignments[name].weights != KEEP for name in fold.layers):
                chosen.append(Pair(fold, norm))
        for _ in range(SWEEPS):
            if max((_step(draft, *pair) for pair in chosen), default=0.0) < SETTLED:
                break
        changes = (FoldReport(transform=self.name, source=f.name, layers=f.consumers) for f, _ in chosen)
        return Outcome(changes=tuple(changes), notes=tuple(notes))


def find_pairs(trace: Trace, summary: ModelSummary) -> tuple[list[Pair], dict[str, str]]:
    """Return every layer whose channels reach others alone, and what the channels of the other layers met."""
    spatial = {layer.name: _SPATIAL[layer.kind] for layer in summary.layers if _takes_part(layer, summary)}
    norms, calls, uses = find_norms(trace, summary).behind, trace.calls(), trace.uses()
    numbers = {name: number for number, name in trace.names.items()}
    pairs, obstacles = [], {}
    for index, step in enumerate(trace.steps):
        if not isinstance(step, LayerCall) or step.layer not in spatial:
            continue
        norm = norms.get(step.layer)
        if calls[step.layer] > 1 or any(uses[numbers[name]] > 1 for name in step.others):
            obstacles[step.layer] = "no other layer alone: it runs several times or shares its bias"
        elif norm is not None and norm.gamma is None:
            obstacles[step.layer] = f"the batch norm {norm.name}, which has no scale"
        else:
            start, tensor = (index, step.output) if norm is None else (norm.step, norm.output)
            pair = _pair(trace, summary, spatial, start, tensor, step, norm)
            if isinstance(pair, Pair):
                pairs.append(pair)
            else:
                obstacles[step.layer] = pair
    return pairs, obstacles


_SPATIAL = {LayerKind.LINEAR: 0, LayerKind.CONV1D: 1, LayerKind.CONV2D: 2, LayerKind.CONV3D: 3}
"""How many axes follow the channels' in a layer's input."""


def _takes_part(layer: Layer, summary: ModelSummary) -> bool:
    plain = layer.row_axes == 1 and layer.axes == tuple(range(len(layer.shape)))
    return plain and layer.kind in _SPATIAL and layer.name not in summary.sharing


def _pair(
    trace: Trace, summary: ModelSummary, spatial: dict[str, int], start: int, tensor: int, step: LayerCall,
    norm: NormCall | None,
) -> Pair | str:  # fmt: skip
    """Return the pair of the layer that ran at ``step``, or what its channels met from step ``start`` on."""
    shape = trace.tensors[tensor].shape
    axis = len(shape) - 1 - spatial[step.layer]
    labels = torch.arange(shape[axis]).reshape(-1, *(1,) * spatial[step.layer]).expand(shape)
    flow = follow(trace, start + 1, tensor, labels, spatial.keys(), spatial)
    free = free_channels(flow, shape[axis])
    if not free.any() or shape[axis] != summary.by_name[step.layer].matrix[0]:
        return ", ".join(flow.obstacles[:2]) or "no layer"
    columns = {name: by_weight(summary.by_name[name], channels) for name, channels in flow.columns.items()}
    fold = Fold(name=step.layer, layer=step.layer, vectors=step.others, columns=columns, free=free)
    return Pair(fold, norm)


def by_weight(layer: Layer, channels: torch.Tensor) -> torch.Tensor:
    """Return the channel behind each weight, ``[groups, columns]``, from that of each input channel ``[inputs]``."""
    width = layer.shape[1]
    return channels.reshape(-1, width).repeat_interleave(layer.matrix[1] // width, dim=1)


def _largest(draft: Draft, fold: Fold) -> torch.Tensor:
    """Return the largest magnitude of the weights that take each channel, float32 ``[channels]``."""
    parts = []
    for name, channels in fold.columns.items():
        weight = draft.weight(name)
        parts.append((channels, weight.abs().reshape(len(channels), -1, weight.shape[1]).amax(dim=1)))
    return largest(fold.free.numel(), parts)


def _step(draft: Draft, fold: Fold, norm: NormCall | None) -> float:
    """Equalize one pair and return the largest change of a scale, relative."""
    scales = equalizing_scales(draft.weight(fold.name), _largest(draft, fold)[None])
    scales = torch.where(fold.free, scales, 1.0)
    if norm is not None and norm.name not in draft.folded:  # its variance shrinks by the square, and stays positive
        room = (draft.vector(norm.variance).clamp_min(0) / norm.epsilon + 1).sqrt()
        scales = torch.minimum(scales, room)
    draft.scale(fold, scales)
    if norm is not None:
        _scale_norm(draft, norm, scales)
    return float((scales.log().abs()).max())


def _scale_norm(draft: Draft, norm: NormCall, scales: torch.Tensor) -> None:
    """Make a norm of inputs that were divided by ``scales`` give outputs that are divided by them too."""
    for name in (norm.mean, norm.beta):
        if name is not None:
            draft.others[name] = draft.vector(name) / scales
    if norm.name not in draft.folded and norm.gamma is not None:  # a folded norm measures nothing
        old = draft.vector(norm.variance).double() + norm.epsilon
        draft.others[norm.variance] = (old / scales.double().square() - norm.epsilon).clamp_min(0).float()
        draft.others[norm.gamma] = draft.vector(norm.gamma) / scales
