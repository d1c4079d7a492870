"""The plan's ordered rules: what each matches and decides, a line that adds one, buttons that move or remove it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractItemView, QHBoxLayout, QLineEdit

from workbench.gui.context import edits
from workbench.gui.panels.panel import PanelPart
from workbench.gui.shell.widgets import button, combo, fill, fitted, label, named, offer, row, set_role
from workbench.gui.shell.words import tr
from workbench.gui.tables.fields import Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import legality
from workbench.insight.quantities import whole
from workbench.insight.rules import RuleRow, matches_in_words, rule_rows
from workbench.planning.plan import Assignment, Plan, Rule
from workbench.session.workspace import State

LISTED = 40
"""How many names of layers a tooltip holds."""

FIELDS = (
    Number("#", lambda row: row.place + 1, tip="Rules are tried in this order; the first that matches a layer decides"),
    Field("Pattern", lambda row: row.rule.pattern),
    Field("Gives", lambda row: row.gives),
    Number("Decides for", lambda row: row.decided, unit="layers",
           words=True,
           text=lambda row: f"{whole(row.decided)} of {whole(len(row.matched))}" if row.matched else "⚠ nothing",
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
        """Report a drag that leads elsewhere."""
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
            y = self.rowViewportPosition(min(self._to, last)) + (self.rowHeight(last) if self._to > last else 0)
            with QPainter(self.viewport()) as painter:
                painter.fillRect(0, y - 1, self.viewport().width(), 2, self.palette().accent())

    def _gap(self, y: int) -> int:
        """Return the number of the gap between rows that is nearest to ``y``: 0 above the first."""
        row = self.rowAt(y)
        if row < 0:
            return 0 if y < 0 else self.records.rowCount()
        return row + (y - self.rowViewportPosition(row) > self.rowHeight(row) // 2)


class PlanRules(PanelPart):
    """Every button and every drag is one undoable step."""

    def _build(self) -> None:
        self.table = RulesView("Rules of the plan")
        self.table.setToolTip(tr("Drag a rule to try it earlier or later"))
        self.table.setSortingEnabled(False)
        self.table.horizontalHeader().setStretchLastSection(True)
        self.table.dragged.connect(self._put)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)  # the buttons are about one rule
        self.table.selectionModel().selectionChanged.connect(lambda *_: self._enable())
        self.error = label(role="error", wrap=True)
        self.matching = fitted(name="What the pattern matches")
        self.matching.hide()
        self.up = button("Move &Up", lambda: self._move(-1), "Try the rule earlier")
        self.down = button("Move &Down", lambda: self._move(1), "Try the rule later")
        self.remove = button("Rem&ove", self._remove, "Remove the rule")
        self.pick = button("Select &Layers", self._select, "Select the layers that the rule matches")
        line, buttons = self._new_rule_line(), row(self.up, self.down, self.remove, self.pick, None)
        fill(self, self.error, line, self.matching, self.table, buttons, stretch=self.table)
        self._enable()

    def _enable(self) -> None:
        """Offer what can be done with the selected rule."""
        selected, last = self._selected(), self.table.records.rowCount() - 1
        self.up.setEnabled(selected is not None and selected.place > 0)
        self.down.setEnabled(selected is not None and selected.place < last)
        self.remove.setEnabled(selected is not None)
        self.pick.setEnabled(selected is not None and bool(selected.matched))

    def redraw(self, old: State, new: State) -> None:
        session = new.session
        self.error.setText(new.plan_error)
        self.error.setVisible(bool(new.plan_error))
        if session is None:
            return
        schemes = legality.weight_choices(session, new.assignments, metric=new.metric)
        offer(self.scheme, [(name, name) for name in schemes])
        if old.session is not None and old.session.plan is session.plan and old.session.model is session.model:
            return
        self.table.show_records(rule_rows(session.plan, session.model.layers))
        self._fit_columns()
        self._typed()
        self._enable()

    def _fit_columns(self) -> None:
        """Give the names of layers what the others leave."""
        header = self.table.horizontalHeader()
        for column in range(len(FIELDS) - 1):
            self.table.resizeColumnToContents(column)
        header.resizeSection(1, min(header.sectionSize(1), max(140, self.table.width() // 3)))

    def _new_rule_line(self) -> QHBoxLayout:
        hint = "New rule for: a name, model.layers.*.mlp.*, or re: and an expression"
        tip = "A layer's exact name; a pattern with *, ? and [ ]; or re: and a regular expression"
        self.pattern = named(QLineEdit(placeholderText=tr(hint)), "Pattern of a new rule", tip)
        self.pattern.textChanged.connect(lambda _: self._typed())
        self.pattern.returnPressed.connect(self._add)
        tip = "What the new rule gives the weights of the layers that it matches"
        self.scheme = combo("Scheme of a new rule", tip=tip)
        self.add = button("&Add", self._add, "Add the rule before all others: the first that matches decides")
        return row(self.pattern, self.scheme, self.add, stretch=self.pattern)

    def _matches(self) -> tuple[tuple[str, ...], str]:
        """Return the layers that the typed pattern matches, and what to say of them."""
        session, pattern = self.state.session, self.pattern.text().strip()
        return matches_in_words(pattern, session.model.layers) if session and pattern else ((), "")

    def _typed(self) -> None:
        """Describe what the typed pattern matches."""
        matched, words = self._matches()
        self.matching.setVisible(bool(self.pattern.text().strip()))
        self.matching.setText(words)
        set_role(self.matching, "muted" if matched else "error")
        self.add.setEnabled(bool(matched))

    def _add(self) -> None:
        """Put the typed rule before all others, as one step; a pattern that matches nothing stays in its field."""
        session, pattern = self.state.session, self.pattern.text().strip()
        if session is not None and self._matches()[0]:
            rule = Rule(pattern=pattern, assignment=Assignment(weights=self.scheme.currentData()))
            others = (other for other in session.plan.rules if other.pattern != pattern)
            self._set_rules(f"Add the rule {pattern}", session.plan, (rule, *others))
            self.pattern.clear()

    def _selected(self) -> RuleRow | None:
        rows: list[RuleRow] = self.table.selected()
        return rows[0] if rows else None

    def _move(self, step: int) -> None:
        selected = self._selected()
        if selected is not None:
            self._put(selected.place, selected.place + step)

    def _put(self, start: int, to: int) -> None:
        """Move a rule to another place, as one step."""
        session = self.state.session
        if session is not None and start != to and 0 <= to < len(session.plan.rules):
            rules = list(session.plan.rules)
            rules.insert(to, rules.pop(start))
            self._set_rules(f"Move the rule {rules[to].pattern}", session.plan, rules)

    def _remove(self) -> None:
        selected, session = self._selected(), self.state.session
        if selected is not None and session is not None:
            rules = session.plan.rules[: selected.place] + session.plan.rules[selected.place + 1 :]
            self._set_rules(f"Remove the rule {selected.rule.pattern}", session.plan, rules)

    def _set_rules(self, title: str, plan: Plan, rules: Iterable[Rule]) -> None:
        edits.set_plan(self.context.workspace, title, replace(plan, rules=tuple(rules)))

    def _select(self) -> None:
        selected = self._selected()
        if selected is not None and selected.matched:
            self.context.workspace.select(selected.matched)
