"""How many weights each scheme of the plan stores."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel

from workbench.gui.panels.panel import Panel
from workbench.session.workspace import State


class WeightCountsPanel(Panel):
    """A line of text."""

    def _build(self) -> None:
        self.label = QLabel()
        self.column(self.label)

    def redraw(self, old: State, new: State) -> None:
        """Show what the session stores."""
        result = new.session.results.get("count-weights") if new.session is not None else None
        self.label.setText("not counted" if result is None else f"{sum(result.columns['weights'])} weights")
