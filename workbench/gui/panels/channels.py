"""The selected layer's channels: extremes as bars, outliers marked and listed, a brush to look closer."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QSizePolicy, QSplitter

from workbench.gui import quantities
from workbench.gui.channels import FACTOR, outliers
from workbench.gui.desk import Desk
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.channel_bars import ChannelBars
from workbench.gui.range_line import statistics_of
from workbench.gui.tables.records import Field, RecordsView
from workbench.gui.theme import Colours
from workbench.numerics.statistics import LayerStatistics
from workbench.runtime.workspace import State
from workbench.storage.session import TAPS

FIELDS = (
    Field(title="Channel", text=lambda one: f"{one.number:,}", numeric=True, key=lambda one: one.number),
    Field(title="Least", text=lambda one: quantities.number(one.low), numeric=True, key=lambda one: one.low),
    Field(title="Greatest", text=lambda one: quantities.number(one.high), numeric=True, key=lambda one: one.high),
    Field(title="× median", text=lambda one: f"{one.times:.1f}", numeric=True, key=lambda one: one.times,
          tip="Largest magnitude over the median channel's; such channels force a scale on all others"),
)  # fmt: skip


class ChannelsPanel(Panel):
    """The plot, the brush's figures, the list of outliers."""

    def __init__(self, desk: Desk, colours: Colours) -> None:
        super().__init__(desk, colours)
        self.tap = QComboBox()
        self.tap.setAccessibleName("Tensor whose channels are shown")
        self.tap.setToolTip("Weights have a channel for each output, inputs and outputs one for each feature")
        for tap in TAPS:
            self.tap.addItem(f"{tap.capitalize()}s", tap)
        self.tap.activated.connect(lambda _: self._show())
        self.figure, self.brush = QLabel(), QLabel()
        for label in (self.figure, self.brush):
            label.setProperty("role", "muted")
            label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.plot = ChannelBars(colours)
        self.plot.brushed.connect(self._brushed)
        self.table = RecordsView("Outlier channels", FIELDS)
        self.table.setMinimumWidth(120)
        top, splitter = QHBoxLayout(), QSplitter(Qt.Orientation.Horizontal)
        top.addWidget(self.tap)
        top.addWidget(self.figure, 1)
        splitter.addWidget(self.plot)
        splitter.addWidget(self.table)
        splitter.setStretchFactor(0, 3)
        splitter.setSizes([520, 240])
        layout = self.column()
        layout.addLayout(top)
        layout.addWidget(splitter, 1)
        layout.addWidget(self.brush)
        self._statistics: LayerStatistics | None = None
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
        state = self.desk.workspace.state
        if state.session is None or not state.selection:
            return
        tap, layer = self.tap.currentData(), state.selection[0]
        statistics = statistics_of(state.session, layer, tap)
        self.say_empty("")
        if statistics is self._statistics and statistics is not None:
            return
        self._statistics = statistics
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
        self.table.show_records(found)
        self.table.setVisible(bool(found))

    def _brushed(self, first: int, last: int) -> None:
        statistics = self._statistics
        if statistics is None:
            return
        part = slice(first, last + 1)
        low = float(statistics.channel_minimum[part].min())
        high = float(statistics.channel_maximum[part].max())
        share = float((statistics.channel_absmax[part].astype(float) ** 2).sum())
        whole = float((statistics.channel_absmax.astype(float) ** 2).sum())
        self.brush.setText(
            f"Channels {first:,} to {last:,}: {quantities.number(low)} to {quantities.number(high)}, "
            f"{quantities.share(share / whole if whole else 0.0)} of the channels' squared magnitudes"
        )
