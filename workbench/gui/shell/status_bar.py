"""The line at the bottom: the last message, the running job, and what the plan costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtWidgets import QLabel, QProgressBar, QPushButton, QStatusBar, QWidget

from workbench.gui.context.messages import Message
from workbench.gui.shell.fitted_label import FittedLabel
from workbench.insight import quantities
from workbench.insight.sums import shown_unit
from workbench.measurement.units import short_unit
from workbench.planning.kv_cache import cached_layers
from workbench.planning.totals import quantized_inputs
from workbench.sensitivity.metrics import metric_title
from workbench.session.workspace import State

READY = "Ready"


class StatusBar(QStatusBar):
    """``cancel(job id)`` and ``retry(job id)`` serve its buttons."""

    def __init__(self, cancel: Callable[[int], None], retry: Callable[[int], None], parent: QWidget) -> None:
        super().__init__(parent)
        self.setSizeGripEnabled(False)
        self._job: int | None = None
        self._failed: int | None = None
        self.message = FittedLabel(READY)
        self.message.setAccessibleName("Message")
        self.retry_button = self._button("Retry", lambda: _with(self._failed, retry))
        self.bar = QProgressBar()
        self.bar.setRange(0, 1000)
        self.bar.setFixedSize(150, 16)
        self.bar.setAccessibleName("Progress of the running job")
        self.cancel_button = self._button("Cancel", lambda: _with(self._job, cancel))
        self.size_label = self._figure("Bytes of the whole model under the plan, and beside its floating-point size")
        self.bits_label = self._figure("Bits per weight over the quantizable layers, scales and zero points included")
        self.loss_label = self._figure("Sum of the chosen cells' scores; lower is better")
        self.message.setContentsMargins(6, 0, 0, 0)
        self.addWidget(self.message, 1)
        for widget in (
            self.retry_button,
            self.bar,
            self.cancel_button,
            self.size_label,
            self.bits_label,
            self.loss_label,
        ):
            self.addPermanentWidget(widget)
        for hidden in (self.retry_button, self.bar, self.cancel_button):
            hidden.hide()

    def _button(self, text: str, clicked: Callable[[], Any]) -> QPushButton:
        button = QPushButton(text)
        button.setFixedHeight(20)
        button.clicked.connect(lambda _: clicked())
        return button

    def _figure(self, tip: str) -> QLabel:
        label = QLabel()
        label.setProperty("role", "figure")
        label.setToolTip(tip)
        label.setContentsMargins(10, 0, 6, 0)
        return label

    def say(self, message: Message) -> None:
        """Show a message."""
        text = f"{message.title}: {message.text}" if message.text else message.title
        self._write(text, "error" if message.level == "error" else "")

    def _write(self, text: str, role: str = "") -> None:
        self.message.setText(text.replace("\n", " "))
        self.message.setToolTip(text)
        if self.message.property("role") != role:
            self.message.setProperty("role", role)
            self.message.style().polish(self.message)

    def show_jobs(self, views: tuple[Any, ...]) -> None:
        """Show the running job; offer to try the last one again if it failed."""
        running = next((view for view in views if view.status == "running"), None)
        queued = sum(view.status == "queued" for view in views)
        before, self._job = self._job, running.id if running else None
        self.bar.setVisible(running is not None)
        self.cancel_button.setVisible(running is not None)
        if running is not None:
            self.bar.setValue(round(running.fraction * 1000))
            more = f" (and {queued} more)" if queued else ""
            self._write(f"{running.title}{more} – {running.text}" if running.text else f"{running.title}{more}")
        elif before is not None:
            self._write(READY)
        last = views[-1] if views else None
        self._failed = last.id if last is not None and last.status == "failed" else None
        self.retry_button.setVisible(self._failed is not None)

    def show_state(self, state: State) -> None:
        """Show bytes, bits per weight and the predicted loss."""
        totals, session = state.totals, state.session
        figures = (self.size_label, self.bits_label, self.loss_label)
        for label in figures:
            label.setVisible(session is not None)
        if session is None:
            return
        if totals is None:
            self.size_label.setText("the plan does not fit the model")
            self.size_label.setToolTip(state.plan_error)
            self.bits_label.clear()
            self.loss_label.clear()
            return
        ratio = quantities.reduction(session.model.nbytes, totals.nbytes)
        self.size_label.setText(f"{quantities.data_size(totals.nbytes)} ({ratio})")
        self.bits_label.setText(f"{totals.bits_per_weight:.3f} bits/weight")
        self.loss_label.setText(_loss(state))
        self.loss_label.setToolTip(f"Sum of the chosen cells' scores; lower is better. {_summed(state)}")


def _loss(state: State) -> str:
    unit, totals = shown_unit(state.session, state.metric), state.totals
    title = metric_title(state.metric, unit)
    assert totals is not None
    if totals.predicted is not None:
        return f"{title} {quantities.number(totals.predicted)} {short_unit(unit)}".rstrip()
    if state.session is not None and state.session.plan.transforms:
        return f"{title}: not known with transforms"
    if totals.missing:
        return f"{title}: {quantities.plural(totals.missing, 'layer')} not scored"
    return f"{title}: not scored"


def _summed(state: State) -> str:
    """Say what the sum counts and what it does not."""
    session = state.session
    assert session is not None
    rounded = quantized_inputs(session.model, state.assignments)
    cached = cached_layers(session.model.layers, state.assignments)
    counted, without = ["weights"], list[str]()
    for what, places, table in (
        ("the rounded inputs", rounded, session.inputs_table(state.metric)),
        ("the rounded keys and values", cached, session.cache_table(state.metric)),
    ):
        if places:
            (counted if table is not None else without).append(f"{what} of {quantities.plural(len(places), 'layer')}")
    sentences = [f"It counts {' and '.join(counted)}."]
    if without:
        sentences.append(f"{' and '.join(without).capitalize()} were not scored; score them for the sum to count them.")
    return " ".join([*sentences, *_interaction(state)])


def _interaction(state: State) -> list[str]:
    """Say what the errors of layers cost together beyond the sum, where that is known."""
    totals = state.totals
    if totals is None or not totals.interaction or totals.predicted is None:
        return []
    alone = quantities.number(totals.predicted - totals.interaction)
    return [f"Alone the layers cost {alone}; together {quantities.number(abs(totals.interaction))} "
            f"{'more' if totals.interaction > 0 else 'less'}, as their errors add up or cancel."]  # fmt: skip


def _with(job: int | None, act: Callable[[int], None]) -> None:
    if job is not None:
        act(job)
