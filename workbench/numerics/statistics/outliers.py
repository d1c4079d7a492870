"""Which tokens carry massive values: the largest of each tensor, and how the tokens' largest magnitudes are spread.

A *token* here is one position of one sample: a token of a text, a pixel of an image.  A few of them, often the first
token or a delimiter, carry values hundreds of times the others' (Sun et al., "Massive Activations in Large Language
Models", COLM 2024), and these stretch a scale that all tokens share.  What is kept merges in any order to the same
result, so batches, threads and machines add up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

LARGEST = 16
"""How many tokens with the largest magnitudes are stored for each tensor."""

BINS = 512
OCTAVE = 8
"""Bins between a power of two and the next one, equally wide."""

LOWEST = -32
"""The first bin holds everything below ``2 ** LOWEST`` too, the last one everything above its own lower edge."""

SIGMAS = 6.0
"""A token is called an outlier from so many standard deviations of all values on: the scale on which LLM.int8()'s
magnitude of 6 is meant (Dettmers et al., "LLM.int8()", NeurIPS 2022), free of the tensor's own scale."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Peaks:
    """What one tensor holds: ``counts`` (int64 ``[512]``) of its tokens' largest magnitudes, and the largest of all.

    The counts are zeros where channels do not lie last, as in images: there only the largest are sought.

    ``where`` (int64, at most LARGEST) are flat indices over all axes but the channels', by falling magnitude and, where
    that is equal, rising index; ``channel`` (int64) and ``value`` (float32) say what is largest there.
    """

    counts: np.ndarray
    where: np.ndarray
    channel: np.ndarray
    value: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenOutliers:
    """The tokens with the largest magnitudes in one layer's input or output, and how all tokens' magnitudes are spread.

    ``counts`` (int64 ``[512]``) is the histogram of every token's largest magnitude over ``edges``; of images' pixels
    only the largest are sought, and it is all zeros.  The other arrays
    have one entry for each kept token (at most LARGEST), by falling magnitude: ``value`` (float32, signed) and its
    ``channel``, the ``sample`` (numbered as in the data set) and the ``position`` in it: the token's, or the pixel's,
    counted row by row; ``width`` is the number of pixels in a row, 0 where positions have one axis.  ``token`` is the
    id, -1 where there is none; ``text`` (as long as the others, or empty) its text for the reader.  Where a layer
    gets tokens of all samples in one row, as experts do, ``sample`` and ``position`` are -1.
    """

    counts: np.ndarray
    value: np.ndarray
    channel: np.ndarray
    sample: np.ndarray
    position: np.ndarray
    width: np.ndarray
    token: np.ndarray
    text: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.counts.shape != (BINS,):
            raise ValueError(f"counts: expected [{BINS}], got {list(self.counts.shape)}")
        sizes = {getattr(self, name).shape for name in _COLUMNS}
        if len(sizes) != 1 or (self.text and len(self.text) != self.value.size):
            raise ValueError(f"the columns differ in length: {sorted(sizes)}, {len(self.text)} texts")
        for name in ("counts", *_COLUMNS[1:]):
            if (kind := getattr(self, name).dtype).kind not in "iu":
                raise ValueError(f"{name}: expected whole numbers, got {kind}")

    @property
    def count(self) -> int:
        """The number of tokens that were counted."""
        return int(self.counts.sum())

    @property
    def largest(self) -> float:
        """The largest magnitude of all; 0 where nothing but zeros was seen."""
        return float(abs(self.value[0])) if self.value.size else 0.0

    def quantile(self, share: float) -> float:
        """Return the magnitude that ``share`` of the tokens stay below, up to a bin's edge; 0 without counts."""
        if not self.count:
            return 0.0
        reached = np.searchsorted(np.cumsum(self.counts), share * self.count, side="left")
        return float(edges()[min(int(reached), BINS - 1) + 1])

    def above(self, magnitude: float) -> int:
        """Return how many tokens have a value of at least ``magnitude``; that is first raised to a bin's edge."""
        return int(self.counts[int(np.searchsorted(edges()[:-1], magnitude, side="left")) :].sum())

    @property
    def times_median(self) -> float:
        """The largest magnitude over the median token's; 0 where tokens were not counted, or half of them are zeros."""
        middle = self.quantile(0.5)
        return self.largest / middle if middle > 0 else 0.0

    def merge(self, other: TokenOutliers) -> TokenOutliers:
        """Return what both say together; see :func:`merged`."""
        return merged([self, other])

    def place(self, index: int, first: int = 0) -> str:
        """Return the place of kept token ``index`` in its sample, in words that count from ``first``."""
        position, width = int(self.position[index]), int(self.width[index])
        if position < 0:
            return "unknown"
        if not width:
            return f"position {position + first}"
        return f"row {position // width + first}, column {position % width + first}"


_COLUMNS = ("value", "channel", "sample", "position", "width", "token")


def merged(parts: Sequence[TokenOutliers]) -> TokenOutliers:
    """Return what the parts (one at least) say together, the same in any order; without texts unless all have them.

    Of equal magnitudes the first sample, position and channel count.
    """
    if len(parts) == 1:
        return parts[0]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS}
    keys = ("value", "channel", "position", "sample")
    order = np.lexsort([*(columns[name] for name in keys), -np.abs(columns["value"])])[:LARGEST]
    texts = [text for part in parts for text in part.text]
    whole = len(texts) == columns["value"].size
    return TokenOutliers(
        counts=np.sum([part.counts for part in parts], axis=0), text=tuple(texts[n] for n in order) if whole else (),
        **{name: column[order] for name, column in columns.items()},
    )  # fmt: skip


@cache
def edges() -> np.ndarray:
    """Return the bins' edges, float64 ``[513]``: 0, eight equal steps in each octave from ``2 ** LOWEST`` on, infinity.

    They are the float32 numbers whose last 20 bits are zero, so a bin follows from the bits alone.
    """
    numbers = np.arange(1, BINS)
    inner = 2.0 ** (LOWEST + numbers // OCTAVE) * (1 + numbers % OCTAVE / OCTAVE)
    return np.concatenate([[0.0], inner, [np.inf]])


def ranked(peaks: np.ndarray, rows: Callable[[np.ndarray], np.ndarray], *, counted: bool) -> Peaks:
    """Return the largest tokens and, if ``counted``, the histogram of the magnitudes ``peaks``, float32 ``[tokens]``.

    ``rows(where)`` are the values of tokens, ``[n, channels]``.
    """
    from workbench.numerics.statistics.concluding import rank

    counts, where = np.zeros(BINS, np.int64), np.empty(LARGEST, np.int64)
    first = (127 + LOWEST) * OCTAVE
    where = where[: rank(peaks.view(np.int32), counts if counted else counts[:0], first, where)]
    values = rows(where)
    channel = np.abs(values).argmax(axis=1) if where.size else where
    return Peaks(counts=counts, where=where, channel=channel, value=values[np.arange(where.size), channel])
