"""Batches on which the model itself gives NaN or infinite values: named once, and left out of what is measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from workbench.errors import DataError
from workbench.models.data.batches import Data, tappable
from workbench.models.model import Model

if TYPE_CHECKING:
    from workbench.models.model import Batch


@dataclass(slots=True, kw_only=True)
class FiniteBatches:
    """Tells which batches to measure on; ``notes`` gets a sentence for each that is left out, with the place in it."""

    model: Model
    notes: list[str] = field(default_factory=list)
    _known: dict[int, bool] = field(default_factory=dict)

    def dropped(self, number: int) -> bool:
        """Tell whether the batch of that number (from 0) was found to be left out."""
        return not self._known.get(number, True)

    def keeps(self, number: int, batch: Batch, output: torch.Tensor) -> bool:
        """Tell whether the model's ``output`` for the batch is finite; where not, say so once."""
        if number not in self._known:
            self._known[number] = bool(output.detach().isfinite().all())
            if not self._known[number]:
                place = first_non_finite(self.model, batch)
                self.notes.append(f"batch {number + 1} was left out: {place} holds NaN or infinite values")
        return self._known[number]

    def require_any(self, data: Data) -> None:
        """Raise DataError if batches were seen and none was kept."""
        if self._known and not any(self._known.values()):
            raise DataError(f"no batch of {data.record.name} went through without NaN or infinity: {self.notes[-1]}")


def first_non_finite(model: Model, batch: Batch) -> str:
    """Run one batch and name the first input or output of a layer that holds NaN or infinity, else the output."""
    found: list[str] = []

    def tap(name: str, tensor: torch.Tensor, output: torch.Tensor) -> None:
        for end, values in (("input", tensor), ("output", output)):
            if not found and values.is_floating_point() and not bool(values.isfinite().all()):
                found.append(f"the {end} of {name}")

    with torch.no_grad():
        model.run(batch, tap=tap, layers=tuple(layer.name for layer in tappable(model)))
    return found[0] if found else "the model's output"
