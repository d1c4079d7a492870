"""What a learning run sees at each step: samples in random order, and the teacher's outputs for them."""

from __future__ import annotations

import numpy as np
import torch

from workbench.models.data.batches import Data
from workbench.models.data.datasets import Dataset
from workbench.models.model import Batch, Model

TEACHER_BYTES = 1 << 30
"""The teacher's outputs are stored where they take no more; else the teacher runs again at every step."""


class Samples:
    """Random access to the samples of a data set; the tensors of a :class:`Dataset` are not copied."""

    def __init__(self, data: Data) -> None:
        self._count = len(data)
        self._prepare = data.prepare if isinstance(data, Dataset) else None
        if isinstance(data, Dataset):
            self._tensors = data.tensors
        else:
            rows = list(data.batches(1))
            self._tensors = {name: torch.cat([row[name] for row in rows]) for name in rows[0]}

    def __len__(self) -> int:
        return self._count

    def batch(self, numbers: np.ndarray) -> dict[str, torch.Tensor]:
        """Return the batch of the samples with these numbers."""
        rows = torch.from_numpy(numbers)
        batch = {name: tensor[rows] for name, tensor in self._tensors.items()}
        if self._prepare is not None:
            batch["inputs"] = self._prepare(batch["inputs"])
        return batch

    def shuffled(self, step: int, batch_size: int, seed: int) -> np.ndarray:
        """Return the numbers of ``step``: every epoch has another order, an incomplete last batch is left out."""
        size = min(batch_size, self._count)
        epoch, place = divmod(step, self._count // size)
        order = np.random.default_rng((seed, epoch)).permutation(self._count)
        return np.sort(order[place * size : (place + 1) * size])


class Teacher:
    """The floating-point model's outputs; each sample's is computed once where there is room for all of them."""

    def __init__(self, model: Model, samples: Samples, limit: int = TEACHER_BYTES) -> None:
        self._model, self._samples, self._limit = model, samples, limit
        self._outputs: torch.Tensor | None = None
        self._known = np.zeros(len(samples), bool)

    @torch.no_grad()
    def outputs(self, numbers: np.ndarray, batch: Batch) -> torch.Tensor:
        """Return the outputs for ``batch``, which holds the samples ``numbers``.

        A sample's output is computed alone, so that its bits do not depend on the batch in which it was first seen.
        """
        for number in numbers[~self._known[numbers]] if self._limit else ():
            output = self._model.run(self._samples.batch(np.array([number])))
            if self._outputs is None:
                shape = len(self._samples), *output.shape[1:]
                if output.element_size() * int(np.prod(shape)) > self._limit:
                    self._limit = 0
                    break
                self._outputs = output.new_empty(shape)
            self._outputs[number] = output[0]
            self._known[number] = True
        return self._model.run(batch) if self._outputs is None else self._outputs[torch.from_numpy(numbers)]
