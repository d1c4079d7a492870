"""The tree of blocks and layers."""

from __future__ import annotations

from collections import Counter
from functools import partial

from PySide6.QtCore import QEvent, QItemSelectionModel, QObject, QPoint, Qt
from PySide6.QtGui import QFontMetrics, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QLineEdit, QMenu

from workbench.gui.context import edits
from workbench.gui.panels.panel import Panel
from workbench.gui.shell import settings
from workbench.gui.shell.copying import copy_lines
from workbench.gui.shell.foreign import as_entry, as_tip
from workbench.gui.shell.scheme_menu import fill_menu
from workbench.gui.shell.widgets import choice, label, named, row, set_role
from workbench.gui.shell.words import tr
from workbench.gui.tables.copying import Index, add_copies
from workbench.gui.tables.delegates import RowDelegate, SchemeDelegate
from workbench.gui.tables.layer_columns import CACHE, CHANGE, COLUMNS, FIELDS, HISTOGRAM, INPUTS, NAME, SCHEME
from workbench.gui.tables.layer_filter import HINT
from workbench.gui.tables.layers import LayersModel
from workbench.gui.tables.row_painter import LayersView
from workbench.insight import legality, quantities
from workbench.insight.dashboard import cost_in_words
from workbench.insight.layer_facts import FLOATING
from workbench.measurement.units import HALF_SQUARED_DISTANCE, NATS, short_unit
from workbench.models.kv_cache import makes_keys_or_values
from workbench.models.layer import Layer
from workbench.session.workspace import State

EDITED = {SCHEME: "weights", INPUTS: "inputs", CACHE: "keys or values"}
"""The columns whose cells are lists of schemes, and what these are for."""

PRICED = 2_000
"""Selected layers up to which the menu says what a scheme costs them."""

EXPAND_LIMIT, FOUND_LIMIT = 400, 2_000
"""Models with more rows open with their blocks closed, but for the first."""

NAME_NEIGHBOURS = 5
"""The columns before this one are seen without scrolling where there is room."""


