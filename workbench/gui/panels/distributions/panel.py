"""Histograms of weights, inputs and outputs with ranges to drag and formats' values; of one layer or of many."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
from PySide6.QtWidgets import QCheckBox, QMenu, QStackedWidget, QToolButton, QWidget

from workbench.errors import WorkbenchError
from workbench.gui.context.layer_results import LayerResults
from workbench.gui.context.runner import show_dialog
from workbench.gui.context.turns import Turns
from workbench.gui.panels.distributions.range_editor import RangeEditor, range_of, statistics_of
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.histogram import Histogram, LinkedZoom
from workbench.gui.plots.multiples import Multiples
from workbench.gui.shell.widgets import choice, combo, fitted, named, open_menu, page, row, switch
from workbench.gui.shell.words import tr
from workbench.gui.tables.layer_rows import short_name
from workbench.insight import quantities
from workbench.insight.layer_facts import why_unseen
from workbench.models.kv_cache import makes_keys_or_values
from workbench.numerics.formats import parse_scheme
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.planning.plan import KEEP
from workbench.session.calibrated_ranges import ranges_at
from workbench.session.session import TAPS, Session
from workbench.session.workspace import State
from workbench.steps.layer.before_after import BEFORE_AFTER, BeforeAfter, BeforeAfterOptions

PLANNED = "as planned"
FORMATS = (PLANNED, "int3-tensor", "int4-tensor", "fp4-e2m1-channel", "nf4-b64", "fp6-e2m3-channel", "int8-tensor")
"""What can be drawn on the axis: the plan's own scheme, and formats to compare it with."""

SINGLE, OVERLAY, MANY, CACHE = "One layer", "Overlay", "Side by side", "Keys and values"
MAX_OVERLAID = 5
ROOM, ROOM_OF_NOTHING = {"weight": 4, "input": 6, "output": 4}, 3
"""Shares of the panel's width: a tensor that was not seen leaves its room to the others."""

TENSORS = {"weight": "Weights", "input": "Inputs", "output": "Outputs"}


