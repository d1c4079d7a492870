"""The layer tree as Qt sees it: a view of the state, never a copy.  Made for 10,000 rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QColor, QFont

from workbench.gui.shell.theme import Colours
from workbench.gui.tables.layer_columns import (
    ALGORITHM,
    BITS,
    CACHE,
    COLUMNS,
    FIELDS,
    FLOATING,
    HISTOGRAM,
    INPUTS,
    KIND,
    LOSS,
    MEASURED,
    NAME,
    SCHEME,
    SHAPE,
    SIZE,
    TIME,
    WEIGHTS,
)
from workbench.gui.tables.layer_filter import Filter, FilterError, parse
from workbench.gui.tables.layer_rows import KEPT_TITLE, ROOT, Row, Rows, flat, tree
from workbench.insight import quantities
from workbench.insight.latest import Latest
from workbench.insight.legality import reasons_by_layer, refusals
from workbench.measurement.evaluation import Timing
from workbench.models.kv_cache import makes_keys_or_values
from workbench.models.layer import Layer
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.planning.plan import KEEP, Assignment, Plan
from workbench.planning.totals import layer_bits
from workbench.session.workspace import State

Index = QModelIndex | QPersistentModelIndex

class LayersModel(QAbstractItemModel):
    """Rows from the model's summary; every other cell is read from the state when it is painted.

    ``assigned(layer name, field of its Assignment, scheme)`` is emitted when a person edits a scheme in place.
    """

    assigned = Signal(str, str, str)

    def __init__(self, colours: Colours, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._state = State()
        self._rows = Rows()
        self._filter = Filter()
        self._refused = Latest(_refused)
        self._order: tuple[int, Qt.SortOrder] | None = None
        self._timed: tuple[Timing, ...] = ()
        self._times: dict[tuple[tuple[int, int], str], float] = {}
        self.recolour(colours)
        self.bold = QFont()
        self.bold.setWeight(QFont.Weight.DemiBold)

    # ---------------------------------------------------------------- what is shown

    def take(self, state: State) -> None:
        """Show ``state``; rows are rebuilt only for another model, or where the order may have changed.

        Cells are read when they are painted, so the view is only told to paint: ``dataChanged`` for every block of a
        model with 10,000 layers would take seconds.
        """
        old, self._state = self._state, state
        model = state.session.model if state.session else None
        before = old.session.model if old.session else None
        if model is not before or self._depends_on_plan():
            self.rebuild()

    def _depends_on_plan(self) -> bool:
        """Tell whether an edit of the plan can change which rows there are, or their order."""
        ordered = self._order is not None and self._order[0] not in (NAME, SHAPE, WEIGHTS, KIND, HISTOGRAM)
        return ordered or self._filter.of_plan

    def show_only(self, text: str) -> str:
        """Show the layers that a filter wants; returns what is wrong with it (the last good one stays), or nothing."""
        try:
            wanted = parse(text)
        except FilterError as error:
            return str(error)
        if wanted != self._filter:
            self._filter = wanted
            self.rebuild()
        return ""

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by ``column`` as a flat list; column 0 ascending is the tree in the order of the network."""
        plain = column <= NAME and order == Qt.SortOrder.AscendingOrder
        self._order = None if plain else (column, order)
        self.rebuild()

    def rebuild(self) -> None:
        """Make the rows anew."""
        self.beginResetModel()
        self._rows = self._made()
        self.endResetModel()

    def recolour(self, colours: Colours) -> None:
        """Take other colours."""
        self._muted, self._accent, self._error = map(QColor, (colours.muted, colours.accent, colours.error))

    def _made(self) -> Rows:
        session = self._state.session
        if session is None:
            return Rows()
        wanted = self._filter.of(session.model.layers, self._scheme, self._loss)
        if self._order is not None:
            column, order = self._order
            wanted.sort(key=lambda layer: self._key(layer, column), reverse=order == Qt.SortOrder.DescendingOrder)
            return flat(wanted)
        if self._filter.ranked:
            return flat(wanted)
        return tree(session.model, {layer.name for layer in wanted} if self._filter.narrows else None)

    # ---------------------------------------------------------------- cells

    def _scheme(self, layer: Layer) -> str:
        assignment = self._state.assignments.get(layer.name)
        return assignment.weights if assignment else KEEP

    def _reason(self, layer: Layer) -> str:
        """Return why the target cannot run the layer, empty where it can."""
        session, target = self._state.session, self._state.target
        if session is None or not target:
            return ""
        refused = self._refused(session.plan, session.model.layers, target, self._state.assignments)
        return refused.get(layer.name, "")

    def _bits(self, layer: Layer) -> int:
        return layer_bits(layer, self._scheme(layer))

    def _loss(self, layer: Layer) -> float:
        session, scheme = self._state.session, self._scheme(layer)
        table = session.table(self._state.metric) if session else None
        if scheme == KEEP:
            return 0.0
        return math.nan if table is None else table.of(layer.tied_to or layer.name, scheme)

    def _measured(self, layer: Layer) -> float:
        session, scheme = self._state.session, self._scheme(layer)
        table = session.sensitivities.get("measured_kl") if session else None
        return math.nan if table is None or scheme == KEEP else table.of(layer.tied_to or layer.name, scheme)

    def _time(self, layer: Layer) -> float:
        """Return the median microseconds of the layer's shape under its scheme, NaN where that was not timed."""
        timings = self._state.session.timings if self._state.session else ()
        if timings is not self._timed:
            self._timed, self._times = timings, {(one.shape, one.scheme): one.median for one in timings}
        return self._times.get((layer.matrix, self._scheme(layer)), math.nan)

    def _key(self, layer: Layer, column: int) -> Any:
        if column in (LOSS, MEASURED, TIME):
            value = {LOSS: self._loss, MEASURED: self._measured, TIME: self._time}[column](layer)
            return -1.0 if math.isnan(value) else value
        seen = self._seen(layer)
        keys: dict[int, Callable[[], Any]] = {
            NAME: lambda: layer.name, SCHEME: lambda: self._scheme(layer), SHAPE: lambda: layer.parameters,
            BITS: lambda: self._bits(layer) / max(layer.parameters, 1), SIZE: lambda: self._bits(layer),
            WEIGHTS: lambda: layer.parameters, KIND: lambda: str(layer.kind),
            INPUTS: lambda: self._layer_text(layer, INPUTS), CACHE: lambda: self._layer_text(layer, CACHE),
            ALGORITHM: lambda: self._layer_text(layer, ALGORITHM), HISTOGRAM: lambda: seen.variance if seen else -1.0,
        }  # fmt: skip
        return keys.get(column, lambda: 0)()

    def text_of(self, row: Row, column: int) -> str:
        """Return what a cell says."""
        if column == NAME:
            return self._label(row)
        if row.layer is not None:
            text = self._layer_text(row.layer, column)
            return f"⚠ {text}" if column == SCHEME and self._reason(row.layer) else text
        if row.kept is not None:
            return self._kept_text(row, column)
        if column == WEIGHTS:
            layers = (self._rows.rows[child].layer for child in row.children)
            total = sum(layer.parameters for layer in layers if layer is not None)
            return quantities.count(total) if total else ""
        return ""

    def _label(self, row: Row) -> str:
        session = self._state.session
        if row.layer is None or session is None:
            return row.label
        layer = row.layer
        if layer.name not in session.locked and not layer.tied_to and not layer.shares_with:
            return row.label
        marks = (
            " (tied)" if layer.tied_to else "", " (must share)" if layer.shares_with else "",
            " (locked)" if layer.name in session.locked else "",
        )  # fmt: skip
        return row.label + "".join(marks)

    def _kept_text(self, row: Row, column: int) -> str:
        kept = row.kept
        assert kept is not None
        if column == SCHEME:
            return kept.dtype
        if column == SIZE:
            return quantities.data_size(kept.nbytes)
        if column == SHAPE:
            return quantities.shape(kept.shape)
        return quantities.count(math.prod(kept.shape)) if column == WEIGHTS else ""

    def _layer_text(self, layer: Layer, column: int) -> str:
        if column == SCHEME:
            scheme = self._scheme(layer)
            return f"keep ({layer.dtype})" if scheme == KEEP else scheme
        if column == BITS:
            return f"{self._bits(layer) / max(layer.parameters, 1):.2f}"
        if column == SIZE:
            return quantities.data_size(self._bits(layer) / 8)
        if column == LOSS:
            return quantities.number(self._loss(layer))
        if column == MEASURED:
            return quantities.number(self._measured(layer))
        if column == TIME:
            time = self._time(layer)
            return quantities.NONE if math.isnan(time) else quantities.microseconds(time)
        if column == ALGORITHM:
            assignment = self._state.assignments.get(layer.name)
            return assignment.algorithm if assignment and assignment.weights != KEEP else ""
        if column == SHAPE:
            return quantities.shape(layer.shape)
        if column == WEIGHTS:
            return quantities.count(layer.parameters)
        if column == KIND:
            return str(layer.kind).replace("_", " ")
        if column in (INPUTS, CACHE):
            if column == CACHE and not makes_keys_or_values(layer):
                return ""
            assignment = self._state.assignments.get(layer.name)
            return (getattr(assignment, FIELDS[column]) if assignment else None) or FLOATING
        return ""

    def _tip(self, row: Row) -> str:
        layer = row.layer
        if layer is None:
            return row.label
        stored = quantities.data_size(layer.nbytes)
        lines = [layer.name, f"{layer.dtype}, {quantities.shape(layer.shape)}, as stored {stored}"]
        if layer.tied_to:
            lines.append(f"tied to {layer.tied_to}: one tensor, stored once")
        if layer.shares_with:
            lines.append(f"must share its scheme with {', '.join(layer.shares_with)}")
        wrong = self._reason(layer)
        if wrong:
            lines.append(wrong)
        if self._state.session and layer.name in self._state.session.model.non_finite:
            lines.append("holds NaN or infinite values")
        return "\n".join(lines)

    def statistics_of(self, row: Row) -> LayerStatistics | None:
        """Return the statistics of the row's weight, None where there are none."""
        return None if row.layer is None else self._seen(row.layer)

    def _seen(self, layer: Layer) -> LayerStatistics | None:
        held = self._state.session.statistics if self._state.session else {}
        return held.get((layer.name, "weight")) or held.get((layer.tied_to or layer.name, "weight"))

    def is_top(self, row: Row) -> bool:
        """Tell whether the row stands in no block."""
        return row.parent == ROOT

    def _children(self, index: int) -> list[int]:
        return self._rows.top if index == ROOT else self._rows.rows[index].children

    def row_at(self, index: Index) -> Row:
        """Return the record of a valid index."""
        return self._rows.rows[index.internalId()]

    @property
    def layer_count(self) -> int:
        """How many layers are shown."""
        return len(self._rows.of)

    @property
    def row_total(self) -> int:
        """How many rows there are, at every depth."""
        return len(self._rows.rows)

    def shown(self) -> tuple[str, ...]:
        """Return the names of the layers that are shown."""
        return tuple(self._rows.of)

    def kept_index(self) -> QModelIndex:
        """Return the row above the kept tensors; invalid where there is none."""
        last = self._rows.top[-1] if self._rows.top else ROOT
        if last == ROOT or self._rows.rows[last].label != KEPT_TITLE:
            return QModelIndex()
        return self.createIndex(self._rows.rows[last].position, 0, last)

    def index_of(self, layer: str, column: int = 0) -> QModelIndex:
        """Return the index of a layer's row; invalid if it is filtered out."""
        row = self._rows.of.get(layer)
        return QModelIndex() if row is None else self.createIndex(self._rows.rows[row].position, column, row)

    def index(self, row: int, column: int, parent: Index = QModelIndex()) -> QModelIndex:  # noqa: B008
        children = self._children(parent.internalId() if parent.isValid() else ROOT)
        if not (0 <= row < len(children) and 0 <= column < len(COLUMNS)):
            return QModelIndex()
        return self.createIndex(row, column, children[row])

    def parent(self, index: Index = QModelIndex()) -> QModelIndex:  # type: ignore[override]  # noqa: B008
        if not index.isValid():
            return QModelIndex()
        parent = self.row_at(index).parent
        return QModelIndex() if parent == ROOT else self.createIndex(self._rows.rows[parent].position, 0, parent)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        if parent.column() > 0:
            return 0
        return len(self._children(parent.internalId() if parent.isValid() else ROOT))

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section].title
        if role == Qt.ItemDataRole.ToolTipRole:
            return COLUMNS[section].tip
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if COLUMNS[section].numeric else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        if not index.isValid():
            return Qt.ItemFlag.NoItemFlags
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        layer, column = self.row_at(index).layer, index.column()
        if column in FIELDS and layer is not None and (column != CACHE or makes_keys_or_values(layer)):
            flags |= Qt.ItemFlag.ItemIsEditable
        return flags

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row, column = self.row_at(index), index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text_of(row, column)
        if role == Qt.ItemDataRole.TextAlignmentRole and COLUMNS[column].numeric:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.ForegroundRole:
            return self.colour_of(row, column)
        if role == Qt.ItemDataRole.FontRole and row.is_group and column == NAME:
            return self.bold
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._tip(row)
        if role == Qt.ItemDataRole.EditRole and row.layer is not None:
            return self._layer_text(row.layer, column) if column in (INPUTS, CACHE) else self._scheme(row.layer)
        return None

    def colour_of(self, row: Row, column: int) -> QColor | None:
        """Return the colour of a cell's text, None for the usual one."""
        if row.layer is None:
            return self._muted if row.kept is not None else None
        if column == SCHEME:
            usual = self._muted if self._scheme(row.layer) == KEEP else self._accent
            return self._error if self._reason(row.layer) else usual
        return self._muted if column in (SHAPE, WEIGHTS, KIND, INPUTS, ALGORITHM, CACHE) else None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role != Qt.ItemDataRole.EditRole or not index.isValid() or not value:
            return False
        layer = self.row_at(index).layer
        if layer is None:
            return False
        self.assigned.emit(layer.name, FIELDS[index.column()], str(value))
        return True

    def table_text(self, layers: Iterable[str], columns: Iterable[int]) -> str:
        """Return rows as text with tabs and a heading, for the clipboard."""
        chosen = tuple(columns)
        lines = ["\t".join(COLUMNS[column].title for column in chosen)]
        for name in layers:
            layer = self._state.session.model.by_name[name] if self._state.session else None
            if layer is not None:
                texts = (layer.name if column == NAME else self._layer_text(layer, column) for column in chosen)
                lines.append("\t".join(texts))
        return "\n".join(lines)


def _refused(
    plan: Plan, layers: tuple[Layer, ...], target: str, assignments: Mapping[str, Assignment]
) -> dict[str, str]:
    return reasons_by_layer(refusals(plan, layers, target, assignments), target)
