"""One file for each dock.  A panel is given a frozen state and redraws what differs; it holds no truth."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.gui.context.context import Context
    from workbench.gui.panels.panel import Panel
    from workbench.gui.shell.theme import Colours


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """A dock: ``id`` names the file or folder beside this one, ``kind`` the class in it (in a folder, in its
    ``panel.py``), which is imported when the dock is made.

    ``place`` is a corner; panels of one corner are tabs, the first one in front.
    """

    id: str
    title: str
    place: str
    kind: str
    folder: bool = False

    @property
    def module(self) -> str:
        """The panel's module beside this file."""
        return f"{self.id}.panel" if self.folder else self.id

    def make(self, context: Context, colours: Colours) -> Panel:
        """Import the panel's file and make the panel."""
        kind: type[Panel] = getattr(import_module(f"workbench.gui.panels.{self.module}"), self.kind)
        return kind(context, colours)


PANELS = (
    PanelSpec("layers", "Layers", "left top", "LayersPanel"),
    PanelSpec("plan", "Plan", "left bottom", "PlanPanel", folder=True),
    PanelSpec("sensitivity", "Sensitivity", "right top", "SensitivityPanel"),
    PanelSpec("pareto", "Pareto front", "right top", "ParetoPanel"),
    PanelSpec("accuracy", "Accuracy", "right top", "AccuracyPanel", folder=True),
    PanelSpec("agreement", "Agreement", "right top", "AgreementPanel"),
    PanelSpec("error_budget", "Error budget", "right top", "ErrorBudgetPanel"),
    PanelSpec("compare", "Compare", "right top", "ComparePanel"),
    PanelSpec("distributions", "Distributions", "right bottom", "DistributionsPanel", folder=True),
    PanelSpec("channels", "Channels", "right bottom", "ChannelsPanel"),
    PanelSpec("calibration_data", "Calibration data", "right bottom", "CalibrationDataPanel", folder=True),
    PanelSpec("timing", "Timing", "right bottom", "TimingPanel", folder=True),
    PanelSpec("jobs", "Jobs", "right bottom", "JobsPanel"),
)
