"""Batches on which the model itself gives NaN or infinite values: named once, and left out of what is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch

from workbench.errors import DataError
from workbench.models.data.batches import Data, numbered_batches, tappable
from workbench.models.model import Batch, Model
from workbench.progress import Progress, silent


@dataclass(slots=True, kw_only=True)
class FiniteBatches:
    """Yields the batches to measure on; ``notes`` gets a sentence for each that is left out, with the place in it.

    Passes over the same data share one of these: a batch that was left out is not run again.
    """

    model: Model
    notes: list[str] = field(default_factory=list)
    _finite: dict[int, bool] = field(default_factory=dict)

    def of(
        self, data: Data, batch_size: int, run: Callable[[int, Batch], torch.Tensor] | None = None, *,
        progress: Progress = silent, text: str = "",
    ) -> Iterator[tuple[int, Batch, torch.Tensor]]:  # fmt: skip
        """Yield number, batch and the model's output where that is finite.

        ``run(number, batch)`` returns the output (default: the model run without gradients).  Raises DataError after
        the last batch if none was finite.
        """
        for number, batch in numbered_batches(self.model, data, batch_size, progress, text):
            if self._finite.get(number, True):
                output = self._run(batch) if run is None else run(number, batch)
                if self._is_finite(number, batch, output):
                    yield number, batch, output
        if self._finite and not any(self._finite.values()):
            raise DataError(f"no batch of {data.record.name} ran without NaN or infinity: {self.notes[-1]}")

    def _run(self, batch: Batch) -> torch.Tensor:
        with torch.no_grad():
            return self.model.run(batch)

    def _is_finite(self, number: int, batch: Batch, output: torch.Tensor) -> bool:
        if number not in self._finite:
            self._finite[number] = all_finite(output.detach())
            if not self._finite[number]:
                place = first_non_finite(self.model, batch)
                self.notes.append(f"batch {number + 1} was left out: {place} holds NaN or infinite values")
        return self._finite[number]


def all_finite(tensor: torch.Tensor) -> bool:
    """Return whether nothing is NaN or infinite; a finite sum says it all, in a twentieth of the time."""
    return bool(tensor.sum().isfinite() or tensor.isfinite().all())


def first_non_finite(model: Model, batch: Batch) -> str:
    """Run one batch and name the first input or output of a layer that holds NaN or infinity, else the output."""
    places: list[str] = []

    def tap(name: str, tensor: torch.Tensor, output: torch.Tensor) -> None:
        for end, values in (("input", tensor), ("output", output)):
            if not places and values.is_floating_point() and not bool(values.isfinite().all()):
                places.append(f"the {end} of {name}")

    with torch.no_grad():
        model.run(batch, tap=tap, layers=tuple(layer.name for layer in tappable(model)))
    return places[0] if places else "the model's output"
