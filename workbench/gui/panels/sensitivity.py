"""Layer x scheme scores as a heatmap: hover tells, click assigns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QPushButton

from workbench.gui import check_commands, quantities, schemes
from workbench.gui.changes import Assignments, changed_layers
from workbench.gui.desk import Desk
from workbench.gui.fitted_label import FittedLabel
from workbench.gui.options import METRIC_SHORT, METRIC_TITLES
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.cells import Cells, colour_scale
from workbench.gui.plots.colour_bar import ColourBar
from workbench.gui.plots.heatmap import Heatmap
from workbench.gui.theme import Colours
from workbench.planning.sensitivity import METRICS, Sensitivity
from workbench.planning.totals import layer_bits
from workbench.runtime.workspace import State

BY_DEPTH, BY_LOSS = "By depth", "By loss"

HISTOGRAMS_MS = 30
"""How long after a click the layer is selected: totals and colours are painted first, its histograms then."""

REFINE_TIP = "Measure the loss in nats where the predicted losses leave the scheme open (Ctrl+F6)"

NO_TABLE = (
    "No scores yet.\n\nCalibrate (F5), then compute the sensitivity (F6) to see what every scheme would cost every "
    "layer.\nWeight error needs no calibration."
)


class SensitivityPanel(Panel):
    """Shows the table of the chosen metric, or the partial one of a running job."""

    def __init__(self, desk: Desk, colours: Colours) -> None:
        super().__init__(desk, colours)
        self.metric_box = QComboBox()
        self.metric_box.setAccessibleName("Sensitivity metric")
        self.metric_box.setToolTip("Which scores are shown, summed and searched with; higher is worse, always")
        for name, unit in METRICS.items():
            self.metric_box.addItem(f"{METRIC_TITLES.get(name, name)} ({unit})", name)
        self.metric_box.activated.connect(lambda _: desk.workspace.show_metric(self.metric_box.currentData()))
        self.figure = FittedLabel()
        self.figure.setProperty("role", "muted")
        self.heatmap = Heatmap(colours)
        self.bar = ColourBar(colours)
        top, middle = QHBoxLayout(), QHBoxLayout()
        self.order_box = QComboBox()
        self.order_box.setAccessibleName("Order of the layers")
        self.order_box.setToolTip("In the order of the network, or those that suffer most first")
        self.order_box.addItems([BY_DEPTH, BY_LOSS])
        self.order_box.activated.connect(lambda _: self._show(self._partial or self._given, desk.workspace.state))
        top.addWidget(self.metric_box)
        self.refine = QPushButton("&Refine…")
        self.refine.setAccessibleName("Refine close decisions")
        self.refine.clicked.connect(lambda: desk.act("refine"))
        top.addWidget(self.order_box)
        top.addWidget(self.refine)
        top.addWidget(self.figure, 1)
        middle.addWidget(self.heatmap, 1)
        middle.addWidget(self.bar)
        layout = self.column()
        layout.addLayout(top)
        layout.addLayout(middle, 1)
        self._given: Sensitivity | None = None
        self._arranged: tuple[Sensitivity, str, Sensitivity] | None = None
        self._table: Sensitivity | None = None
        self._partial: Sensitivity | None = None
        self._chosen: tuple[Sensitivity | None, Assignments, np.ndarray] = (None, {}, np.zeros(0, np.int64))
        self.heatmap.hovered.connect(self._hover)
        self.heatmap.clicked.connect(self._click)
        self.heatmap.row_selected.connect(self._select)
        self.heatmap.painted.connect(self._paint)
        self.heatmap.lock_wanted.connect(self._lock)
        self._painted: dict[str, str] = {}
        self._drag_edits = False
        self.setFocusProxy(self.heatmap)

    def redraw(self, old: State, new: State) -> None:
        """Show the table of the state's metric with the plan's choices."""
        if new.session is None:
            self._table = self._partial = None
            self.say_empty("Open a model to score its layers.")
            return
        self.metric_box.setCurrentIndex(self.metric_box.findData(new.metric))
        reason = check_commands.why_no_refinement(new)
        self.refine.setEnabled(reason is None)
        self.refine.setToolTip(f"Not now: {reason}" if reason else REFINE_TIP)
        table = new.session.sensitivities.get(new.metric)
        before = old.session.sensitivities.get(new.metric) if old.session else None
        if self._partial is not None and (self._partial.metric != new.metric or table is not before):
            self._partial = None
        self._show(self._partial or table, new)

    def show_partial(self, table: Sensitivity) -> None:
        """Show the cells that a running job has computed so far."""
        state = self.desk.workspace.state
        if state.session is None or table.metric != state.metric or table is self._partial:
            return
        self._partial = table
        if self.is_seen:
            self._show(table, state)

    def recolour(self, colours: Colours) -> None:
        """Redraw in other colours."""
        super().recolour(colours)
        self.heatmap.recolour(colours)
        self.bar.recolour(colours)

    # ---------------------------------------------------------------- inside

    def _show(self, table: Sensitivity | None, state: State) -> None:
        self.say_empty("" if table is not None else NO_TABLE)
        self._given = table
        if table is None:
            self._table = None
            return
        table = self._in_order(table)
        chosen = self._columns_of(table, state)
        if table is self._table and self.heatmap.cells is not None:
            self.heatmap.show_chosen(replace(self.heatmap.cells, chosen=chosen))
        else:
            low, high = colour_scale(table.score)
            self.heatmap.show_cells(
                Cells(
                    rows=table.layers, columns=table.schemes, score=table.score, chosen=chosen, low=low, high=high,
                    groups=tuple(map(schemes.family_of, table.schemes)),
                )
            )  # fmt: skip
            self.bar.show_scale(low, high, METRIC_SHORT.get(table.metric, table.unit))
        self._table = table
        locked = state.session.locked if state.session else frozenset()
        self.heatmap.show_locked(frozenset(table.row[name] for name in locked if name in table.row))
        self.heatmap.show_selected(frozenset(table.row[name] for name in state.selection if name in table.row))
        self._hover(-1, -1)

    def _columns_of(self, table: Sensitivity, state: State) -> np.ndarray:
        """Return the column of every row's scheme, int64 ``[rows]``, -1 where the table has none.

        After an edit only the rows that changed are looked up.
        """
        of, before, held = self._chosen
        changed = changed_layers(before, state.assignments) if of is table else None
        if changed is None:
            held = _chosen(table, state)
        elif changed:
            held = held.copy()
            for name in changed:
                if name in table.row:
                    held[table.row[name]] = table.column.get(state.assignments[name].weights, -1)
        self._chosen = table, state.assignments, held
        return held

    def _in_order(self, table: Sensitivity) -> Sensitivity:
        """Return the table by families, its rows in the order that was chosen; the same object for the same table."""
        order = self.order_box.currentText()
        if self._arranged is None or self._arranged[0] is not table or self._arranged[1] != order:
            grouped = by_family(table)
            self._arranged = table, order, grouped if order == BY_DEPTH else by_loss(grouped)
        return self._arranged[2]

    def _hover(self, row: int, column: int) -> None:
        table = self._table
        if table is None:
            return
        if row < 0 or column < 0:
            done = int(np.isfinite(table.score).sum())
            cells = (
                f"{table.score.size:,} cells" if done == table.score.size else f"{done:,} of {table.score.size:,} cells"
            )
            samples = f", {quantities.plural(table.samples, 'sample')}" if table.samples else ""
            self.figure.say(f"{cells}{samples}; click assigns, drag paints, right click locks", f"{cells}{samples}")
            return
        layer, scheme = table.layers[row], table.schemes[column]
        value = float(table.score[row, column])
        told = "not computed" if np.isnan(value) else f"{quantities.number(value)} {table.unit}"
        session = self.desk.workspace.state.session
        locked = ", locked" if session is not None and layer in session.locked else ""
        words = f"{scheme}: {told}{self._bytes(layer, scheme)}{locked}"
        text = f"{layer} · {words}"
        self.figure.say(text, f"{layer.rpartition('.')[2]} · {words}", f"{scheme}: {told}{locked}")
        self.heatmap.viewport().setToolTip(text)
        self.heatmap.setAccessibleDescription(text)

    def _bytes(self, layer: str, scheme: str) -> str:
        session = self.desk.workspace.state.session
        facts = session.model.by_name.get(layer) if session else None
        return f", {quantities.data_size(layer_bits(facts, scheme) / 8)}" if facts is not None else ""

    def _click(self, row: int, column: int) -> None:
        if self._table is not None:
            layer, workspace = self._table.layers[row], self.desk.workspace
            before = workspace.state.session
            self.desk.assign((layer,), weights=self._table.schemes[column])
            self._painted = {layer: self._table.schemes[column]}
            self._drag_edits = workspace.state.session is not before
            QTimer.singleShot(HISTOGRAMS_MS, self, lambda: self._select_layer(layer))

    def _paint(self, row: int, column: int) -> None:
        """Give one more layer its scheme while the mouse is dragged; the whole drag is one step to undo."""
        if self._table is None:
            return
        layer, scheme = self._table.layers[row], self._table.schemes[column]
        self._painted[layer] = scheme
        step = self.desk.workspace.amend if self._drag_edits else self.desk.workspace.edit
        title = f"Paint {quantities.plural(len(self._painted), 'layer')}"
        step(title, lambda now: replace(now, plan=now.plan.assign((layer,), weights=scheme)))
        self._drag_edits = True

    def _lock(self, row: int) -> None:
        session = self.desk.workspace.state.session
        if self._table is not None and session is not None:
            layer = self._table.layers[row]
            self.desk.lock((layer,), layer not in session.locked)

    def _select_layer(self, layer: str) -> None:
        session = self.desk.workspace.state.session
        if session is not None and layer in session.model.by_name:
            self.desk.workspace.select((layer,))

    def _select(self, row: int) -> None:
        if self._table is not None:
            self.desk.workspace.select((self._table.layers[row],))


def by_family(table: Sensitivity) -> Sensitivity:
    """Return the table with the schemes of one family side by side, each family where its first scheme was."""
    names = [schemes.family_of(name) for name in table.schemes]
    order = sorted(range(len(names)), key=lambda column: names.index(names[column]))
    if order == list(range(len(names))):
        return table
    return replace(table, schemes=tuple(table.schemes[column] for column in order), score=table.score[:, order])


def by_loss(table: Sensitivity) -> Sensitivity:
    """Return the table with the layers of the greatest scores first: by the mean exponent of what is positive."""
    known = np.isfinite(table.score) & (table.score > 0)
    exponents = np.log10(np.where(known, table.score, 1.0))
    mean = np.where(known.any(axis=1), exponents.sum(axis=1) / np.maximum(known.sum(axis=1), 1), -np.inf)
    order = np.argsort(-mean, kind="stable")
    return replace(table, layers=tuple(table.layers[row] for row in order), score=table.score[order])


def _chosen(table: Sensitivity, state: State) -> np.ndarray:
    """Return the column of every row's scheme, int64 ``[rows]``, -1 where the table has none."""
    held, column = state.assignments, table.column
    columns = [column.get(held[name].weights, -1) if name in held else -1 for name in table.layers]
    return np.array(columns, np.int64)
