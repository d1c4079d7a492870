"""Histograms of weights, inputs and outputs with ranges to drag and formats' values; of one layer or of many."""

from __future__ import annotations

from functools import partial

import numpy as np
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QMenu,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from workbench.errors import WorkbenchError
from workbench.gui.context.context import Context
from workbench.gui.context.layer_results import LayerResults
from workbench.gui.context.runner import show_dialog
from workbench.gui.panels.distributions.range_editor import RangeLine, range_of, statistics_of
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.histogram import Histogram
from workbench.gui.plots.linked_zoom import LinkedZoom
from workbench.gui.plots.multiples import Multiples
from workbench.gui.shell.fitted_label import FittedLabel
from workbench.gui.shell.theme import Colours
from workbench.gui.tables.layer_rows import short_name
from workbench.insight import quantities
from workbench.models.kv_cache import makes_keys_or_values
from workbench.numerics.formats import parse_scheme
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.planning.plan import KEEP
from workbench.session.session import TAPS, Session
from workbench.session.workspace import State
from workbench.steps.layer.before_after import BEFORE_AFTER, BeforeAfter, BeforeAfterOptions

PLANNED = "as planned"
FORMATS = (PLANNED, "int3-tensor", "int4-tensor", "fp4-e2m1-channel", "nf4-b64", "fp6-e2m3-channel", "int8-tensor")
"""What can be drawn on the axis: the plan's own scheme, and formats to compare it with."""

ONE, OVERLAY, MANY, CACHE = "One layer", "Overlay", "Side by side", "Keys and values"
MAX_OVERLAID = 5
APART_MS = 12
"""What a job has found is drawn tensor by tensor so far apart, that each fits into one frame."""


