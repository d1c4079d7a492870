"""What a learning run sees at each step: samples in a drawn order, and what the teacher says to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from workbench.models.data.batches import Data
from workbench.models.model import Batch, Model

TEACHER_BYTES = 1 << 30
"""The teacher's answers are kept where they take no more; else the teacher runs again at every step."""


class Samples:
    """Random access to the samples of a data set.  One with ``tensors`` and ``prepare`` is read as it lies."""

    def __init__(self, data: Data) -> None:
        self._count = len(data)
        self._prepare: Any = getattr(data, "prepare", None)
        stored: Mapping[str, torch.Tensor] | None = getattr(data, "tensors", None)
        if stored is None:
            rows = list(data.batches(1))
            stored = {name: torch.cat([row[name] for row in rows]) for name in rows[0]}
            self._prepare = None
        self._tensors = stored

    def __len__(self) -> int:
        return self._count

    def take(self, chosen: np.ndarray) -> dict[str, torch.Tensor]:
        """Return the batch of the samples with these numbers."""
        places = torch.from_numpy(chosen)
        batch = {name: tensor[places] for name, tensor in self._tensors.items()}
        if self._prepare is not None:
            batch["inputs"] = self._prepare(batch["inputs"])
        return batch

    def drawn(self, step: int, batch_size: int, seed: int) -> np.ndarray:
        """Return the samples of ``step``: every epoch takes all in another order, but for an incomplete last batch."""
        size = min(batch_size, self._count)
        each = self._count // size
        epoch, place = divmod(step, each)
        order = np.random.default_rng((seed, epoch)).permutation(self._count)
        return np.sort(order[place * size : (place + 1) * size])


class Teacher:
    """The floating-point model's outputs; each sample's is computed once where there is room for all of them."""

    def __init__(self, model: Model, samples: Samples, limit: int = TEACHER_BYTES) -> None:
        self._model, self._samples, self._limit = model, samples, limit
        self._kept: torch.Tensor | None = None
        self._known = np.zeros(len(samples), bool)

    @torch.no_grad()
    def outputs(self, chosen: np.ndarray, batch: Batch) -> torch.Tensor:
        """Return the outputs for ``batch``, which holds the samples ``chosen``.

        A sample's output is computed alone, so that its bits do not depend on the batch in which it was first seen.
        """
        if self._known[chosen].all() and self._kept is not None:
            return self._kept[torch.from_numpy(chosen)]
        if self._limit == 0:
            return self._model.run(batch)
        for place in chosen[~self._known[chosen]]:
            answer = self._model.run(self._samples.take(np.array([place])))
            if self._kept is None and not self._room(answer):
                return self._model.run(batch)
            assert self._kept is not None
            self._kept[place] = answer[0]
            self._known[place] = True
        assert self._kept is not None
        return self._kept[torch.from_numpy(chosen)]

    def _room(self, answer: torch.Tensor) -> bool:
        if answer.numel() * answer.element_size() * len(self._samples) > self._limit:
            self._limit = 0
            return False
        self._kept = torch.empty((len(self._samples), *answer.shape[1:]), dtype=answer.dtype, device=answer.device)
        return True
