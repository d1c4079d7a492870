"""How the errors of several layers add up before they are squared: what a sum of single losses leaves out.

To second order a plan costs ``1/2 mean_n (sum_l s[l, n]) ** 2`` where ``s[l, n]`` is the slope of sample ``n``'s
log-likelihood along the error of layer ``l`` (the Fisher information's definition, as in
:mod:`workbench.sensitivity.directional_losses`).  A layer's own loss is ``1/2 mean_n s[l, n] ** 2``; what the plan
costs beyond the sum of these is the interaction of its layers.  numpy only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

MOST_DRAWS = 2048
"""How many samples and draws of labels slopes are kept for; they give an interaction to about 3 % of the losses."""

UNIT = 2.0**-26
"""Slopes are added in whole numbers of this (nats ** 0.5), so that their sums have the same bits in any order."""

USUAL = 0.4
"""How much more or less than their sum errors usually cost together, as a share of it: a standard deviation over plans
of ResNet-20 and six small networks of timm and torchvision (resources/guide/decisions.md)."""

RESOLVED = 2.0
"""How many of its standard errors a measured plan's factor must be to count, see :func:`beyond_chance`."""

FEWEST = 8
"""So many samples judge a choice, and twice as many an interaction, at the least."""

_WHOLE = 32767
_LARGEST = 2**28


@dataclass(frozen=True, kw_only=True, eq=False)
class Directions:
    """``values`` int16 ``[layers, schemes, draws]``: the slopes of every cell up to a factor, which its loss gives.

    Zeros throughout where a cell has none.  All cells are of the same samples and labels.  Raises ValueError if the
    shape is another.
    """

    layers: tuple[str, ...]
    schemes: tuple[str, ...]
    values: np.ndarray

    def __post_init__(self) -> None:
        if self.values.dtype != np.int16 or self.values.shape[:-1] != (len(self.layers), len(self.schemes)):
            raise ValueError(
                f"directions of {len(self.layers)} layers and {len(self.schemes)} schemes are int16 of that shape by "
                f"draws; got {self.values.dtype} {self.values.shape}"
            )

    @cached_property
    def _places(self) -> tuple[dict[str, int], dict[str, int]]:
        rows, columns = ({name: index for index, name in enumerate(names)} for names in (self.layers, self.schemes))
        return rows, columns

    def has(self, layer: str, scheme: str) -> bool:
        """Return whether the cell has slopes."""
        rows, columns = self._places
        return layer in rows and scheme in columns and bool(self.values[rows[layer], columns[scheme]].any())

    def of(self, layer: str, scheme: str, loss: float) -> np.ndarray | None:
        """Return the slopes of a cell of that ``loss`` in nats, int64 ``[draws]`` in UNITs; None if it has none."""
        rows, columns = self._places
        if layer not in rows or scheme not in columns or not (math.isfinite(loss) and loss > 0):
            return None
        pattern = self.values[rows[layer], columns[scheme]].astype(np.float64)
        length = float(np.dot(pattern, pattern))
        if not length:
            return None
        slopes = np.rint(pattern * (math.sqrt(2 * loss / length) / UNIT))
        whole: np.ndarray = np.clip(slopes, -_LARGEST, _LARGEST).astype(np.int64)
        return whole

    @staticmethod
    def gather(schemes: tuple[str, ...], rows: dict[str, dict[str, np.ndarray]]) -> Directions | None:
        """Put float32 slopes ``[draws]`` of layers and schemes together; None if there are none."""
        layers = tuple(name for name, row in rows.items() if row)
        if not layers:
            return None
        draws = max((slopes.size for row in rows.values() for slopes in row.values()), default=0)
        values = np.zeros((len(layers), len(schemes), draws), np.int16)
        for row, layer in enumerate(layers):
            for column, scheme in enumerate(schemes):
                slopes = rows[layer].get(scheme, np.zeros(0, np.float32))
                largest = float(np.abs(slopes).max(initial=0.0))
                if 0 < largest < math.inf:
                    values[row, column, : slopes.size] = np.rint(slopes * (_WHOLE / largest))
        return Directions(layers=layers, schemes=schemes, values=values)

    def row(self, layer: str) -> dict[str, np.ndarray]:
        """Return the slopes of a layer's cells up to a factor, float32 ``[draws]``; what :meth:`gather` takes."""
        return {scheme: self.values[self._places[0][layer], column].astype(np.float32)
                for scheme, column in self._places[1].items() if self.has(layer, scheme)}  # fmt: skip


