"""Two thousand random actions: nothing breaks, and undoing everything gives the identical plan."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QWidget

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.panels import PANELS
from workbench.session import workspace
from workbench.session.edits import BRANCH, EditableParts

ACTIONS = 2000
SEED = 20240229
SAFE = (
    "undo", "redo", "fewer_bits", "more_bits", "keep", "lock", "select_all", "select_similar", "find",
    "switch_colours", "reset_layout",
)  # fmt: skip
OFTEN = ("undo", "redo", "fewer_bits", "more_bits", "keep", "lock", "select_similar")


class Monkey:
    """Each act is one gesture: keys and clicks on what can be seen, through Qt's event queue."""

    def __init__(self, person: Person, seed: int) -> None:
        self.random, self.person, self.window = random.Random(seed), person, person.window
        self.acts = (self.shortcut, self.click_heatmap, self.select, self.assign, self.front, self.tab, self.filter,
                     self.slide, self.range, self.sort, self.history, self.rule)  # fmt: skip
        self.weights = (14, 10, 8, 6, 4, 4, 2, 4, 3, 1, 2, 2)

    def act(self) -> None:
        """Do one thing."""
        self.random.choices(self.acts, self.weights)[0]()

    def panel(self, name: str) -> Any:
        """Go to a panel by its shortcut, unless it can be seen."""
        result = self.window.panels[name]
        if result.visibleRegion().isEmpty():
            specs = [spec.id for spec in PANELS]
            self.keys(self.window.bars.panel_actions[specs.index(name)].shortcut())
        return result

    def keys(self, shortcut: QKeySequence) -> None:
        """Press a shortcut in what has the focus."""
        QTest.keySequence(QApplication.focusWidget() or self.window, shortcut)

    def click(self, widget: QWidget, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        """Click anywhere in ``widget`` where it can be seen."""
        observed = widget.visibleRegion().boundingRect()
        if not observed.isEmpty() and widget.isEnabled():
            across = self.random.randint(observed.left(), observed.right())
            down = self.random.randint(observed.top(), observed.bottom())
            QTest.mouseClick(widget, Qt.MouseButton.LeftButton, modifier, QPoint(across, down))

    def type(self, field: QWidget, text: str) -> None:
        """Replace what stands in a field, and press Enter."""
        if field.isVisible() and field.isEnabled():
            field.setFocus()
            QTest.keyClick(field, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
            QTest.keyClick(field, Qt.Key.Key_Delete)
            QTest.keyClicks(field, text)
            QTest.keyClick(field, Qt.Key.Key_Return)

    def shortcut(self) -> None:
        """Press the keys of an action that needs no engine."""
        name = self.random.choice(OFTEN if self.random.random() < 0.97 else SAFE)
        self.keys(self.window.actions_by_id[name].shortcut())

    def click_heatmap(self) -> None:
        """Click anywhere in the heatmap."""
        self.click(self.panel("sensitivity").heatmap.viewport())

    def select(self) -> None:
        """Click on a layer, some of them on top of what is selected."""
        modifier = Qt.KeyboardModifier.ControlModifier if self.random.random() < 0.5 else Qt.KeyboardModifier.NoModifier
        self.click(self.panel("layers").view.viewport(), modifier)

    def assign(self) -> None:
        """Choose in one of the plan's combos by keyboard."""
        plan = self.panel("plan")
        self.choose(self.random.choice((plan.weights, plan.inputs, plan.algorithm, plan.ranges)))

    def choose(self, combo: QComboBox) -> None:
        """Press an arrow key some times in a combo."""
        if combo.isVisible() and combo.isEnabled():
            key = self.random.choice((Qt.Key.Key_Up, Qt.Key.Key_Down))
            for _ in range(self.random.randint(1, 3)):
                QTest.keyClick(combo, key)

    def front(self) -> None:
        """Take a plan of the front by keyboard."""
        plot = self.panel("pareto").plot
        for _ in range(self.random.randint(1, 3)):
            QTest.keyClick(plot, self.random.choice((Qt.Key.Key_Left, Qt.Key.Key_Right)))
        QTest.keyClick(plot, Qt.Key.Key_Return)

    def slide(self) -> None:
        """Move the slider by keyboard."""
        slider = self.panel("pareto").slider
        QTest.keyClick(slider, self.random.choice((Qt.Key.Key_PageUp, Qt.Key.Key_PageDown, Qt.Key.Key_Right)))

    def tab(self) -> None:
        """Bring a panel to the front by its keys."""
        self.keys(self.random.choice(self.window.bars.panel_actions).shortcut())

    def filter(self) -> None:
        """Type a filter."""
        self.type(self.panel("layers").filter, self.random.choice(("", "mlp", "worst 3", "kind:linear", "re:[", "zzz")))

    def range(self) -> None:
        """Type a range, sensible or not, of one of the tensors."""
        panel = self.panel("distributions")
        self.choose(panel.line.taps)
        self.type(panel.high, self.random.choice(("1.5", "0.25", "nonsense", "-3", "1e40", "")))

    def sort(self) -> None:
        """Click on the headings of the layers."""
        self.click(self.panel("layers").view.header().viewport())

    def history(self) -> None:
        """Keep, take back or delete a plan."""
        history = self.panel("plan").history
        self.click(history.plans.viewport())
        self.click(self.random.choice((history.keep_button, history.take_button, history.delete_button)))

    def rule(self) -> None:
        """Move or remove a rule."""
        panel = self.panel("plan")
        self.click(panel.tabs.tabBar())
        self.click(panel.rules.table.viewport())
        self.click(self.random.choice((panel.rules.up, panel.rules.down, panel.rules.remove)))


def test_a_monkey_breaks_nothing(live: Callable[..., None], monkeypatch: object) -> None:
    monkeypatch.setattr(workspace, "MAX_UNDO", ACTIONS)  # type: ignore[attr-defined]
    session = sessions.full(1)
    session = replace(session, evaluations=(), timings=())

    async def story(person: Person) -> None:
        await person.open(session)
        before = EditableParts.of(person.state.session)
        monkey = Monkey(person, SEED)
        edits = 0
        for number in range(ACTIONS):
            await person.act(monkey.act) if number % 10 == 0 else monkey.act()
            edits += person.state.undo_name != ""
        assert edits > ACTIONS // 2
        assert not [message for message in person.context.messages.entries if message.level == "error"]
        while person.state.undo_name:
            person.window.actions_by_id["undo"].trigger()
        after = EditableParts.of(person.state.session)
        changed = after.plans.keys() ^ before.plans
        assert after.plan == before.plan and all(name.startswith(BRANCH) for name in changed)
        assert after.locked == before.locked and after.active_ranges == before.active_ranges
        person.picture("after")

    live(story)
