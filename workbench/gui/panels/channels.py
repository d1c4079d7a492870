"""The selected layer's channels: extremes as bars, outliers marked and listed, a brush to look closer."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QModelIndex

from workbench.gui.context.layer_results import LayerResults
from workbench.gui.panels.distributions.range_editor import statistics_of
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.channel_bars import ChannelBars
from workbench.gui.shell.widgets import button, combo, fitted, row, splitter
from workbench.gui.tables.fields import Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.insight.channels import FACTOR, brushed, by_channel, outliers
from workbench.insight.layer_facts import why_unseen
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.planning.plan import KEEP, Assignment
from workbench.session.session import TAPS
from workbench.session.workspace import State
from workbench.steps.layer.channel_errors import CHANNEL_ERRORS, ChannelErrors, ChannelErrorsOptions

FIELDS = (
    Number("Channel", lambda channel: channel.number),
    Number("Lowest", lambda channel: channel.low, tip="The channel's lowest value"),
    Number("Highest", lambda channel: channel.high, tip="The channel's highest value"),
    Number("× median", lambda channel: channel.times, lambda times: quantities.fixed(times, 1),
           tip="Largest magnitude over the median channel's; such channels force a scale on all others"),
    Number("Error", lambda channel: channel.error, quantities.share, unit="share",
           tip="Share of the layer's predicted loss that comes from rounding this channel's weights"),
)  # fmt: skip

OUTLIERS, BRUSHED = "Outliers", "In the region"
QUICK = "rtn"
"""How the names of the algorithms begin that round a layer by itself, at once."""

SCROLL_BAR, WIDEST = 24, 400
"""Pixels beside the columns of the table, and how wide it is at most by itself."""

MOST = 1000
"""Channels of a region that are listed."""


class ChannelsPanel(Panel):
    """The plot, the brush's figures, the list of outliers."""

    def _build(self) -> None:
        self.figure, self.brush = fitted(), fitted()
        self.plot = ChannelBars(self.colours)
        self.plot.brushed.connect(self._brushed)
        self.plot.settled.connect(self._settled)
        self.table = RecordsView("Outlier or brushed channels", FIELDS)
        self.table.setMinimumWidth(120)
        self.table.clicked.connect(self._go_to)
        self.table.activated.connect(self._go_to)
        parts = splitter(self.plot, self.table, sizes=(520, 240))
        parts.setStretchFactor(0, 3)
        self._build_controls()
        top = row(self.tap, self.figure, self.errors, self.listed, stretch=self.figure)
        self.column(top, parts, self.brush, stretch=parts, focus=(self.plot,))
        self._statistics: LayerStatistics | None = None
        self._errors: np.ndarray | None = None
        self._results: LayerResults[ChannelErrors] = LayerResults(
            self.context, lambda session, layer: CHANNEL_ERRORS.request(session, ChannelErrorsOptions(layer=layer)),
            lambda session: (session.model, session.curvature, session.plan.transforms, self._assignment),
            self._update_errors,
        )  # fmt: skip

    def _build_controls(self) -> None:
        self.tap = combo(
            "Tensor whose channels are shown", [(f"{tap.capitalize()}s", tap) for tap in TAPS], self._show,
            "Weights have a channel for each output, inputs and outputs one for each feature",
        )  # fmt: skip
        self.listed = combo(
            "Which channels are listed", (OUTLIERS, BRUSHED), self._list,
            "The outliers, or the channels in the region that is drawn in the plot",
        )  # fmt: skip
        self.errors = button(
            "Errors b&y Channel", lambda: self._results.request(self._layer, retry=True),
            "Round the layer by the plan and say which channels the predicted loss comes from",
        )  # fmt: skip

    def redraw(self, old: State, new: State) -> None:
        if new.session is None or not new.selection:
            self.say_empty("Select a layer to see its channels." if new.session else "Open a model first.")
        else:
            self._show()

    def _show(self) -> None:
        state = self.state
        if state.session is None or not state.selection:
            return
        tap, layer = self.tap.currentData(), self._layer
        statistics = statistics_of(state.session, layer, tap)
        self.say_empty("")
        if statistics is self._statistics and statistics is not None:
            self._update_errors()
            return
        self._statistics, self._errors = statistics, self._errors_of(layer, statistics)
        largest = outliers(statistics) if statistics is not None else ()
        if statistics is None:
            self.figure.setText(why_unseen(state.session, layer, tap))
            self.brush.clear()
        else:
            words = channels_in_words(layer, statistics, len(largest))
            self.figure.setText(f"{words} of at least {FACTOR:g} × the median")
        self.plot.show_channels(statistics, largest)
        self.listed.setCurrentIndex(0)
        self._list()

    def _list(self) -> None:
        """List the outliers or what is in the brush."""
        statistics = self._statistics
        if statistics is None:
            self.table.show_records(())
            return
        if self.listed.currentData() == OUTLIERS:
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
        elif self._results.is_pending(self._layer):
            error = ", … of the error"
        self.brush.setText(
            f"Channels {quantities.whole(first)} to {quantities.whole(last)}: "
            f"{quantities.number(low)} to {quantities.number(high)}, "
            f"{quantities.share(share)} of the channels' squared magnitudes{error}"
        )

    def _settled(self) -> None:
        """List what the user has brushed, and compute its errors where that is quick."""
        self.listed.setCurrentIndex(self.listed.findData(BRUSHED))
        self._list()
        if self._errors is None and self._is_quick():
            self._results.request(self._layer)
            self._brushed(*self.plot.chosen)

    def _go_to(self, index: QModelIndex) -> None:
        """Put the brush around the channel of a row, as long as the outliers are listed."""
        if self.listed.currentData() == OUTLIERS:
            number = self.table.records.record(index.row()).number
            self.plot.point_to(number, number)

    @property
    def _layer(self) -> str:
        selection = self.state.selection
        return selection[0] if selection else ""

    @property
    def _assignment(self) -> Assignment | None:
        """What the plan gives the layer."""
        return self.state.assignments.get(self._layer)

    def _is_quick(self) -> bool:
        """Return whether the plan rounds the layer by itself, so that its errors are computed unasked."""
        session, assignment = self.state.session, self._assignment
        if session is None or session.plan.transforms or assignment is None or assignment.weights == KEEP:
            return False
        return assignment.algorithm.startswith(QUICK)

    def _errors_of(self, layer: str, statistics: LayerStatistics | None) -> np.ndarray | None:
        """Return the share of the error of every channel that is shown; None where it is not known."""
        result = self._results.get(layer)
        if result is None or statistics is None:
            return None
        return by_channel(result.columns if self.tap.currentData() == "input" else result.rows, statistics.channels)

    def _update_errors(self) -> None:
        """Show the errors that have come; drop those of another plan, and compute them again where that is quick."""
        before, self._errors = self._errors, self._errors_of(self._layer, self._statistics)
        result = self._results.get(self._layer)
        if result is not None:
            how = "of the predicted loss" if result.weighed else "of the squared error (calibrate to weigh it)"
            self.errors.setToolTip(f"Shares {how} under {result.scheme}")
            if self._errors is None and self._statistics is not None:
                self.context.messages.say(
                    "Errors by channel", f"the columns of {result.layer} do not divide into channels", "warning"
                )
        elif before is not None and self._is_quick():
            self._results.request(self._layer)
        if (before is None) != (self._errors is None) and self.plot.region is not None:
            self._brushed(*self.plot.chosen)
            self._list()


def channels_in_words(layer: str, statistics: LayerStatistics, count: int) -> str:
    """Return how many channels and outliers a layer has."""
    channels = quantities.plural(statistics.channels, "channel")
    return f"{layer}: {channels}, {quantities.plural(count, 'outlier')}"
