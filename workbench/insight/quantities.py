"""Numbers as text: with a unit and no more digits than they are worth.

They have a decimal point, and commas between thousands, as in the C locale, unless the window's user has chosen a
decimal comma (:func:`use_comma`), which fields take then as well.  Files, copies, the command line have a point.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from workbench.memory import in_units

if TYPE_CHECKING:
    from workbench.models.summary import ModelSummary

NONE = "–"
"""What stands where there is no number."""

NUMBER = re.compile(r"(?<![\w.,@/-])\d[\d,]*(\.\d+)?(e[+-]?\d+)?(?![\w@/-]|[.,]\w)")
"""A number that stands alone in a sentence."""

COMMA = str.maketrans(".,", ",.")
_comma = False


def use_comma(comma: bool) -> None:
    """Write numbers with a decimal comma, and points between thousands, in this process from now on."""
    global _comma
    _comma = comma


@contextmanager
def with_points() -> Iterator[None]:
    """Write numbers with a decimal point within the context, whatever the user chose: for files and copies."""
    before = _comma
    use_comma(False)
    try:
        yield
    finally:
        use_comma(before)


def marked(text: str) -> str:
    """Return a text of numbers alone, as Python writes them, with the user's decimal mark."""
    return text.translate(COMMA) if _comma else text


def marked_in(sentence: str) -> str:
    """Return a sentence of the rooms below with the user's decimal mark in its numbers; names keep their points."""
    return NUMBER.sub(lambda number: marked(number[0]), sentence) if _comma else sentence


def whole(value: int) -> str:
    """Return a whole number: 12,300."""
    return marked(f"{value:,}")


def fixed(value: float, places: int) -> str:
    """Return ``value`` with so many digits after the decimal mark: 4.500."""
    return marked(f"{value:.{places}f}")


def short(value: float, digits: int = 6) -> str:
    """Return ``value`` with no more digits than it needs, ``digits`` significant ones at most: 4.5, 0.25, 1e-7."""
    return typeset(f"{value:.{digits}g}")


def typeset(text: str) -> str:
    """Return one number, as Python writes it, in the window's style: −0.2, 1e-5, 1e6, with the user's mark."""
    return marked(text).replace("e-0", "e-").replace("e+0", "e").replace("e+", "e").replace("-", "−", text[:1] == "-")


def number(value: float | None, digits: int = 3) -> str:
    """Return ``value`` with ``digits`` significant digits: 0.0123, 4.1e-4, 12,300; a dash for None and NaN."""
    if value is None or math.isnan(value):
        return NONE
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    magnitude = abs(value)
    if magnitude >= 10**digits:
        text = f"{value:,.0f}" if magnitude < 1e7 else f"{value:.{digits - 1}e}"
    elif magnitude < 1e-3:
        text = f"{value:.{max(digits - 2, 0)}e}"
    else:
        text = f"{value:.{max(0, digits - 1 - math.floor(math.log10(magnitude)))}f}"
    return typeset(text)


def loss(value: float | None) -> str:
    """Return a loss with three digits, in one style below 1, so that a column of them compares: 2.30e-1, 4.61e-4."""
    if value is None or not 0 < abs(value) < 1:
        return number(value)
    return typeset(f"{value:.2e}") if abs(value) < 0.995 else number(math.copysign(1, value))


def cell(value: float, narrow: bool = False) -> str:
    """Return ``value`` in at most six characters (four if ``narrow``), for a heatmap cell: one style below 1."""
    if math.isnan(value):
        return ""
    if value == 0:
        return "0"
    if (0.95 if narrow else 0.995) <= abs(value) < (100 if narrow else 1e4):  # what rounds to 1 is no power of ten
        return number(math.copysign(max(abs(value), 1.0), value), 2)
    return typeset(f"{value:.{0 if narrow else 1}e}")


def data_size(nbytes: float | None) -> str:
    """Return bytes in decimal units: 812 B, 12.3 kB, 4.56 MB."""
    if nbytes is None:
        return NONE
    size, unit = in_units(nbytes)
    return f"{size:.0f} {unit}" if unit == "B" else f"{number(size)} {unit}"


def count(value: int) -> str:
    """Return a count with a short suffix: 512, 65.5 k, 1.20 M."""
    if abs(value) < 10_000:
        return whole(value)
    size = float(value)
    for suffix in ("", "k", "M", "G", "T"):
        if abs(size) < 999.5 or suffix == "T":
            return f"{number(size)} {suffix}"
        size /= 1000
    raise AssertionError("unreachable")


def tick(value: float) -> str:
    """Return a count as short as the ticks of an axis ask for: 0, 500, 1k, 2.5M."""
    size = float(value)
    for suffix in ("", "k", "M", "G", "T"):
        if abs(size) < 1000 or suffix == "T":
            break
        size /= 1000
    return f"{short(size)}{suffix}"


def signed(value: float, show: Callable[[float], str]) -> str:
    """Return a difference with its sign, its magnitude as ``show`` writes it."""
    text = show(abs(value))
    return text if not value or math.isnan(value) else f"{'+' if value > 0 else '−'}{text}"


def plural(value: int, noun: str) -> str:
    """Return ``1 layer``, ``2 layers``, ``1,024 layers``."""
    return f"{whole(value)} {noun}{'' if value == 1 else 's'}"


def layers_of(model: ModelSummary) -> str:
    """Return ``37 layers``, or ``37 layers, 1 tied``: a tied one shares another's tensor, which counts once."""
    tied = len(model.layers) - len(model.stored)
    return plural(len(model.layers), "layer") + (f", {whole(tied)} tied" if tied else "")


def shape(sizes: Sequence[int]) -> str:
    """Return ``128 × 64``."""
    return " × ".join(str(size) for size in sizes) or "scalar"


def share(value: float) -> str:
    """Return a share in [0, 1] as a percentage."""
    return f"{number(value * 100, 2)} %" if value and value < 1e-4 else f"{fixed(value * 100, 2)} %"


def microseconds(value: float) -> str:
    """Return microseconds as µs, ms or s."""
    if value < 1000:
        return f"{number(value)} µs"
    return f"{number(value / 1000)} ms" if value < 1e6 else f"{number(value / 1e6)} s"


def duration(seconds: float) -> str:
    """Return ``12 s``, ``3 min 05 s``."""
    if seconds < 60:
        return f"{fixed(seconds, 1)} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, left = divmod(round(seconds), 60)
    return f"{minutes} min {left:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def reduction(before: int, after: int) -> str:
    """Return how much smaller ``after`` is than ``before``: ``3.4× smaller``."""
    if after <= 0 or before <= 0:
        return NONE
    ratio = before / after
    return "same size" if abs(ratio - 1) < 0.005 else f"{fixed(ratio, 2)}× {'smaller' if ratio > 1 else 'of the size'}"
