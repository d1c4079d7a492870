"""The tables of RESULTS.md: rows of measurements, beside the limits of the same run and what is to be reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .ceilings import Ceilings
from .cuda import CudaSamples

BEGIN, END = "<!-- measured on CUDA devices -->", "<!-- end -->"
HEAD = "| op | shape | median us | least | GB/s | of copy | Tops | occupancy | beside | to reach |"
PEAK = 1979
"""1e12 dense 8-bit operations a second of an H200 by its data sheet (and of an H100 SXM)."""
Shape = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Row:
    """One op at one shape: its samples, or the reason why there are none."""

    op: str
    shape: Shape
    samples: CudaSamples | None
    reason: str = ""


Rate = Callable[[Row, CudaSamples, Ceilings], float | None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Target:
    """A figure to reach by the op of that name where ``fits(shape)``: ``rate`` at least ``goal`` (at most if
    ``most``); None where the run has nothing to compare with."""

    op: str
    what: str
    goal: float
    rate: Rate
    fits: Callable[[Shape], bool] = lambda shape: True
    most: bool = False

    def verdict(self, row: Row, ceilings: Ceilings) -> str:
        """Return the figure, the goal, and whether it is reached."""
        figure = None if row.samples is None else self.rate(row, row.samples, ceilings)
        if figure is None:
            return f"{self.what} {self.goal:g}: not measured"
        reached = figure <= self.goal if self.most else figure >= self.goal
        return f"{self.what} {figure:.3g} of {self.goal:g}: {'reached' if reached else 'missed'}"


def of_copy(row: Row, samples: CudaSamples, ceilings: Ceilings) -> float | None:
    """Return the op's bytes a second over those of a copy."""
    return samples.gigabytes_per_second() / ceilings.copy


def of_read(row: Row, samples: CudaSamples, ceilings: Ceilings) -> float | None:
    """Return the op's bytes a second over the fastest reading seen."""
    return samples.gigabytes_per_second() / max(ceilings.copy, ceilings.read)


def over(baseline: str) -> Rate:
    """Return how many times faster than a baseline."""
    return lambda row, samples, ceilings: samples.times_faster().get(baseline)


def input_rate(row: Row, samples: CudaSamples, ceilings: Ceilings) -> float | None:
    """Return GB/s of float32 input."""
    return 4 * float(row.shape["rows"] * row.shape["columns"]) / samples.median() / 1e3


def microseconds(row: Row, samples: CudaSamples, ceilings: Ceilings) -> float | None:
    """Return the median microseconds."""
    return samples.median()


def operations(row: Row, samples: CudaSamples, ceilings: Ceilings) -> float | None:
    """Return 1e12 operations a second."""
    return samples.teraoperations_per_second()


def _at(**shape_values: object) -> Callable[[Shape], bool]:
    return lambda shape: all(shape.get(name) == value for name, value in shape_values.items())


def _bits(shape: Shape) -> int:
    return 8 * int(shape["dtype"].itemsize) if "dtype" in shape else 32


