"""Streaming statistics of a tensor: exact to merge, in any order.

The histogram has 2048 equal bins over ``[-2**exponent, 2**exponent)``, where ``2**exponent`` is the smallest power of
two above the largest magnitude.  Doubling the range sums pairs of bins, and a value's bin follows from an exact
power-of-two scaling, so merging histograms of parts gives the very counts of the whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from workbench.numerics.statistics.outliers import BINS as TOKEN_BINS
from workbench.numerics.statistics.outliers import KEPT, Peaks, edges

if TYPE_CHECKING:
    import torch

BINS = 2048
LOWEST_EXPONENT = -100
"""Magnitudes below ``2**-100`` share one histogram range, so that every scaling stays inside float32."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerStatistics:
    """What was seen of one tensor; NaN and infinite values are counted in ``non_finite`` and nowhere else.

    ``count`` finite values with ``minimum``, ``maximum`` (+inf and -inf while there are none), ``total`` and
    ``total_squares`` (sums of values and of squares); ``counts`` int64 ``[2048]``; ``channel_minimum``,
    ``channel_maximum`` and ``channel_absmax`` float32 ``[channels]``, +inf, -inf and 0 for a channel without values.
    ``batches`` counts the observed tensors that held finite values; ``minimum_total`` and ``maximum_total`` are sums of
    their least and greatest values (0 batches in statistics that an earlier version stored).
    """

    count: int
    non_finite: int
    minimum: float
    maximum: float
    total: float
    total_squares: float
    exponent: int
    counts: np.ndarray
    channel_absmax: np.ndarray
    channel_minimum: np.ndarray
    channel_maximum: np.ndarray
    batches: int = 0
    minimum_total: float = 0.0
    maximum_total: float = 0.0

    def __post_init__(self) -> None:
        if self.counts.shape != (BINS,) or self.counts.dtype != np.int64:
            raise ValueError(f"counts: expected int64 [{BINS}], got {self.counts.dtype} {self.counts.shape}")
        if int(self.counts.sum()) != self.count:
            raise ValueError(f"the histogram holds {int(self.counts.sum())} values, count says {self.count}")

    @classmethod
    def empty(cls, channels: int) -> LayerStatistics:
        """Return the statistics of nothing: the neutral element of ``merge``."""
        return cls(
            count=0,
            non_finite=0,
            minimum=math.inf,
            maximum=-math.inf,
            total=0.0,
            total_squares=0.0,
            exponent=LOWEST_EXPONENT,
            counts=np.zeros(BINS, np.int64),
            channel_absmax=np.zeros(channels, np.float32),
            channel_minimum=np.full(channels, np.inf, np.float32),
            channel_maximum=np.full(channels, -np.inf, np.float32),
        )

    @property
    def channels(self) -> int:
        """The number of channels."""
        return int(self.channel_absmax.size)

    @property
    def absmax(self) -> float:
        """The largest magnitude; 0 while nothing was seen."""
        return max(-self.minimum, self.maximum) if self.count else 0.0

    @property
    def mean(self) -> float:
        """The mean of the finite values; 0 while there are none."""
        return self.total / self.count if self.count else 0.0

    @property
    def variance(self) -> float:
        """The population variance of the finite values; 0 while there are none."""
        return max(self.total_squares / self.count - self.mean**2, 0.0) if self.count else 0.0

    @property
    def edges(self) -> np.ndarray:
        """Return the edges of the bins, float64 ``[2049]``."""
        edges: np.ndarray = np.arange(-BINS // 2, BINS // 2 + 1, dtype=np.float64) * self.bin_width
        return edges

    @property
    def bin_width(self) -> float:
        """The width of one bin, a power of two."""
        return 2.0 ** (self.exponent + 1) / BINS

    def merge(self, other: LayerStatistics) -> LayerStatistics:
        """Return the statistics of both together; ValueError if the channels differ."""
        if self.channels != other.channels:
            raise ValueError(f"cannot merge statistics of {self.channels} and of {other.channels} channels")
        exponent = max(self.exponent, other.exponent)
        return LayerStatistics(
            count=self.count + other.count,
            non_finite=self.non_finite + other.non_finite,
            minimum=min(self.minimum, other.minimum),
            maximum=max(self.maximum, other.maximum),
            total=self.total + other.total,
            total_squares=self.total_squares + other.total_squares,
            exponent=exponent,
            counts=_grown(self, exponent) + _grown(other, exponent),
            channel_absmax=np.maximum(self.channel_absmax, other.channel_absmax),
            channel_minimum=np.minimum(self.channel_minimum, other.channel_minimum),
            channel_maximum=np.maximum(self.channel_maximum, other.channel_maximum),
            batches=self.batches + other.batches,
            minimum_total=self.minimum_total + other.minimum_total,
            maximum_total=self.maximum_total + other.maximum_total,
        )

    def trimmed(self) -> tuple[np.ndarray, np.ndarray]:
        """Return ``(edges float64 [n + 1], counts int64 [n])`` of the occupied bins only; n is 0 if empty."""
        occupied = np.flatnonzero(self.counts)
        if not occupied.size:
            return np.zeros(1), np.zeros(0, np.int64)
        first, last = int(occupied[0]), int(occupied[-1]) + 1
        return self.edges[first : last + 1], self.counts[first:last]

    def display(self, bins: int) -> tuple[np.ndarray, np.ndarray]:
        """Return ``trimmed()`` with neighbouring bins summed so that at most ``bins`` are left, for drawing."""
        edges, counts = self.trimmed()
        step = max(-(-counts.size // max(bins, 1)), 1)
        if step == 1:
            return edges, counts
        padding = -counts.size % step
        width = self.bin_width * step
        summed = np.pad(counts, (0, padding)).reshape(-1, step).sum(axis=1)
        return edges[0] + np.arange(summed.size + 1) * width, summed

    def equals(self, other: LayerStatistics) -> bool:
        """Return whether every field is the same, bit for bit."""
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))


def _grown(statistics: LayerStatistics, exponent: int) -> np.ndarray:
    """Return the counts over the larger range ``[-2**exponent, 2**exponent)``."""
    counts = statistics.counts
    for _ in range(min(exponent - statistics.exponent, BINS.bit_length())):
        inner = counts.reshape(-1, 2).sum(axis=1)
        counts = np.zeros(BINS, np.int64)
        counts[BINS // 4 : 3 * BINS // 4] = inner
    return counts


def histogram_exponent(absmax: float) -> int:
    """Return the exponent of the smallest power of two above ``absmax``, at least ``LOWEST_EXPONENT``."""
    return max(math.frexp(absmax)[1], LOWEST_EXPONENT) if absmax > 0 else LOWEST_EXPONENT


def observe(tensor: torch.Tensor, channel_axis: int) -> LayerStatistics:
    """Return the statistics of a floating-point ``tensor`` of any shape whose channels lie along ``channel_axis``.

    float16, bfloat16 and float32 are exact (values, extremes, bins); float64 is rounded to float32 first.  Sums are
    formed in float32 over short runs, then in float64.
    """
    return observe_channels(tensor, channel_axis)[0]


def observe_channels(tensor: torch.Tensor, channel_axis: int) -> tuple[LayerStatistics, np.ndarray]:
    """Return :func:`observe`'s statistics, and each channel's sum of squares of finite values, float64 ``[channels]``.

    One walk over the memory, in compiled code; on other devices, and where something is NaN or infinite, torch's own
    operations in two.
    """
    found = _walked(tensor, channel_axis, tokens=False)
    return _observe_by_torch(tensor.detach(), channel_axis) if found is None else found[:2]


def observe_tokens(tensor: torch.Tensor, channel_axis: int) -> tuple[LayerStatistics, np.ndarray, Peaks | None]:
    """Return :func:`observe_channels`'s results, and the tokens with the largest values; None where not all is finite.

    A token is a place along all axes but the channels'.  Its magnitudes are counted where channels lie last: of images'
    pixels only the largest are sought, because counting them all costs as much as the statistics.
    """
    found = _walked(tensor, channel_axis, tokens=True)
    if found is not None:
        return found
    seen, squares = _observe_by_torch(tensor.detach(), channel_axis)
    return seen, squares, None if seen.non_finite else peaks_by_torch(tensor.detach(), channel_axis)


def _walked(
    tensor: torch.Tensor, channel_axis: int, tokens: bool
) -> tuple[LayerStatistics, np.ndarray, Peaks | None] | None:
    """Return what the compiled walk finds; None where there is something else than finite numbers on the CPU."""
    if tensor.device.type != "cpu" or not tensor.numel() or not tensor.dim():
        return None
    from workbench.numerics.statistics.walk import walk

    return walk(tensor.detach(), channel_axis, tokens)


def peaks_by_torch(tensor: torch.Tensor, channel_axis: int) -> Peaks:
    """Return the tokens with the largest values of a finite ``tensor`` on any device."""
    last = tensor.movedim(channel_axis, -1) if tensor.dim() else tensor.reshape(1)
    flat = last.reshape(-1, last.shape[-1]).float()
    peaks = (flat.abs().amax(dim=1) if flat.numel() else flat.new_zeros(len(flat))).cpu().numpy()
    counts = np.bincount(np.searchsorted(edges(), peaks, side="right") - 1, minlength=TOKEN_BINS)
    counts *= channel_axis % max(tensor.dim(), 1) == max(tensor.dim(), 1) - 1
    where = np.argsort(-peaks, kind="stable")[:KEPT]
    where = where[peaks[where] > 0]
    rows = flat[where.tolist()].cpu().numpy().reshape(where.size, flat.shape[-1])
    channel = np.abs(rows).argmax(axis=1) if where.size else where
    return Peaks(counts=counts, where=where, channel=channel, value=rows[np.arange(where.size), channel])


def _observe_by_torch(tensor: torch.Tensor, channel_axis: int) -> tuple[LayerStatistics, np.ndarray]:
    """The same for any device, NaN and infinity: extremes first, then sums and histogram."""
    import torch

    channels = tensor.shape[channel_axis] if tensor.dim() else 1
    if not tensor.numel():
        return LayerStatistics.empty(channels), np.zeros(channels)
    blocks = _Blocks.of(tensor, channel_axis)
    low, high = blocks.extremes()
    bad = 0
    if not bool((low.isfinite() & high.isfinite()).all()):
        finite = tensor.to(torch.float32).isfinite()
        bad = int((~finite).sum())
        zero = torch.zeros((), dtype=tensor.dtype, device=tensor.device)
        low = _masked_extreme(tensor, finite, channel_axis, torch.inf)
        high = _masked_extreme(tensor, finite, channel_axis, -torch.inf)
        blocks = _Blocks.of(torch.where(finite, tensor, zero), channel_axis)
    return _summed(blocks, low, high, tensor.numel(), bad), blocks.squares()


def _summed(blocks: _Blocks, low: torch.Tensor, high: torch.Tensor, numel: int, bad: int) -> LayerStatistics:
    """Add up the values, in which ``bad`` non-finite ones were replaced by zeros."""
    minimum, maximum = float(low.min()), float(high.max())
    channel_minimum, channel_maximum = low.cpu().numpy(), high.cpu().numpy()
    count = numel - bad
    absmax = max(-minimum, maximum) if count else 0.0
    exponent = histogram_exponent(absmax)
    total, squares, counts = blocks.sums(exponent)
    counts[BINS // 2] -= bad
    return LayerStatistics(
        count=count,
        non_finite=bad,
        minimum=minimum,
        maximum=maximum,
        total=total,
        total_squares=squares,
        exponent=exponent,
        counts=counts,
        channel_absmax=np.maximum(np.maximum(channel_maximum, -channel_minimum), 0.0).astype(np.float32),
        channel_minimum=channel_minimum,
        channel_maximum=channel_maximum,
        batches=1 if count else 0,
        minimum_total=minimum if count else 0.0,
        maximum_total=maximum if count else 0.0,
    )


def _masked_extreme(tensor: torch.Tensor, finite: torch.Tensor, axis: int, fill: float) -> torch.Tensor:
    """Return the least (``fill`` is +inf) or greatest (-inf) finite value of each channel, float32."""
    import torch

    channels = tensor.shape[axis] if tensor.dim() else 1
    masked = torch.where(finite, tensor.to(torch.float32), fill)
    rows = masked.movedim(axis, 0).reshape(channels, -1) if tensor.dim() else masked.reshape(1, 1)
    return rows.amin(dim=1) if fill > 0 else rows.amax(dim=1)


TILE = 1 << 17
"""Elements of one step: small enough that its intermediates stay in a core's cache."""


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """A tensor as ``[outer, channels, inner]``, walked in steps of about ``TILE`` elements along ``outer``."""

    blocks: torch.Tensor

    @classmethod
    def of(cls, tensor: torch.Tensor, axis: int) -> _Blocks:
        if not tensor.dim():
            return cls(tensor.reshape(1, 1, 1))
        axis %= tensor.dim()
        shape = tensor.shape
        return cls(tensor.reshape(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])))

    def steps(self) -> list[torch.Tensor]:
        """Return pieces that cover the blocks."""
        outer, channels, inner = self.blocks.shape
        if self._by_channel():
            step = max(TILE // (outer * inner), 1)
            return [self.blocks[:, start : start + step] for start in range(0, channels, step)]
        step = max(TILE // (channels * inner), 1)
        return [self.blocks[start : start + step] for start in range(0, outer, step)]

    def _by_channel(self) -> bool:
        """Whether one outer entry alone is too large, as in a weight matrix, so that steps go along the channels."""
        outer, channels, inner = self.blocks.shape
        return channels * inner > TILE and outer < channels

    def extremes(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the least and the greatest value of each channel, float32; NaN where there is one."""
        import torch

        flat = self.blocks.shape[2] == 1
        steps = [step.squeeze(2) if flat else step for step in self.steps()]
        lows = [(step if flat else step.amin(dim=2)).amin(dim=0) for step in steps]
        highs = [(step if flat else step.amax(dim=2)).amax(dim=0) for step in steps]
        if self._by_channel():
            return torch.cat(lows).to(torch.float32), torch.cat(highs).to(torch.float32)
        return torch.stack(lows).amin(0).to(torch.float32), torch.stack(highs).amax(0).to(torch.float32)

    def squares(self) -> np.ndarray:
        """Return the sum of squares of each channel, float64."""
        import torch

        found: np.ndarray = self.blocks.to(torch.float64).square().sum(dim=(0, 2)).cpu().numpy()
        return found

    def sums(self, exponent: int) -> tuple[float, float, np.ndarray]:
        """Return the sum, the sum of squares and the histogram of finite values below ``2**exponent``.

        Values are scaled so that a bin is 1 wide, which is exact, and squares cannot overflow.
        """
        import torch

        scale = 2.0 ** (BINS.bit_length() - 2 - exponent)
        counts = torch.zeros(BINS, dtype=torch.int64, device=self.blocks.device)
        total = torch.zeros((), dtype=torch.float64, device=self.blocks.device)
        squares = torch.zeros_like(total)
        for piece in self.steps():
            values = piece.reshape(-1).to(torch.float32)
            scaled = values * scale
            total += _fine_sum(scaled)
            squares += _fine_sum(scaled.square())
            scaled.floor_()
            if scale < 1.0:  # a tiny negative value may have become -0, whose floor is not -1
                scaled.masked_fill_((values < 0) & (scaled == 0), -1.0)
            counts += torch.bincount(scaled.add_(BINS // 2).to(torch.int32), minlength=BINS)
        return float(total) / scale, float(squares) / scale**2, counts.cpu().numpy()


def _fine_sum(values: torch.Tensor) -> torch.Tensor:
    """Return the float64 sum of float32 ``[n]``, float32 within runs of 256."""
    import torch

    runs = values.numel() // 256 * 256
    head = values[:runs].reshape(-1, 256).sum(dim=1).sum(dtype=torch.float64)
    return head + values[runs:].sum(dtype=torch.float64)
