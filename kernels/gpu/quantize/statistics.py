"""Calibration statistics in one pass: least, largest, sum, sum of squares, not-finite count, range-free histogram."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...build.source import CudaSource
from ..contract import check_tensor
from ..launch import FLOATS, CudaOp, Executor, Int, Launch, Long, Problem, ceil_div, drawn, nbytes

BINS = 2048
"""Bin ``(exponent << 3) + three mantissa bits`` of ``|x|``: bits 20 to 30 of the float32; 2040 and up: not finite."""
BLOCK = 256
RESULTS = 5
PART = 65528
"""Rows of one launch, at most: a multiple of 8, so that every part starts at a multiple of 16 bytes."""
SOURCE = CudaSource(
    file="statistics.cu", entries=tuple(f"{kind}_{t}" for t in FLOATS.values() for kind in ("statistics", "histogram"))
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowStatistics:
    """Facts of every row, float64 ``[rows]``, over finite values; ``not_finite`` counts the others.

    ``histogram`` is int64 ``[2048]`` over all rows, None if it was not asked for.  A row without finite values has
    ``low = inf`` and ``high = -inf``.
    """

    low: torch.Tensor
    high: torch.Tensor
    sum: torch.Tensor
    squares: torch.Tensor
    not_finite: torch.Tensor
    histogram: torch.Tensor | None

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Return all of them, the histogram last."""
        facts = (self.low, self.high, self.sum, self.squares, self.not_finite.long())
        return facts if self.histogram is None else (*facts, self.histogram)


def statistics(x: torch.Tensor, *, histogram: bool = False, on: Executor) -> RowStatistics:
    """Return the facts of every row of ``x`` ``[rows, columns]``, float32, float16 or bfloat16; view a tensor as one
    row for facts per tensor.  Raises ArgumentError."""
    check_tensor("x", x, on, tuple(FLOATS), (None, None))
    rows, columns = x.shape
    if rows > PART:
        starts = range(0, rows, PART)
        parts = [statistics(x[start : start + PART], histogram=histogram, on=on) for start in starts]
        return _joined(parts)
    per_pack = 16 // x.element_size()
    splits = max(1, min(ceil_div(columns, BLOCK * per_pack), ceil_div(8 * on.processors, rows)))
    partial = on.empty((rows, splits, RESULTS), torch.float64)
    counts = torch.zeros(BINS, dtype=torch.int32, device=on.device) if histogram else None
    packed = columns % per_pack == 0 or rows == 1
    entry = f"{'histogram' if histogram else 'statistics'}_{FLOATS[x.dtype]}"
    on.run(SOURCE, Launch(entry=entry, grid=(splits, rows, 1), block=BLOCK, arguments=(
        x, Long(columns), Int(packed), partial, counts)))  # fmt: skip
    return RowStatistics(
        low=partial[..., 0].amin(1), high=partial[..., 1].amax(1), sum=partial[..., 2].sum(1),
        squares=partial[..., 3].sum(1), not_finite=partial[..., 4].sum(1),
        histogram=None if counts is None else counts.long(),
    )  # fmt: skip


def _joined(parts: list[RowStatistics]) -> RowStatistics:
    columns = [torch.cat(facts) for facts in zip(*(part.tensors()[:RESULTS] for part in parts), strict=True)]
    counts = [part.histogram for part in parts if part.histogram is not None]
    low, high, total, squares, not_finite = columns
    return RowStatistics(
        low=low, high=high, sum=total, squares=squares, not_finite=not_finite,
        histogram=torch.stack(counts).sum(0) if counts else None,
    )  # fmt: skip


def reference(x: torch.Tensor, *, histogram: bool = False) -> RowStatistics:
    """Compute the same with torch."""
    exact = x.double()
    finite = exact.isfinite()
    values = exact.where(finite, torch.zeros((), dtype=torch.float64, device=x.device))
    infinity = torch.full((), torch.inf, dtype=torch.float64, device=x.device)
    bits = x.float().view(torch.int32) & 0x7FFFFFFF
    return RowStatistics(
        low=exact.where(finite, infinity).amin(1), high=exact.where(finite, -infinity).amax(1), sum=values.sum(1),
        squares=values.square().sum(1), not_finite=(~finite).sum(1),
        histogram=torch.bincount((bits >> 20).flatten(), minlength=BINS) if histogram else None,
    )  # fmt: skip


def prepare(
    on: Executor, seed: int, *, rows: int, columns: int, dtype: torch.dtype = torch.float32, histogram: bool = False
) -> Problem:
    """Draw a matrix with, in its first row, an infinity and a NaN if it is large enough."""
    x = drawn(on, seed, rows, columns, dtype=dtype) + 0.25
    if columns > 8:
        x[0, 1], x[0, columns - 1] = torch.inf, torch.nan
    return Problem(
        launch=lambda: statistics(x, histogram=histogram, on=on).tensors(),
        reference=lambda: reference(x, histogram=histogram).tensors(),
        read=nbytes(x), written=rows * RESULTS * 8, operations=4 * x.numel(),
    )  # fmt: skip


OP = CudaOp(
    name="statistics", source=SOURCE, tolerance=1e-6, prepare=prepare,
    note="least, largest, sum, sum of squares, not-finite count of every row; histogram of exponents on request",
    variants=(
        {"rows": 1, "columns": 1}, {"rows": 3, "columns": 5000}, {"rows": 5, "columns": 37, "histogram": True},
        {"rows": 1, "columns": 12347, "histogram": True}, {"rows": 2, "columns": 4104, "dtype": torch.float16},
        {"rows": 3, "columns": 1001, "dtype": torch.bfloat16, "histogram": True},
    ),
    sizes=(
        {"rows": 1, "columns": 2**28}, {"rows": 1, "columns": 2**28, "histogram": True},
        {"rows": 16384, "columns": 16384, "dtype": torch.bfloat16, "histogram": True},
    ),
)  # fmt: skip
