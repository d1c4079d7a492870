"""The selected layer's channels: extremes as bars, outliers marked and listed, a brush to look closer."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QPushButton, QSplitter

from workbench.gui.context.context import Context
from workbench.gui.context.layer_results import LayerResults
from workbench.gui.panels.distributions.range_line import statistics_of
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.channel_bars import ChannelBars
from workbench.gui.shell.fitted_label import FittedLabel
from workbench.gui.shell.theme import Colours
from workbench.gui.tables.fields import Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.insight.channels import FACTOR, brushed, by_channel, outliers
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.planning.plan import KEEP, Assignment
from workbench.session.session import TAPS
from workbench.session.workspace import State
from workbench.steps.layer.channel_errors import CHANNEL_ERRORS, ChannelErrors, ChannelErrorsOptions

FIELDS = (
    Number("Channel", lambda channel: channel.number),
    Number("Lowest", lambda channel: channel.low, tip="The channel's lowest value"),
    Number("Highest", lambda channel: channel.high, tip="The channel's highest value"),
    Number("× median", lambda channel: channel.times, lambda times: f"{times:.1f}",
           tip="Largest magnitude over the median channel's; such channels force a scale on all others"),
    Number("Error", lambda channel: channel.error, quantities.share, unit="share",
           tip="Share of the layer's predicted loss that comes from rounding this channel's weights"),
)  # fmt: skip


OUTLIERS, BRUSHED = "Outliers", "In the region"
QUICK = "rtn"
"""What the names of the algorithms begin with that round a layer by itself, at once."""

SCROLL_BAR, WIDEST = 24, 400
"""Pixels beside the columns of the table, and how wide it is at most by itself."""

MOST = 1000
"""Channels of a region that are listed."""


class ChannelsPanel(Panel):
    """The plot, the brush's figures, the list of outliers."""

    def __init__(self, context: Context, colours: Colours) -> None:
        super().__init__(context, colours)
        self.tap = QComboBox()
        self.tap.setAccessibleName("Tensor whose channels are shown")
        self.tap.setToolTip("Weights have a channel for each output, inputs and outputs one for each feature")
        for tap in TAPS:
            self.tap.addItem(f"{tap.capitalize()}s", tap)
        self.tap.activated.connect(lambda _: self._show())
        self.figure, self.brush = FittedLabel(), FittedLabel()
        for label in (self.figure, self.brush):
            label.setProperty("role", "muted")
        self.plot = ChannelBars(colours)
        self.plot.brushed.connect(self._brushed)
        self.plot.settled.connect(self._settled)
        self.table = RecordsView("Outlier or brushed channels", FIELDS)
        self.table.setMinimumWidth(120)
        self.table.clicked.connect(self._go_to)
        self.table.activated.connect(self._go_to)
        top, splitter = self._top_line(), QSplitter(Qt.Orientation.Horizontal)
        splitter.addWidget(self.plot)
        splitter.addWidget(self.table)
        splitter.setStretchFactor(0, 3)
        splitter.setSizes([520, 240])
        layout = self.column()
        layout.addLayout(top)
        layout.addWidget(splitter, 1)
        layout.addWidget(self.brush)
        self._statistics: LayerStatistics | None = None
        self._errors: np.ndarray | None = None
        self._found: LayerResults[ChannelErrors] = LayerResults(
            context, lambda session, layer: CHANNEL_ERRORS.request(session, ChannelErrorsOptions(layer=layer)),
            lambda session: (session.model, session.curvature, session.plan.transforms, self._given),
            self._take_errors,
        )  # fmt: skip
        self.setFocusProxy(self.plot)

    def redraw(self, old: State, new: State) -> None:
        """Show the first selected layer's channels."""
        if new.session is None or not new.selection:
            self.say_empty("Select a layer to see its channels." if new.session else "Open a model first.")
            return
        self._show()

    def recolour(self, colours: Colours) -> None:
        """Redraw in other colours."""
        super().recolour(colours)
        self.plot.recolour(colours)

    def _show(self) -> None:
        state = self.state
        if state.session is None or not state.selection:
            return
        tap, layer = self.tap.currentData(), self._layer
        statistics = statistics_of(state.session, layer, tap)
        self.say_empty("")
        if statistics is self._statistics and statistics is not None:
            self._take_errors()
            return
        self._statistics, self._errors = statistics, self._errors_of(layer, statistics)
        found = outliers(statistics) if statistics is not None else ()
        if statistics is None:
            self.figure.setText(f"{layer}: no {tap} was observed; calibrate (F5)")
            self.brush.clear()
        else:
            self.figure.setText(
                f"{layer}: {quantities.plural(statistics.channels, 'channel')}, "
                f"{quantities.plural(len(found), 'outlier')} of at least {FACTOR:g} × the median"
            )
        self.plot.show_channels(statistics, found)
        self.listed.setCurrentIndex(0)
        self._list()

    def _top_line(self) -> QHBoxLayout:
        self.listed = QComboBox()
        self.listed.setAccessibleName("Which channels are listed")
        self.listed.setToolTip("The outliers, or the channels in the region that is drawn in the plot")
        self.listed.addItems([OUTLIERS, BRUSHED])
        self.listed.activated.connect(lambda _: self._list())
        self.errors = QPushButton("Errors b&y Channel")
        self.errors.setToolTip("Round the layer by the plan and say which channels the predicted loss comes from")
        self.errors.clicked.connect(lambda: self._found.request(self._layer, retry=True))
        line = QHBoxLayout()
        line.addWidget(self.tap)
        line.addWidget(self.figure, 1)
        line.addWidget(self.errors)
        line.addWidget(self.listed)
        return line

    # ---------------------------------------------------------------- channels

    def _list(self) -> None:
        """List the outliers or what is in the brush."""
        statistics = self._statistics
        if statistics is None:
            self.table.show_records(())
            return
        if self.listed.currentText() == OUTLIERS:
            self.table.show_records(outliers(statistics, errors=self._errors))
        else:
            first, last = self.plot.chosen
            self.table.show_records(brushed(statistics, first, min(last, first + MOST - 1), self._errors))
        self.table.setVisible(bool(self.table.records.records))
        self.table.setMinimumWidth(min(self.table.horizontalHeader().length() + SCROLL_BAR, WIDEST))

    def _brushed(self, first: int, last: int) -> None:
        statistics = self._statistics
        if statistics is None:
            return
        part = slice(first, last + 1)
        low = float(statistics.channel_minimum[part].min())
        high = float(statistics.channel_maximum[part].max())
        squares = statistics.channel_absmax.astype(float) ** 2
        share = float(squares[part].sum()) / (float(squares.sum()) or 1.0)
        error = ""
        if self._errors is not None:
            error = f", {quantities.share(float(self._errors[part].sum()))} of the error"
        elif self._found.is_pending(self._layer):
            error = ", … of the error"
        self.brush.setText(
            f"Channels {first:,} to {last:,}: {quantities.number(low)} to {quantities.number(high)}, "
            f"{quantities.share(share)} of the channels' squared magnitudes{error}"
        )

    def _settled(self) -> None:
        """List what the user has brushed, and find its errors out where that is quickly done."""
        self.listed.setCurrentText(BRUSHED)
        self._list()
        if self._errors is None and self._is_quick():
            self._found.request(self._layer)
            self._brushed(*self.plot.chosen)

    def _go_to(self, index: QModelIndex) -> None:
        """Put the brush around the channel of a row, as long as the outliers are listed."""
        if self.listed.currentText() == OUTLIERS:
            number = self.table.records.record(index.row()).number
            self.plot.point_to(number, number)

    # ---------------------------------------------------------------- errors

    @property
    def _layer(self) -> str:
        selection = self.state.selection
        return selection[0] if selection else ""

    @property
    def _given(self) -> Assignment | None:
        """What the plan gives the layer."""
        return self.state.assignments.get(self._layer)

    def _is_quick(self) -> bool:
        """Tell whether the plan rounds the layer by itself, so that its errors are found without being asked."""
        session, held = self.state.session, self._given
        alone = session is not None and not session.plan.transforms
        return alone and held is not None and held.weights != KEEP and held.algorithm.startswith(QUICK)

    def _errors_of(self, layer: str, statistics: LayerStatistics | None) -> np.ndarray | None:
        """Return the share of the error of every channel that is shown; None where it is not known."""
        found = self._found.get(layer)
        if found is None or statistics is None:
            return None
        by = found.columns if self.tap.currentData() == "input" else found.rows
        return by_channel(by, statistics.channels)

    def _take_errors(self) -> None:
        """Show the errors that have come; drop those of another plan, and find them again where that is quick."""
        had, self._errors = self._errors, self._errors_of(self._layer, self._statistics)
        found = self._found.get(self._layer)
        if found is not None:
            how = "of the predicted loss" if found.weighed else "of the squared error (calibrate to weigh it)"
            self.errors.setToolTip(f"Shares {how} under {found.scheme}")
            if self._errors is None and self._statistics is not None:
                self.context.messages.say(
                    "Errors by channel", f"the columns of {found.layer} do not divide into channels", "warning"
                )
        elif had is not None and self._is_quick():
            self._found.request(self._layer)
        if (had is None) != (self._errors is None) and self.plot.region is not None:
            self._brushed(*self.plot.chosen)
            self._list()
