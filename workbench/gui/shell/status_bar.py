"""The line at the bottom: the last message, the running job, and what the plan costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QProgressBar, QPushButton, QStatusBar, QWidget

from workbench.gui.context.messages import Message
from workbench.gui.shell.fitted_label import FittedLabel
from workbench.gui.shell.widgets import button, label, named
from workbench.gui.shell.words import tr
from workbench.insight import quantities
from workbench.insight.dashboard import between
from workbench.insight.sums import activations, shown_unit, whole_bits
from workbench.measurement.units import short_unit
from workbench.models.placement import Placement
from workbench.planning.totals import Totals
from workbench.sensitivity.confidence import interval
from workbench.sensitivity.metrics import metric_title
from workbench.session.session import Session
from workbench.session.workspace import State

READY = "Ready"
LEAST_FOR_MESSAGE, GAP = 150, 6
"""Pixels of the message that are left, and between two parts."""
SUM = "Sum of the losses of all layers; lower is better."


class StatusBar(QStatusBar):
    """``cancel(job id)``, ``retry(job id)`` and ``choose_device()`` serve its buttons."""

    def __init__(
        self, cancel: Callable[[int], None], retry: Callable[[int], None], choose_device: Callable[[], None],
        parent: QWidget,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self.setSizeGripEnabled(False)
        self._job = self._failed = 0  # job numbers; 0: none, and the button is hidden
        self.message = named(FittedLabel(READY), "Message")
        self.retry_button = _button("Retry", lambda: retry(self._failed))
        self.bar = named(QProgressBar(), "Progress of the running job")
        self.bar.setRange(0, 1000)
        self.bar.setFixedSize(150, 16)
        self.bar.setTextVisible(False)  # no colour can be read on both halves of it
        self.share = _figure("Share of the running job that is done")
        self.cancel_button = _button("Cancel", lambda: cancel(self._job))
        self.size_label = _figure("Size of the whole model under the plan, compared with floating point")
        self.bits_label = _figure(
            "Bits per weight, scales and zero points included: of the layers that are searched or quantized, and of "
            "the whole model, embeddings and unquantized tensors included"
        )
        self.loss_label = _figure(SUM)
        self.range_label = label(role="muted")
        self.range_label.setToolTip("95 % interval of the predicted loss")
        self.addWidget(self.message, 1)
        self.message.setIndent(6)  # the style sheet takes a label's margins away
        for widget in (self.retry_button, self.bar, self.share, self.cancel_button):
            self.addPermanentWidget(widget)
            widget.hide()
        for figure in (self.size_label, self.bits_label, self.loss_label, self.range_label):
            self.addPermanentWidget(figure)
        self.device_button = _button("", choose_device)
        self.device_button.setFlat(True)
        self.addPermanentWidget(self.device_button)
        self._visible: dict[QWidget, bool] = dict.fromkeys(
            (self.range_label, self.bar, self.size_label, self.bits_label), False
        )

    def minimumSizeHint(self) -> QSize:
        """Any width will do: what there is no room for is hidden, since the window must fit its screen."""
        return QSize(0, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _show(self, widget: QWidget, visible: bool) -> None:
        self._visible[widget] = visible

    def _fit(self) -> None:
        """Show what is wanted, but for what does not fit beside some words of the message: the interval first."""
        others = (self.share, self.cancel_button, self.retry_button, self.loss_label, self.device_button)
        shown = [each for each in (*self._visible, *others) if self._visible.get(each, not each.isHidden())]
        room = self.width() - LEAST_FOR_MESSAGE - sum(each.sizeHint().width() + GAP for each in shown)
        for each, visible in self._visible.items():
            fits = room >= 0
            if visible and not fits:
                room += each.sizeHint().width() + GAP
            each.setVisible(visible and fits)

    def show_placement(self, placement: Placement, cluster: str) -> None:
        """Show where models run, and the address of the processes that help."""
        self.device_button.setText(tr("Device: {}").format(placement.text + (f", {cluster}" if cluster else "")))
        self.device_button.setToolTip(tr("Where models run, and what they compute in; click to choose"))

    def say(self, message: Message) -> None:
        """Show a message."""
        title, text = tr(message.title), tr(message.text)
        text = f"{title}: {text}" if text else title
        self._write(text, "" if message.level == "info" else message.level)

    def _write(self, text: str, role: str = "", short: str = "") -> None:
        """Write a line; where there is no room for it, what is ``short``."""
        self.message.say(*filter(None, (text.replace("\n", " "), short)))
        self.message.setToolTip(text)
        if self.message.property("role") != role:
            self.message.setProperty("role", role)
            self.message.style().polish(self.message)

    def show_jobs(self, views: tuple[Any, ...]) -> None:
        """Show the running job, or the one that waits for an estimate to end; offer to retry the last if it failed."""
        waiting = [view for view in views if view.status == "queued"]
        running = next((view for view in views if view.status == "running"), waiting[0] if waiting else None)
        queued = sum(view is not running for view in waiting)
        before, self._job = self._job, running.id if running else 0
        self._show(self.bar, running is not None)
        self.share.setVisible(running is not None)
        self.cancel_button.setVisible(running is not None)
        if running is not None:
            self.bar.setValue(round(running.fraction * 1000))
            left = "" if running.left is None else _about(running.left)
            self.share.setText(f"{running.fraction * 100:.0f} %" + (f", {tr(left)}" if left else ""))
            title = tr("{} (and {} more)").format(tr(running.title), queued) if queued else tr(running.title)
            text = tr("waiting for an estimate to end" if running in waiting else running.text)
            self._write(" – ".join(filter(None, (title, text))), short=text)
        elif before:
            self._write(READY)
        last = views[-1] if views else None
        self._failed = last.id if last is not None and last.status == "failed" else 0
        self.retry_button.setVisible(bool(self._failed))
        self._fit()

    def show_state(self, state: State) -> None:
        """Show bytes, bits per weight and the predicted loss."""
        totals, session = state.totals, state.session
        self._show(self.size_label, session is not None)
        self._show(self.range_label, False)
        self._show(self.bits_label, session is not None and totals is not None)
        self.loss_label.setVisible(session is not None and totals is not None)
        if session is not None:
            self._show_figures(session, totals, state)
        self._fit()

    def _show_figures(self, session: Session, totals: Totals | None, state: State) -> None:
        if totals is None:
            self.size_label.setText("the plan does not fit the model")
            self.size_label.setToolTip(state.plan_error)
            return
        ratio = quantities.reduction(session.model.nbytes, totals.nbytes)
        self.size_label.setText(f"{quantities.data_size(totals.nbytes)} ({tr(ratio)})")
        self.bits_label.setText(
            tr("{n} bits/weight ({n} in all)")
            .replace("{n}", "{}")
            .format(quantities.fixed(totals.bits_per_weight, 3), quantities.fixed(whole_bits(session, totals), 2))
        )
        self.loss_label.setText(_loss(state))
        sure = interval(totals.predicted, totals.error, totals.doubt)
        self.range_label.setText(f"({tr(between(*sure))})" if sure else "")
        self._show(self.range_label, sure is not None)
        self.loss_label.setToolTip(f"{SUM} {_summed(state)}")


def _about(seconds: float) -> str:
    """Return how long it takes, as coarse as an estimate is: a finer one would change all the time."""
    if seconds < 5:
        return ""
    if seconds < 55:
        return f"{max(round(seconds / 10), 1) * 10} s left"
    return f"{round(seconds / 60)} min left" if seconds < 5400 else f"{round(seconds / 3600)} h left"


def _loss(state: State) -> str:
    unit, totals = shown_unit(state.session, state.metric), state.totals
    title = tr(metric_title(state.metric, unit))
    assert totals is not None
    if totals.predicted is not None:
        part = f" ({tr('weights only')})" if activations(state)[1] else ""
        return f"{title} {quantities.number(totals.predicted)} {short_unit(unit)}".rstrip() + part
    if state.session is not None and state.session.plan.transforms:
        return f"{title}: {tr('not known with transforms')}"
    if totals.missing:
        return f"{title}: {quantities.plural(totals.missing, 'layer')} not scored"
    return f"{title}: {tr('not scored')}"


def _summed(state: State) -> str:
    """Return what the sum includes and what it does not."""
    included, missing = activations(state)
    included = ["weights", *included]
    sentences = [f"It includes {' and '.join(included)}."]
    if missing:
        sentences.append(f"{' and '.join(missing).capitalize()} have no scores yet; score them to include them.")
    return " ".join([*sentences, *_interaction(state)])


def _interaction(state: State) -> list[str]:
    """Return how the errors of layers interact, where that is known."""
    totals = state.totals
    if totals is None or not totals.interaction or totals.predicted is None:
        return []
    alone = quantities.number(totals.predicted - totals.interaction)
    difference = f"{quantities.number(abs(totals.interaction))} {'more' if totals.interaction > 0 else 'less'}"
    return [f"The losses of single layers add up to {alone}; together it is {difference}, because errors interact."]


def _button(text: str, clicked: Callable[[], object]) -> QPushButton:
    widget = button(text, clicked)
    widget.setFixedHeight(20)
    return widget


def _figure(tip: str) -> QLabel:
    widget = label(role="figure")
    widget.setToolTip(tip)
    widget.setContentsMargins(10, 0, 6, 0)
    return widget
