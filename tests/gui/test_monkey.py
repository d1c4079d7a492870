"""Two thousand random actions: nothing breaks, and undoing everything gives the identical plan."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.panels import PANELS
from workbench.gui.tables.layers import COLUMNS
from workbench.runtime import workspace

ACTIONS = 2000
SEED = 20240229
SAFE = (
    "undo", "redo", "fewer_bits", "more_bits", "keep", "lock", "select_all", "select_similar", "find",
    "switch_colours", "reset_layout",
)  # fmt: skip
OFTEN = ("undo", "redo", "fewer_bits", "more_bits", "keep", "lock", "select_similar")


class Monkey:
    """Each act is what a person could do with one gesture."""

    def __init__(self, person: Person, seed: int) -> None:
        self.random, self.person, self.window = random.Random(seed), person, person.window
        self.acts = (self.shortcut, self.click_heatmap, self.select, self.assign, self.front, self.tab, self.filter,
                     self.slide, self.range, self.sort, self.history, self.rule)  # fmt: skip
        self.weights = (12, 10, 8, 6, 4, 3, 2, 4, 3, 1, 2, 2)

    def act(self) -> None:
        """Do one thing."""
        self.random.choices(self.acts, self.weights)[0]()

    @property
    def names(self) -> list[str]:
        """The model's layers."""
        return [layer.name for layer in self.person.state.session.model.layers]

    def shortcut(self) -> None:
        """Trigger an action that needs no engine."""
        name = self.random.choice(OFTEN if self.random.random() < 0.97 else SAFE)
        self.window.actions_by_id[name].trigger()

    def click_heatmap(self) -> None:
        """Click anywhere in the heatmap."""
        port = self.window.panels["sensitivity"].heatmap.viewport()
        spot = QPoint(self.random.randrange(max(port.width(), 1)), self.random.randrange(max(port.height(), 1)))
        QTest.mouseClick(port, Qt.MouseButton.LeftButton, pos=spot)

    def select(self) -> None:
        """Select a few layers."""
        self.person.desk.workspace.select(self.random.sample(self.names, self.random.randint(0, 4)))

    def assign(self) -> None:
        """Choose in one of the plan's combos."""
        plan = self.window.panels["plan"]
        combo = self.random.choice((plan.weights, plan.inputs, plan.algorithm, plan.ranges))
        if combo.count() and combo.isEnabled():
            combo.setCurrentIndex(self.random.randrange(combo.count()))
            combo.activated.emit(combo.currentIndex())

    def front(self) -> None:
        """Take a plan of the front by keyboard."""
        plot = self.window.panels["pareto"].plot
        for _ in range(self.random.randint(1, 3)):
            QTest.keyClick(plot, self.random.choice((Qt.Key.Key_Left, Qt.Key.Key_Right)))
        QTest.keyClick(plot, Qt.Key.Key_Return)

    def slide(self) -> None:
        """Move the slider by keyboard."""
        slider = self.window.panels["pareto"].slider
        QTest.keyClick(slider, self.random.choice((Qt.Key.Key_PageUp, Qt.Key.Key_PageDown, Qt.Key.Key_Right)))

    def tab(self) -> None:
        """Bring a panel to the front."""
        self.window.show_panel(self.random.choice(PANELS).id)

    def filter(self) -> None:
        """Type a filter."""
        texts = ("", "mlp", "worst 3", "kind:linear", "re:[", "zzz")
        self.window.panels["layers"].filter.setText(self.random.choice(texts))

    def range(self) -> None:
        """Type a range, sensible or not."""
        panel = self.window.panels["distributions"]
        panel.line.show_tap(self.random.choice(("weight", "input", "output")))
        panel.high.setText(self.random.choice(("1.5", "0.25", "nonsense", "-3", "1e40", "")))
        panel.high.editingFinished.emit()

    def sort(self) -> None:
        """Sort the layers."""
        order = self.random.choice((Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder))
        self.window.panels["layers"].view.sortByColumn(self.random.randrange(len(COLUMNS)), order)

    def history(self) -> None:
        """Keep, take back or delete a plan."""
        history = self.window.panels["plan"].history
        if history.plans.records.rowCount() > 1:
            history.plans.selectRow(self.random.randrange(history.plans.records.rowCount()))
        self.random.choice((history.keep, history.take_back, history.delete))()

    def rule(self) -> None:
        """Move or remove a rule."""
        panel = self.window.panels["plan"]
        panel.tabs.setCurrentIndex(self.random.randrange(4))
        if panel.rules.table.records.rowCount():
            panel.rules.table.selectRow(self.random.randrange(panel.rules.table.records.rowCount()))
            self.random.choice((panel.rules.up, panel.rules.down, panel.rules.remove)).click()


def test_a_monkey_breaks_nothing(live: Callable[..., None], monkeypatch: object) -> None:
    monkeypatch.setattr(workspace, "MAX_UNDO", ACTIONS)  # type: ignore[attr-defined]
    session = sessions.full(1)
    session = replace(session, evaluations=(), timings=())

    async def story(person: Person) -> None:
        await person.open(session)
        before = workspace.Edits.of(person.state.session)
        monkey = Monkey(person, SEED)
        edits = 0
        for number in range(ACTIONS):
            await person.act(monkey.act) if number % 10 == 0 else monkey.act()
            edits += person.state.undo_name != ""
        assert edits > ACTIONS // 2
        assert not [message for message in person.desk.messages if message.level == "error"]
        while person.state.undo_name:
            person.desk.workspace.undo()
        after = workspace.Edits.of(person.state.session)
        assert after.plan == before.plan and after.plans == before.plans
        assert after.locked == before.locked and after.active_ranges == before.active_ranges
        person.picture("after")

    live(story)