def interaction(slopes: np.ndarray, squares: np.ndarray) -> float:
    """Return what errors cost together beyond the sum of what each costs alone, in nats, as far as samples tell it.

    ``slopes`` and ``squares`` (int64 ``[draws]``, UNITs) are sums of the errors' slopes and of their squares.  A few
    samples carry most of what errors cost together and alone, so the quotient of both is much surer than either; its
    distance from 1 is shrunk by its standard error beside USUAL.  Fewer than ``2 * FEWEST`` samples say nothing.
    """
    return float(interactions(slopes[None], squares[None])[0])


def interaction_error(slopes: np.ndarray, squares: np.ndarray) -> float:
    """Return what is left unknown of the interaction: its standard deviation in nats."""
    own, _, error = _quotients(slopes[None], squares[None])
    return float(own[0] * error[0] * USUAL / math.hypot(USUAL, error[0]))


def relative_error(slopes: Mapping[str, np.ndarray], samples: int) -> float:
    """Return the relative standard error of losses by the slopes of their draws, two of a sample side by side.

    ``slopes`` are float32 ``[draws]`` by scheme, of some or all of ``samples``; the median of the schemes.  NaN for
    fewer than two samples.
    """
    errors = []
    for each in slopes.values():
        squares = np.square(each[: each.size // 2 * 2].astype(np.float64)).reshape(-1, 2).sum(axis=1)
        if squares.size > 1 and squares.any():
            errors.append(float(squares.std(ddof=1) / squares.mean()) / math.sqrt(max(samples, squares.size)))
    return float(np.median(errors)) if errors else math.nan


def interaction_of(every: Iterable[np.ndarray | None]) -> float:
    """Return the :func:`interaction` of errors of those slopes; None stands for an error that has none."""
    known = [slopes for slopes in every if slopes is not None]
    return interaction(np.sum(known, axis=0), np.sum(np.square(known), axis=0)) if known else 0.0


def interactions(slopes: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return :func:`interaction` of many plans at once, float64 ``[plans]`` for int64 ``[plans, draws]``."""
    (own, quotient, error), samples = _quotients(slopes, squares), slopes.shape[1] // 2
    if samples < 2 * FEWEST:
        return np.zeros_like(own)
    return np.asarray(own * (quotient - 1) / (1 + np.square(beyond_chance(1.0, samples) * error / USUAL)))


def beyond_chance(errors: float, samples: int) -> float:
    """Return how many estimated standard errors of ``samples`` values are as sure as ``errors`` known ones.

    The quantile of Student's t distribution at the probability of ``errors`` of a normal one, to 0.1 % (Abramowitz and
    Stegun, 26.7.5); infinity for fewer than FEWEST samples.  Not by scipy.special, which takes 0.16 s to import: the
    window asks at every edit.
    """
    if samples < FEWEST:
        return math.inf
    z, freedom = errors, samples - 1
    first = (z**3 + z) / (4 * freedom)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    return z + first + second + third


def halves(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sums over each sample's draws, float64 ``[..., samples / 2]``: of samples to choose by, and to judge by.

    ``values`` are float64 ``[..., draws]``, two draws of a sample side by side.  Every second sample is in either half;
    both are scaled so that their sums estimate that of all.  Fewer than two samples are in both.
    """
    samples = by_sample(values)
    count = samples.shape[-1]
    if count < 2:
        return samples, samples
    chosen, judged = samples[..., 0::2], samples[..., 1::2]
    return chosen * (count / chosen.shape[-1]), judged * (count / judged.shape[-1])


def of_choosers(values: np.ndarray) -> np.ndarray:
    """Return the draws (``[..., draws]``) of the samples that choices are made by, scaled so that sums of squares are
    those of all."""
    count = values.shape[-1] // 2
    if count < 2:
        return values.astype(np.float64)
    chosen = np.flatnonzero(np.arange(2 * count) // 2 % 2 == 0)
    return values[..., chosen] * math.sqrt(2 * count / chosen.size)


def _quotients(slopes: np.ndarray, squares: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what errors cost alone, in nats, how many times as much together, and its standard error, by plan."""
    together, apart = (by_sample(each) for each in (np.square(slopes.astype(np.float64)), squares.astype(np.float64)))
    own, samples = apart.sum(axis=1), apart.shape[1]
    per = np.maximum(own, 1.0)[:, None]
    quotient = np.where(own > 0, together.sum(axis=1) / per[:, 0], 1.0)
    scatter = np.square((together - quotient[:, None] * apart) / per).sum(axis=1)
    return own * (0.5 * UNIT * UNIT), quotient, np.sqrt(scatter * samples / max(samples - 1, 1))


def by_sample(values: np.ndarray) -> np.ndarray:
    """Return sums over each sample's two draws, float64 ``[..., samples]``."""
    return np.asarray(values[..., : values.shape[-1] // 2 * 2].reshape(*values.shape[:-1], -1, 2).sum(axis=-1))
