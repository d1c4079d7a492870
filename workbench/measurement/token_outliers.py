"""The tokens with massive values, batch by batch: flat places in tensors become samples, positions and token ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
import torch

from workbench.models.data.batches import samples_of
from workbench.models.data.samples import Decode
from workbench.models.model import Batch
from workbench.numerics.statistics.outliers import LARGEST, Peaks, TokenOutliers, merged

WAITING = 8
"""Batches that wait to be placed and merged: together that takes hardly longer than one.

SmolLM2's take 2 MB each.
"""

Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchPlaces:
    """Where the tokens of one batch's tensors are, without the batch itself, which may be large.

    ``first`` is the number of its first sample; ``ids`` the token ids, int ``[samples, tokens]``, where there are any.
    """

    first: int
    samples: int
    ids: np.ndarray | None

    @staticmethod
    def of(batch: Batch, first: int) -> BatchPlaces:
        """Read off the batch what is needed later."""
        ids = batch.get("input_ids")
        known = None if ids is None or ids.dim() != 2 else ids.cpu().numpy()
        return BatchPlaces(first=first, samples=samples_of(batch), ids=known)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedPeaks:
    """The ``peaks`` of one tensor of a batch; ``shape`` are its axes without the channels', padding dropped.

    ``real`` (bool, samples x positions) says which positions are left, None where all are.
    """

    peaks: Peaks
    places: BatchPlaces
    shape: tuple[int, ...]
    real: np.ndarray | None = None

    @staticmethod
    def of(
        peaks: Peaks, tensor: torch.Tensor, axis: int, places: BatchPlaces, real: torch.Tensor | None = None
    ) -> PlacedPeaks:  # fmt: skip
        """Remember the shape of ``tensor``, whose channels lie along ``axis``."""
        shape = list(tensor.shape)
        del shape[axis]
        kept = None if real is None else real.cpu().numpy()
        return PlacedPeaks(peaks=peaks, places=places, shape=tuple(shape), real=kept)

    def place(self, where: int) -> tuple[int, int, int, int]:
        """Return sample, position, width and token id of a flat place; -1 (width 0) for what is not known."""
        ids, shape = self.places.ids, self.shape if self.real is None else self.real.shape
        if not shape or shape[0] % self.places.samples or (self.real is None and shape[0] != self.places.samples):
            return -1, -1, 0, -1
        place = where if self.real is None else int(np.flatnonzero(self.real)[where])
        sample, position = divmod(place, prod(shape) // self.places.samples)
        tokens = ids is not None and shape == ids.shape
        token = int(ids[sample, position]) if tokens and ids is not None else -1
        return sample + self.places.first, position, shape[-1] if len(shape) > 2 else 0, token


def outliers_of(batches: Sequence[PlacedPeaks]) -> TokenOutliers:
    """Return the outliers of one layer's tensors in consecutive batches."""
    everything = [placed.peaks for placed in batches]
    values = np.concatenate([peaks.value for peaks in everything])
    owner = np.repeat(np.arange(len(everything)), [peaks.value.size for peaks in everything])
    where = np.concatenate([peaks.where for peaks in everything])
    # within a magnitude by sample and position, as they come
    order = np.argsort(-np.abs(values), kind="stable")[:LARGEST]
    places = [batches[n].place(flat) for n, flat in zip(owner[order].tolist(), where[order].tolist(), strict=True)]
    sample, position, width, token = np.array(places, np.int64).reshape(-1, 4).T
    counts = everything[0].counts if len(everything) == 1 else np.sum([peaks.counts for peaks in everything], axis=0)
    return TokenOutliers(
        counts=counts, value=values[order], sample=sample, position=position, width=width, token=token,
        channel=np.concatenate([peaks.channel for peaks in everything])[order],
    )  # fmt: skip


@dataclass(slots=True, kw_only=True)
class TokenSums:
    """The outliers of all batches so far, by layer and tap."""

    done: dict[Key, TokenOutliers] = field(default_factory=dict)
    waiting: dict[Key, list[PlacedPeaks]] = field(default_factory=dict)

    def add(self, key: Key, more: PlacedPeaks) -> None:
        """Add the next batch's."""
        waiting = self.waiting.setdefault(key, [])
        waiting.append(more)
        if len(waiting) >= WAITING:
            self.done[key] = self._with(key, outliers_of(self.waiting.pop(key)))

    def result(self) -> dict[Key, TokenOutliers]:
        """Return one for each layer and tap; what layers share is placed once."""
        known: dict[tuple[int, ...], TokenOutliers] = {}
        outliers = dict(self.done)
        for key, waiting in self.waiting.items():
            same = tuple(map(id, waiting))
            if same not in known:
                known[same] = outliers_of(waiting)
            outliers[key] = self._with(key, known[same])
        return outliers

    def _with(self, key: Key, more: TokenOutliers) -> TokenOutliers:
        return merged([self.done[key], more]) if key in self.done else more


def with_texts(outliers: Mapping[Key, TokenOutliers], decode: Decode) -> dict[Key, TokenOutliers]:
    """Return the outliers with the text of each kept token that has an id, by ``decode``; others keep none."""
    known = sorted({token for tokens in outliers.values() for token in tokens.token.tolist() if token >= 0})
    texts = dict(zip(known, decode([[token] for token in known]), strict=True))
    return {
        key: replace(tokens, text=tuple(texts.get(token, "") for token in tokens.token.tolist()))
        if (tokens.token >= 0).any() else tokens
        for key, tokens in outliers.items()
    }  # fmt: skip
