"""The plan: what the selected layers get, what the whole is made of, and the search within a budget."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QCheckBox, QComboBox, QGridLayout, QSizePolicy, QWidget

from workbench.gui.context import edits
from workbench.gui.panels.panel import Panel, PanelPart
from workbench.gui.panels.plan.history import PlanHistory
from workbench.gui.panels.plan.rules import PlanRules
from workbench.gui.panels.plan.search_line import SearchLine
from workbench.gui.panels.plan.target import PlanTarget
from workbench.gui.panels.plan.text import PlanText
from workbench.gui.panels.plan.transforms import PlanTransforms
from workbench.gui.plots.histogram import METHOD_LABELS
from workbench.gui.shell.fitted_label import FittedLabel
from workbench.gui.shell.widgets import combo, fitted, label, named, offer, page, row, tabs
from workbench.gui.tables.fields import METRIC_UNIT, Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import legality, quantities
from workbench.insight.latest import same_objects
from workbench.insight.plan_parts import Parts
from workbench.insight.sums import shown_unit, sums_in_words
from workbench.measurement.units import short_unit
from workbench.numerics.ranges import REGISTRY as RANGES
from workbench.numerics.rounding import REGISTRY as ALGORITHMS
from workbench.planning.plan import KEEP
from workbench.session.workspace import State

MIXED = "(several)"
FLOATING = "floating point"

SUMS_TIP = (
    "Bytes of the whole model; bits per weight, scales included; the loss of all layers by the metric that is chosen, "
    "lower is better; the median times of the layers' kernels one after another, where they were timed"
)

FIELDS = {
    "weights": ("&Weights", "Scheme of the weights"), "inputs": ("&Inputs", "Scheme of the inputs"),
    "algorithm": ("Al&gorithm", "Rounding algorithm"), "range_method": ("Ra&nge", "Range method for static inputs"),
}  # fmt: skip
"""The fields of an assignment that are chosen: their label and name."""

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

    def _build(self) -> None:
        self.rules, self.text, self.history = PlanRules(self.context), PlanText(self.context), PlanHistory(self.context)
        self.transforms = PlanTransforms(self.context)
        self.tabs = tabs("Views of the plan", (
            ("Layers", self._layers_page()), ("Rules", self.rules), ("Transforms", self.transforms),
            ("Text", self.text), ("Plans", self.history),
        ))  # fmt: skip
        self.tabs.currentChanged.connect(lambda _: self._show_page())
        self.column(self.tabs, focus=self.weights)

    def _layers_page(self) -> QWidget:
        """Return the page of what the selected layers get, what that makes, and the search."""
        self.whom = fitted(role="heading")
        self._parts = Parts()
        self.parts = RecordsView("What the plan is made of", PARTS, lambda part: part.scheme)
        self.sums, self.target, self.search_line = PlanSums(), PlanTarget(self.context), SearchLine(self.context)
        self.budget, self.search_button = self.search_line.budget, self.search_line.button
        self.refused = self.search_line.refused
        middle = row()
        middle.addLayout(self._form(), 3)
        middle.addWidget(self.parts, 7)
        return page(self.whom, middle, self.sums, self.target, self.search_line, stretch=middle)

    def _form(self) -> QGridLayout:
        self._boxes = {field: self._combo(name, field) for field, (_, name) in FIELDS.items()}
        self.weights, self.inputs, self.algorithm, self.ranges = self._boxes.values()
        self.lock = QCheckBox("Loc&ked")
        self.lock.setToolTip("A search leaves locked layers as they are")
        self.lock.clicked.connect(lambda locked: edits.lock(self.context.workspace, self.state.selection, locked))
        form = QGridLayout()
        form.setHorizontalSpacing(6)
        form.setVerticalSpacing(3)
        for place, (field, (text, _)) in enumerate(FIELDS.items()):
            form.addWidget(label(text, buddy=self._boxes[field]), place, 0)
            form.addWidget(self._boxes[field], place, 1)
        form.addWidget(self.lock, len(FIELDS), 1)
        form.setRowStretch(len(FIELDS) + 1, 1)
        form.setColumnStretch(1, 1)
        return form

    def _combo(self, name: str, field: str) -> QComboBox:
        box = combo(name, chosen=lambda: self._assign(field, box.currentData()), tip=f"{name} of the selected layers")
        box.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        box.setMaxVisibleItems(24)
        box.setMinimumWidth(box.fontMetrics().horizontalAdvance("int4-g32-asym") + 34)
        return box

    def redraw(self, old: State, new: State) -> None:
        session, selection = new.session, new.selection
        self.say_empty("" if session else "Open a model to plan its layers.")
        if session is None:
            self.text.show_state(new)
            return
        self._show_page()
        count = len(selection)
        self.whom.setText(selection[0] if count == 1 else f"{count:,} layers" if count else "No layer selected")
        self._show_assignments(new)
        for part in (self.target, self.sums, self.search_line):
            part.show_state(new)
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
        assignments = [state.assignments[name] for name in layers if name in state.assignments]
        for field, box in self._boxes.items():
            present = {getattr(assignment, field) or FLOATING for assignment in assignments}
            names = [name or FLOATING for name in choices[field]]
            names = [*([MIXED] if len(present) > 1 else ()), *names, *sorted(present - set(names))]
            offer(box, [(_label(name), name) for name in names])
            box.setCurrentIndex(box.findData(MIXED if len(present) > 1 else next(iter(present), "")))
            box.setEnabled(bool(present))

    def _assign(self, field: str, value: str) -> None:
        if value != MIXED:
            scheme = None if value == FLOATING else value
            edits.assign(self.context.workspace, self.state.selection, **{field: scheme})


class PlanSums(FittedLabel):
    """What the present plan comes to, in a line: bytes, bits per weight, predicted loss, time of its kernels.

    The shorter wordings leave the time, then the loss's name out.
    """

    def __init__(self) -> None:
        super().__init__()
        named(self, "What the plan comes to", SUMS_TIP)
        self._basis: tuple[object, ...] = ()

    def show_state(self, state: State) -> None:
        """Show the state's sums; nothing where its plan does not fit the model."""
        session, totals = state.session, state.totals
        basis = (totals, state.assignments, session.timings if session else None, state.metric)
        if same_objects(basis, self._basis):
            return
        self._basis = basis
        if session is None or totals is None:
            self.clear()
        else:
            self.say(*sums_in_words(session, state.assignments, totals, state.metric))


def _label(name: str) -> str:
    return "floating point" if name == KEEP else METHOD_LABELS.get(name, name)
