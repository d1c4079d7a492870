"""The plan: what the selected layers get, what the whole is made of, and the search within a budget."""

from __future__ import annotations

from collections import Counter

from PySide6.QtCore import QEvent, QObject, QSize, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QCheckBox, QComboBox, QGridLayout, QSizePolicy, QWidget

from workbench.gui.context import edits
from workbench.gui.panels.panel import Panel, PanelPart
from workbench.gui.panels.plan.dashboard import PlanDashboard
from workbench.gui.panels.plan.history import PlanHistory
from workbench.gui.panels.plan.rules import PlanRules
from workbench.gui.panels.plan.search_line import SearchLine
from workbench.gui.panels.plan.target import PlanTarget
from workbench.gui.panels.plan.text import PlanText
from workbench.gui.panels.plan.transforms import PlanTransforms
from workbench.gui.plots.histogram import METHOD_LABELS
from workbench.gui.shell.isolated_layout import IsolatedPages
from workbench.gui.shell.widgets import combo, fitted, label, offer, page, row, tabs
from workbench.gui.shell.words import tr
from workbench.gui.tables.fields import METRIC_UNIT, Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import legality, quantities
from workbench.insight.dashboard import change_in_words, cost_in_words
from workbench.insight.plan_parts import LAYERS_TIP, Parts
from workbench.insight.sums import shown_unit
from workbench.measurement.units import short_unit
from workbench.numerics.ranges import REGISTRY as RANGES
from workbench.numerics.rounding import REGISTRY as ALGORITHMS
from workbench.planning.plan import KEEP
from workbench.session.workspace import State

MIXED = "(several)"
FLOATING = "floating point"
FRAME = 14
"""Pixels of the panel's and the page's margins."""
PREVIEWED = 2_000
"""Selected layers up to which the cost of a scheme is shown while the list is open."""

FIELDS = {
    "weights": ("&Weights", "Scheme of the weights"), "inputs": ("&Inputs", "Scheme of the inputs"),
    "algorithm": ("Al&gorithm", "Rounding algorithm"), "range_method": ("Ra&nge", "Range method for static inputs"),
}  # fmt: skip
"""The fields of an assignment that are chosen: their label and name."""

PARTS = (
    Field("Scheme", lambda part: part.scheme, tip="How weights are stored"),
    Number("Layers", lambda part: part.layers, tip=LAYERS_TIP),
    Number("Size", lambda part: part.bits / 8, quantities.data_size, unit="bytes"),
    Number("Loss", lambda part: part.loss, unit=METRIC_UNIT,
           tip="Sum of the layers' scores; lower is better"),
    Number("Weights", lambda part: part.weights, quantities.count, tip="Number of weights"),
)  # fmt: skip


