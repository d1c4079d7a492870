"""Layers in the order in which they run, and what those before them give them, quantized or not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

import torch

from workbench.measurement.second_moments import sampled_inputs
from workbench.measurement.weight_gradients import ConvolutionGeometry
from workbench.models.data.batches import Data, Padding, batches_of, tappable
from workbench.models.layer import LayerKind
from workbench.models.model import Batch, Model, Replacement
from workbench.numerics.rounding.algorithm import PrefixMoments

BATCH_SIZE = 32
"""Samples that run at once."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """Layers that get the same input; ``geometry`` None where they are linear."""

    layers: list[str]
    geometry: ConvolutionGeometry | None = None


def stages(model: Model, batch: Batch, names: Collection[str]) -> list[Stage]:
    """Return the linear layers and convolutions among ``names`` that ``batch`` reaches, in the order in which they run.

    Transposed convolutions are left out: their positions overlap.
    """
    order: dict[str, Stage] = {}
    last: torch.Tensor | None = None

    def add(name: str, tensor: torch.Tensor, output: torch.Tensor) -> None:
        nonlocal last
        layer = model.summary.by_name[name]
        if name in order:
            return
        if layer.kind is LayerKind.LINEAR:
            shared = last is tensor
            order[name] = list(order.values())[-1] if shared else Stage(layers=[])
            last = tensor
        else:
            geometry = ConvolutionGeometry.of(layer, tensor, output) if layer.kind.is_convolution else None
            if geometry is None or geometry.transposed:
                return
            order[name], last = Stage(layers=[], geometry=geometry), None
        order[name].layers.append(name)

    reached = [layer for layer in tappable(model) if layer.name in names]
    convolutions = [layer.name for layer in reached if layer.kind.is_convolution]
    leaves = dict.fromkeys(convolutions, lambda tensor: tensor.detach().requires_grad_())
    with torch.enable_grad():  # the geometry is read off the graph
        model.run(batch, tap=add, inputs=leaves, layers=[layer.name for layer in reached])
    return list(dict.fromkeys(order.values()))


def prefix_moments(
    model: Model, other: Model, stage: Stage, data: Data, quantizers: Mapping[str, Replacement]
) -> PrefixMoments:
    """Run ``data`` through both models up to ``stage`` and return the moments of its inputs, padding left out.

    ``quantizers`` replace layers' inputs in the ``other`` model.
    """
    present = cross = torch.zeros(())
    count = 0
    with torch.no_grad():
        for batch in batches_of(model, data, BATCH_SIZE):
            before, now = _inputs(model, stage, batch, {}), _inputs(other, stage, batch, quantizers)
            present = present + now.transpose(1, 2) @ now
            cross = cross + before.transpose(1, 2) @ now
            count += now.shape[1]
    return PrefixMoments(present=present / count, cross=cross / count, count=count)


class _Reached(Exception):
    """The layer has run: what follows in the network is not needed."""


def _inputs(model: Model, stage: Stage, batch: Batch, quantizers: Mapping[str, Replacement]) -> torch.Tensor:
    """Return what the layers of ``stage`` are multiplied with, ``[groups, positions, columns]``."""
    tensors: list[torch.Tensor] = []

    def tap(name: str, tensor: torch.Tensor, output: torch.Tensor) -> None:
        tensors.append(tensor)
        raise _Reached

    with suppress(_Reached):
        model.run(batch, tap=tap, inputs=quantizers, layers=stage.layers[:1])
    return stage_inputs(stage, tensors[0], batch)


def stage_inputs(stage: Stage, tensor: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return the input ``tensor`` of a layer as ``[groups, positions, columns]``, float32, without padding tokens."""
    if stage.geometry is not None:
        sampled = sampled_inputs(stage.geometry, tensor, Padding.of(batch))
        assert sampled is not None
        return sampled
    real = Padding.of(batch).real(tensor)
    return real.reshape(1, -1, real.shape[-1]).float()