_CODES = ("int8", "int8_asym", "int4", "int4_asym", "e4m3", "e5m2")
_QUANTIZE = tuple(
    Target(op=f"{action} {code}", what="of copy", goal=0.88, rate=of_copy)
    for action in ("quantize", "dequantize")
    for code in _CODES
)
_DEQUANTIZE = tuple(
    Target(op=f"dequantize {name}", what="of copy", goal=goal, rate=of_copy)
    for name, goal in (("q4_0", 0.80), ("q8_0", 0.85), ("q4_k", 0.85), ("q3_k", 0.75))
)
TARGETS = (
    Target(op="statistics", what="of read", goal=0.90, rate=of_read, fits=lambda s: not s.get("histogram")),
    Target(op="statistics", what="of read", goal=0.70, rate=of_read,
           fits=lambda s: bool(s.get("histogram")) and _bits(s) == 32),
    Target(op="statistics", what="of read", goal=0.45, rate=of_read,
           fits=lambda s: bool(s.get("histogram")) and _bits(s) == 16),
    *_QUANTIZE,
    *(Target(op=f"{action} {code}", what="torch.compile x", goal=1.0, rate=over("torch.compile"))
      for action in ("quantize", "dequantize") for code in _CODES),
    *_DEQUANTIZE,
    *(Target(op=f"quantize {name}", what="GB/s of input", goal=100, rate=input_rate) for name in ("q4_k", "q3_k")),
    Target(op="w4a16 linear", what="us at most", goal=12, rate=microseconds, fits=_at(m=1, rows=8192, columns=8192),
           most=True),
    *(Target(op="w4a16 linear", what="FP16 x", goal=goal, rate=over("torch fp16"), fits=_at(m=m))
      for m, goal in ((1, 2.5), (16, 1.8), (128, 1.1))),
    Target(op="w8a8 int8 gemm", what="BF16 x", goal=1.2, rate=over("torch bf16"), fits=_at(m=8192)),
    Target(op="w8a8 int8 gemm wgmma", what="Tops", goal=round(0.6 * PEAK), rate=operations, fits=_at(m=8192)),
    *(Target(op=op, what="_scaled_mm x", goal=goal, rate=over("torch._scaled_mm"), fits=_at(m=8192))
      for op, goal in (("fp8 gemm", 0.7), ("fp8 gemm wgmma", 0.95))),
    Target(op="transformer block", what="BF16 block x", goal=2.5, rate=over("torch bf16 block"),
           fits=_at(plan="w4a16")),
)  # fmt: skip
"""What is to be reached on an H200."""


def shape_text(shape: Shape) -> str:
    """Return a shape in words."""
    return " ".join(f"{name}={str(value).removeprefix('torch.')}" for name, value in shape.items())


def line(row: Row, ceilings: Ceilings) -> str:
    """Return a row of the table."""
    if row.samples is None:
        return f"| {row.op} | {shape_text(row.shape)} | {row.reason} | | | | | | | |"
    s = row.samples
    beside = [f"{name} {times:.2f}x" for name, times in s.times_faster().items()]
    beside += [f"{name}: {reason}" for name, reason in s.refused.items()]
    full = ", ".join(use.occupancy.text() for use in s.kernels)
    goals = [t.verdict(row, ceilings) for t in TARGETS if t.op == row.op and t.fits(row.shape)]
    name = f"{row.op} [{s.variant}]" if s.variant else row.op
    return (
        f"| {name} | {shape_text(row.shape)} | {s.median():.2f} | {s.microseconds.min():.2f} | "
        f"{s.gigabytes_per_second():.0f} | {s.gigabytes_per_second() / ceilings.copy:.1%} | "
        f"{s.teraoperations_per_second():.1f} | {full} | {'; '.join(beside)} | {'; '.join(goals)} |"
    )


def table(rows: Sequence[Row], ceilings: Ceilings, device: str, date: str, facts: dict[str, str]) -> str:
    """Return the tables of one run as Markdown."""
    products = [f"{name} {rate:.0f}" for name, rate in ceilings.products.items()]
    products += [f"{name}: {reason}" for name, reason in ceilings.refused.items()]
    return "\n".join([
        f"### {device}, {date}", "",
        f"Ceilings of the same run: copy {ceilings.copy:.0f} GB/s, read {ceilings.read:.0f} GB/s; Tops at 8192 cubed: "
        + ", ".join(products) + ".",
        "Device: " + ", ".join(f"{name} {value}" for name, value in facts.items()) + ".", "",
        HEAD, "|" + "---|" * (HEAD.count("|") - 1), *(line(row, ceilings) for row in rows),
    ])  # fmt: skip


def with_table(text: str, new: str) -> str:
    """Return RESULTS.md with new tables in place of earlier ones.  Raises ValueError without their markers."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"the file has no place for tables: expected one line {BEGIN!r} and one {END!r}")
    before, tail = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{new}\n\n{END}{tail.split(END)[1]}"