class DistributionsPanel(Panel):
    """Three histograms side by side, or one picture for each selected layer, and the line about the range."""

    def __init__(self, context: Context, colours: Colours) -> None:
        super().__init__(context, colours)
        self.title = FittedLabel()
        self.title.setProperty("role", "heading")
        self.plots = {
            tap: Histogram(f"Histogram of the {tap}s", colours, bottom=tap) for tap in ("weight", "input", "output")
        }
        self.multiples = Multiples("Histograms of the selected layers", colours)
        self.multiples.chosen.connect(lambda layer: context.workspace.select((layer,)))
        self._frames: dict[str, QWidget] = {}
        self.captions = {tap: FittedLabel() for tap in TAPS}
        self.line = RangeLine(context)
        self.after: LayerResults[BeforeAfter] = LayerResults(
            context, lambda session, layer: BEFORE_AFTER.request(session, BeforeAfterOptions(layer=layer)),
            lambda session: (session.plan, session.model, session.calibration), self._after_known, on_error=show_dialog,
        )  # fmt: skip
        self.low, self.high, self.figures, self.method = (
            self.line.low, self.line.high, self.line.figures, self.line.method,
        )  # fmt: skip
        self._pages = QStackedWidget()
        plots = QWidget()
        middle = QHBoxLayout(plots)
        middle.setContentsMargins(0, 0, 0, 0)
        for tap, plot in self.plots.items():
            middle.addWidget(self._framed(tap, plot), 3 if tap == "input" else 2)
            plot.region_moved.connect(partial(self.line.follow, tap))
            plot.region_set.connect(partial(self.line.set_dragged, tap))
        self._pages.addWidget(plots)
        self._pages.addWidget(self.multiples)
        layout = self.column()
        layout.addLayout(self._top_line())
        layout.addWidget(self._pages, 1)
        layout.addWidget(self.line)
        self._layer = ""
        self.line.tap_chosen.connect(lambda _: self._show_many())
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
        if layer != self._layer or old.session is None:
            for tap in TAPS:
                self._draw_tap(session, layer, tap)
        else:
            changed = [tap for tap in TAPS if _taps(old.session, layer, tap) != _taps(session, layer, tap)]
            for place, tap in enumerate(changed):
                QTimer.singleShot(APART_MS * place, self, partial(self._draw_anew, tap))
        self._layer = layer
        self.line.show_state(new)
        self._show_many()
        self._show_grids()

    def _draw_anew(self, tap: str) -> None:
        """Draw a tensor that a job has found more about."""
        state = self.state
        if state.session is not None and self._layer and self._layer in state.selection[:1]:
            self._draw_tap(state.session, self._layer, tap)

    def recolour(self, colours: Colours) -> None:
        """Redraw in other colours."""
        super().recolour(colours)
        for plot in self.plots.values():
            plot.recolour(colours)
        self.multiples.recolour(colours)

    # ---------------------------------------------------------------- building

    def _top_line(self) -> QHBoxLayout:
        top = QHBoxLayout()
        top.addWidget(self.title, 1)
        self.view = QComboBox()
        self.view.addItems([ONE, OVERLAY, MANY, CACHE])
        self.view.setAccessibleName("How many layers are shown")
        self.view.setToolTip(
            "One layer, the selected layers laid over each other, a picture for each of them, or what a key-value "
            "cache would hold: the outputs of all layers that make keys and values"
        )
        self.view.activated.connect(lambda _: self._show_many())
        self.log = QCheckBox("&Log")
        self.log.setChecked(True)
        self.log.setToolTip("Counts on a logarithmic scale, so that the tails can be seen")
        self.log.toggled.connect(self._log_toggled)
        self.compared = QToolButton()
        self.compared.setText("&Before/After")
        self.compared.setCheckable(True)
        self.compared.setToolTip(
            "Lay over the weights what the plan makes of them (rounded, transformed), and over the inputs what its "
            "transforms make of them"
        )
        self.compared.toggled.connect(lambda _: self._show_many())
        self.linked = QToolButton()
        self.linked.setText("Lin&k")
        self.linked.setCheckable(True)
        self.linked.setToolTip("Zoom and pan all three plots together, in parts of each one's own width")
        tensors, formats = self._tensors_button(), self._formats_button()
        self._of_one = (tensors, self.compared, formats, self.linked)
        for widget in (tensors, self.compared, formats, self.linked, self.view, self.log):
            top.addWidget(widget)
        self._link = LinkedZoom(tuple(self.plots.values()), self.linked.isChecked)
        return top

    def _formats_button(self) -> QToolButton:
        self.formats = QMenu(self)
        for name in FORMATS:
            action = self.formats.addAction(name)
            action.setCheckable(True)
            action.setChecked(name == PLANNED)
            action.toggled.connect(lambda _: self._show_grids())
        button = QToolButton()
        button.setText("Formats")
        button.setMenu(self.formats)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        button.setToolTip("Whose representable values stand below the axis, spread over the range")
        return button

    def _tensors_button(self) -> QToolButton:
        self.tensors = QMenu(self)
        for tap in TAPS:
            action = self.tensors.addAction(f"&{tap.capitalize()}s")
            action.setCheckable(True)
            action.setChecked(True)
            action.toggled.connect(lambda shown, tap=tap: self._frames[tap].setVisible(shown))
        button = QToolButton()
        button.setText("Tensors")
        button.setMenu(self.tensors)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        button.setToolTip("Which histograms are shown: of the weights, the inputs, the outputs")
        return button

    def _framed(self, tap: str, plot: Histogram) -> QWidget:
        frame, caption = QWidget(), self.captions[tap]
        caption.setProperty("role", "muted")
        column = QVBoxLayout(frame)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(1)
        column.addWidget(caption)
        column.addWidget(plot, 1)
        self._frames[tap] = frame
        return frame

    # ---------------------------------------------------------------- drawing

    def _draw_tap(self, session: Session, layer: str, tap: str) -> None:
        statistics = statistics_of(session, layer, tap)
        ranges = {}
        if tap == "input":  # the methods' lines; for tensors that no range is chosen for they would be in the way
            ranges = {key[2]: session.ranges[key] for key in session.ranges if key[:2] == (layer, tap)}
        active = range_of(session, layer, tap)
        self.plots[tap].show_statistics(statistics, ranges, active, movable=active is not None)
        self.captions[tap].setText(tensor_in_words(tap, statistics))

    def _show_many(self) -> None:
        """Show the other selected layers beside or over the first one."""
        state = self.state
        session, view = state.session, self.view.currentText()
        if session is None or not state.selection:
            return
        many = view in (MANY, CACHE)
        self._pages.setCurrentIndex(1 if many else 0)
        for widget in self._of_one:
            widget.setVisible(not many)
        self.line.setVisible(view != CACHE)
        names, tap = (cached_layers(session), "output") if view == CACHE else (state.selection, self.line.tap)
        known = ((name, statistics_of(session, name, tap)) for name in (names if many else ()))
        found = [(name, one) for name, one in known if one is not None]
        if many:
            self.multiples.show_entries(found, [_short(session, name) for name, _ in found])
        self._say_what(session, state.selection, [name for name, _ in found])
        for tap, plot in self.plots.items():
            others = state.selection[1 : MAX_OVERLAID + 1] if view == OVERLAY else ()
            held = [(_short(session, name), statistics_of(session, name, tap)) for name in others]
            held += self._afterwards(tap)
            plot.show_others([(name, one) for name, one in held if one is not None and one.count])

    def _say_what(self, session: Session, selection: tuple[str, ...], many: list[str]) -> None:
        """Write the heading: the layer, or exactly what the small pictures show."""
        view, layer = self.view.currentText(), selection[0]
        if view == CACHE:
            kinds = ", ".join(sorted({name.rsplit(".", 1)[-1] for name in many}))
            layers = quantities.plural(len(many), "layer")
            self.title.say(
                f"Outputs of {layers} ({kinds}): keys before their rotation by position, and values",
                f"Outputs of {layers}: keys before rotation, and values", f"Outputs of {layers}",
            )  # fmt: skip
            self.title.setToolTip(
                "What a key-value cache would be filled with, taken where the layers that make keys and values (found "
                "by their names) give it out. Where a model rotates keys by their position, that happens after this"
            )
            return
        if view == MANY:
            self.title.setText(f"{self.line.tap.capitalize()}s of {quantities.plural(len(many), 'layer')}")
            self.title.setToolTip(", ".join(many[:40]))
            return
        more = f"  (and {len(selection) - 1} more)" if len(selection) > 1 else ""
        self.title.setText(f"{_short(session, layer)}{more}")
        self.title.setToolTip(f"{layer}{more}")

    def _afterwards(self, tap: str) -> list[tuple[str, LayerStatistics | None]]:
        """Return what the plan makes of the first layer's tensor, while that is wanted; asks for what is not known."""
        if not self.compared.isChecked() or not self._layer:
            return []
        found = self.after.get(self._layer)
        if found is None:
            self.after.request(self._layer)
            return []
        if tap == "input":
            return [(f"after {', '.join(found.transforms)}", found.inputs)]
        if tap == "weight":
            return [(f"after {', '.join(found.transforms)}", found.transformed), (found.scheme, found.rounded)]
        return []

    def show_after(self, found: BeforeAfter) -> None:
        """Lay what the plan makes of a layer over it."""
        self.after.store(found.layer, found)
        self.compared.setChecked(True)
        self._show_many()

    def _after_known(self) -> None:
        if self.is_seen:
            self._show_many()

    def _show_grids(self) -> None:
        session = self.state.session
        if session is None or not self._layer:
            return
        wanted = [action.text() for action in self.formats.actions() if action.isChecked()]
        for tap in ("weight", "input"):
            active = range_of(session, self._layer, tap)
            grids: dict[str, np.ndarray] = {}
            for name in wanted if active is not None else ():
                scheme = self._planned(tap) if name == PLANNED else name
                if scheme and active is not None:
                    values = _grid(scheme, active.low, active.high)
                    if values is not None:
                        grids[scheme] = values
            self.plots[tap].show_grids(grids)

    def _planned(self, tap: str) -> str:
        held = self.state.assignments.get(self._layer)
        if held is None:
            return ""
        if tap == "weight":
            return "" if held.weights == KEEP else held.weights
        return (held.inputs or "").replace("-token", "-tensor")

    def _log_toggled(self, log: bool) -> None:
        for plot in self.plots.values():
            plot.show_log(log)
        self.multiples.show_log(log)


