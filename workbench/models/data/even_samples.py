"""Some of the samples of a data set, evenly through it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from workbench.models.data.batches import Data, samples_of
from workbench.models.data.record import DataRecord
from workbench.models.model import Batch


@dataclass(frozen=True)
class EvenSamples:
    """``count`` samples evenly through ``data``; about as many where the model takes ``fixed`` batches."""

    data: Data
    count: int
    fixed: int | None = None

    @property
    def record(self) -> DataRecord:
        """The record of all of the data."""
        return self.data.record

    def __len__(self) -> int:
        """Return the number of samples."""
        return self.count

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """Yield what is chosen of each batch of all samples, as far as anything is."""
        total, start = len(self.data), 0
        for number, batch in enumerate(self.data.batches(batch_size)):
            size = samples_of(batch)
            rows = (torch.arange(start, start + size) * self.count % total < self.count).nonzero().flatten()
            if self.fixed:
                rows = torch.arange(size if number % max(total // self.count, 1) == 0 else 0)
            start += size
            if len(rows):
                yield {name: tensor[rows] for name, tensor in batch.items()}
