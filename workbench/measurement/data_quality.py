"""Whether a calibration set is large enough and represents the data that it is used for.  Numpy and torch, no model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.models.model import Batch
from workbench.numerics.statistics.layer_statistics import BINS, LayerStatistics

if TYPE_CHECKING:
    import torch

SETTLED = 0.05
"""A layer has settled when the last doubling of the data moves its range by at most so much of its width."""

UNSETTLED_LAYERS = 0.05
"""The data are enough when at most this share of the layers has not settled."""

Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contents:
    """What a data set holds: ``tokens`` int64 ``[vocabulary]`` counts (empty without tokens), ``lengths`` int64
    ``[samples]`` real tokens of each sample, ``classes`` the samples of each label (empty without labels)."""

    samples: int
    tokens: np.ndarray
    lengths: np.ndarray
    classes: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of other data calibration data cover.

    ``vocabulary`` is the share of the vocabulary that was seen at all; ``tokens`` the share of the other data's tokens
    whose id was seen; ``classes`` of its labels; NaN where there are none.  ``lengths`` is the share of its samples
    whose length lies within those seen.
    """

    vocabulary: float
    tokens: float
    classes: float
    lengths: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Saturation:
    """How ranges move while data are added.

    ``samples`` ``[steps]`` so far; ``moved`` float64 ``[steps - 1, layers]``: how far the farther end of each layer's
    range, which keeps 99.9 % of the values, moved from one step to the next, over its width at the end.  ``layers`` are
    (layer, tap).
    """

    samples: tuple[int, ...]
    layers: tuple[Key, ...]
    moved: np.ndarray

    @property
    def unsettled(self) -> tuple[Key, ...]:
        """The layers that the last step still moved, the most moved first."""
        last = self.moved[-1] if len(self.moved) else np.full(len(self.layers), np.inf)
        order = np.argsort(-last, kind="stable")
        return tuple(self.layers[index] for index in order if last[index] > SETTLED)

    @property
    def enough(self) -> bool:
        """The verdict."""
        return len(self.unsettled) <= UNSETTLED_LAYERS * len(self.layers)

    def sentence(self) -> str:
        """Return the verdict in words."""
        total, open_ = len(self.layers), len(self.unsettled)
        if len(self.samples) < 2:
            return f"{self.samples[-1] if self.samples else 0} samples are too few to tell whether they are enough"
        change = f"from {self.samples[-2]} to {self.samples[-1]} samples the ranges of {open_} of {total} tensors moved"
        verdict = "enough" if self.enough else "not enough; give more"
        return f"{change} by more than {SETTLED * 100:.0f} %: {verdict}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CalibrationQuality:
    """What calibration data hold, how much of the evaluation data they cover, and whether they are enough.

    ``distances`` maps (layer, tap) to the earth mover's distance of its values between calibration and evaluation, in
    standard deviations, farthest first.
    """

    calibration: Contents
    evaluation: Contents
    coverage: Coverage
    saturation: Saturation
    distances: Mapping[tuple[str, str], float]

    def sentence(self) -> str:
        """Return the verdict in words, with the tensor that the data represent worst."""
        key, distance = next(iter(self.distances.items()), (("", ""), float("nan")))
        farthest = f"the {key[1]} of {key[0]} by {distance:.2f} standard deviations"
        more = f"; farthest from the evaluation data: {farthest}" if self.distances else ""
        return self.saturation.sentence() + more


def contents(batches: Iterable[Batch], vocabulary: int = 0) -> Contents:
    """Count tokens, lengths and labels; padding is left out.  Ids from ``vocabulary`` on make the count longer."""
    import torch

    from workbench.models.data.batches import samples_of, token_mask

    tokens = torch.zeros(vocabulary, dtype=torch.int64)
    lengths: list[torch.Tensor] = []
    classes: dict[int, int] = {}
    samples = 0
    for batch in batches:
        samples += samples_of(batch)
        ids = batch.get("input_ids")
        if ids is not None:
            mask = token_mask(batch)
            real = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask
            more = torch.bincount(ids[real].reshape(-1), minlength=len(tokens))
            tokens = torch.nn.functional.pad(tokens, (0, len(more) - len(tokens))) + more
            lengths.append(real.sum(dim=1))
        for label, count in zip(*_labels(batch), strict=True):
            classes[label] = classes.get(label, 0) + count
    counts = torch.cat(lengths).numpy() if lengths else np.zeros(0, np.int64)
    return Contents(samples=samples, tokens=tokens.numpy(), lengths=counts, classes=dict(sorted(classes.items())))