class LayersPanel(Panel):
    """Select layers, see their facts, change their schemes in place."""

    decided = ""
    """The layer that was selected last as the next decision."""

    def _build(self) -> None:
        hint = "Filter: words, kind:linear, scheme:int4, re:…, worst 10"
        self.filter = named(QLineEdit(placeholderText=tr(hint), clearButtonEnabled=True), "Filter layers", HINT)
        self._count = label(role="muted")
        self.model = LayersModel(self.colours, self)
        self.view = LayersView(self.model, self.colours)
        self._prepare_view()
        top = row(self.filter, self._count, stretch=self.filter)
        self.column(top, self.view, stretch=self.view, focus=(self.view,))
        self._updating = False
        self._problem = ""  # what is wrong with the filter
        self._current = ("", NAME)  # the layer and column with the keyboard before rows were replaced
        self.filter.textChanged.connect(self._filter_changed)
        self.view.selectionModel().selectionChanged.connect(self._selected)
        self.model.assigned.connect(self._assigned)
        self.model.modelAboutToBeReset.connect(self._note_current)
        self.model.modelReset.connect(self._reset)

    def redraw(self, old: State, new: State) -> None:
        """Show the rows; expand them for another model; show the selection."""
        self.say_empty("" if new.session else "Open a model to see its layers.")
        self.model.show_state(new)
        if bool(old.contrast) != bool(new.contrast):
            self.view.header().setSectionHidden(CHANGE, not new.contrast)
            self._fit_names()
        self._show_count()
        self._show_selection(new.selection)

    def selected(self) -> tuple[str, ...]:
        """Return the selected layers; a selected block stands for its layers."""
        rows = self.model.rows.rows
        parts = (rows[part] for number in self.view.chosen.numbers for part in (number, *rows[number].children))
        return tuple(dict.fromkeys(part.layer.name for part in parts if part.layer is not None))

    def choose_scheme(self, where: QPoint | None = None) -> None:
        """Open the menu of schemes for the selected layers."""
        names = self.state.selection
        if not names:
            return
        menu = self._menu(names)
        spot = where or self.view.visualRect(self.view.currentIndex()).bottomLeft()
        menu.popup(self.view.viewport().mapToGlobal(spot))

    def go_to_filter(self) -> None:
        """Give the filter the keyboard."""
        self.filter.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def choose_columns(self, where: QPoint | None = None) -> None:
        """Open the menu of columns; the name always stays."""
        header = self.view.header()
        menu = QMenu(self)
        menu.setObjectName("columns")
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for position, column in enumerate(COLUMNS[1:], 1):
            toggled = partial(self._show_column, position)
            choice(menu, column.title, toggled, on=not header.isSectionHidden(position), tip=column.tip)
        menu.popup(where or header.mapToGlobal(header.rect().bottomLeft()))

    def copy(self) -> None:
        """Copy the selected layers (all that are shown, if none is) with the shown columns as a table."""
        header = self.view.header()
        columns = [at for at in range(len(COLUMNS)) if at != HISTOGRAM and not header.isSectionHidden(at)]
        names = self.selected() or tuple(self.model.rows.layers)
        said = f"Copied {quantities.plural(len(names), 'layer')} as a table"
        copy_lines(self, lambda: self.model.table_lines(names, columns), lambda: self.context.messages.say(said))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Copy the rows with Ctrl+C; edit the scheme with F2 wherever in the row the keyboard is.

        Give the names what the other important columns leave.
        """
        if watched is self.view.viewport():
            if event.type() == QEvent.Type.Resize:
                self._fit_names()
            return False
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.matches(QKeySequence.StandardKey.Copy):
                self.copy()
                return True
            index = self.view.currentIndex()
            if event.key() == Qt.Key.Key_F2 and index.isValid() and index.column() not in FIELDS:
                self.view.edit(index.siblingAtColumn(SCHEME))
                return True
        return super().eventFilter(watched, event)

    def _show_column(self, position: int, shown: bool) -> None:
        header = self.view.header()
        header.setSectionHidden(position, not shown)
        settings.hide_columns([column.title for at, column in enumerate(COLUMNS) if header.isSectionHidden(at)])
        self._fit_names()

    def _prepare_view(self) -> None:
        view, height = self.view, QFontMetrics(self.font()).height() + 7
        named(view, "Layers").setUniformRowHeights(True)
        view.setAlternatingRowColors(True)
        view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        view.setEditTriggers(QAbstractItemView.EditTrigger.DoubleClicked | QAbstractItemView.EditTrigger.EditKeyPressed)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self.choose_scheme)
        view.setSortingEnabled(True)
        view.setIndentation(14)
        view.sortByColumn(NAME, Qt.SortOrder.AscendingOrder)
        view.setItemDelegate(RowDelegate(height, view))
        for column, part in EDITED.items():
            choices = partial(self._choices_at, column)
            view.setItemDelegateForColumn(column, SchemeDelegate(height, f"Scheme of the {part}", choices, view))
        self._prepare_header()
        view.installEventFilter(self)
        view.viewport().installEventFilter(self)

    def _prepare_header(self) -> None:
        header, hidden = self.view.header(), settings.hidden_columns()
        named(header, "Layer columns").setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setStretchLastSection(False)
        header.moveSection(CHANGE, SCHEME + 1)
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header.customContextMenuRequested.connect(lambda where: self.choose_columns(header.mapToGlobal(where)))
        for position, column in enumerate(COLUMNS):
            header.resizeSection(position, self._width(position))
            header.setSectionHidden(position, column.hidden if hidden is None else column.title in hidden)

    def _width(self, column: int) -> int:
        metrics, column_of = QFontMetrics(self.font()), COLUMNS[column]
        units = map(short_unit, (NATS, HALF_SQUARED_DISTANCE))
        titles = (metrics.horizontalAdvance(column_of.heading(unit)) for unit in units)
        return max(metrics.averageCharWidth() * column_of.width, *titles) + 12

    def _fit_names(self) -> None:
        header, least = self.view.header(), self._width(NAME)
        room = self.view.viewport().width()
        for count in range(len(COLUMNS), NAME_NEIGHBOURS - 1, -1):
            left = room - sum(header.sectionSize(column) for column in range(1, count))
            if left >= least:
                break
        header.resizeSection(NAME, max(least * 5 // 6, left))  # rather shorter names than half a number

    def _show_count(self) -> None:
        session = self.state.session
        if session is not None and not self._problem:
            total, shown = len(session.model.layers), len(self.model.rows.layers)
            text = tr("1 layer") if total == 1 else tr("{:,} layers").format(total)
            self._count.setText(text if shown == total else tr("{:,} of {}").format(shown, text))

    def _filter_changed(self, text: str) -> None:
        self._problem = self.model.show_only(text)
        set_role(self._count, "error" if self._problem else "muted")
        self._count.setText(self._problem)
        self._show_count()

    def _note_current(self) -> None:
        """Remember which layer has the keyboard: rows are about to be replaced."""
        index = self.view.currentIndex()
        layer = self.model.row_at(index).layer if index.isValid() else None
        self._current = (layer.name, index.column()) if layer is not None else ("", NAME)

    def _reset(self) -> None:
        if self.model.rowCount() and len(self.model.rows.rows) <= (FOUND_LIMIT if self.filter.text() else EXPAND_LIMIT):
            self.view.expandAll()
            self.view.collapse(self.model.others_index())
        self._show_count()
        self._show_selection(self.state.selection)

    def _selected(self) -> None:
        if not self._updating:
            self.context.workspace.select(self.selected())

    def _show_selection(self, names: tuple[str, ...]) -> None:
        if set(names) == set(self.selected()):
            return
        selection = self.model.rows_of(names)
        self._updating = True
        flags = QItemSelectionModel.SelectionFlag
        self.view.selectionModel().select(selection, flags.ClearAndSelect | flags.Rows)
        if names and selection.count():
            name, column = self._current if self._current[0] in names else (names[0], NAME)
            current = self.model.index_of(name, column)
            if not current.isValid():
                current = self.model.index_of(next(filter(self.model.rows.layers.__contains__, names)))
            self.view.selectionModel().setCurrentIndex(current, flags.NoUpdate)
            self.view.scrollTo(current)
        self._updating = False

    def _edited(self, layer: str) -> tuple[str, ...]:
        """Return the layers that an edit in a layer's row is about: the selection, if the layer belongs to it."""
        selection = self.state.selection
        return selection if layer in selection else (layer,)

    def _choices(self, names: tuple[str, ...]) -> tuple[str, ...]:
        state = self.state
        return legality.weight_choices(
            state.session, state.assignments, target=state.target, metric=state.metric, layers=names
        )

    def _choices_at(self, column: int, index: Index) -> dict[str, str]:
        """Return the schemes that a cell offers, and what weights cost in each."""
        state, layer = self.state, self.model.row_at(index).layer
        names = self._edited(layer.name) if layer else ()
        if column == CACHE:
            return dict.fromkeys((FLOATING, *legality.cache_choices()), "")
        if column == SCHEME:
            few = len(names) <= PRICED
            return {scheme: cost_in_words(state, names, scheme) if few else "" for scheme in self._choices(names)}
        schemes = legality.input_choices(state.session, state.assignments, target=state.target, layers=names)
        return {name or FLOATING: "" for name in schemes}

    def _assigned(self, layer: str, field: str, scheme: str) -> None:
        names, session = self._edited(layer), self.state.session
        if field == FIELDS[CACHE] and session is not None:
            names = tuple(name for name in names if makes_keys_or_values(session.model.by_name[name]))
        edits.assign(self.context.workspace, names, **{field: None if scheme == FLOATING else scheme})

    def _menu(self, names: tuple[str, ...]) -> QMenu:
        state, workspace = self.state, self.context.workspace
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        schemes = Counter(state.assignments[name].weights for name in names if name in state.assignments)
        mixed = ", ".join(f"{quantities.whole(count)} {scheme}" for scheme, count in schemes.most_common(3))
        several = tr(f"{quantities.plural(len(names), 'layer')}: {mixed}")
        title = menu.addAction(as_entry(name := names[0] if len(names) == 1 else several))
        title.setToolTip(as_tip(name))
        title.setEnabled(False)  # the style sheet draws no text of a section
        menu.addSeparator()
        fill_menu(
            menu, lambda scheme: edits.assign(workspace, names, weights=scheme),
            next(iter(schemes)) if len(schemes) == 1 else None, self._choices(names) if state.target else None,
            **({"facts": partial(cost_in_words, state, names)} if len(names) <= PRICED else {}),
        )  # fmt: skip
        menu.addSeparator()
        locked = state.session is not None and set(names) <= state.session.locked
        verb = "Un&lock" if locked else "&Lock Against Searches"
        menu.addAction(tr(verb), lambda: edits.lock(workspace, names, not locked))
        menu.addAction(tr("&Select Similar Layers"), lambda: self.select_similar(names))
        menu.addAction(tr("&Copy as a Table\tCtrl+C"), self.copy)
        add_copies(menu.addMenu(tr("C&opy More")), self.view, self.view.currentIndex())
        return menu

    def select_similar(self, names: tuple[str, ...]) -> None:
        """Select the layers that have the kind, shape and last name of one of ``names``."""
        session = self.state.session
        if session is None:
            return
        like = {_likeness(session.model.by_name[name]) for name in names}
        self.context.workspace.select(layer.name for layer in session.model.layers if _likeness(layer) in like)


def _likeness(layer: Layer) -> tuple[object, ...]:
    """Return what similar layers have in common."""
    return layer.kind, layer.shape, layer.name.rsplit(".", 1)[-1]
