"""Foreign text, such as names in files, made safe to show: what every face uses."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

UNSAFE = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Unicode categories of control characters, direction marks, broken and private characters, line separators."""

JOINERS = "\u200c\u200d"
"""Marks inside words of Persian and Hindi and inside emoji; they change no direction."""

NOT_ASCII = re.compile(r"[^ -~]")
"""Characters that are looked at one by one: the others are safe, and long texts mostly consist of them."""

LONGEST, LONGEST_LISTED = 1000, 160
"""Characters of a name that are shown, alone and in a list."""


def readable(text: str, limit: int | None = None, *, lines: bool = False) -> str:
    """Return ``text`` with control characters, direction marks and broken Unicode escaped, as in ``\\x1b``.

    What is longer than ``limit`` characters is cut in its middle.  ``lines``: line breaks stay.
    """
    if limit is not None and len(text) > limit:
        text = f"{text[: limit // 2]}…{text[len(text) - limit // 2 :]}"
    if text.isprintable():
        return text
    allowed = f"{JOINERS}\n\t" if lines else JOINERS

    def shown(match: re.Match[str]) -> str:
        mark = match[0]
        return repr(mark)[1:-1] if mark not in allowed and _is_unsafe(mark) else mark

    return NOT_ASCII.sub(shown, text)


def few(names: Iterable[object], most: int = 3) -> str:
    """Return the first names, long ones cut, and how many more there are: ``a, b, c and 9,997 more``."""
    listed = [str(name) for name in names]
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(readable(name, LONGEST_LISTED) for name in listed[:most]) + more


def _is_unsafe(mark: str) -> bool:
    """Return whether a character is not to be shown: no file of XML may hold U+FFFE and the like, either."""
    return unicodedata.category(mark) in UNSAFE or ord(mark) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(mark) <= 0xFDEF
