"""Every evaluation against the floating-point baseline: a plot for each metric, and the table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from workbench.gui.panels.accuracy.audit_view import AuditView
from workbench.gui.panels.accuracy.most_changed import MostChanged
from workbench.gui.panels.accuracy.plan_comparison import PlanComparison
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.comparison import Bar, Comparison
from workbench.gui.shell.widgets import page, row, splitter, tabs
from workbench.gui.shell.words import tr
from workbench.gui.tables.fields import Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.measurement.evaluation import Evaluation, Metric
from workbench.measurement.metrics import metric_meaning, metric_title
from workbench.session.workspace import State

MAX_PLOTS, MAX_BARS = 4, 5
NOTHING = (
    "Evaluate a plan (F8) to see it beside the floating-point model.\n\nAudit a plan (Ctrl+Shift+F8) to see whether "
    "the losses of its layers add up."
)

LEAST_FOR_BARS = 270
"""Pixels of height below which bars and table do not both fit."""


class Row(NamedTuple):
    """One metric of one evaluation; ``predicted`` beside the metric that it predicts."""

    run: Evaluation
    metric: Metric
    predicted: float | None


FIELDS = (
    Field("Plan", lambda row: row.run.plan_name),
    Field("Metric", lambda row: metric_title(row.metric.name), words=True,
          tooltip=lambda row: metric_meaning(row.metric.name), tip="↑ higher is better, ↓ lower is better"),
    Number("FP", lambda row: row.metric.baseline, lambda value: quantities.number(value, 4),
           tip="The floating-point model on the same data"),
    Number("Quantized", lambda row: row.metric.value, lambda value: quantities.number(value, 4),
           tip="The model as the plan quantizes it, on the same data"),
    Number("95 % low", lambda row: row.metric.low, lambda value: quantities.number(value, 4),
           tip="Lower end of the 95 % interval, by bootstrap over samples"),
    Number("95 % high", lambda row: row.metric.high, lambda value: quantities.number(value, 4),
           tip="Upper end of the 95 % interval, by bootstrap over samples"),
    Number("Predicted", lambda row: row.predicted,
           tip="Predicted loss of the plan: KL in nats, or half the squared distance where outputs are not logits"),
    Field("Unit", lambda row: row.metric.unit,
          text=lambda row: f"{tr(row.metric.unit)} {'↑' if row.metric.higher_is_better else '↓'}".lstrip(),
          tip="↑ higher is better, ↓ lower is better"),
    Number("Bits/weight", lambda row: row.run.bits_per_weight, partial(quantities.fixed, places=3),
           tip="Bits per weight over the quantizable layers, scales and zero points included"),
    Number("Size", lambda row: row.run.nbytes, quantities.data_size, unit="bytes",
           tip="Bytes of the whole model under the plan"),
    Number("Samples", lambda row: row.metric.samples, tip="Samples of the evaluation data that were used"),
    Field("Data", lambda row: row.run.data_name, tip="The held-out data that both models ran on"),
)  # fmt: skip


class AccuracyPanel(Panel):
    """Metrics (small multiples, the table, two plans side by side), and the tokens or samples that changed most."""

    def _build(self) -> None:
        self.plots: list[Comparison] = []
        self._row, self._plots = QWidget(), row()
        self._row.setLayout(self._plots)
        self._row.setMinimumHeight(96)
        self.table = RecordsView("Evaluations", FIELDS)
        parts = splitter(self._row, self.table, sizes=(300, 200), vertical=True)
        parts.setChildrenCollapsible(False)
        self.pair, self.changed, self.audit = PlanComparison(self.context), MostChanged(), AuditView(self.context)
        self.tabs = tabs("Views of the accuracy", (
            ("Metrics", page(parts, self.pair, stretch=parts)), ("What changed", self.changed), ("Audit", self.audit),
        ))  # fmt: skip
        self.column(self.tabs, focus=(self.table, self.changed.table, self.audit.table, self.audit.button))
        self._audit_due = False  # whether the keyboard goes to the audit as soon as it is drawn

    def redraw(self, old: State, new: State) -> None:
        runs = new.session.evaluations if new.session else ()
        self.audit.show_state(new)
        self.pair.show_state(new)
        if self._audit_due and self.audit.result is not None:
            self.show_audit()
        self._cover(runs)
        if old.session is not None and new.session is not None and old.session.evaluations is runs:
            return
        self.table.show_records(rows_of(runs))
        self.changed.show_runs(runs)
        self._show_plots(runs)
        if runs and self.tabs.currentWidget() is self.audit:
            self.tabs.setCurrentIndex(0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave the bars out of a low panel: the table has their numbers."""
        super().resizeEvent(event)
        self._row.setVisible(self.height() >= LEAST_FOR_BARS)

    def show_audit(self) -> None:
        """Bring the audit to the front, and give it the keyboard."""
        self._audit_due = self.audit.result is None
        self.tabs.setCurrentWidget(self.audit)
        self.take_keyboard()

    def _cover(self, runs: Sequence[Evaluation]) -> None:
        """Describe what to do where there is nothing; without an evaluation its two tabs wait for one."""
        self.say_empty("" if runs or self.audit.result else NOTHING, "evaluate")
        for place in (0, 1):
            self.tabs.setTabEnabled(place, bool(runs))
            self.tabs.setTabToolTip(place, "" if runs else "Evaluate a plan first (F8)")

    def _show_plots(self, runs: tuple[Evaluation, ...]) -> None:
        names = metric_names(runs)
        while len(self.plots) < len(names):
            plot = Comparison(metric_title(names[len(self.plots)]), self.colours)
            self._plots.addWidget(plot)
            QWidget.setTabOrder(self.plots[-1] if self.plots else self.tabs.tabBar(), plot)
            self.plots.append(plot)
        for place, plot in enumerate(self.plots):
            plot.setVisible(place < len(names))
            if place < len(names):
                show_metric(plot, names[place], runs)


def metric_names(runs: Sequence[Evaluation]) -> list[str]:
    """Return the metrics that are drawn."""
    return list(dict.fromkeys(name for run in runs for name in run.metrics))[:MAX_PLOTS]


def rows_of(runs: Sequence[Evaluation]) -> list[Row]:
    """Return a row for each metric of each evaluation, the newest first."""
    return [_row(run, metric) for run in reversed(runs) for metric in run.metrics.values()]


def _row(run: Evaluation, metric: Metric) -> Row:
    return Row(run, metric, run.predicted_kl if metric is run.divergence else None)


def show_metric(plot: Comparison, name: str, runs: Sequence[Evaluation]) -> None:
    """Show a metric of the newest evaluations that have it, the plan of fewest bits first as the axis has it."""
    newest = [run for run in runs if name in run.metrics][-MAX_BARS:]
    rows = [_row(run, run.metrics[name]) for run in sorted(newest, key=lambda run: run.bits_per_weight)]
    bars = [
        Bar(name=quantities.fixed(run.bits_per_weight, 2), value=metric.value, low=metric.low, high=metric.high,
            predicted=predicted)
        for run, metric, predicted in rows
    ]  # fmt: skip
    metric, is_predicted = rows[-1].metric, any(bar.predicted is not None for bar in bars)
    plot.setToolTip(tr(metric_meaning(name)))
    plot.show_bars(metric_title(name), metric.unit, metric.baseline, bars)
    plot.label("bottom", "bits (◆ predicted)" if is_predicted else "bits per weight")  # as wide as a small plot
