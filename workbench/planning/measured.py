"""Scores that run the model with one layer quantized at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch

from workbench.models.batches import Data, tappable, units_of
from workbench.models.divergence import sample_divergence
from workbench.models.model import Model
from workbench.numerics.curvature import Curvature, output_energy
from workbench.planning.rounding import round_weight

REFERENCE_BYTES = 1 << 30
"""Reference outputs of so many bytes are kept; a larger set is computed again for each layer."""

Tick = Callable[[str], None]
"""Called before each cell; raises CancelledError when the user has cancelled."""


class _References:
    """The floating-point model's outputs, batch by batch."""

    def __init__(self, model: Model, data: Data, batch_size: int) -> None:
        self._model, self._data, self._batch_size = model, data, batch_size
        self._kept: dict[int, torch.Tensor] = {}
        self._room = REFERENCE_BYTES

    def of(self, number: int, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        if number in self._kept:
            return self._kept[number]
        output = self._model.run(batch)
        size = output.element_size() * output.numel()
        if size <= self._room:
            self._kept[number] = output
            self._room -= size
        return output


def measured_rows(
    model: Model, wanted: Mapping[str, Sequence[str]], data: Data, *, batch_size: int, algorithm: str,
    curvature: Mapping[str, Curvature], tick: Tick,
) -> Iterator[tuple[str, dict[str, float]]]:  # fmt: skip
    """Yield (layer, scheme to KL(reference || one layer quantized)): nats per token or per sample.

    Models without logits: half the squared distance of the outputs, per sample.
    """
    references = _References(model, data, batch_size)
    kind = model.summary.output
    for name, schemes in wanted.items():
        weight = model.weight(name).float()
        sums, units = dict.fromkeys(schemes, 0.0), 0
        views = {
            s: model.with_weights({name: round_weight(name, weight, s, algorithm, curvature.get(name)).values})
            for s in schemes
        }
        with torch.no_grad():
            for number, batch in enumerate(data.batches(batch_size)):
                reference = references.of(number, batch)
                units += units_of(batch, model.summary)
                for scheme, view in views.items():
                    tick(f"{name} as {scheme}, batch {number + 1}")
                    sums[scheme] += float(sample_divergence(reference, view.run(batch), batch, kind).sum())
        yield name, {scheme: total / units for scheme, total in sums.items()}


def output_rows(
    model: Model, wanted: Mapping[str, Sequence[str]], data: Data | None, *, batch_size: int, algorithm: str,
    curvature: Mapping[str, Curvature], tick: Tick,
) -> Iterator[tuple[str, dict[str, float]]]:  # fmt: skip
    """Yield (layer, scheme to ``sum |D x|**2 / sum |W x|**2``) over the layer's calibration inputs.

    From the second moment ``A`` of the inputs where it was collected (``tr(D A D') / tr(W A W')``), else from the
    layer's own output with and without quantization.  A layer without either stays open (NaN).
    """
    seen = {layer.name for layer in tappable(model)}
    for name, schemes in wanted.items():
        weight = model.weight(name).float()
        moment = curvature.get(name)
        losses = {}
        for scheme in schemes:
            tick(f"{name} as {scheme}")
            rounded = round_weight(name, weight, scheme, algorithm, moment).values
            if moment is not None and moment.full is not None:
                full = torch.from_numpy(moment.full)
                losses[scheme] = float(
                    output_energy(rounded - weight, full).sum() / output_energy(weight, full).sum().clamp_min(1e-300)
                )
            elif data is not None and name in seen:
                losses[scheme] = _tapped_error(model, name, rounded, data, batch_size)
            else:
                losses[scheme] = math.nan
        yield name, losses


def _tapped_error(model: Model, name: str, rounded: torch.Tensor, data: Data, batch_size: int) -> float:
    found: list[torch.Tensor] = []

    def tap(layer: str, tensor: torch.Tensor, output: torch.Tensor) -> None:
        found.append(output)

    weight = model.weight(name).float()
    views = [model.with_weights({name: matrix}) for matrix in (weight, rounded, torch.zeros_like(weight))]
    error = energy = 0.0
    with torch.no_grad():
        for batch in data.batches(batch_size):
            found.clear()
            for view in views:
                view.run(batch, tap=tap, layers=(name,))
            calls = len(found) // 3
            for exact, other, bias in zip(found[:calls], found[calls : 2 * calls], found[2 * calls :], strict=True):
                error += float((other.double() - exact.double()).square().sum())
                energy += float((exact.double() - bias.double()).square().sum())
    return error / energy if energy else math.nan
