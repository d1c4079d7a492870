"""The plan as JSON to edit: what is wrong is said beside the text and underlined, and the last good plan stays."""

from __future__ import annotations

import re

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QColor, QFontDatabase, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit

from workbench.errors import WorkbenchError
from workbench.gui.context import edits
from workbench.gui.panels.panel import PanelPart
from workbench.gui.shell.widgets import button, fill, label, named, row
from workbench.planning.plan import Plan, resolve
from workbench.session.workspace import State

PAUSE_MS = 250
"""How long after the last key the text is checked."""

LIVE_LIMIT = 200_000
"""Characters up to which the text is checked while the user types; beyond, it is checked when it is applied."""


class PlanText(PanelPart):
    """``Apply`` makes the text the plan, as one undoable step; ``Discard`` shows the plan again."""

    def _build(self) -> None:
        self._shown: Plan | None = None
        self.edit = named(QPlainTextEdit(), "Plan as JSON")
        self.edit.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in every language
        self.edit.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.edit.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.edit.setTabChangesFocus(True)
        self.edit.textChanged.connect(self._typed)
        self.error = label(role="error", name="What is wrong with the text", wrap=True)
        self.apply_button = button("&Apply", self.apply, "Make the text the plan")
        self.revert_button = button("&Discard", self.revert, "Show the plan as it is")
        self._pause = QTimer(self, singleShot=True, interval=PAUSE_MS)
        self._pause.timeout.connect(self.check)
        bottom = row(self.error, self.revert_button, self.apply_button, stretch=self.error)
        fill(self, self.edit, bottom, stretch=self.edit)
        self._enable(False)

    def redraw(self, old: State, new: State) -> None:
        """Show the snapshot's plan, unless the user has begun to change the text."""
        plan = new.session.plan if new.session else None
        if plan is self._shown or (self.edit.document().isModified() and plan is not None):
            return
        self._shown = plan
        self.edit.setPlainText(plan.to_json() if plan is not None else "")
        self.edit.document().setModified(False)
        self._say("")
        self._enable(False)

    def revert(self) -> None:
        """Show the plan as it is."""
        self.edit.document().setModified(False)
        self._shown = None
        self.show_state(self.state)

    def check(self) -> Plan | None:
        """Return the plan that the text describes; where it describes none, say why and underline the place."""
        session = self.state.session
        if session is None:
            return None
        try:
            plan = Plan.from_json(self.edit.toPlainText(), "the text")
            resolve(plan, session.model.layers)
        except WorkbenchError as error:
            self._say(str(error))
            return None
        self._say("")
        return plan

    def apply(self) -> None:
        """Make the text the plan."""
        plan = self.check()
        if plan is None:
            return
        self.edit.document().setModified(False)
        self._shown = plan
        edits.set_plan(self.context.workspace, "Edit the plan as text", plan)
        self._enable(False)

    def _typed(self) -> None:
        if not self.edit.document().isModified():
            return
        self._enable(True)
        if self.edit.document().characterCount() <= LIVE_LIMIT:
            self._pause.start()

    def _enable(self, changed: bool) -> None:
        self.apply_button.setEnabled(changed and not self.error.text())
        self.revert_button.setEnabled(changed or bool(self.error.text()))

    def _say(self, error: str) -> None:
        """Show an error beside the text and underline its line; an empty one takes both away."""
        self.error.setText(error)
        line = error_line(self.edit.toPlainText(), error) if error else None
        self.edit.setExtraSelections([] if line is None else [self._underlined(line)])
        self._enable(self.edit.document().isModified())

    def _underlined(self, line: int) -> QTextEdit.ExtraSelection:
        mark, shape = QTextEdit.ExtraSelection(), QTextCharFormat()
        cursor = QTextCursor(self.edit.document().findBlockByNumber(line))
        cursor.select(QTextCursor.SelectionType.LineUnderCursor)
        shape.setUnderlineStyle(QTextCharFormat.UnderlineStyle.WaveUnderline)
        shape.setUnderlineColor(QColor("#d81b1b"))
        mark.cursor, mark.format = cursor, shape
        return mark


def error_line(text: str, error: str) -> int | None:
    """Return the line (from 0) that an error speaks of: by number, by ``/rules/3``, or by a rule's pattern."""
    at = re.search(r"line (\d+)", error)
    if at:
        return int(at[1]) - 1
    lines = text.split("\n")
    place = re.search(r"/rules/(\d+)", error)
    if place:
        rules = [number for number, line in enumerate(lines) if '"pattern"' in line]
        return rules[int(place[1])] if int(place[1]) < len(rules) else None
    name = re.search(r"the rule '([^']*)'", error) or re.search(r"the member '([^']*)'", error)
    return next((number for number, line in enumerate(lines) if name and f'"{name[1]}"' in line), None)
