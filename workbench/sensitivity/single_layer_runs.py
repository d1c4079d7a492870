"""The divergences of views that differ in one layer, each run from that layer on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import torch

from workbench.errors import DataError
from workbench.measurement.divergence import Divergence
from workbench.models.execution.network import NetworkModel
from workbench.models.execution.resume import Recording, Resumable
from workbench.models.execution.stacked import UnevenSamplesError
from workbench.models.model import Batch, Model

RECORDED_BYTES = 1 << 30
"""The most bytes of reference outputs and block inputs that are kept; what does not fit is computed again."""

STACKED_BYTES = 1 << 22
"""Several weights share a run while no block input or output takes more bytes then: larger ones gain nothing."""

CHECKS = 2
"""How many layers at the same place of blocks of one class are compared with a run of the whole model."""

Tick = Callable[[str], None]
"""Called before each cell; raises CancelledError when the user has cancelled."""


@dataclass(slots=True, kw_only=True)
class SingleLayerRuns:
    """Recordings of the model as it is, batch by batch, and the losses of other weights of one layer."""

    model: Model
    resumable: Resumable | None
    _recorded: dict[int, Recording] = field(default_factory=dict)
    _outputs: dict[int, torch.Tensor] = field(default_factory=dict)
    _room: int = RECORDED_BYTES
    _number: int = 0
    _now: Recording | None = None
    _distance: Divergence | None = None
    _inside: set[str] = field(default_factory=set)
    _checks: dict[tuple[str, str, bool], set[str]] = field(default_factory=dict)
    _refused: set[tuple[str, str, bool]] = field(default_factory=set)
    _reached: set[str] = field(default_factory=set)

    def together(self, layer: str, other: str) -> bool:
        """Return whether two layers lie in one block, so that they share what ran before it."""
        return self.resumable is not None and self.resumable.unit_of(layer) == self.resumable.unit_of(other)

    @torch.no_grad()
    def begin(self, group: Sequence[str], number: int, batch: Batch) -> torch.Tensor:
        """Prepare to measure the layers of ``group`` on a batch, and return the output of the model as it is."""
        self.end()
        self._number = number
        if self.resumable is None:
            self._distance = Divergence(self._output(number, batch), batch, self.model.summary.output)
            return self._distance.reference
        recording = self._recorded.get(number) or self.resumable.record(batch)
        if number not in self._recorded:
            self._recorded[number] = recording
            self._room -= recording.nbytes
        outer = {name for layer in group for name in self.resumable.before_unit(recording, layer)}
        inner = {name for layer in group for name in self.resumable.before(recording, layer)} - outer
        new = self.resumable.keep(batch, recording, outer | inner)
        size = recording.nbytes_of(new & outer)
        if size <= self._room:
            self._room -= size
            new -= outer
        self._inside = new
        self._reached |= {layer for layer in group if self.resumable.reaches(recording, layer)}
        self._now = recording
        self._distance = Divergence(recording.output, batch, self.model.summary.output)
        return recording.output

    def end(self) -> None:
        """Drop what only the group of the last batch needs."""
        if self._now is not None:
            for name in self._inside:
                del self._now.outputs[name]
            self._now.stacked.clear()
        self._inside, self._now, self._distance = set(), None, None

    def unreached(self, layer: str, losses: Iterable[float]) -> bool:
        """Return whether no data reached the layer: its module never ran and no weight of it changed anything."""
        return self.resumable is not None and layer not in self._reached and not any(losses)

    def losses(
        self, layer: str, matrices: Mapping[str, torch.Tensor], batch: Batch, tick: Tick
    ) -> Iterator[tuple[str, float]]:
        """Yield (key, divergence of the model with that weight of ``layer`` from the model, summed over the batch)."""
        assert self._distance is not None
        keys = iter(matrices)
        most = self._most(layer)
        while some := list(islice(keys, most)):
            for key in some:
                tick(f"{layer} as {key}, batch {self._number + 1}")
            outputs = self._run(layer, [matrices[key] for key in some], batch)
            for key, output in zip(some, outputs, strict=True):
                yield key, float(self._distance.of(output).sum())

    def _most(self, layer: str) -> int:
        """Return how many weights of a layer share a run."""
        if self.resumable is None or self._now is None or not self.resumable.stackable(self._now, layer):
            return 1
        return self.resumable.most_stacked(self._now, layer, STACKED_BYTES)

    @torch.no_grad()
    def _run(self, layer: str, matrices: Sequence[torch.Tensor], batch: Batch) -> list[torch.Tensor]:
        """Return the output for each weight: all in one run, else each resumed, else each whole.

        Whatever is not a whole run is compared with one at the first layers of each kind of block.
        """
        if self.resumable is None or self._now is None:
            return [self.model.with_weights({layer: matrix}).run(batch) for matrix in matrices]
        place = self.resumable.place_of(layer)
        if len(matrices) > 1 and (*place, True) not in self._refused:
            try:
                outputs = self.resumable.run_stacked(batch, self._now, layer, matrices)
            except (UnevenSamplesError, DataError):
                self._refused.add((*place, True))
            else:
                if self._agrees(layer, matrices[-1], outputs[-1], batch, (*place, True)):
                    return outputs
        return [self._resumed(layer, matrix, batch, (*place, False)) for matrix in matrices]

    def _resumed(self, layer: str, matrix: torch.Tensor, batch: Batch, place: tuple[str, str, bool]) -> torch.Tensor:
        assert self.resumable is not None and self._now is not None
        view = self.model.with_weights({layer: matrix})
        assert isinstance(view, NetworkModel)
        if place not in self._refused:
            try:
                output = self.resumable.run(view, batch, self._now, layer)
            except DataError:
                self._refused.add(place)
            else:
                if self._agrees(layer, matrix, output, batch, place):
                    return output
        return view.run(batch)

    def _agrees(
        self, layer: str, matrix: torch.Tensor, output: torch.Tensor, batch: Batch, place: tuple[str, str, bool]
    ) -> bool:
        """Compare the first layers of a place with whole runs; one that differs refuses the place for good."""
        checked = self._checks.setdefault(place, set())
        if layer in checked or len(checked) >= CHECKS:
            return True
        checked.add(layer)
        whole = self.model.with_weights({layer: matrix}).run(batch)
        nearly = 1e-5 * float(whole.nan_to_num(0.0, 0.0, 0.0).abs().max())
        if output.shape == whole.shape and torch.allclose(output, whole, rtol=1e-5, atol=nearly, equal_nan=True):
            return True
        self._refused.add(place)
        return False

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
