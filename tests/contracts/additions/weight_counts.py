"""How many weights each scheme of the plan stores."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel

from workbench.gui.context.context import Context
from workbench.gui.panels.panel import Panel
from workbench.gui.shell.theme import Colours
from workbench.session.workspace import State


class WeightCountsPanel(Panel):
    """A line of text."""

    def __init__(self, context: Context, colours: Colours) -> None:
        super().__init__(context, colours)
        self.label = QLabel()
        self.column().addWidget(self.label)

    def redraw(self, old: State, new: State) -> None:
        """Show what the session stores."""
        result = new.session.results.get("count-weights") if new.session is not None else None
        self.label.setText("not counted" if result is None else f"{sum(result.columns['weights'])} weights")
