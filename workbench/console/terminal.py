"""A progress bar on standard error, and numbers as people write them."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

WIDTH = 28
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


class Bar:
    """A Progress that draws one line; silent where standard error is no terminal."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self._drawn = 0.0
        self._began = time.monotonic()
        self._length = 0

    def __enter__(self) -> Bar:
        return self

    def __call__(self, fraction: float, text: str, partial: Any = None) -> None:
        """Draw, at most twenty times a second."""
        now = time.monotonic()
        if not self.enabled or (now - self._drawn < 0.05 and fraction < 1):
            return
        self._drawn = now
        done = round(WIDTH * min(1.0, fraction))
        left = (now - self._began) * (1 - fraction) / fraction if fraction > 0.02 else None
        clock = f"{left:4.0f} s left" if left is not None else ""
        line = f"[{'#' * done}{'.' * (WIDTH - done)}] {fraction:4.0%} {clock}  {text}"[:110]
        sys.stderr.write("\r" + line.ljust(self._length))
        sys.stderr.flush()
        self._length = len(line)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._length:
            sys.stderr.write("\r" + " " * self._length + "\r")
            sys.stderr.flush()


def parse_size(text: str) -> int:
    """Return the bytes of ``120MB``, ``1.5GiB`` or ``4096``; raises ValueError saying what was expected."""
    stripped = text.strip()
    number = stripped.rstrip("KMGIBkmgib ")
    unit = stripped[len(number) :].strip().upper()
    try:
        size = float(number) * UNITS[unit]
    except (ValueError, KeyError):
        raise ValueError(f"{text!r} is no size; expected for example 120MB, 1.5GiB or 4096") from None
    if not 0 < size < 2**63:
        raise ValueError(f"{text!r} is no size; it must be above zero")
    return int(size)


def readable_bytes(count: float) -> str:
    """Return ``3.2 MB``: decimal units, as files and budgets are named."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000 or unit == "GB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.3g} {unit}" if count < 100 else f"{count:.0f} {unit}"
        count /= 1000
    raise AssertionError


def table(rows: Sequence[tuple[str, ...]], header: tuple[str, ...]) -> str:
    """Return aligned columns: figures to the right, words to the left."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    figures = [all(not cell or cell[0] in "-0123456789" for cell in column[1:]) for column in columns]
    lines = [
        "  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in zip(*line, strict=True))
        for line in ((row, widths, figures) for row in [header, *rows])
    ]
    return "\n".join([lines[0].rstrip(), "-" * len(lines[0]), *(line.rstrip() for line in lines[1:])])
