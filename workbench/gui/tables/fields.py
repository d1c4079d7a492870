"""A column of a table: the raw value, which is sorted and exported, and the text, which is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

from workbench.insight import quantities

METRIC_UNIT = "?"
"""Stands for the unit of the sensitivity metric that is shown, which the table's model knows."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column: ``value(record)`` is exact and plain (None or NaN: not known), ``show(value)`` is its text.

    ``text(record)`` is the text where the value alone does not say it all, ``tooltip(record)`` the tooltip and
    ``key(record)`` what sorts, where they differ from text and value.  ``unit`` is the raw value's.
    Numbers are aligned at the right.
    """

    title: str
    value: Callable[[Any], Any]
    show: Callable[[Any], str] | None = None
    _: KW_ONLY
    numeric: bool = False
    unit: str = ""
    tip: str = ""
    text: Callable[[Any], str] | None = None
    tooltip: Callable[[Any], str] | None = None
    key: Callable[[Any], Any] | None = None

    def shown(self, record: Any) -> str:
        """Return the text of a record's cell."""
        if self.text is not None:
            return self.text(record)
        return self.shown_value(self.value(record))

    def shown_value(self, value: Any) -> str:
        """Return the text of a raw value."""
        if value is None or value != value:
            return quantities.NONE if self.numeric else ""
        if self.show is not None:
            return self.show(value)
        if isinstance(value, str | bool):
            return plain(value)
        return f"{value:,}" if isinstance(value, int) else quantities.number(value)

    def heading(self, unit: str = "", *, exported: bool = False) -> str:
        """Return the title with the unit of the numbers below it; ``unit`` is the shown metric's.

        Texts that name their own unit need none in the heading; exported values always do.
        """
        own = unit if self.unit == METRIC_UNIT else self.unit
        return f"{self.title} ({own})" if own and (exported or self.show is None) else self.title


Number = partial(Field, numeric=True)
"""A column of numbers, aligned at the right."""


def plain(value: Any) -> str:
    """Return a raw value as a program reads it: all digits, a point, an ASCII minus; empty where it is not known."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return str(value) if isinstance(value, int) else repr(float(value))
