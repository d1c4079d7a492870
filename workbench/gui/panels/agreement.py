"""Do two metrics rank the cells alike: predicted against measured, or any other pair."""

from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel

from workbench.gui.context.context import Context
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.agreement import Agreement
from workbench.gui.shell.fitted_label import FittedLabel
from workbench.gui.shell.theme import Colours
from workbench.gui.tables.fields import Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.insight.agreement import Cells, common_cells, comparable_metrics, rank_agreement
from workbench.sensitivity.metrics import metric_title
from workbench.session.workspace import State

FIELDS = (
    Field("Scheme", lambda row: row.scheme),
    Number("Rank", lambda row: row.rank, lambda rank: quantities.number(rank, 2),
           tip="Spearman's rank correlation over the layers; 1: the same order"),
    Number("Ratio", lambda row: row.ratio, lambda ratio: quantities.number(ratio, 2),
           tip="Median of the horizontal over the vertical metric; 1: the same size"),
)  # fmt: skip


class AgreementPanel(Panel):
    """Two metrics to choose, the scatter, the agreement of each scheme."""

    def __init__(self, context: Context, colours: Colours) -> None:
        super().__init__(context, colours)
        self.across, self.up = self._metrics("Metric of the x axis"), self._metrics("Metric of the y axis")
        self._pairs: dict[str, tuple[str, ...]] = {}
        self._cells = Cells(x=np.zeros((0, 0)), y=np.zeros((0, 0)))
        self.figure = FittedLabel()
        self.figure.setProperty("role", "muted")
        self.plot = Agreement(colours)
        self.plot.setToolTip("Each point is a layer under a scheme: its tip names them, a click selects the layer")
        self.plot.chosen.connect(lambda index: context.workspace.select((self._cells.layer(index),)))
        self.table = RecordsView("Agreement by scheme", FIELDS, lambda row: row.scheme)
        self.table.setMinimumWidth(110)
        self.table.setMaximumWidth(240)
        top, middle = QHBoxLayout(), QHBoxLayout()
        for widget in (self.across, QLabel("against"), self.up):
            top.addWidget(widget)
        top.addWidget(self.figure, 1)
        middle.addWidget(self.plot, 1)
        middle.addWidget(self.table)
        layout = self.column()
        layout.addLayout(top)
        layout.addLayout(middle, 1)
        self.setFocusProxy(self.plot)

    def redraw(self, old: State, new: State) -> None:
        """Show the tables where they changed."""
        if new.session is None or not comparable_metrics(new.session):
            self.say_empty("Score by two metrics (F6), such as predicted and measured KL, to see whether they agree.")
            return
        self.say_empty("")
        same = old.session is not None and (
            old.session.sensitivities is new.session.sensitivities
            and old.session.evaluations is new.session.evaluations
        )
        if not same:
            self._choose_present(new)
            self._show()

    def recolour(self, colours: Colours) -> None:
        """Redraw in other colours."""
        super().recolour(colours)
        self.plot.recolour(colours)

    def _metrics(self, name: str) -> QComboBox:
        box = QComboBox()
        box.setAccessibleName(name)
        box.setToolTip(name)
        box.setMinimumContentsLength(14)
        box.activated.connect(lambda _: self._offer_partners() if box is self.across else self._show())
        return box

    def _choose_present(self, state: State) -> None:
        """Offer the metrics that have one to be compared with; chosen ones stay, else the predicted KL is across."""
        assert state.session is not None
        self._pairs = comparable_metrics(state.session)
        _offer(self.across, tuple(self._pairs))
        _offer(self.up, self._pairs[self.across.currentData()])

    def _offer_partners(self) -> None:
        _offer(self.up, self._pairs[self.across.currentData()])
        self._show()

    def _show(self) -> None:
        session = self.state.session
        if session is None:
            return
        first, second = (session.sensitivities.get(box.currentData()) for box in (self.across, self.up))
        if first is None or second is None:
            return
        cells = self._cells = common_cells(first, second)
        x, y = cells.x.ravel(), cells.y.ravel()
        columns = np.broadcast_to(np.arange(len(cells.schemes)), cells.x.shape)
        both = (first.metric, second.metric) == ("predicted_kl", "measured_kl")
        plans = tuple(
            (run.predicted_kl, run.divergence.value)
            for run in session.evaluations
            if both and run.predicted_kl is not None and run.divergence is not None
        )
        for axis, table in (("bottom", first), ("left", second)):
            self.plot.label(axis, f"{metric_title(table.metric, table.unit)} ({table.unit})")
        self.plot.show_points(x, y, columns.ravel(), plans, cells.text)
        self.table.show_records(cells.by_scheme())
        self.figure.setText(
            f"rank agreement {quantities.number(rank_agreement(x, y), 2)} over "
            f"{quantities.plural(int((np.isfinite(x) & np.isfinite(y)).sum()), 'cell')}"
            + ("; ◆ evaluated plans" if plans else "")
        )


def _offer(box: QComboBox, metrics: tuple[str, ...]) -> None:
    """Fill a box with metrics; the chosen one stays if it is there, else the measured KL or the first is chosen."""
    chosen = box.currentData()
    if tuple(box.itemData(place) for place in range(box.count())) == metrics:
        return
    box.clear()
    for metric in metrics:
        box.addItem(metric_title(metric), metric)
    usual = "measured_kl" if "measured_kl" in metrics and "predicted_kl" not in metrics else metrics[0]
    box.setCurrentIndex(metrics.index(chosen if chosen in metrics else usual))
