"""What layers get from the layers before them, in the model as it is and with those already quantized."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import torch

from workbench.measurement.calibrate import FULL_COLUMNS, drawn_inputs
from workbench.measurement.weight_gradients import ConvolutionGeometry
from workbench.models.data.batches import Data, tappable, token_mask
from workbench.models.layer import Layer, LayerKind
from workbench.models.model import Batch, Model
from workbench.numerics.rounding.algorithm import PrefixMoments


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """Layers that get the same input; ``geometry`` None where they are linear."""

    layers: tuple[str, ...]
    geometry: ConvolutionGeometry | None = None


def stages(model: Model, batch: Batch, names: Sequence[str]) -> tuple[Stage, ...]:
    """Return the linear layers and convolutions among ``names`` that ``batch`` reaches, in the order in which they run.

    Layers of more than ``FULL_COLUMNS`` inputs and transposed convolutions are left out: no second moment is kept.
    """
    order = _Order(by_name=model.summary.by_name)
    seen = [layer.name for layer in tappable(model) if layer.name in set(names) and layer.matrix[1] <= FULL_COLUMNS]
    convolutions = [name for name in seen if order.by_name[name].kind.value.startswith("conv")]
    with torch.enable_grad():  # the geometry is read off the graph
        model.run(batch, tap=order.add, inputs=dict.fromkeys(convolutions, _started), layers=seen)
    return tuple(Stage(layers=tuple(layers), geometry=geometry) for layers, geometry, _ in order.entries)


def _started(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().requires_grad_()


@dataclass(slots=True, kw_only=True)
class _Order:
    by_name: Mapping[str, Layer]
    entries: list[tuple[list[str], ConvolutionGeometry | None, torch.Tensor]] = field(default_factory=list)

    def add(self, name: str, tensor: torch.Tensor, output: torch.Tensor) -> None:
        layer = self.by_name[name]
        if any(name in layers for layers, _, _ in self.entries):
            return
        if layer.kind is LayerKind.LINEAR:
            last = self.entries[-1] if self.entries else None
            if last is not None and last[1] is None and last[2] is tensor:
                last[0].append(name)
            else:
                self.entries.append(([name], None, tensor))
            return
        geometry = ConvolutionGeometry.of(layer, tensor, output) if layer.kind.value.startswith("conv") else None
        if geometry is not None and not geometry.transposed:
            self.entries.append(([name], geometry, tensor))


def prefix_moments(
    model: Model,
    other: Model,
    stage: Stage,
    data: Data,
    batch_size: int,
    quantizers: Mapping[str, Callable[[torch.Tensor], torch.Tensor]],
) -> PrefixMoments:
    """Run ``data`` through both models up to ``stage`` and return the moments of its inputs, padding left out.

    ``quantizers`` replace layers' inputs in the ``other`` model.
    """
    present = cross = torch.zeros(())
    count = 0
    with torch.no_grad():
        for batch in data.batches(batch_size):
            before, now = _inputs(model, stage, batch, {}), _inputs(other, stage, batch, quantizers)
            present = present + now.transpose(1, 2) @ now
            cross = cross + before.transpose(1, 2) @ now
            count += now.shape[1]
    return PrefixMoments(present=present / count, cross=cross / count, count=count)


class _Reached(Exception):
    """The layer has run: the rest of the network is not needed."""


def _inputs(
    model: Model, stage: Stage, batch: Batch, quantizers: Mapping[str, Callable[[torch.Tensor], torch.Tensor]]
) -> torch.Tensor:
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
        drawn = drawn_inputs(stage.geometry, tensor)
        assert drawn is not None
        return drawn
    mask = token_mask(batch)
    real = tensor if mask is None or tensor.shape[:2] != mask.shape else tensor[mask]
    return real.reshape(1, -1, real.shape[-1]).float()
