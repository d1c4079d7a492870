"""The plan's ordered rules: what each matches and decides, a line that adds one, buttons that move or remove it."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout

from workbench.gui.context import edits
from workbench.gui.context.context import Context
from workbench.gui.panels.panel import PanelPart
from workbench.gui.shell.fitted_label import FittedLabel
from workbench.gui.tables.fields import Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import legality
from workbench.insight.rules import RuleRow, matches_in_words, rule_rows
from workbench.planning.plan import Assignment, Rule
from workbench.session.workspace import State

LISTED = 40
"""How many names of layers a tooltip holds."""


FIELDS = (
    Number("#", lambda row: row.place + 1, tip="Rules are tried in this order; the first that matches a layer decides"),
    Field("Pattern", lambda row: row.rule.pattern),
    Field("Gives", lambda row: row.gives),
    Number("Decides", lambda row: row.decided, unit="layers",
           text=lambda row: f"{row.decided:,} of {len(row.matched):,}" if row.matched else "⚠ nothing",
           tip="Layers that no earlier rule decides, of those that it matches"),
    Field("Layers", lambda row: ", ".join(row.matched), text=lambda row: row.names,
          tooltip=lambda row: "\n".join(row.matched[:LISTED]), tip="The layers that the rule matches"),
)  # fmt: skip


class RulesView(RecordsView):
    """Rows can be dragged to another place; ``dragged(from, to)`` tells, and nothing moves by itself.

    The drag is followed by hand: Qt's own runs a nested event loop, in which the rest of the window would stand still.
    """

    dragged = Signal(int, int)

    def __init__(self, name: str) -> None:
        super().__init__(name, FIELDS, lambda row: row.rule.pattern)
        self._from = self._to = -1

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Note which row a drag would take."""
        super().mousePressEvent(event)
        left = event.button() is Qt.MouseButton.LeftButton
        self._from, self._to = (self.rowAt(event.position().toPoint().y()) if left else -1), -1

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Show where the row would go."""
        if self._from < 0 or not event.buttons() & Qt.MouseButton.LeftButton:
            return
        at = self._gap(event.position().toPoint().y())
        if at != self._to:
            self._to = at
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
            self.viewport().update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Tell about a drag that leads elsewhere."""
        super().mouseReleaseEvent(event)
        start, gap = self._from, self._to
        self._from = self._to = -1
        self.unsetCursor()
        self.viewport().update()
        if start >= 0 and gap >= 0 and gap not in (start, start + 1):
            self.dragged.emit(start, gap - (gap > start))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the rows, and a line where a dragged one would go."""
        super().paintEvent(event)
        if self._to >= 0 and self._to not in (self._from, self._from + 1):
            last = self.records.rowCount() - 1
            y = self.rowViewportPosition(self._to) if self._to <= last else self._below(last)
            with QPainter(self.viewport()) as painter:
                painter.fillRect(0, y - 1, self.viewport().width(), 2, self.palette().accent())

    def _gap(self, y: int) -> int:
        """Return the number of the gap between rows that is nearest to ``y``: 0 above the first."""
        row = self.rowAt(y)
        if row < 0:
            return 0 if y < 0 else self.records.rowCount()
        return row + (y - self.rowViewportPosition(row) > self.rowHeight(row) // 2)

    def _below(self, row: int) -> int:
        return self.rowViewportPosition(row) + self.rowHeight(row)


class PlanRules(PanelPart):
    """Every button and every drag is one undoable step."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.table = RulesView("Rules of the plan")
        self.table.setToolTip("Drag a rule to try it earlier or later")
        self.table.setSortingEnabled(False)
        self.table.horizontalHeader().setStretchLastSection(True)
        self.table.dragged.connect(self._put)
        self.error = QLabel()
        self.error.setProperty("role", "error")
        self.error.setWordWrap(True)
        self.up = self._button("Move &Up", "Try the rule earlier", lambda: self._move(-1))
        self.down = self._button("Move &Down", "Try the rule later", lambda: self._move(1))
        self.remove = self._button("Rem&ove", "Remove the rule", self._remove)
        self.pick = self._button("Select &Layers", "Select the layers that the rule matches", self._select)
        buttons = QHBoxLayout()
        for button in (self.up, self.down, self.remove, self.pick):
            buttons.addWidget(button)
        buttons.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addWidget(self.error)
        layout.addLayout(self._adding_line())
        layout.addWidget(self.matching)
        layout.addWidget(self.table, 1)
        layout.addLayout(buttons)
        self.setFocusProxy(self.table)

    def redraw(self, old: State, new: State) -> None:
        """Show the rules of the snapshot's plan."""
        session = new.session
        self.error.setText(new.plan_error)
        self.error.setVisible(bool(new.plan_error))
        if session is None:
            return
        schemes = legality.weight_choices(session, new.assignments, metric=new.metric)
        if tuple(self.scheme.itemText(place) for place in range(self.scheme.count())) != schemes:
            chosen = self.scheme.currentText()
            self.scheme.clear()
            self.scheme.addItems(schemes)
            self.scheme.setCurrentIndex(max(self.scheme.findText(chosen), 0))
        if old.session is not None and old.session.plan is session.plan and old.session.model is session.model:
            return
        self.table.show_records(rule_rows(session.plan, session.model.layers))
        self._fit_columns()
        self._typed()

    def _fit_columns(self) -> None:
        """Give the names of layers what the others leave."""
        header = self.table.horizontalHeader()
        for column in range(len(FIELDS) - 1):
            self.table.resizeColumnToContents(column)
        header.resizeSection(1, min(header.sectionSize(1), max(140, self.table.width() // 3)))

    def _adding_line(self) -> QHBoxLayout:
        line = QHBoxLayout()
        self.pattern = QLineEdit(placeholderText="New rule for: a name, model.layers.*.mlp.*, or re: and an expression")
        self.pattern.setAccessibleName("Pattern of a new rule")
        self.pattern.setToolTip("A layer's exact name; a pattern with *, ? and [ ]; or re: and a regular expression")
        self.pattern.textChanged.connect(lambda _: self._typed())
        self.pattern.returnPressed.connect(self._add)
        self.scheme = QComboBox()
        self.scheme.setAccessibleName("Scheme of a new rule")
        self.scheme.setToolTip("What the new rule gives the weights of the layers that it matches")
        self.add = self._button("&Add", "Add the rule before all others: the first that matches decides", self._add)
        self.matching = FittedLabel()
        self.matching.setAccessibleName("What the pattern matches")
        self.matching.hide()
        line.addWidget(self.pattern, 1)
        line.addWidget(self.scheme)
        line.addWidget(self.add)
        return line

    def _typed(self) -> None:
        """Say what the typed pattern matches."""
        session, pattern = self.state.session, self.pattern.text().strip()
        matched, words = matches_in_words(pattern, session.model.layers) if session and pattern else ((), "")
        self.matching.setVisible(bool(pattern))
        self.matching.setText(words)
        self.matching.setProperty("role", "muted" if matched else "error")
        self.matching.style().polish(self.matching)
        self.add.setEnabled(bool(matched))

    def _add(self) -> None:
        """Put the typed rule before all others, as one step; a pattern that matches nothing stays in its field."""
        session, pattern = self.state.session, self.pattern.text().strip()
        if session is None or not pattern or not matches_in_words(pattern, session.model.layers)[0]:
            return
        rule = Rule(pattern=pattern, assignment=Assignment(weights=self.scheme.currentText()))
        rest = tuple(held for held in session.plan.rules if held.pattern != pattern)
        edits.set_plan(self.context.workspace, f"Add the rule {pattern}", replace(session.plan, rules=(rule, *rest)))
        self.pattern.clear()

    def _button(self, text: str, tip: str, clicked: object) -> QPushButton:
        button = QPushButton(text)
        button.setToolTip(tip)
        button.clicked.connect(lambda: clicked())  # type: ignore[operator]
        return button

    def _chosen(self) -> RuleRow | None:
        rows = self.table.selectionModel().selectedRows()
        found = [self.table.records.record(row.row()) for row in rows]
        return found[0] if found else None

    def _move(self, step: int) -> None:
        row = self._chosen()
        if row is not None:
            self._put(row.place, row.place + step)

    def _put(self, start: int, to: int) -> None:
        """Move a rule to another place, as one step."""
        session = self.state.session
        if session is None or start == to or not 0 <= to < len(session.plan.rules):
            return
        rules = list(session.plan.rules)
        rules.insert(to, rules.pop(start))
        edits.set_plan(
            self.context.workspace, f"Move the rule {rules[to].pattern}", replace(session.plan, rules=tuple(rules))
        )

    def _remove(self) -> None:
        row, session = self._chosen(), self.state.session
        if row is not None and session is not None:
            rules = session.plan.rules[: row.place] + session.plan.rules[row.place + 1 :]
            edits.set_plan(
                self.context.workspace, f"Remove the rule {row.rule.pattern}", replace(session.plan, rules=rules)
            )

    def _select(self) -> None:
        row = self._chosen()
        if row is not None and row.matched:
            self.context.workspace.select(row.matched)
