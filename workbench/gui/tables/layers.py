"""The layer tree as Qt sees it: a view of the state, never a copy.  Made for 10,000 rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QItemSelection, QModelIndex, QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont

from workbench.gui.context.worker import Worker
from workbench.gui.shell.foreign import as_line, as_tip
from workbench.gui.shell.theme import Colours
from workbench.gui.shell.words import tr
from workbench.gui.tables.copying import Index, tabbed
from workbench.gui.tables.fields import order_of, plain
from workbench.gui.tables.files import RAW
from workbench.gui.tables.layer_columns import (
    CACHE,
    COLUMNS,
    FIELDS,
    HISTOGRAM,
    KIND,
    NAME,
    SCHEME,
    SHAPE,
    WEIGHTS,
    block_sums,
)
from workbench.gui.tables.layer_filter import Filter, FilterError, parse
from workbench.gui.tables.layer_rows import KEPT_TITLE, ROOT, Row, Rows, flat, tree
from workbench.gui.tables.records import alignment, heading
from workbench.insight import quantities
from workbench.insight.layer_facts import LayerFacts, PlanFacts, expert_tokens, tokens_in_words
from workbench.insight.legality import latest_refusals, reasons_by_layer
from workbench.insight.plan_differences import contrasted
from workbench.insight.sums import shown_unit
from workbench.measurement.units import short_unit
from workbench.models.kv_cache import makes_keys_or_values
from workbench.models.layer import Layer
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.planning.latest import Latest, changed_layers
from workbench.planning.plan import KEEP, Assignment, Plan
from workbench.readable import few
from workbench.session.workspace import State

SELECTABLE = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
LEAF = SELECTABLE | Qt.ItemFlag.ItemNeverHasChildren
"""What is no block: without the flag, expanding all notes thousands of leaves as expanded, too."""
EDITABLE = LEAF | Qt.ItemFlag.ItemIsEditable


class LayersModel(QAbstractItemModel):
    """Rows from the model's summary; every other cell is read from the state when it is painted.

    ``assigned(layer name, field of its Assignment, scheme)`` is emitted when the user edits a scheme in place.
    """

    assigned = Signal(str, str, str)
    cells_changed = Signal(object)  # the numbers of rows whose cells differ from before, or None for all

    def __init__(self, colours: Colours, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._state = State()
        self.rows = Rows()
        self._worker = Worker(self, self._show_rows)
        self._filter = Filter()
        self._refused = Latest(_refused)
        self._order: tuple[int, Qt.SortOrder] | None = None
        self._facts = PlanFacts(None, {}, "")
        self._unit = ""
        self._blocks: dict[str, dict[int, Any]] = {}
        self.recolour(colours)
        self.bold = QFont()
        self.bold.setWeight(QFont.Weight.DemiBold)

    # ---------------------------------------------------------------- what is shown

    def show_state(self, state: State) -> None:
        """Show ``state``; rows are rebuilt only for another model, or where the order may have changed.

        Cells are read when they are painted, so the view is only told to paint: ``dataChanged`` for every block of a
        model with 10,000 layers would take seconds.
        """
        old, self._state = self._state, state
        unit = "" if state.session is None else short_unit(shown_unit(state.session, state.metric))
        changes = {name: quantities.marked_in(each.sentence(unit)) for name, each in contrasted(state).items()}
        self._facts = PlanFacts(state.session, state.assignments, state.metric, changes)
        if old.session is not state.session or old.assignments is not state.assignments or old.metric != state.metric:
            self._blocks.clear()
        self._tell_changed(old, state)
        if self._unit != unit:
            self._unit = unit
            self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(COLUMNS) - 1)
        model = state.session.model if state.session else None
        before = old.session.model if old.session else None
        if model is not before or self._depends_on_plan():
            self.rebuild()

    def _tell_changed(self, old: State, new: State) -> None:
        """Tell which rows to paint again: after an edit those of the edited layers and their blocks, else all or none.

        The plan, the selection and the undo stack are what may differ without changing the other cells.
        """
        if _facts_of(old) != _facts_of(new):
            self.cells_changed.emit(None)
            return
        edited = changed_layers(old.assignments, new.assignments)
        rows = None if edited is None else [self.rows.layers[name] for name in edited if name in self.rows.layers]
        if rows is None or edited:
            blocks = [] if rows is None else [self.rows.rows[row].parent for row in rows]
            self.cells_changed.emit(None if rows is None else {*rows, *blocks})

    def _depends_on_plan(self) -> bool:
        """Whether an edit of the plan can change the rows or their order."""
        ordered = self._order is not None and self._order[0] not in (NAME, SHAPE, WEIGHTS, KIND, HISTOGRAM)
        return ordered or self._filter.of_plan

    def show_only(self, text: str) -> str:
        """Show the layers that match a filter; returns why the filter is not valid, and then keeps the last one."""
        try:
            new = parse(text)
        except FilterError as error:
            return str(error)
        if new != self._filter:
            self._filter = new
            self._rearrange()
        return ""

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by ``column`` as a flat list; column 0 ascending is the tree in the order of the network."""
        by_network = column <= NAME and order == Qt.SortOrder.AscendingOrder
        self._order = None if by_network else (column, order)
        self._rearrange()

    def _rearrange(self) -> None:
        """Rebuild the rows of the same model: the present ones stay until then."""
        self._worker.ask(self._made, len(self._state.assignments))

    def rebuild(self) -> None:
        """Rebuild the rows at once."""
        self._worker.forget()
        self._show_rows(self._made())

    def _show_rows(self, rows: Rows) -> None:
        self.beginResetModel()
        self.rows = rows
        self._blocks.clear()
        self.cells_changed.emit(None)
        self.endResetModel()

    def recolour(self, colours: Colours) -> None:
        self._muted, self._accent, self._error = map(QColor, (colours.muted, colours.accent, colours.error))

    def _made(self) -> Rows:
        session = self._state.session
        if session is None:
            return Rows()
        assignments, none = self._state.assignments, Assignment()
        layers = self._filter.of(
            session.model.layers, lambda layer: assignments.get(layer.name, none).weights,
            lambda layer: self.facts(layer).loss,
        )  # fmt: skip
        if self._order is not None:
            column, order = self._order
            key = COLUMNS[column].key or COLUMNS[column].value
            keys = [key(self.facts(layer)) for layer in layers]
            return flat(layers[place] for place in order_of(keys, descending=order == Qt.SortOrder.DescendingOrder))
        if self._filter.worst:
            return flat(layers)
        return tree(session.model, {layer.name for layer in layers} if self._filter.narrows else None)

    # ---------------------------------------------------------------- cells

    def facts(self, layer: Layer) -> LayerFacts:
        """Return the facts of a layer."""
        return self._facts.of(layer)

    def weights_of(self, name: str) -> LayerStatistics | None:
        """Return the statistics of a layer's weight; None for one that the model does not have."""
        session = self._state.session
        layer = session.model.by_name.get(name) if session else None
        return None if layer is None else self.facts(layer).statistics

    def _reason(self, layer: Layer) -> str:
        """Return why the target cannot run the layer, empty where it can."""
        session, target = self._state.session, self._state.target
        if session is None or not target:
            return ""
        refused = self._refused(session.plan, session.model.layers, target, self._state.assignments)
        return refused.get(layer.name, "")

    def text_of(self, row: Row, column: int) -> str:
        """Return the text of a cell."""
        if column == NAME:
            return self._label(row)
        if column == HISTOGRAM:
            return ""
        if row.layer is not None:
            text = COLUMNS[column].shown(self.facts(row.layer))
            return f"⚠ {text}" if column == SCHEME and self._reason(row.layer) else text
        return COLUMNS[column].shown_value(value) if (value := self._value(row, column)) is not None else ""

    def _value(self, row: Row, column: int) -> Any:
        """Return the raw value of a cell; None where it is empty."""
        if row.layer is not None:
            return COLUMNS[column].value(self.facts(row.layer))
        if row.other is not None:
            value_of = COLUMNS[column].other
            return value_of(row.other) if value_of else None
        return row.label if column == NAME else self._sums(row).get(column)

    def _sums(self, row: Row) -> dict[int, Any]:
        """Return what the layers of a block add up to by column, NAME holding the one that costs most; computed once
        for every plan."""
        if row.label not in self._blocks:
            layers = [layer for child in row.children if (layer := self.rows.rows[child].layer) is not None]
            self._blocks[row.label] = block_sums([self.facts(layer) for layer in layers]) if layers else {}
        return self._blocks[row.label]

    def _label(self, row: Row) -> str:
        session = self._state.session
        if row.layer is None or session is None:
            return tr(row.label) if row.label == KEPT_TITLE else row.label
        layer = row.layer
        marks = (
            " (tied)" if layer.tied_to else "", " (must share)" if layer.shares_with else "",
            " (locked)" if layer.name in session.locked else "",
        )  # fmt: skip
        return row.label + "".join(map(tr, marks))

    def _tip(self, row: Row) -> str:
        layer = row.layer
        if layer is None:
            worst = self._sums(row).get(NAME)
            return f"{row.label}\ncosts most: {worst}" if worst else row.label
        whole = quantities.data_size(layer.nbytes)  # of a quantized file's layer, that is not what the file takes
        lines = [layer.name, f"{layer.dtype}, {quantities.shape(layer.shape)}, {whole} unquantized"]
        if layer.tied_to:
            lines.append(f"tied to {layer.tied_to}: one tensor, stored once")
        if layer.shares_with:
            lines.append(f"must share its scheme with {few(layer.shares_with, 8)}")
        if layer.keep:
            lines.append(f"kept in floating point unless a rule names it: {layer.keep}")
        counts = expert_tokens(self._state.session, layer) if self._state.session else None
        if counts is not None:
            lines += tokens_in_words(*counts)
        wrong = self._reason(layer)
        if wrong:
            lines.append(wrong)
        if self._state.session and layer.name in self._state.session.model.non_finite:
            lines.append("holds NaN or infinite values")
        return "\n".join(lines)

    def row_at(self, index: Index) -> Row:
        """Return the record of a valid index."""
        return self.rows.rows[index.internalId()]

    def others_index(self) -> QModelIndex:
        """Return the row above the other tensors; invalid where there is none."""
        rows = self.rows
        if not rows.top or rows.rows[rows.top[-1]].label != KEPT_TITLE:
            return QModelIndex()
        return self.createIndex(len(rows.top) - 1, 0, rows.top[-1])

    def index_of(self, layer: str, column: int = 0) -> QModelIndex:
        """Return the index of a layer's row; invalid if it is filtered out."""
        row = self.rows.layers.get(layer)
        return QModelIndex() if row is None else self.createIndex(self.rows.rows[row].position, column, row)

    def rows_of(self, layers: Iterable[str]) -> QItemSelection:
        """Return the rows of layers that are not filtered out; neighbours are one range, as Qt takes seconds to join
        thousands."""
        numbers = {self.rows.layers[name] for name in layers if name in self.rows.layers}
        rows = ((number, self.rows.rows[number]) for number in numbers)
        places = sorted((row.parent, row.position, number) for number, row in rows)
        selection = QItemSelection()
        for _, run in groupby(enumerate(places), lambda item: (item[1][0], item[1][1] - item[0])):
            joined = [place for _, place in run]
            (_, top, first), (_, bottom, last) = joined[0], joined[-1]
            selection.select(
                self.createIndex(top, 0, first), self.createIndex(bottom, len(COLUMNS) - 1, last)
            )  # fmt: skip
        return selection

    def index(self, row: int, column: int, parent: Index = QModelIndex()) -> QModelIndex:  # noqa: B008
        children = self.rows.children(parent.internalId()) if parent.isValid() else self.rows.top
        inside = 0 <= row < len(children) and 0 <= column < len(COLUMNS)
        return self.createIndex(row, column, children[row]) if inside else QModelIndex()

    def parent(self, index: Index = QModelIndex()) -> QModelIndex:  # type: ignore[override]  # noqa: B008
        if not index.isValid():
            return QModelIndex()
        parent = self.row_at(index).parent
        return QModelIndex() if parent == ROOT else self.createIndex(self.rows.rows[parent].position, 0, parent)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        if parent.column() > 0:
            return 0
        return len(self.rows.children(parent.internalId() if parent.isValid() else ROOT))

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        return heading(COLUMNS[section], role, self._unit) if orientation == Qt.Orientation.Horizontal else None

    def flags(self, index: Index) -> Qt.ItemFlag:
        column = index.column()
        if column < 0:
            return Qt.ItemFlag.NoItemFlags
        row = self.rows.rows[index.internalId()]
        if column not in FIELDS or row.layer is None or (column == CACHE and not makes_keys_or_values(row.layer)):
            return SELECTABLE if row.is_group else LEAF
        return EDITABLE

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row, column = self.row_at(index), index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return as_line(self.text_of(row, column))
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(COLUMNS[column])
        if role == Qt.ItemDataRole.ForegroundRole:
            return self.colour_of(row, column)
        if role == Qt.ItemDataRole.FontRole and row.is_group and column == NAME:
            return self.bold
        if role == Qt.ItemDataRole.ToolTipRole:
            return as_tip(tr(self._tip(row)))
        if role == Qt.ItemDataRole.EditRole and row.layer is not None:
            return COLUMNS[column].value(self.facts(row.layer))
        return plain(self._value(row, column)) if role == RAW else None

    def colour_of(self, row: Row, column: int) -> QColor | None:
        """Return the colour of a cell's text, None for the usual one."""
        if row.layer is None:
            return self._muted if row.other is not None or column == SCHEME else None
        if column == SCHEME:
            if self._reason(row.layer):
                return self._error
            return self._muted if self.facts(row.layer).scheme == KEEP else self._accent
        return self._muted if COLUMNS[column].muted else None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role != Qt.ItemDataRole.EditRole or not index.isValid() or not value:
            return False
        layer = self.row_at(index).layer
        if layer is None:
            return False
        self.assigned.emit(layer.name, FIELDS[index.column()], str(value))
        return True

    def table_lines(self, layers: Iterable[str], columns: Iterable[int]) -> Iterator[str]:
        """Yield a heading and raw values of the present plan as text with tabs, for the clipboard."""
        by_name, facts = self._state.session.model.by_name if self._state.session else {}, self._facts
        fields = [COLUMNS[column] for column in columns]
        yield tabbed(field.heading(self._unit, exported=True) for field in fields)
        for record in (facts.of(by_name[name]) for name in layers):
            yield tabbed(plain(field.value(record)) for field in fields)


def _refused(
    plan: Plan, layers: tuple[Layer, ...], target: str, assignments: Mapping[str, Assignment]
) -> dict[str, str]:
    return reasons_by_layer(latest_refusals(plan, layers, target, assignments), target)


def _facts_of(state: State) -> tuple[object, ...]:
    """Return what the cells depend on but the layers' assignments, to compare by identity."""
    session = state.session
    parts = () if session is None else (
        session.model, session.sensitivities, session.statistics, session.timings, session.locked
    )  # fmt: skip
    rules = () if session is None or not state.target else (session.plan,)  # what the target refuses depends on them
    plans = () if session is None or not state.contrast else (session.plan, session.plans)
    return state.metric, state.target, state.contrast, *map(id, (*parts, *rules, *plans))