def _labels(batch: Batch) -> tuple[list[int], list[int]]:
    if "labels" not in batch or batch["labels"].ndim != 1 or batch["labels"].is_floating_point():
        return [], []
    import torch

    labels, counts = torch.unique(batch["labels"].reshape(-1), return_counts=True)
    return labels.tolist(), counts.tolist()


def coverage(calibration: Contents, other: Contents) -> Coverage:
    """Return how much of ``other`` (the evaluation data) ``calibration`` covers."""
    size = max(calibration.tokens.size, other.tokens.size)
    occurs = np.pad(calibration.tokens, (0, size - calibration.tokens.size)) > 0
    needed = np.pad(other.tokens, (0, size - other.tokens.size))
    inside = np.nan
    if calibration.lengths.size and other.lengths.size:
        least, most = calibration.lengths.min(), calibration.lengths.max()
        inside = float(np.mean((other.lengths >= least) & (other.lengths <= most)))
    labelled = sum(other.classes.values())
    covered = sum(count for label, count in other.classes.items() if label in calibration.classes)
    return Coverage(
        vocabulary=float(occurs.mean()) if size else float("nan"),
        tokens=float(needed[occurs].sum() / needed.sum()) if needed.sum() else float("nan"),
        classes=covered / labelled if labelled else float("nan"),
        lengths=float(inside),
    )


def saturation(steps: Sequence[tuple[int, Mapping[Key, LayerStatistics]]]) -> Saturation:
    """Return how ranges moved over ``steps``: (samples so far, statistics of all of them), each step holding the last.

    Tensors that not every step has seen count as moved.
    """
    layers = tuple(steps[-1][1]) if steps else ()
    ends = np.array([[_ends(statistics.get(key)) for key in layers] for _, statistics in steps])
    ends = ends.reshape(len(steps), -1, 2)
    with np.errstate(invalid="ignore"):
        width = np.maximum(ends[-1, :, 1] - ends[-1, :, 0], np.finfo(float).tiny) if len(steps) else np.ones(0)
        moved = np.abs(np.diff(ends, axis=0)).max(axis=2) / width
    return Saturation(samples=tuple(count for count, _ in steps), layers=layers, moved=np.nan_to_num(moved, nan=np.inf))


def _ends(statistics: LayerStatistics | None, share: float = 0.001) -> tuple[float, float]:
    """Return the ends that keep all but ``share`` of the values, NaN where nothing was seen."""
    if statistics is None or not statistics.count:
        return float("nan"), float("nan")
    cumulative = np.concatenate([[0], np.cumsum(statistics.counts)]) / statistics.count
    low, high = np.interp([share / 2, 1 - share / 2], cumulative, statistics.edges)
    return max(float(low), statistics.minimum), min(float(high), statistics.maximum)


def histogram_distance(a: LayerStatistics, b: LayerStatistics) -> float:
    """Return the earth mover's distance of two distributions, in standard deviations of ``b``; NaN if one is empty.

    0 for the same distribution, 1 where one is shifted by a standard deviation.
    """
    if not a.count or not b.count:
        return float("nan")
    exponent = max(a.exponent, b.exponent)
    first, second = (_shares(each, exponent) for each in (a, b))
    width = 2.0 ** (exponent + 1) / BINS
    moved = float(np.abs(np.cumsum(first - second)).sum() * width)
    spread = max(float(np.sqrt(b.variance)), width)
    return moved / spread


def _shares(statistics: LayerStatistics, exponent: int) -> np.ndarray:
    empty = LayerStatistics.empty(statistics.channels)
    wide = LayerStatistics(**{name: getattr(empty, name) for name in empty.__slots__} | {"exponent": exponent})
    return statistics.merge(wide).counts / statistics.count


def distances(calibration: Mapping[Key, LayerStatistics], other: Mapping[Key, LayerStatistics]) -> dict[Key, float]:
    """Return each tensor's distance between calibration and other data, the farthest first."""
    distance_of = {key: histogram_distance(calibration[key], each) for key, each in other.items() if key in calibration}
    return dict(sorted(distance_of.items(), key=lambda item: -np.nan_to_num(item[1], nan=-1.0)))
