"""How a data set is to be read: the options that follow its path after a question mark, ``a.csv?column=text``."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, quote

from workbench.errors import DataError, nearest

SENTENCES, WINDOWS, STREAM = "sentences", "windows", "stream"
MODES = (SENTENCES, WINDOWS, STREAM)
DIGITS = 12
"""Digits of a number of tokens at most; Python reads none of thousands."""

USUAL_WINDOW, LONG_WINDOW = 256, 2048
"""Tokens of a window where nothing is asked for: in calibration, and in evaluation where the model has room for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """``column``: the columns of a table, by commas; ``window`` and ``stride`` in tokens.

    ``text``: ``sentences`` (one row or line is one sample, with special tokens and padding), ``windows`` (running text,
    every window with the tokenizer's first tokens), ``stream`` (running text without special tokens: what records of
    older versions mean); empty for what suits the model.
    """

    column: str = ""
    window: int | None = None
    stride: int | None = None
    text: str = ""

    @classmethod
    def of(cls, path: str | Path) -> tuple[str, Self]:
        """Return the path without its options, and the options; raises DataError for an unknown one."""
        place, mark, tail = str(path).rpartition("?")
        if not mark or os.path.exists(os.path.expanduser(path)):
            return str(path), cls()
        values: dict[str, str | int] = {}
        for name, value in parse_qsl(tail, keep_blank_values=True):
            known = [field.name for field in fields(cls)]
            if name not in known:
                raise DataError(f"{path}: there is no option {name!r}{nearest(name, known)}; give {', '.join(known)}")
            if name in values:
                raise DataError(f"{place}: the option {name} is given twice; give it once")
            if name in ("window", "stride") and not (value.isdecimal() and len(value) <= DIGITS):
                raise DataError(f"{place}: {name} is {value[:DIGITS]!r}; give a number of tokens")
            values[name] = int(value) if name in ("window", "stride") else value
        if values.get("text", STREAM) not in MODES:
            raise DataError(f"{path}: text is {values['text']!r}; give one of {', '.join(MODES)}")
        return place, replace(cls(), **values)  # type: ignore[arg-type]  # checked by name above

    def over(self, other: Reading) -> Reading:
        """Return these options, and ``other``'s where nothing is said."""
        return replace(other, **self._stated())

    def _stated(self) -> dict[str, Any]:
        """Return the options that are set; 0 is one, and refused where it is used."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value not in ("", None)}

    def after(self, path: str) -> str:
        """Return the path followed by the options that are set."""
        tail = "&".join(f"{name}={quote(str(value), safe=', ')}" for name, value in self._stated().items())
        return f"{path}?{tail}" if tail else path


def with_reading(path: str | Path, reading: Reading) -> str:
    """Return a path with these options, which count over those that it has."""
    place, stated = Reading.of(path)
    return reading.over(stated).after(place)
