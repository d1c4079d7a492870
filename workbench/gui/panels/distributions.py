"""The selected layer's histograms of weights, inputs and outputs with calibrated ranges; the input's can be dragged."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from workbench.errors import WorkbenchError
from workbench.gui import quantities
from workbench.gui.desk import Desk
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.histogram import METHOD_LABELS, Histogram
from workbench.gui.theme import Colours
from workbench.numerics.formats import parse_scheme
from workbench.numerics.range_error import RangeQuality, histogram_error
from workbench.numerics.ranges import Range
from workbench.runtime.workspace import State
from workbench.storage.session import TAPS, Session

DEFAULT_INPUT_SCHEME = "int8-tensor"
"""The scheme that a range is judged by while the plan keeps the layer's inputs in floating point."""


class DistributionsPanel(Panel):
    """Three histograms side by side and one line about the input range."""

    def __init__(self, desk: Desk, colours: Colours) -> None:
        super().__init__(desk, colours)
        self.title = QLabel()
        self.title.setProperty("role", "heading")
        self.title.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.plots = {
            "weight": Histogram("Histogram of the weights", colours, bottom="weight"),
            "input": Histogram("Histogram of the inputs", colours, bottom="input"),
            "output": Histogram("Histogram of the outputs", colours, bottom="output"),
        }
        self.log = QCheckBox("&Log counts")
        self.log.setChecked(True)
        self.log.setToolTip("Counts on a logarithmic scale, so that the tails can be seen")
        self._frames: dict[str, QWidget] = {}
        self.toggles = {tap: self._toggle(tap) for tap in TAPS}
        top, middle = QHBoxLayout(), QHBoxLayout()
        top.addWidget(self.title, 1)
        for toggle in self.toggles.values():
            top.addWidget(toggle)
        top.addWidget(self.log)
        self.captions = {tap: QLabel() for tap in TAPS}
        for tap, plot in self.plots.items():
            middle.addWidget(self._framed(tap, plot), 3 if tap == "input" else 2)
        layout = self.column()
        layout.addLayout(top)
        layout.addLayout(middle, 1)
        layout.addLayout(self._range_line())
        self._layer = ""
        self.log.toggled.connect(self._log_toggled)
        self.plots["input"].region_moved.connect(self._moved)
        self.plots["input"].region_set.connect(self._set)
        self.setFocusProxy(self.plots["input"])

    def redraw(self, old: State, new: State) -> None:
        """Draw what differs: another layer, statistics, ranges, or the input's scheme."""
        layer = new.selection[0] if new.selection else ""
        session = new.session
        if session is None or not layer:
            self.say_empty("Select a layer to see its distributions." if session else "Open a model first.")
            self._layer = ""
            return
        self.say_empty("")
        for tap in TAPS:
            if (
                layer != self._layer
                or old.session is None
                or _taps(old.session, layer, tap) != _taps(session, layer, tap)
            ):
                self._draw_tap(session, layer, tap)
        self._layer = layer
        more = f"  (and {len(new.selection) - 1} more)" if len(new.selection) > 1 else ""
        self.title.setText(f"{layer}{more}")
        self._show_range(session, layer)

    def recolour(self, colours: Colours) -> None:
        """Redraw in other colours."""
        super().recolour(colours)
        for plot in self.plots.values():
            plot.recolour(colours)

    # ---------------------------------------------------------------- building

    def _toggle(self, tap: str) -> QToolButton:
        button = QToolButton()
        button.setText(f"{tap.capitalize()}s")
        button.setCheckable(True)
        button.setChecked(True)
        button.setToolTip(f"Show or hide the histogram of the {tap}s")
        button.toggled.connect(lambda shown: self._frames[tap].setVisible(shown))
        return button

    def _framed(self, tap: str, plot: Histogram) -> QWidget:
        frame, caption = QWidget(), self.captions[tap]
        caption.setProperty("role", "muted")
        caption.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        column = QVBoxLayout(frame)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(1)
        column.addWidget(caption)
        column.addWidget(plot, 1)
        self._frames[tap] = frame
        return frame

    def _range_line(self) -> QHBoxLayout:
        line = QHBoxLayout()
        self.method = QComboBox()
        self.method.setAccessibleName("Range method of the input")
        self.method.setToolTip("Which calibrated range of the input is in force")
        self.method.setMinimumWidth(104)
        self.method.activated.connect(self._method_chosen)
        self.low, self.high = self._bound("Lowest input that is represented"), self._bound("Highest input")
        self.figures = QLabel()
        self.figures.setAccessibleName("Quality of the input range")
        self.figures.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.caption = QLabel("Input range")
        for widget in (self.caption, self.method, self.low, QLabel("to"), self.high):
            line.addWidget(widget)
        line.addWidget(self.figures, 1)
        return line

    def _bound(self, name: str) -> QLineEdit:
        edit = QLineEdit()
        edit.setFixedWidth(84)
        edit.setAccessibleName(name)
        edit.setToolTip(f"{name}; drag the lines in the plot, or type a number and press Enter")
        edit.setAlignment(Qt.AlignmentFlag.AlignRight)
        edit.editingFinished.connect(self._typed)
        return edit

    # ---------------------------------------------------------------- drawing

    def _draw_tap(self, session: Session, layer: str, tap: str) -> None:
        owner = session.model.by_name[layer].tied_to or layer
        statistics = session.statistics.get((layer, tap))
        if statistics is None and tap == "weight":
            statistics = session.statistics.get((owner, tap))
        ranges = {key[2]: value for key, value in session.ranges.items() if key[:2] == (layer, tap)}
        active = session.active_ranges.get((layer, tap))
        plot = self.plots[tap]
        plot.show_statistics(statistics, ranges, active, movable=tap == "input")
        self.captions[tap].setText(_caption(tap, statistics))
        self.captions[tap].setToolTip(_caption(tap, statistics))

    def _show_range(self, session: Session, layer: str) -> None:
        active = session.active_ranges.get((layer, "input"))
        methods = sorted(key[2] for key in session.ranges if key[:2] == (layer, "input"))
        self.method.clear()
        for method in methods:
            self.method.addItem(METHOD_LABELS.get(method, method), method)
        if active is not None and active.method not in methods:
            self.method.addItem(active.method, active.method)
        for widget in (self.method, self.low, self.high):
            widget.setEnabled(active is not None)
        if active is None:
            self.low.clear()
            self.high.clear()
            done = session.calibration is not None
            self.figures.setText(
                "No input of this layer was observed" if done else "Calibrate (F5) to see inputs, outputs and ranges"
            )
            return
        self.method.setCurrentIndex(self.method.findData(active.method))
        self._show_numbers(active.low, active.high)

    def _show_numbers(self, low: float, high: float) -> None:
        self.low.setText(f"{low:.5g}")
        self.high.setText(f"{high:.5g}")
        scheme = self._scheme()
        quality = self._quality(low, high)
        if quality is None:
            self.figures.setText("")
            return
        self.figures.setText(
            f"clips {quantities.share(quality.clipped)} · SQNR {quantities.number(quality.sqnr_db)} dB as {scheme}"
        )
        self.figures.setToolTip(
            "Share of the inputs outside the range, and the ratio of signal to quantization noise; higher is better"
        )

    def _scheme(self) -> str:
        held = self.desk.workspace.state.assignments.get(self._layer)
        wanted = held.inputs if held and held.inputs else DEFAULT_INPUT_SCHEME
        return wanted.replace("-token", "-tensor")

    def _quality(self, low: float, high: float) -> RangeQuality | None:
        session = self.desk.workspace.state.session
        statistics = session.statistics.get((self._layer, "input")) if session else None
        if statistics is None:
            return None
        try:
            return histogram_error(statistics, parse_scheme(self._scheme()), low, high)
        except WorkbenchError:
            return None

    # ---------------------------------------------------------------- what a person does

    def _log_toggled(self, log: bool) -> None:
        for plot in self.plots.values():
            plot.show_log(log)

    def _moved(self, low: float, high: float) -> None:
        self._show_numbers(min(low, 0.0), max(high, 0.0))

    def _set(self, low: float, high: float) -> None:
        self._take(min(low, 0.0), max(high, 0.0), "manual")

    def _typed(self) -> None:
        session = self.desk.workspace.state.session
        active = session.active_ranges.get((self._layer, "input")) if session else None
        if active is None:
            return
        try:
            low, high = float(self.low.text()), float(self.high.text())
        except ValueError:
            self._refuse("type a number", active)
            return
        if (f"{low:.5g}", f"{high:.5g}") == (f"{active.low:.5g}", f"{active.high:.5g}"):
            return
        if not low <= 0.0 <= high or low == high or not abs(low) + abs(high) < 1e30:
            self._refuse("the range must hold zero and not be empty", active)
            return
        self._take(low, high, "manual")

    def _refuse(self, why: str, active: Range) -> None:
        self._show_numbers(active.low, active.high)
        self.figures.setText(f"Not taken: {why}")

    def _method_chosen(self) -> None:
        session = self.desk.workspace.state.session
        found = session.ranges.get((self._layer, "input", self.method.currentData())) if session else None
        if found is not None:
            self.desk.set_range(self._layer, "input", found)

    def _take(self, low: float, high: float, method: str) -> None:
        quality = self._quality(low, high)
        new = Range(low=low, high=high, method=method, clipped=quality.clipped if quality else 0.0)
        self.desk.set_range(self._layer, "input", new)


def _taps(session: Session, layer: str, tap: str) -> tuple[object, ...]:
    """Return what a tap's plot shows, to compare by identity."""
    return (id(session.statistics.get((layer, tap))), id(session.ranges), session.active_ranges.get((layer, tap)))


def _caption(tap: str, statistics: object) -> str:
    from workbench.numerics.statistics import LayerStatistics

    if not isinstance(statistics, LayerStatistics) or not statistics.count:
        return f"{tap.capitalize()}s: nothing observed yet"
    bad = f", {statistics.non_finite:,} not finite" if statistics.non_finite else ""
    spread = f"{quantities.number(statistics.minimum)} to {quantities.number(statistics.maximum)}"
    return f"{tap.capitalize()}s {spread}, σ {quantities.number(statistics.variance**0.5, 2)}{bad}"
