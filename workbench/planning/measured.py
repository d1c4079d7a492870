"""Scores that run the model with one layer quantized at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from workbench.models.batches import Data, tappable, units_of
from workbench.models.divergence import sample_divergence
from workbench.models.model import Model
from workbench.models.network import NetworkModel
from workbench.models.resume import Recording, Resumable, layer_outputs
from workbench.numerics.curvature import Curvature, output_energy
from workbench.planning.rounding import round_weight

if TYPE_CHECKING:
    from workbench.models.model import Batch

RECORDED_BYTES = 1 << 30
"""Reference outputs and block inputs of so many bytes are kept; what does not fit is computed again."""

ROUNDED_BYTES = 1 << 29
"""Layers of one block are measured together while their rounded weights take at most so much."""

CHECKS = 2
"""So many layers at the same place of blocks of one class are compared with a run of the whole model."""

Tick = Callable[[str], None]
"""Called before each cell; raises CancelledError when the user has cancelled."""


def measured_rows(
    model: Model, wanted: Mapping[str, Sequence[str]], data: Data, *, batch_size: int, algorithm: str,
    curvature: Mapping[str, Curvature], tick: Tick,
) -> Iterator[tuple[str, dict[str, float]]]:  # fmt: skip
    """Yield (layer, scheme to KL(reference || one layer quantized)): nats per token or per sample.

    Each run begins at the changed layer, with what ran before it taken from memory.  Models without logits: half the
    squared distance of the outputs, per sample.
    """

    def rounded(name: str, scheme: str) -> torch.Tensor:
        return round_weight(name, model.weight(name).float(), scheme, algorithm, curvature.get(name)).values

    return replaced_rows(model, wanted, rounded, data, batch_size=batch_size, tick=tick)


def replaced_rows(
    model: Model, wanted: Mapping[str, Sequence[str]], matrix_of: Callable[[str, str], torch.Tensor], data: Data, *,
    batch_size: int, tick: Tick,
) -> Iterator[tuple[str, dict[str, float]]]:  # fmt: skip
    """Yield the same for any replacement: ``matrix_of(layer, key)`` for the keys wanted of each layer."""
    cells = _Cells(model=model, resumable=Resumable(model) if isinstance(model, NetworkModel) else None)
    for group in _groups(cells, wanted):
        views = {
            (name, key): model.with_weights({name: matrix_of(name, key)}) for name in group for key in wanted[name]
        }
        sums, units = dict.fromkeys(views, 0.0), 0
        with torch.no_grad():
            for number, batch in enumerate(data.batches(batch_size)):
                units += units_of(batch, model.summary)
                cells.begin(number, batch, group)
                for (name, scheme), view in views.items():
                    tick(f"{name} as {scheme}, batch {number + 1}")
                    sums[name, scheme] += cells.loss(view, batch, name)
                cells.end()
        for name in group:
            yield name, {scheme: sums[name, scheme] / units for scheme in wanted[name]}


def _groups(cells: _Cells, wanted: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """Yield runs of layers of one block whose rounded weights fit into memory together."""
    group: list[str] = []
    size = 0
    for name, schemes in wanted.items():
        more = 4 * cells.model.summary.by_name[name].parameters * len(schemes)
        if group and (size + more > ROUNDED_BYTES or not cells.together(group[0], name)):
            yield group
            group, size = [], 0
        group.append(name)
        size += more
    if group:
        yield group


@dataclass(slots=True, kw_only=True)
class _Cells:
    """Recordings of the model as it is, batch by batch, and the losses of views that differ in one layer."""

    model: Model
    resumable: Resumable | None
    _recorded: dict[int, Recording] = field(default_factory=dict)
    _outputs: dict[int, torch.Tensor] = field(default_factory=dict)
    _room: int = RECORDED_BYTES
    _now: Recording | None = None
    _reference: torch.Tensor | None = None
    _inside: set[str] = field(default_factory=set)
    _checks: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    _refused: set[str] = field(default_factory=set)

    def together(self, one: str, other: str) -> bool:
        """Tell whether two layers lie in one block, so that they share what ran before it."""
        return self.resumable is not None and self.resumable.unit_of(one) == self.resumable.unit_of(other)

    def begin(self, number: int, batch: Batch, group: Sequence[str]) -> None:
        """Make ready to measure the layers of ``group`` on a batch."""
        if self.resumable is None:
            self._reference = self._output(number, batch)
            return
        recording = self._recorded.get(number) or self.resumable.record(batch)
        if number not in self._recorded:
            self._recorded[number] = recording
            self._room -= recording.nbytes
        outer = {name for layer in group for name in self.resumable.before_unit(recording, layer)}
        inner = {name for layer in group for name in self.resumable.before(recording, layer)} - outer
        size = recording.nbytes
        new = self.resumable.keep(batch, recording, outer)
        size = recording.nbytes - size
        if size <= self._room:
            self._room -= size
            new = set()
        self._inside = new | self.resumable.keep(batch, recording, inner)
        self._now, self._reference = recording, recording.output

    def end(self) -> None:
        """Let go of what only this group needs."""
        if self._now is not None:
            for name in self._inside:
                del self._now.kept[name]
        self._inside, self._now = set(), None

    def loss(self, view: Model, batch: Batch, layer: str) -> float:
        """Return the divergence of the view's output from the model's, summed over the batch."""
        assert self._reference is not None
        output = self._run(view, batch, layer)
        return float(sample_divergence(self._reference, output, batch, self.model.summary.output).sum())

    def _run(self, view: Model, batch: Batch, layer: str) -> torch.Tensor:
        """Resume; the first layers of each kind of block are also run whole, and must give the same."""
        if self.resumable is None or self._now is None or layer in self._refused:
            return view.run(batch)
        assert isinstance(view, NetworkModel)
        found = self.resumable.run(view, batch, self._now, layer)
        checked = self._checks.setdefault(self.resumable.place_of(layer), set())
        if layer in checked or len(checked) >= CHECKS:
            return found
        checked.add(layer)
        whole = view.run(batch)
        nearly = 1e-5 * float(whole.abs().max())
        if not torch.allclose(found, whole, rtol=1e-5, atol=nearly, equal_nan=True):
            self._refused |= {name for name in self._layers() if self._alike(name, layer)}
        return whole

    def _layers(self) -> Iterator[str]:
        return (layer.name for layer in self.model.summary.layers)

    def _alike(self, one: str, other: str) -> bool:
        return self.resumable is not None and self.resumable.place_of(one) == self.resumable.place_of(other)

    def _output(self, number: int, batch: Batch) -> torch.Tensor:
        """Return the output of the model as it is, kept while there is room."""
        if number in self._outputs:
            return self._outputs[number]
        output = self.model.run(batch)
        size = output.element_size() * output.numel()
        if size <= self._room:
            self._outputs[number] = output
            self._room -= size
        return output


def output_rows(
    model: Model, wanted: Mapping[str, Sequence[str]], data: Data | None, *, batch_size: int, algorithm: str,
    curvature: Mapping[str, Curvature], tick: Tick,
) -> Iterator[tuple[str, dict[str, float]]]:  # fmt: skip
    """Yield (layer, scheme to ``sum |D x|**2 / sum |W x|**2``) over the layer's calibration inputs.

    From the second moment ``A`` of the inputs where it was collected (``tr(D A D') / tr(W A W')``), else from the
    layer run alone on its own inputs, which one pass catches.  A layer without either stays open (NaN).
    """
    seen = {layer.name for layer in tappable(model)}
    for name, schemes in wanted.items():
        weight = model.weight(name).float()
        moment = curvature.get(name)
        rounded = {}
        for scheme in schemes:
            tick(f"{name} as {scheme}")
            rounded[scheme] = round_weight(name, weight, scheme, algorithm, moment).values
        if moment is not None and moment.full is not None:
            yield name, _errors_by_moment(weight, rounded, torch.from_numpy(moment.full))
        elif data is not None and name in seen:
            yield name, _tapped_errors(model, name, weight, rounded, data, batch_size)
        else:
            yield name, dict.fromkeys(schemes, math.nan)


def _errors_by_moment(
    weight: torch.Tensor, rounded: Mapping[str, torch.Tensor], full: torch.Tensor
) -> dict[str, float]:
    energy = output_energy(weight, full).sum().clamp_min(1e-300)
    return {scheme: float(output_energy(matrix - weight, full).sum() / energy) for scheme, matrix in rounded.items()}


def _tapped_errors(
    model: Model, name: str, weight: torch.Tensor, rounded: Mapping[str, torch.Tensor], data: Data, batch_size: int
) -> dict[str, float]:
    """Return each scheme's error at the layer's output, its input being that of the model as it is."""
    matrices = [weight, torch.zeros_like(weight), *rounded.values()]
    energy, errors = 0.0, [0.0] * len(rounded)
    with torch.no_grad():
        for batch in data.batches(batch_size):
            exact, bias, *others = layer_outputs(model, batch, name, matrices)
            energy += _distance(exact, bias)
            for index, other in enumerate(others):
                errors[index] += _distance(other, exact)
    return {s: error / energy if energy else math.nan for s, error in zip(rounded, errors, strict=True)}


def _distance(some: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> float:
    return sum(float((a.double() - b.double()).square().sum()) for a, b in zip(some, others, strict=True))
