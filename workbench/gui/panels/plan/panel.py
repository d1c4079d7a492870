"""The plan: what the selected layers get, what the whole is made of, and the search within a budget."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from workbench.gui.context import edits
from workbench.gui.context.context import Context
from workbench.gui.panels.panel import Panel, PanelPart
from workbench.gui.panels.plan.history import PlanHistory
from workbench.gui.panels.plan.rules import PlanRules
from workbench.gui.panels.plan.search_line import SearchLine
from workbench.gui.panels.plan.sums import PlanSums
from workbench.gui.panels.plan.target import PlanTarget
from workbench.gui.panels.plan.text import PlanText
from workbench.gui.panels.plan.transforms import PlanTransforms
from workbench.gui.plots.histogram import METHOD_LABELS
from workbench.gui.shell.fitted_label import FittedLabel
from workbench.gui.shell.theme import Colours
from workbench.gui.tables.fields import METRIC_UNIT, Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import legality, quantities
from workbench.insight.plan_parts import Parts
from workbench.insight.sums import shown_unit
from workbench.measurement.units import short_unit
from workbench.numerics.ranges import REGISTRY as RANGES
from workbench.numerics.rounding import REGISTRY as ALGORITHMS
from workbench.planning.plan import KEEP
from workbench.session.workspace import State

MIXED = "(several)"
FLOATING = "floating point"


PARTS = (
    Field("Scheme", lambda part: part.scheme, tip="How weights are stored"),
    Number("Layers", lambda part: part.layers),
    Number("Size", lambda part: part.bits / 8, quantities.data_size, unit="bytes"),
    Number("Loss", lambda part: part.loss, quantities.number, unit=METRIC_UNIT,
           tip="Sum of the layers' scores; lower is better"),
    Number("Count", lambda part: part.weights, quantities.count, tip="Number of weights"),
)  # fmt: skip


class PlanPanel(Panel):
    """Combos that assign at once, a table of what the plan is made of, and the search."""

    smallest = QSize(430, 260)

    def __init__(self, context: Context, colours: Colours) -> None:
        super().__init__(context, colours)
        first = self._layers_page()
        self.rules, self.text, self.history = PlanRules(context), PlanText(context), PlanHistory(context)
        self.transforms = PlanTransforms(context)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.setAccessibleName("Views of the plan")
        for title, page in (
            ("Layers", first), ("Rules", self.rules), ("Transforms", self.transforms), ("Text", self.text),
            ("Plans", self.history),
        ):  # fmt: skip
            self.tabs.addTab(page, title)
        self.tabs.currentChanged.connect(lambda _: self._show_page())
        self.column().addWidget(self.tabs)
        self.setFocusProxy(self.weights)

    def _layers_page(self) -> QWidget:
        """Return the page of what the selected layers get, what that makes, and the search."""
        self.whom = FittedLabel()
        self.whom.setProperty("role", "heading")
        self._sums = Parts()
        self.parts = RecordsView("What the plan is made of", PARTS, lambda part: part.scheme)
        middle = QHBoxLayout()
        middle.addLayout(self._form(), 3)
        middle.addWidget(self.parts, 7)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 4, 0, 0)
        column.addWidget(self.whom)
        column.addLayout(middle, 1)
        self.sums = PlanSums()
        column.addWidget(self.sums)
        self.target = PlanTarget(self.context)
        column.addWidget(self.target)
        self.search_line = SearchLine(self.context)
        self.budget, self.search_button = self.search_line.budget, self.search_line.button
        self.refused = self.search_line.refused
        column.addWidget(self.search_line)
        return page

    def _form(self) -> QGridLayout:
        self.weights = self._combo("Scheme of the weights", "weights")
        self.inputs = self._combo("Scheme of the inputs", "inputs")
        self.algorithm = self._combo("Rounding algorithm", "algorithm")
        self.ranges = self._combo("Range method for static inputs", "range_method")
        self.lock = QCheckBox("Loc&ked")
        self.lock.setToolTip("A search leaves locked layers as they are")
        self.lock.clicked.connect(
            lambda locked: edits.lock(self.context.workspace, self.state.selection, locked)
        )
        form = QGridLayout()
        form.setHorizontalSpacing(6)
        form.setVerticalSpacing(3)
        for row, (text, widget) in enumerate(
            (
                ("&Weights", self.weights),
                ("&Inputs", self.inputs),
                ("Al&gorithm", self.algorithm),
                ("Ra&nge", self.ranges),
            )
        ):
            label = QLabel(text)
            label.setBuddy(widget)
            form.addWidget(label, row, 0)
            form.addWidget(widget, row, 1)
        form.addWidget(self.lock, 4, 1)
        form.setRowStretch(5, 1)
        form.setColumnStretch(1, 1)
        return form

    def redraw(self, old: State, new: State) -> None:
        """Show the selection's assignment and the plan's parts."""
        session = new.session
        self.say_empty("" if session else "Open a model to plan its layers.")
        if session is None:
            self.text.show_state(new)
            return
        self._show_page()
        count = len(new.selection)
        what = new.selection[0] if count == 1 else f"{count:,} layers" if count else "No layer selected"
        self.whom.setText(what)
        held = [new.assignments[name] for name in new.selection if name in new.assignments]
        schemes = legality.weight_choices(
            session, new.assignments, target=new.target, metric=new.metric, layers=new.selection
        )
        self._fill(self.weights, schemes, {one.weights for one in held})
        inputs = legality.input_choices(session, new.assignments, target=new.target, layers=new.selection)
        self._fill(self.inputs, tuple(name or FLOATING for name in inputs), {one.inputs or FLOATING for one in held})
        self._fill(self.algorithm, tuple(ALGORITHMS.names()), {one.algorithm for one in held})
        self._fill(self.ranges, tuple(RANGES.names()), {one.range_method for one in held})
        self.target.show_state(new)
        self.sums.show_state(new)
        self.lock.setEnabled(bool(count))
        self.lock.setChecked(bool(count) and set(new.selection) <= session.locked)
        if old.assignments is not new.assignments or old.session is None or old.totals is not new.totals:
            self.parts.show_records(self._sums.of(new), short_unit(shown_unit(session, new.metric)))
        self.search_line.show_state(new)

    # ---------------------------------------------------------------- inside

    def _show_page(self) -> None:
        """Give the page in front the newest state."""
        page = self.tabs.currentWidget()
        if isinstance(page, PanelPart):
            page.show_state(self.state)

    def _combo(self, name: str, field: str) -> QComboBox:
        combo = QComboBox()
        combo.setAccessibleName(name)
        combo.setToolTip(f"{name} of the selected layers")
        combo.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        combo.setMaxVisibleItems(24)
        combo.setMinimumWidth(combo.fontMetrics().horizontalAdvance("int4-g32-asym") + 34)
        combo.activated.connect(lambda _: self._chosen(combo, field))
        return combo

    def _chosen(self, combo: QComboBox, field: str) -> None:
        value = combo.currentData()
        if value != MIXED:
            edits.assign(
                self.context.workspace,
                self.state.selection,
                **{field: None if value == FLOATING else value},
            )

    def _fill(self, combo: QComboBox, offered: tuple[str, ...], held: set[str]) -> None:
        names = [*offered, *sorted(held - set(offered))]
        if len(held) > 1:
            names = [MIXED, *names]
        if [combo.itemData(row) for row in range(combo.count())] != names:
            combo.clear()
            for name in names:
                combo.addItem(_label(name), name)
        present = MIXED if len(held) > 1 else next(iter(held), "")
        combo.setCurrentIndex(combo.findData(present))
        combo.setEnabled(bool(held))


def _label(name: str) -> str:
    if name in (MIXED, FLOATING):
        return name
    if name == KEEP:
        return "keep in FP"
    return METHOD_LABELS.get(name, name)
