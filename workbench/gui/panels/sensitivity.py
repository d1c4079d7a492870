"""Layer x scheme scores as a heatmap, of weights, inputs or the key-value cache: hover tells, click assigns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QStackedWidget, QWidget

from workbench.deployment.targets import target
from workbench.gui.context import edits
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.cells import Cells, colour_scale
from workbench.gui.plots.colour_bar import ColourBar
from workbench.gui.plots.heatmap import Heatmap
from workbench.gui.plots.minimap import Minimap
from workbench.gui.shell import step_keys
from workbench.gui.shell.foreign import as_tip
from workbench.gui.shell.widgets import button, combo, fitted, label, row
from workbench.gui.shell.words import tr
from workbench.insight import quantities, schemes
from workbench.insight.arrangement import Arrangement, Order, arranged
from workbench.insight.dashboard import change_in_words, cost_of
from workbench.insight.legality import refused_cells
from workbench.insight.plan_differences import contrasted
from workbench.measurement.units import short_unit
from workbench.planning.latest import Assignments, Latest, changed_layers
from workbench.planning.plan import KEEP, Assignment
from workbench.sensitivity.metrics import BY_NAME, METRICS, REFINED, WEIGHT_METRICS, metric_title
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session
from workbench.session.workspace import State
from workbench.steps.checks.refine import REFINE
from workbench.steps.files.first_session import is_first_look

TITLE_LENGTH = 24
"""Characters of a metric's title for which there is room in its box."""

PRICED = 1_000
"""Layers of a row up to which the mouse tells what a cell would change."""

FRAME_MS = 30
"""What does not fit into a frame together is done so far apart: after a click totals and colours are painted first, the
layer's histograms then."""

REFINE_TIP = "Measure the loss in nats where the predicted losses leave the scheme open (Ctrl+F6)"

NO_TABLE = "No scores yet.\n\nCompute the sensitivity (F6) to see what every scheme would cost every layer."
NO_CALIBRATION = (
    "No scores yet.\n\nCalibrate (F5), then compute the sensitivity (F6) to see what every scheme would cost every "
    "layer.\nWeight error needs no calibration."
)

NO_NETWORK = "No scores yet.\n\nCompute the sensitivity (F6) by weight error. Other metrics run the network, but {}."

NOT_YET = {
    REFINED.name: "The refined losses are the predicted ones with measured ones in place where decisions are close.\n"
    "Compute the predicted KL (F6), then press Refine.",
    "inputs": "What rounding inputs costs was not scored yet.\nCompute it (F6) by the metric {title}.",
    "cache": "What rounding keys and values costs was not scored yet.\nCompute it (F6) by the metric {title}.",
    "weights": "{title} was not scored yet; compute it (F6), or choose another metric above.",
}
"""What stands in place of a table that is not there, by metric or by what it is about."""

PARTS = {"weights": "{}", "inputs": "the inputs of {}", "cache": "the keys and values of {}"}
"""Of which part of layers a table speaks."""


