"""A column of a table: the raw value, which is sorted and exported, and the text, which is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np

from workbench.gui.shell.words import tr
from workbench.insight import quantities

METRIC_UNIT = "?"
"""Stands for the unit of the sensitivity metric, which the table's model knows."""

LOSSES = METRIC_UNIT, "nats", "loss per MB"
"""Units of columns that span powers of ten, in one style."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column: ``value(record)`` is exact and plain (None or NaN: unknown), ``show(value)`` is its text.

    Where they differ from those, ``text(record)`` is the text, ``tooltip(record)`` the tooltip and ``key(record)`` the
    sort key.  ``unit`` is the raw value's.  Numbers are aligned at the right.  ``words``: texts are ours, not
    names, and are shown in the user's language.  ``colour(record)`` is the colour of its points in a plot.
    """

    title: str
    value: Callable[[Any], Any]
    show: Callable[[Any], str] | None = None
    _: KW_ONLY
    numeric: bool = False
    words: bool = False
    unit: str = ""
    tip: str = ""
    text: Callable[[Any], str] | None = None
    tooltip: Callable[[Any], str] | None = None
    key: Callable[[Any], Any] | None = None
    colour: Callable[[Any], str] | None = None

    def shown(self, record: Any) -> str:
        """Return the text of a record's cell."""
        text = self.text(record) if self.text is not None else self.shown_value(self.value(record))
        return tr(text) if self.words else text

    def explained(self, record: Any) -> str:
        """Return the tooltip of a record's cell."""
        return tr(self.tooltip(record)) if self.tooltip is not None else self.shown(record)

    def shown_value(self, value: Any) -> str:
        """Return the text of a raw value."""
        if value is None or value != value:
            return quantities.NONE if self.numeric else ""
        if self.show is not None:
            return self.show(value)
        if self.unit in LOSSES:
            return quantities.loss(value)
        if isinstance(value, str | bool):
            return plain(value)
        return quantities.whole(value) if isinstance(value, int) else quantities.number(value)

    def heading(self, unit: str = "", *, exported: bool = False) -> str:
        """Return the title with the unit of the numbers below it; ``unit`` is the shown metric's.

        Texts that name their own unit need none in the heading, and losses never do; exported values always need it.
        """
        own = unit if self.unit == METRIC_UNIT else self.unit
        title = self.title if exported else tr(self.title)
        named = self.show is None or self.unit == METRIC_UNIT
        return f"{title} ({own if exported else tr(own)})" if own and (named or exported) else title


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


def order_of(values: Sequence[Any], *, descending: bool) -> list[int]:
    """Return the indices of ``values`` in sorted order; equal values keep their order, None and NaN come last.

    Numbers are sorted by numpy: 10,000 take milliseconds.
    """
    known = [index for index, value in enumerate(values) if value is not None and value == value]
    unknown = [index for index, value in enumerate(values) if value is None or value != value]
    chosen = [values[index] for index in known]
    if not chosen or isinstance(chosen[0], str | tuple):
        places = sorted(range(len(chosen)), key=chosen.__getitem__, reverse=descending)
    else:
        keys = np.asarray(chosen)
        # the reversed order of the reversed keys is descending and still stable
        places = (len(keys) - 1 - np.argsort(keys[::-1], kind="stable")[::-1] if descending
                  else np.argsort(keys, kind="stable")).tolist()  # fmt: skip
    return [known[place] for place in places] + unknown
