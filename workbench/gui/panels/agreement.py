"""Do two metrics rank the cells alike: predicted against measured, or any other pair."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PySide6.QtWidgets import QComboBox

from workbench.gui.panels.panel import Panel
from workbench.gui.plots.agreement import MOST, Agreement
from workbench.gui.shell.widgets import combo, fitted, label, offer, row
from workbench.gui.shell.words import tr
from workbench.gui.tables.fields import Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.insight.agreement import Cells, SchemeAgreement, common_cells, comparable_metrics, rank_agreement
from workbench.sensitivity.metrics import metric_title
from workbench.sensitivity.table import Sensitivity
from workbench.session.workspace import State

FIELDS = (
    Field("Scheme", lambda row: row.scheme),
    Number("Rank", lambda row: row.rank, lambda rank: quantities.fixed(rank, 2),
           tip="Spearman's rank correlation over the layers; 1: the same order"),
    Number("Ratio", lambda row: row.ratio, lambda ratio: quantities.fixed(ratio, 2),
           tip="Median of the horizontal over the vertical metric; 1: the same size"),
)  # fmt: skip


class AgreementPanel(Panel):
    """Two metrics to choose, the scatter, the agreement of each scheme."""

    def _build(self) -> None:
        self._pairs: dict[str, tuple[str, ...]] = {}
        self._cells = Cells(x=np.zeros((0, 0)), y=np.zeros((0, 0)))
        across, up = "Metric of the x axis", "Metric of the y axis"
        self.across = combo(across, chosen=self._offer_partners, tip=across)
        self.up = combo(up, chosen=self._show, tip=up)
        for box in (self.across, self.up):
            box.setMinimumContentsLength(14)
        self.figure = fitted()
        self.plot = Agreement(self.colours)
        self.plot.setToolTip(tr("Each point is a layer under a scheme: its tip names them, a click selects the layer"))
        self.plot.chosen.connect(lambda index: self.context.workspace.select((self._cells.layer(index),)))
        scheme = replace(FIELDS[0], colour=self._colour_of, tip="In the colour of its points")
        self.table = RecordsView("Agreement by scheme", (scheme, *FIELDS[1:]), lambda row: row.scheme)
        self.table.setMinimumWidth(110)
        self.table.setMaximumWidth(240)
        middle = row(self.plot, self.table, stretch=self.plot)
        top = row(self.across, label("against"), self.up, self.figure, stretch=self.figure)
        self.column(top, middle, stretch=middle, focus=(self.plot,))

    def redraw(self, old: State, new: State) -> None:
        self._pairs = {} if new.session is None else comparable_metrics(new.session)
        if new.session is None or not self._pairs:
            self.say_empty(
                "Score by two metrics (F6), such as predicted and measured KL, to see whether they agree.",
                "sensitivity",
            )
            return
        self.say_empty("")
        before = old.session
        if (
            before is None
            or before.sensitivities is not new.session.sensitivities
            or before.evaluations is not new.session.evaluations
        ):
            _offer(self.across, tuple(self._pairs))
            self._offer_partners()

    def _colour_of(self, row: SchemeAgreement) -> str:
        return self.plot.colour_of(self._cells.schemes.index(row.scheme))

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
        both = (first.metric, second.metric) == ("predicted_kl", "measured_kl")
        plans = tuple(
            (run.predicted_kl, run.divergence.value)
            for run in session.evaluations
            if both and run.predicted_kl is not None and run.divergence is not None
        )
        cells = self._cells = show_agreement(self.plot, first, second, plans)
        self.table.show_records(cells.by_scheme())
        count = int((np.isfinite(cells.x) & np.isfinite(cells.y)).sum())
        self.figure.setText(
            f"rank agreement {quantities.number(rank_agreement(cells.x.ravel(), cells.y.ravel()), 2)} over "
            f"{quantities.plural(count, 'cell')}{f', {MOST:,} of them drawn' if count > MOST else ''}"
            f"{'; ◆ evaluated plans' if plans else ''}"
        )


def show_agreement(
    plot: Agreement, first: Sensitivity, second: Sensitivity, plans: tuple[tuple[float, float], ...] = ()
) -> Cells:
    """Draw the cells that two tables share, and return them."""
    cells = common_cells(first, second)
    for axis, table in (("bottom", first), ("left", second)):
        plot.label(axis, f"{metric_title(table.metric, table.unit)} ({table.unit})")
    columns = np.broadcast_to(np.arange(len(cells.schemes)), cells.x.shape)
    plot.show_points(cells.x.ravel(), cells.y.ravel(), columns.ravel(), plans, cells.text)
    return cells


def _offer(box: QComboBox, metrics: tuple[str, ...]) -> None:
    """Offer metrics; the measured KL is the usual one beside the predicted KL."""
    usual = "measured_kl" if "measured_kl" in metrics and "predicted_kl" not in metrics else metrics[0]
    offer(box, [(metric_title(metric), metric) for metric in metrics], usual)
