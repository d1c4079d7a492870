"""What the plan must run on: the choice of a target, what it cannot run, and one click that repairs the plan."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QPushButton

from workbench.deployment.targets import RUNTIMES, target, target_names
from workbench.gui.context.context import Context
from workbench.gui.panels.panel import PanelPart
from workbench.gui.shell.fitted_label import FittedLabel
from workbench.insight import quantities
from workbench.insight.latest import same_objects
from workbench.insight.legality import Refusal, refusals
from workbench.insight.legality import repair as repaired
from workbench.session.workspace import State

ANY = "anything"
LISTED = 12
"""How many violations the tooltip spells out."""


class PlanTarget(PanelPart):
    """A line: the target, the number of violations, ``Select`` and ``Repair``; a repair is one undoable step."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._of: tuple[object, ...] = ()
        self._found: tuple[Refusal, ...] = ()
        self.box = QComboBox()
        self.box.setAccessibleName("Target of the plan")
        self.box.setToolTip("What the plan must run on: only the schemes that it runs are offered")
        self.box.addItem(ANY, "")
        for name in target_names():
            self.box.addItem(target(name).title, name)
        self.box.insertSeparator(1 + len(RUNTIMES))
        self.box.setMinimumContentsLength(12)
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.box.activated.connect(lambda _: context.workspace.show_target(self.box.currentData() or ""))
        self.told = FittedLabel()
        self.told.setAccessibleName("What the target cannot run")
        self.select_button = QPushButton("Se&lect")
        self.select_button.setToolTip("Select the layers that the target cannot run")
        self.select_button.clicked.connect(self.select)
        self.repair_button = QPushButton("Re&pair")
        self.repair_button.setToolTip("Give each of them the nearest scheme that the target runs")
        self.repair_button.clicked.connect(self.repair)
        label, line = QLabel("&Target"), QHBoxLayout(self)
        label.setBuddy(self.box)
        line.setContentsMargins(0, 0, 0, 0)
        for widget in (label, self.box):
            line.addWidget(widget)
        line.addWidget(self.told, 1)
        line.addWidget(self.select_button)
        line.addWidget(self.repair_button)

    def redraw(self, old: State, new: State) -> None:
        """Show what the snapshot's target says of its plan."""
        of = (new.assignments, new.target, new.session.model if new.session else None)
        if same_objects(of, self._of):
            return
        self._of = of
        self.box.setCurrentIndex(max(self.box.findData(new.target), 0))
        self._found = _refusals(new)
        layers = len({name for one in self._found for name in one.layers})
        short = _sentence(new.target, layers)
        self.told.say(*(f"{short}: {one.sentence}" for one in self._found[:1]), short)
        self.told.setToolTip("\n".join(one.sentence for one in self._found[:LISTED]))
        self.told.setProperty("role", "error" if layers else "muted")
        self.told.style().polish(self.told)
        for button in (self.select_button, self.repair_button):
            button.setVisible(bool(layers))

    def select(self) -> None:
        """Select the violating layers."""
        self.context.workspace.select(name for one in self._found for name in one.layers)

    def repair(self) -> None:
        """Give every violating layer the nearest scheme that the target runs, as one step."""
        repair(self.context)


def repair(context: Context) -> None:
    """Repair what the target cannot run of the plan, as one undoable step; say what could not be repaired."""
    state = context.workspace.state
    if state.session is None or not state.target or not state.assignments:
        return
    result = repaired(state.session.plan, state.session.model.layers, state.target, state.assignments)
    title, count = target(state.target).title, quantities.plural(len(result.changes), "layer")
    if result.changes:
        context.workspace.edit(f"Repair {count} for {title}", lambda session: replace(session, plan=result.plan))
    if result.left:
        context.messages.say("Not everything could be repaired", result.left[0].sentence, "warning")
    elif result.changes:
        context.messages.say(f"Repaired {count}", f"for {title}")


def _refusals(state: State) -> tuple[Refusal, ...]:
    if state.session is None:
        return ()
    return refusals(state.session.plan, state.session.model.layers, state.target, state.assignments)


def _sentence(name: str, layers: int) -> str:
    if not name:
        return "no limits"
    return f"{quantities.plural(layers, 'layer')} refused" if layers else "runs the whole plan"