class PlanPanel(Panel):
    """Combos that assign at once, a table of what the plan is made of, and the search."""

    smallest = QSize(430, 260)

    def _build(self) -> None:
        self.rules, self.text, self.history = PlanRules(self.context), PlanText(self.context), PlanHistory(self.context)
        self.transforms = PlanTransforms(self.context)
        self.tabs = tabs("Views of the plan", (
            ("Layers", self._layers_page()), ("Rules", self.rules), ("Transforms", self.transforms),
            ("Text", self.text), ("Plans", self.history),
        ))  # fmt: skip
        self.tabs.currentChanged.connect(lambda _: self._show_page())
        pages = self.rules.table, self.transforms.list, self.text.edit, self.history.plans
        self.column(self.tabs, focus=(self.weights, *pages, self.parts))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fold the key figures where there is little room."""
        super().resizeEvent(event)
        self._fit_figures()

    def _fit_figures(self) -> None:
        page = self.dashboard.parentWidget()
        assert page is not None
        self.dashboard.fit(page, self.height() - self.tabs.tabBar().sizeHint().height() - FRAME)

    def _layers_page(self) -> QWidget:
        """Return the page of what the selected layers get, what that makes, and the search."""
        self.whom = fitted(role="heading")
        self._parts = Parts()
        self.parts = RecordsView("What the plan is made of", PARTS, lambda part: part.scheme)
        self.dashboard = PlanDashboard()
        self.target, self.search_line = PlanTarget(self.context), SearchLine(self.context)
        self.budget, self.search_button = self.search_line.budget, self.search_line.button
        self.refused = self.search_line.refused
        middle = row()
        middle.addLayout(self._form(), 3)
        middle.addWidget(self.parts, 7)
        whom = row(self.whom, self.lock, stretch=self.whom)
        return IsolatedPages(page(self.dashboard, whom, middle, self.target, self.search_line, stretch=middle))

    def _form(self) -> QGridLayout:
        self._boxes = {field: self._combo(name, field) for field, (_, name) in FIELDS.items()}
        self.weights, self.inputs, self.algorithm, self.ranges = self._boxes.values()
        self.lock = QCheckBox(tr("Loc&ked"))
        self.lock.setToolTip(tr("A search leaves locked layers as they are"))
        self.lock.clicked.connect(lambda locked: edits.lock(self.context.workspace, self.state.selection, locked))
        form = QGridLayout()
        form.setHorizontalSpacing(6)
        form.setVerticalSpacing(3)
        titles = [label(text, buddy=self._boxes[field]) for field, (text, _) in FIELDS.items()]
        for place, (title, box) in enumerate(zip(titles, self._boxes.values(), strict=True)):
            form.addWidget(title, place, 0)
            form.addWidget(box, place, 1)
        titles += [self.target.title, self.search_line.title]
        widest = max(title.sizeHint().width() for title in titles)
        for title in titles:  # all fields of the page begin below each other
            title.setFixedWidth(widest)
        form.setRowStretch(len(FIELDS), 1)
        form.setColumnStretch(1, 1)
        return form

    def _combo(self, name: str, field: str) -> QComboBox:
        tip = tr("{} of the selected layers").format(tr(name))
        box = combo(name, chosen=lambda: self._assign(field, box.currentData()), tip=tip)
        box.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        box.setMaxVisibleItems(24)
        box.setMinimumWidth(box.fontMetrics().horizontalAdvance("int4-g32-asym") + 34)
        if field == "weights":
            box.highlighted.connect(lambda place: self._preview(box, place))
            box.view().installEventFilter(self)
        return box

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Show the selected layers again once the list of schemes is closed."""
        if event.type() == QEvent.Type.Hide:
            self._show_whom()
        return False

    def _preview(self, box: QComboBox, place: int) -> None:
        """Describe what the scheme under the mouse or the keyboard in an open list would change."""
        state, scheme = self.state, box.itemData(place)
        few = 0 < len(state.selection) <= PREVIEWED
        if few and box.view().isVisible() and state.session is not None and scheme != MIXED:
            change = change_in_words(state, state.selection, scheme)
            words = f"{_label(scheme)}: {change}" if change else f"{_label(scheme)}: as it is"
            self.whom.say(f"{words} · {cost_in_words(state, state.selection, scheme)}", words)

    def _show_whom(self) -> None:
        selection = self.state.selection
        count = len(selection)
        several = tr(quantities.plural(count, "layer")) if count else "No layer selected"
        self.whom.setText(selection[0] if count == 1 else several)

    def redraw(self, old: State, new: State) -> None:
        session, selection = new.session, new.selection
        self.say_empty("" if session else "Open a model to plan its layers.")
        if session is None:
            self.text.show_state(new)
            return
        self._show_page()
        count = len(selection)
        self._show_whom()
        self._show_assignments(new)
        failed = self.search_line.failure.isHidden()
        for part in (self.target, self.dashboard, self.search_line):
            part.show_state(new)
        if failed != self.search_line.failure.isHidden():
            QTimer.singleShot(0, self, self._fit_figures)  # once the layouts know of it
        self.lock.setEnabled(bool(count))
        self.lock.setChecked(bool(count) and set(selection) <= session.locked)
        if old.assignments is not new.assignments or old.session is None or old.totals is not new.totals:
            self.parts.show_records(self._parts.of(new), short_unit(shown_unit(session, new.metric)))

    def _show_page(self) -> None:
        """Give the page in front the newest state."""
        front = self.tabs.currentWidget()
        if isinstance(front, PanelPart):
            front.show_state(self.state)

    def _show_assignments(self, state: State) -> None:
        """Offer what each field can be, and show what the selected layers have."""
        session, layers = state.session, state.selection
        choices = {
            "weights": legality.weight_choices(
                session, state.assignments, target=state.target, metric=state.metric, layers=layers
            ),
            "inputs": legality.input_choices(session, state.assignments, target=state.target, layers=layers),
            "algorithm": ALGORITHMS.names(), "range_method": RANGES.names(),
        }  # fmt: skip
        assignments = [(name, state.assignments[name]) for name in layers if name in state.assignments]
        for field, box in self._boxes.items():
            counted = Counter(
                edits.MANUAL if field == "range_method" and session is not None and edits.is_by_hand(session, name)
                else getattr(assignment, field) or FLOATING for name, assignment in assignments
            )  # fmt: skip
            present = set(counted)
            names = [name or FLOATING for name in choices[field]]
            names = [*([MIXED] if len(present) > 1 else ()), *names, *sorted(present - set(names))]
            offer(box, [(_label(name), name) for name in names])
            box.setCurrentIndex(box.findData(MIXED if len(present) > 1 else next(iter(present), "")))
            box.setEnabled(bool(present))
            lines = [f"{quantities.whole(count)} × {_label(name)}" for name, count in counted.most_common(6)]
            several = "\n".join(["", *lines]) if len(lines) > 1 else ""
            box.setToolTip(tr("{} of the selected layers").format(tr(FIELDS[field][1])) + several)

    def _assign(self, field: str, value: str) -> None:
        if value not in (MIXED, edits.MANUAL):
            scheme = None if value == FLOATING else value
            edits.assign(self.context.workspace, self.state.selection, **{field: scheme})


def _label(name: str) -> str:
    return "floating point" if name == KEEP else METHOD_LABELS.get(name, name)