def _grid(scheme: str, low: float, high: float) -> np.ndarray | None:
    try:
        return np.asarray(parse_scheme(scheme).grid(low, high))
    except WorkbenchError:
        return None


def cached_layers(session: Session) -> tuple[str, ...]:
    """Return the layers whose outputs are keys or values, by their names, in the model's order."""
    return tuple(layer.name for layer in session.model.layers if makes_keys_or_values(layer))


def _short(session: Session, name: str) -> str:
    layer = session.model.by_name[name]
    block = layer.block.rsplit(".", 1)[-1]
    return f"{block}.{short_name(layer)}" if block else short_name(layer)


def _taps(session: Session, layer: str, tap: str) -> tuple[object, ...]:
    """Return what a tap's plot shows, to compare by identity."""
    return (id(session.statistics.get((layer, tap))), id(session.ranges), range_of(session, layer, tap))


def tensor_in_words(tap: str, statistics: LayerStatistics | None) -> str:
    """Return the spread of a tensor's values in a sentence."""
    if statistics is None or not statistics.count:
        return f"{tap.capitalize()}s: nothing observed yet"
    bad = f", {statistics.non_finite:,} not finite" if statistics.non_finite else ""
    spread = f"{quantities.number(statistics.minimum)} to {quantities.number(statistics.maximum)}"
    return f"{tap.capitalize()}s {spread}, σ {quantities.number(statistics.variance**0.5, 2)}{bad}"
