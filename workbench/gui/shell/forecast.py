"""The line below a form that says what the step will take, and the samples that fit into a few minutes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from PySide6.QtCore import QTimer
from PySide6.QtGui import QHideEvent

from workbench.gui.shell.forms import Form
from workbench.gui.shell.number_field import NumberField
from workbench.gui.shell.widgets import Label, named
from workbench.gui.shell.words import tr
from workbench.preflight import Estimate, duration

PATIENCE = 300.0
"""Seconds that a run takes with the samples that a form begins with; there are 16 at least: fewer say little."""


class ForecastLine(Label):
    """Shows what ``ask(options)`` expects of the options in ``form``; ``start`` runs it in the background.

    Where all samples would take too long, and the user has chosen no number of them, the form gets as many as fit.
    """

    def __init__(
        self, form: Form, ask: Callable[[Any], Awaitable[Estimate | None]],
        start: Callable[[Coroutine[Any, Any, None]], asyncio.Task[Any]],
    ) -> None:  # fmt: skip
        super().__init__("")
        named(self, "How long it takes").setProperty("role", "muted")
        self.setWordWrap(True)
        self._form, self._ask, self._start, self._whole = form, ask, start, ""
        self._task: asyncio.Task[Any] | None = None
        self._pause = QTimer(self, singleShot=True, interval=400)
        self._pause.timeout.connect(self._begin)
        form.changed.connect(self._pause.start)
        self._begin()

    def hideEvent(self, event: QHideEvent) -> None:
        """Ask no more."""
        super().hideEvent(event)
        self._pause.stop()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self.setText("" if self._form.problems() else tr("Estimating how long it takes…"))
        if self.text():
            self._task = self._start(self._answer(self._form.value()))

    async def _answer(self, options: Any) -> None:
        expected = await self._ask(options)
        field = self._form.widgets.get("samples")
        if expected is not None and isinstance(field, NumberField) and field.number is None and not field.hasFocus():
            fewer = fitting_samples(expected)
            if fewer < expected.samples and not self._whole:
                words, long = tr("; all {:,} samples take about {}"), duration(expected.seconds)
                self._whole = words.format(expected.samples, long)
                expected = expected.on(fewer)
                field.setValue(fewer)
        self.setText("" if expected is None else f"{tr('It takes {}').format(tr(expected.text))}{self._whole}.")


def fitting_samples(expected: Estimate) -> int:
    """Return how many of the samples fit into a few minutes, in eights; 16 at least."""
    over = max(expected.seconds - PATIENCE, 0.0)
    fitting = expected.samples - int(-(-over // expected.sample_seconds)) if over and expected.sample_seconds else None
    return expected.samples if fitting is None else min(max(fitting // 8 * 8, 16), expected.samples)
