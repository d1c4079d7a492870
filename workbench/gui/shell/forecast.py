"""The line below a form that says what the step will take, and the samples that fit into a few minutes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from PySide6.QtCore import QTimer
from PySide6.QtGui import QHideEvent
from shiboken6 import isValid

from workbench.gui.shell.forms import Form
from workbench.gui.shell.number_field import NumberField
from workbench.gui.shell.widgets import Label, named
from workbench.gui.shell.words import tr
from workbench.preflight import Estimate, duration

PATIENCE = 300.0
"""Seconds that a run takes with the samples that a form begins with; there are 16 at least: fewer say little."""


class ForecastLine(Label):
    """Shows what ``ask(options, answer, failed)`` expects of the options in ``form``: it calls ``answer`` some time
    later, or ``failed``, whose answer is whether the error was shown.

    One question waits at a time, as a trial takes up to minutes: what changes meanwhile is asked when it is answered.
    Where all samples would take too long, and the user has chosen no number of them, the form gets as many as fit.
    """

    def __init__(self, form: Form, ask: Callable[[Any, Callable[[Any], None], Callable[[Any], bool]], None]) -> None:
        super().__init__("")
        named(self, "How long it takes").setProperty("role", "muted")
        self.setWordWrap(True)
        self._form, self._ask, self._whole, self._waiting, self._closed = form, ask, "", False, False
        self._pause = QTimer(self, singleShot=True, interval=400)
        self._pause.timeout.connect(self._begin)
        form.changed.connect(self._pause.start)
        form.add(self)
        self._begin()

    def hideEvent(self, event: QHideEvent) -> None:
        """Ask nothing more once the form is closed: the run that it started comes first."""
        super().hideEvent(event)
        self._closed = self._closed or not event.spontaneous()

    def _begin(self) -> None:
        self._say("" if self._form.problems() else tr("Estimating how long it takes…"))
        if self.text() and not (self._waiting or self._closed):
            self._waiting = True
            answer = partial(self._answer, self._form.value())
            self._ask(self._form.value(), answer, lambda error: answer((str(error),)) or True)

    def _say(self, text: str) -> None:
        self.setText(text)
        if self.heightForWidth(self.width()) > self.height():
            self._form.grown.emit()

    def _answer(self, options: Any, answer: tuple[Estimate | str | None]) -> None:
        if not isValid(self) or self._closed:
            return
        self._waiting = False
        if options != self._form.value():
            self._begin()
            return
        (expected,), field = answer, self._form.widgets.get("samples")
        if isinstance(field, NumberField) and options.samples is None and "data" in self._form.widgets:
            field.show_count(expected.samples if isinstance(expected, Estimate) else 0)
        if isinstance(expected, str):
            self._say(tr("It is not known how long it takes: {}").format(tr(expected)))
            return
        if expected is not None and expected.is_count:
            expected = None
        fewer = fitting_samples(expected) if expected else 0
        free = isinstance(field, NumberField) and field.number is None and not field.hasFocus() and not self._whole
        if expected and isinstance(field, NumberField) and free and fewer < expected.samples:
            words, long = tr("; all {:,} samples take about {}"), duration(expected.seconds)
            self._whole, expected = words.format(expected.samples, long), expected.on(fewer)
            field.setValue(fewer)
        self._say("" if expected is None else f"{tr('It takes {}').format(tr(expected.text))}{self._whole}.")


def fitting_samples(expected: Estimate) -> int:
    """Return how many of the samples fit into a few minutes, in eights, 16 at least; all if they take little more."""
    if expected.seconds < 2 * PATIENCE or not expected.sample_seconds:
        return expected.samples
    over = math.ceil((expected.seconds - PATIENCE) / expected.sample_seconds)
    return min(max((expected.samples - over) // 8 * 8, 16), expected.samples)