class DistributionsPanel(Panel):
    """Three histograms side by side, or one picture for each selected layer, and the line about the range."""

    def _build(self) -> None:
        self.title = fitted(role="heading")
        self.plots = {tap: Histogram(f"Histogram of the {tap}s", self.colours, bottom=tap) for tap in TAPS}
        self.captions = {tap: fitted() for tap in TAPS}
        self.multiples = Multiples("Histograms of the selected layers", self.colours)
        self.multiples.chosen.connect(lambda layer: self.context.workspace.select((layer,)))
        self.line = RangeEditor(self.context)
        self.line.tap_chosen.connect(lambda _: self._show_many())
        self.low, self.high, self.figures = self.line.low, self.line.high, self.line.figures
        self.method = self.line.method
        self.after: LayerResults[BeforeAfter] = LayerResults(
            self.context, lambda session, layer: BEFORE_AFTER.request(session, BeforeAfterOptions(layer=layer)),
            lambda session: (session.plan, session.model, session.calibration), self._after_known, on_error=show_dialog,
        )  # fmt: skip
        self._layer = ""
        self._pages = QStackedWidget()
        self._pages.addWidget(self._plots_page())
        self._pages.addWidget(self.multiples)
        self._build_controls()
        top = row(self.title, *self._for_one_layer, self.view, self.log, stretch=self.title)
        self.column(top, self._pages, self.line, stretch=self._pages, focus=(self.plots["input"], self.multiples))
        self._link = LinkedZoom(tuple(self.plots.values()), self.linked.isChecked)

    def _plots_page(self) -> QWidget:
        self._frames: dict[str, QWidget] = {}
        self._turns = Turns(self)
        plots, self._line = QWidget(), row()
        for tap, plot in self.plots.items():
            frame = self._frames[tap] = page(self.captions[tap], plot, stretch=plot, top=0, gap=1)
            self._line.addWidget(frame, ROOM[tap])
            plot.on_resized = partial(self._turns.add_missing, tap, plot.redraw)
            plot.region_moved.connect(partial(self.line.follow, tap))
            plot.region_set.connect(partial(self.line.set_dragged, tap))
        plots.setLayout(self._line)
        return plots

    def _build_controls(self) -> None:
        self.view = combo(
            "How many layers are shown", (SINGLE, OVERLAY, MANY, CACHE), self._show_many,
            "One layer, the selected layers laid over each other, a picture for each of them, or what a key-value "
            "cache would hold: the outputs of all layers that make keys and values",
        )  # fmt: skip
        tip = "Counts on a logarithmic scale, so that the tails can be seen"
        self.log = switch(QCheckBox(), "&Log", self._show_log, tip, on=True)
        for plot in self.plots.values():
            plot.on_log = self.log.setChecked
        self.multiples.on_log = self.log.setChecked
        self.compared = switch(
            QToolButton(), "&Before/After", lambda _: self._show_many(),
            "Lay over the weights what the plan makes of them (rounded, transformed), and over the inputs what its "
            "transforms make of them",
        )  # fmt: skip
        tip = "Zoom and pan all three plots together, in parts of each one's own width"
        self.linked = switch(QToolButton(), "Lin&k", None, tip)
        self.formats, formats = self._menu_button(
            "Formats", "Whose representable values stand below the axis, spread over the range"
        )
        for name in FORMATS:
            choice(self.formats, name, lambda _: self._show_grids(), on=name == PLANNED)
        self.tensors, tensors = self._menu_button(
            "Tensors", "Which histograms are shown: of the weights, the inputs, the outputs"
        )
        for tap in TAPS:
            choice(self.tensors, f"&{TENSORS[tap]}", self._frames[tap].setVisible, on=True)
        self._for_one_layer = (tensors, self.compared, formats, self.linked)

    def _menu_button(self, text: str, tip: str) -> tuple[QMenu, QToolButton]:
        menu, button = QMenu(self), named(QToolButton(), text, tip)
        button.setText(tr(text))
        open_menu(button, menu)
        return menu, button

    def redraw(self, old: State, new: State) -> None:
        """Draw what differs: another layer, statistics, ranges, or the input's scheme."""
        layer = new.selection[0] if new.selection else ""
        session = new.session
        if session is None or not layer:
            self.say_empty("Select a layer to see its distributions." if session else "Open a model first.")
            self._layer = ""
            return
        self.say_empty("")
        self._share_room(session, layer)
        if layer != self._layer or old.session is None:
            for tap in TAPS:
                self._draw_tap(session, layer, tap)
        else:
            changed = [tap for tap in TAPS if _taps(old.session, layer, tap) != _taps(session, layer, tap)]
            for tap in changed:
                self._turns.add(tap, partial(self._update_tap, tap))
        self._layer = layer
        self.line.show_state(new)
        self._show_many()
        self._show_grids()

    def _update_tap(self, tap: str) -> None:
        """Draw a tensor of which a job has computed more."""
        session = self.state.session
        if session is not None and self._layer and self._layer in self.state.selection[:1]:
            self._draw_tap(session, self._layer, tap)

    def _draw_tap(self, session: Session, layer: str, tap: str) -> None:
        statistics = statistics_of(session, layer, tap)
        ranges = {}
        if tap == "input":  # the methods' lines; for tensors that no range is chosen for they would be in the way
            ranges = ranges_at(session.ranges, layer, tap)
        active, grids = range_of(session, layer, tap), self._grids(session, layer, tap)
        reason = "" if statistics is not None else why_unseen(session, layer, tap)
        self.plots[tap].show_statistics(
            statistics, ranges, active, movable=active is not None, grids=grids, reason=reason
        )
        self.captions[tap].setText(tensor_in_words(tap, statistics))

    def _share_room(self, session: Session, layer: str) -> None:
        """Divide the width, for all tensors at once: each change resizes all plots."""
        for tap, frame in self._frames.items():
            known = statistics_of(session, layer, tap) is not None
            self._line.setStretchFactor(frame, ROOM[tap] if known else ROOM_OF_NOTHING)

    def _show_many(self) -> None:
        """Show the other selected layers beside or over the first one."""
        state = self.state
        session, view = state.session, self.view.currentData()
        if session is None or not state.selection:
            return
        many = view in (MANY, CACHE)
        self._pages.setCurrentIndex(1 if many else 0)
        for widget in self._for_one_layer:
            widget.setVisible(not many)
        self.line.setVisible(view != CACHE)
        names, tap = (cached_layers(session), "output") if view == CACHE else (state.selection, self.line.tap)
        entries = _observed((name, statistics_of(session, name, tap)) for name in (names if many else ()))
        if many:
            self.multiples.show_entries(entries, [_short(session, name) for name, _ in entries])
        self._say_what(session, state.selection, [name for name, _ in entries])
        for tap, plot in self.plots.items():
            others = state.selection[1 : MAX_OVERLAID + 1] if view == OVERLAY else ()
            over = _observed((_short(session, name), statistics_of(session, name, tap)) for name in others)
            over += _observed(self._afterwards(tap))
            own = _short(session, state.selection[0]) if others else f"{tap}s as they are"
            plot.show_others([(name, statistics) for name, statistics in over if statistics.count], own)

    def _say_what(self, session: Session, selection: tuple[str, ...], many: list[str]) -> None:
        """Write the heading: the layer, or exactly what the small pictures show."""
        view, layer = self.view.currentData(), selection[0]
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
            title = f"{self.line.tap.capitalize()}s of {quantities.plural(len(many), 'layer')}"
            self.title.setText(title)
            self.title.setToolTip(", ".join(many[:40]))
            return
        more = f"  (and {len(selection) - 1} more)" if len(selection) > 1 else ""
        self.title.setText(f"{_short(session, layer)}{more}")
        self.title.setToolTip(f"{layer}{more}")

    def _afterwards(self, tap: str) -> list[tuple[str, LayerStatistics | None]]:
        """Return what the plan makes of the first layer's tensor, if the user asked; has it computed if need be."""
        if not self.compared.isChecked() or not self._layer:
            return []
        after = self.after.get(self._layer)
        if after is None:
            self.after.request(self._layer)
            return []
        transformed = f"after {', '.join(after.transforms)}"
        if tap == "input":
            return [(transformed, after.inputs)]
        return [(transformed, after.transformed), (after.scheme, after.rounded)] if tap == "weight" else []

    def _after_known(self) -> None:
        if self.is_seen:
            self._show_many()

    def _show_grids(self) -> None:
        session = self.state.session
        if session is None or not self._layer:
            return
        for tap in ("weight", "input"):
            self.plots[tap].show_grids(self._grids(session, self._layer, tap))

    def _grids(self, session: Session, layer: str, tap: str) -> dict[str, np.ndarray]:
        """Return the values of every chosen format in the active range of a tensor; none for outputs."""
        active = range_of(session, layer, tap)
        if active is None or tap == "output":
            return {}
        names = (name for name, each in zip(FORMATS, self.formats.actions(), strict=True) if each.isChecked())
        schemes = filter(None, (self._planned(layer, tap) if name == PLANNED else name for name in names))
        grids = {scheme: _grid(scheme, active.low, active.high) for scheme in schemes}
        return {scheme: grid for scheme, grid in grids.items() if grid is not None}

    def _planned(self, layer: str, tap: str) -> str:
        assignment = self.state.assignments.get(layer)
        if assignment is None:
            return ""
        if tap == "weight":
            return "" if assignment.weights == KEEP else assignment.weights
        return (assignment.inputs or "").replace("-token", "-tensor")

    def _show_log(self, log: bool) -> None:
        for plot in self.plots.values():
            plot.show_log(log)
        self.multiples.show_log(log)


def _observed(entries: Iterable[tuple[str, LayerStatistics | None]]) -> list[tuple[str, LayerStatistics]]:
    """Return the tensors that have statistics."""
    return [(name, statistics) for name, statistics in entries if statistics is not None]


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
    within = short_name(layer)  # a layer that is a block of its own has its whole name already
    return f"{layer.block.rsplit('.', 1)[-1]}.{within}" if within != layer.name else within


def _taps(session: Session, layer: str, tap: str) -> tuple[object, ...]:
    """Return what a tap's plot shows, to compare by identity."""
    return (id(session.statistics.get((layer, tap))), id(session.ranges), range_of(session, layer, tap))


def tensor_in_words(tap: str, statistics: LayerStatistics | None) -> str:
    """Return the spread of a tensor's values in a sentence."""
    if statistics is None or not statistics.count:
        return tr(TENSORS[tap])
    bad = tr(", {:,} not finite").format(statistics.non_finite) if statistics.non_finite else ""
    low, high = quantities.number(statistics.minimum), quantities.number(statistics.maximum)
    spread = quantities.number(statistics.variance**0.5, 2)
    return tr("{} {} to {}, σ {}").format(tr(TENSORS[tap]), low, high, spread) + bad