class SensitivityPanel(Panel):
    """Shows the table of the state's metric, that of an activation metric, or the partial one of a running job.

    What the plan is summed and searched with is the state's metric; tables of activations add to it, so looking at one
    changes nothing else.
    """

    def _build(self) -> None:
        self.figure = fitted()
        self.heatmap, self.bar = Heatmap(self.colours), ColourBar(self.colours)
        self.not_yet = label(role="empty")
        self.not_yet.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._pages = QStackedWidget()
        cells = QWidget()
        self.minimap = Minimap(self.heatmap, self.colours)
        cells.setLayout(row(self.heatmap, self.minimap, self.bar, stretch=self.heatmap))
        self._pages.addWidget(cells)
        self._pages.addWidget(self.not_yet)
        self._build_controls()
        top = row(self.metric_box, self.order_box, self.refine, self.figure, stretch=self.figure)
        self.column(top, self._pages, stretch=self._pages, focus=(self.heatmap,))
        self._source: Sensitivity | None = None  # as stored or computed so far
        self._table: Sensitivity | None = None  # as it is arranged and shown
        self._partial: Sensitivity | None = None
        self._arrange = Latest(arranged)
        self._arrangement: Arrangement | None = None  # of the table that is shown
        self._count_measured = Latest(_measured_cells)
        self._choices: tuple[Arrangement | None, Assignments, np.ndarray] = (None, {}, np.zeros(0, np.int64))
        self._painted: dict[str, str] = {}
        self._drag: int | None = None  # the edit that a drag over the heatmap goes on with
        self.heatmap.hovered.connect(self._hover)
        self.heatmap.clicked.connect(self._click)
        self.heatmap.rows_selected.connect(self._select)
        self.heatmap.painted.connect(self._paint)
        self.heatmap.lock_requested.connect(self._lock)

    def _build_controls(self) -> None:
        self.metric_box = combo(
            "Sensitivity metric", [(f"{tr(metric.title)} ({tr(metric.unit)})", metric.name) for metric in METRICS],
            lambda: self.context.workspace.show_metric(self.metric_box.currentData()),
            "Which scores are shown; those of weights are also summed and searched with. Higher is worse, always",
            letters=TITLE_LENGTH,
        )  # fmt: skip
        for place, metric in enumerate(METRICS):
            self.metric_box.setItemData(place, tr(metric.meaning), Qt.ItemDataRole.ToolTipRole)
        self.metric_box.insertSeparator(len(WEIGHT_METRICS))
        self.order_box = combo(
            "Order of the layers", tuple(map(str, Order)), lambda: self._show(self._source, self.state),
            "In the order of the network; those that suffer most first, as such or for each byte that rounding saves; "
            "or summed over each block or kind of layer",
        )  # fmt: skip
        self.refine = button("Ref&ine…", lambda: self.context.trigger("refine"), name="Refine close decisions")

    def redraw(self, old: State, new: State) -> None:
        if new.session is None:
            self._table = self._partial = None
            self.say_empty("Open a model to score its layers.")
            return
        self._offer_metrics(new.session)
        metric = new.shown_metric
        self.metric_box.setCurrentIndex(self.metric_box.findData(metric))
        reason = step_keys.why_not(new.session, REFINE.requires)
        self.refine.setEnabled(reason is None)
        self.refine.setToolTip(tr("Not now: {}").format(tr(reason)) if reason else tr(REFINE_TIP))
        table = new.session.table(metric)
        if self._partial is not None and old.session is not None:
            known = self._partial.metric
            if old.session.model is not new.session.model or old.session.table(known) is not new.session.table(known):
                self._partial = None
        self._show(self._partial_of(metric) or table, new)

    def show_partial(self, table: Sensitivity) -> None:
        """Show the cells that a running job has computed so far."""
        state = self.state
        if state.session is None or table is self._partial:
            return
        self._partial = table
        self._offer_metrics(state.session)
        if table.metric != state.shown_metric:
            return
        if self.is_seen and self._table is None:  # their place is laid out in one frame, the cells drawn in the next
            self.heatmap.show_cells(None)
            self._uncover()
            QTimer.singleShot(FRAME_MS, self, self._show_first)
        elif self.is_seen:
            self._show(table, state)

    def forget_partial(self) -> None:
        """Show the session's tables again: the job whose cells stood here ended without its result."""
        if self._partial is not None and self.state.session is not None:
            self._partial = None
            self._offer_metrics(self.state.session)
            self._show(self.state.session.table(self.state.shown_metric), self.state)

    def _partial_of(self, metric: str) -> Sensitivity | None:
        """Return what a running job has computed so far of a metric's table."""
        return self._partial if self._partial is not None and self._partial.metric == metric else None

    def _show_first(self) -> None:
        """Show the first cells of a running job, unless there are others by now."""
        if self._partial is not None and self._table is None:
            self._show(self._partial, self.state)

    def _offer_metrics(self, session: Session) -> None:
        """Grey the metrics of which there is no table, not even a part; name the others with the unit of theirs."""
        model = self.metric_box.model()
        assert isinstance(model, QStandardItemModel)
        for metric in METRICS:
            place = self.metric_box.findData(metric.name)
            table = session.table(metric.name) or self._partial_of(metric.name)
            model.item(place).setEnabled(table is not None)
            unit = metric.unit if table is None else table.unit
            unit_text = tr(short_unit(unit) or unit)
            self.metric_box.setItemText(place, f"{tr(metric_title(metric.name, unit))} ({unit_text})")

    @property
    def _field(self) -> str:
        """The field of an Assignment that a click sets: ``weights``, ``inputs`` or ``cache``."""
        return BY_NAME[self.state.shown_metric].part

    def _show(self, table: Sensitivity | None, state: State) -> None:
        self._source = table
        if table is None:
            self._table = None
            self._say_not_yet()
            return
        self._uncover()
        order = tuple(Order)[self.order_box.currentIndex()]
        shown = self._arrangement = self._arrange(table, order, state.session.model if state.session else None)
        table, choices = shown.table, shown.common(self._columns_of(shown, state))
        if table is self._table and self.heatmap.cells is not None:
            self.heatmap.show_chosen(replace(self.heatmap.cells, chosen=choices))
        else:
            cells = with_choices(table, choices)
            self.heatmap.show_cells(cells)
            self.minimap.update()
            self.bar.show_scale(cells.low, cells.high, short_unit(table.unit) or "rel. error")
        self._table = table
        self._show_contrast(shown, state)
        self.heatmap.show_refused(self._refused_of(shown, state))
        locked = state.session.locked if state.session else ()
        self.heatmap.show_locked(shown.rows(locked, whole=True))
        self.heatmap.show_selected(shown.rows(state.selection))
        self._hover(-1, -1)

    def _show_contrast(self, shown: Arrangement, state: State) -> None:
        """Frame the cells of two plans where these differ."""
        changed = contrasted(state)
        if not changed:
            self.heatmap.show_contrast(None)
            return
        names = [name for part in shown.members.values() for name in part] or shown.table.layers
        empty = Assignment()
        pairs = [changed[name].assignments if name in changed else (empty, empty) for name in names]
        sides = [[each[side] if each[0] is not each[1] else None for each in pairs] for side in (0, 1)]
        columns = [[-1 if each is None else _column(shown.table, each, self._field) for each in side] for side in sides]
        first, second = (shown.common(np.array(side, np.int64)) for side in columns)
        self.heatmap.show_contrast((first, second))

    def _refused_of(self, shown: Arrangement, state: State) -> np.ndarray | None:
        """Return the cells that the target refuses, bool ``[rows, columns]``; None where rows are not single layers."""
        possible = state.target and not shown.members and self._field == "weights"
        return refused_cells(state.session.model, shown.table, state.target) if possible and state.session else None

    def _uncover(self) -> None:
        self.say_empty("")
        self._pages.setCurrentIndex(0)

    def _say_not_yet(self) -> None:
        """Explain how to compute the missing table; the choice of metrics stays where there are others."""
        session, metric = self.state.session, self.state.shown_metric
        none = session is None or not session.sensitivities
        calibrated = session is not None and session.calibration is not None
        reason = session.model.cannot_run if session is not None and not is_first_look(session) else None
        nothing = tr(NO_NETWORK).format(tr(reason)) if reason else NO_TABLE if calibrated else NO_CALIBRATION
        self.say_empty(nothing if none else "", "sensitivity" if calibrated or reason else "calibrate")
        self.not_yet.setText(tr(NOT_YET.get(metric, NOT_YET[self._field])).format(title=tr(metric_title(metric))))
        self._pages.setCurrentIndex(1)
        self.figure.clear()

    def _columns_of(self, shown: Arrangement, state: State) -> np.ndarray:
        """Return the column of every layer's scheme, row by row, int64, -1 where the table has none.

        After an edit only the layers that changed are looked up.
        """
        of, before, columns = self._choices
        changed = changed_layers(before, state.assignments) if of is shown else None
        names = [name for part in shown.members.values() for name in part] or shown.table.layers
        if changed is None:
            columns = _columns(shown.table, names, state.assignments, self._field)
        elif changed:
            columns = columns.copy()
            place = {name: at for at, name in enumerate(names)} if shown.members else shown.table.row
            for name in changed:
                if name in place:
                    columns[place[name]] = _column(shown.table, state.assignments[name], self._field)
        self._choices = shown, state.assignments, columns
        return columns

    def _hover(self, row: int, column: int) -> None:
        table = self._table
        if table is None:
            return
        if row < 0 or column < 0:
            self._say_cells(table)
            return
        layer, scheme, value = table.layers[row], table.schemes[column], float(table.score[row, column])
        session, measured = self.state.session, self._measured()
        score = "not computed" if np.isnan(value) else f"{quantities.number(value)} {table.unit}"
        if measured is not None and len(self._layers(row)) == 1:
            predicted = np.isnan(measured.of(layer, scheme))
            score += " (predicted, corrected)" if predicted else " (measured)"
        elif not np.isnan(value) and layer in table.measured:
            score += " (measured: no gradient tells what it decides)"
        names = self._layers(row)
        known = session is not None and self._field == "weights" and len(names) <= PRICED
        known = known and session is not None and session.model.by_name.keys() >= set(names)
        size = f", {quantities.data_size(cost_of(self.state, names, scheme).nbytes)}" if known else ""
        locked = ", locked" if session is not None and session.locked.issuperset(names) else ""
        locked += self._refusal(names, scheme)
        if len(names) > 1:
            layer = f"{layer} ({quantities.plural(len(names), 'layer')})"
        words = f"{scheme}: {score}{size}{locked}"
        change = change_in_words(self.state, self._painted_layers(row), scheme) if known else ""
        would = f" · this cell: {change}" if change else ""
        text, short = f"{layer} · {words}{would}", table.layers[row].rpartition(".")[2]
        self.figure.say(text, f"{short} · {words}{would}", f"{scheme}: {score}{would}", f"{scheme}: {score}{locked}")
        self.heatmap.viewport().setToolTip(
            as_tip("\n".join(filter(None, (tr(text).replace(" · ", "\n"), *self._formula))))
        )
        self.heatmap.setAccessibleDescription(tr(text))

    @property
    def _formula(self) -> tuple[str, str]:
        """What a cell of the shown metric means, and how it comes about."""
        metric = BY_NAME[self.state.shown_metric]
        return tr(metric.meaning), tr(metric.formula).replace("; ", "\n")

    def _refusal(self, names: tuple[str, ...], scheme: str) -> str:
        """Explain why the target refuses a single layer's scheme of weights; empty where it does not."""
        session, name = self.state.session, self.state.target
        if session is None or not name or len(names) != 1 or self._field != "weights":
            return ""
        layer, chosen = session.model.by_name.get(names[0]), target(name).among(session.model.layers)
        reason = chosen.legal(layer, scheme) if layer is not None else None
        return f" · ⚠ {chosen.title} refuses it: {reason}" if reason else ""

    def _say_cells(self, table: Sensitivity) -> None:
        """Explain how much of the table is there, and what clicks do."""
        done, measured = int(np.isfinite(table.score).sum()), self._measured()
        refused = self._refused_of(self._arrangement, self.state) if self._arrangement is not None else None
        due = table.score.size if refused is None else int((np.isfinite(table.score) | ~refused).sum())
        words = quantities.plural(due, "cell")
        if done < due:
            words = f"{quantities.whole(done)} of {words}"
        if table.samples:
            words += f", {quantities.plural(table.samples, 'sample')}"
        if measured is not None and self._arrangement is not None and not self._arrangement.members:
            count = quantities.whole(self._count_measured(table, measured))
            words += f", {count} of them measured, the others predicted and corrected"
        elif table.measured:
            words += f", {quantities.plural(len(table.measured), 'layer')} measured, "
            words += "since no gradient tells what they decide"
        click = "click assigns" if self._field == "weights" else "click assigns, once more takes out"
        self.figure.say(f"{words}; {click}, drag paints, right click locks", f"{words}; {click}", words)

    def _measured(self) -> Sensitivity | None:
        """Return the measured losses that the refined table, if that is shown, has in it."""
        session = self.state.session
        return session.sensitivities.get("measured_kl") if session and self.state.shown_metric == REFINED.name else None

    def _click(self, row: int, column: int) -> None:
        if self._table is None:
            return
        names, scheme = self._painted_layers(row), self._table.schemes[column]
        assignments = [self.state.assignments.get(name) for name in names]
        present = {_scheme(each, self._field) for each in assignments if each is not None}
        again = self._field != "weights" and present == {scheme}
        self._drag = edits.assign(self.context.workspace, names, **{self._field: None if again else scheme})
        self._painted = dict.fromkeys(names, scheme)
        QTimer.singleShot(FRAME_MS, self, lambda: self._select_layers(names))

    def _paint(self, row: int, column: int) -> None:
        """Give one more layer its scheme while the mouse is dragged; the whole drag is one step to undo."""
        if self._table is None:
            return
        names, scheme = self._painted_layers(row), self._table.schemes[column]
        self._painted |= dict.fromkeys(names, scheme)
        title = f"Paint {PARTS[self._field].format(quantities.plural(len(self._painted), 'layer'))}"
        self._drag = self.context.workspace.edit(
            title, lambda now: replace(now, plan=now.plan.assign(names, **{self._field: scheme})), extend=self._drag
        )

    def _lock(self, row: int) -> None:
        session = self.state.session
        if self._table is not None and session is not None:
            names = self._layers(row)
            edits.lock(self.context.workspace, names, not session.locked.issuperset(names))

    def _layers(self, row: int) -> tuple[str, ...]:
        """Return the layers of a row: several where it is a block or a kind."""
        return self._arrangement.layers(row) if self._arrangement is not None else ()

    def _painted_layers(self, row: int) -> tuple[str, ...]:
        """Return the layers of a row that a click changes: of a block without those that are kept, such as routers."""
        names, session = self._layers(row), self.state.session
        layers = session.model.by_name if session is not None else {}
        return tuple(name for name in names if name in layers and not layers[name].keep) or names

    def _select_layers(self, names: tuple[str, ...]) -> None:
        session = self.state.session
        if session is not None and all(name in session.model.by_name for name in names):
            self.context.workspace.select(names)

    def _select(self, rows: Iterable[int]) -> None:
        if self._table is not None:
            self.context.workspace.select(name for at in rows for name in self._layers(at))


