"""Foreign text, such as names in files, made safe to show: what every face uses."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

UNSAFE = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Unicode categories of control characters, direction marks, broken and private characters, line separators."""

JOINERS = "\u200c\u200d"
"""Marks inside words of Persian and Hindi and inside emoji; they change no direction."""

NOT_ASCII = re.compile(r"[^ -~]")
"""Characters that are looked at one by one: the others are safe, and long texts mostly consist of them."""

LONGEST = 1000
"""Characters of a name that are shown."""


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


def few(names: Sequence[str], most: int = 3) -> str:
    """Return the first names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _is_unsafe(mark: str) -> bool:
    """Return whether a character is not to be shown: no file of XML may hold U+FFFE and the like, either."""
    return unicodedata.category(mark) in UNSAFE or ord(mark) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(mark) <= 0xFDEF
