"""What calibration, scoring and evaluation need of data, and how batches are counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import torch

from workbench.errors import CannotRunError, DataError
from workbench.models.data.record import DataRecord
from workbench.models.layer import Layer
from workbench.models.model import Batch, Model
from workbench.models.summary import ModelSummary
from workbench.progress import Progress, silent


@runtime_checkable
class Data(Protocol):
    """Samples in a fixed order."""

    @property
    def record(self) -> DataRecord:
        """What a session records of the data."""
        ...

    def __len__(self) -> int:
        """Return the number of samples."""
        ...

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """Yield all samples in order, ``batch_size`` at a time; the last batch may be smaller."""
        ...


def require_data(model: Model, data: Data, purpose: str) -> None:
    """Raise CannotRunError for a weights-only model, DataError for empty data."""
    if model.summary.cannot_run is not None:
        raise CannotRunError(f"{model.summary.name} cannot be run for {purpose}: {model.summary.cannot_run}")
    if not len(data):
        raise DataError(f"the data set {data.record.name} holds no samples; {purpose} needs at least one")


def numbered_batches(
    data: Data, batch_size: int, progress: Progress = silent, text: str = ""
) -> Iterator[tuple[int, Batch]]:
    """Yield each batch with its number from 0, and report ``text, batch n of all`` before it where there is a text."""
    total = -(-len(data) // batch_size)
    for number, batch in enumerate(data.batches(batch_size)):
        if text:
            progress(number / total, f"{text}, batch {number + 1} of {total}")
        yield number, batch


def tappable(model: Model) -> tuple[Layer, ...]:
    """Return the layers whose own input and output a tap can see, in model order."""
    return tuple(layer for layer in model.summary.layers if layer.name in model.tappable)


def token_mask(batch: Batch) -> torch.Tensor | None:
    """Return which tokens are real (bool, samples x tokens), None where all are."""
    mask = batch.get("attention_mask")
    if mask is None or bool((mask != 0).all()):
        return None
    return mask != 0


def without_padding(tensor: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """Return the real tokens ``[tokens, ...]`` of a tensor of samples x tokens; any other tensor as it is."""
    return tensor if mask is None or tensor.shape[:2] != mask.shape else tensor[mask]


def token_ids(batch: Batch) -> torch.Tensor:
    """Return the token ids (int64, samples x tokens) of a batch of text."""
    return batch["input_ids"] if "input_ids" in batch else next(iter(batch.values()))


def samples_of(batch: Batch) -> int:
    """Return the number of samples of the batch."""
    return int(next(iter(batch.values())).shape[0])


def units_of(batch: Batch, summary: ModelSummary) -> int:
    """Return how many units the model's loss is counted in: real tokens where each has logits, else samples."""
    if not summary.output.per_token:
        return samples_of(batch)
    mask, ids = token_mask(batch), token_ids(batch)
    return int(mask.sum()) if mask is not None else int(ids.shape[0] * ids.shape[1])