def with_choices(table: Sensitivity, chosen: np.ndarray) -> Cells:
    """Return what a heatmap shows of a table; ``chosen`` is the column of every row's scheme, -1 for none."""
    low, high = colour_scale(table.score)
    return Cells(
        rows=table.layers, columns=table.schemes, score=table.score, chosen=chosen, low=low, high=high,
        groups=tuple(map(schemes.family_of, table.schemes)),
    )  # fmt: skip


def cells_of(shown: Arrangement, assignments: Assignments, metric: str) -> Cells:
    """Return what a heatmap shows of a metric's table under a plan."""
    names = [name for row in range(len(shown.table.layers)) for name in shown.layers(row)]
    columns = _columns(shown.table, names, assignments, BY_NAME[metric].part)
    return with_choices(shown.table, shown.common(columns))


def _measured_cells(table: Sensitivity, measured: Sensitivity) -> int:
    return sum(not np.isnan(measured.of(layer, scheme)) for layer in table.layers for scheme in table.schemes)


def _columns(table: Sensitivity, names: Iterable[str], assignments: Assignments, field: str) -> np.ndarray:
    """Return the column of every layer's scheme, int64, -1 where the table has none."""
    return np.array(
        [_column(table, assignments[name], field) if name in assignments else -1 for name in names], np.int64
    )


def _column(table: Sensitivity, assignment: Assignment, field: str) -> int:
    return table.column.get(_scheme(assignment, field), -1)


def _scheme(assignment: Assignment, field: str) -> str:
    """Return the scheme that a field of an assignment names; ``keep`` where it names none."""
    return str(getattr(assignment, field) or KEEP)
