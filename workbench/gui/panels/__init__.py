"""One file for each dock.  A panel is given a frozen state and redraws what differs; it holds no truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workbench.gui.desk import Desk
from workbench.gui.panels.accuracy import AccuracyPanel
from workbench.gui.panels.agreement import AgreementPanel
from workbench.gui.panels.calibration_data import CalibrationDataPanel
from workbench.gui.panels.channels import ChannelsPanel
from workbench.gui.panels.distributions import DistributionsPanel
from workbench.gui.panels.error_budget import ErrorBudgetPanel
from workbench.gui.panels.jobs import JobsPanel
from workbench.gui.panels.layers import LayersPanel
from workbench.gui.panels.panel import Panel
from workbench.gui.panels.pareto import ParetoPanel
from workbench.gui.panels.plan import PlanPanel
from workbench.gui.panels.sensitivity import SensitivityPanel
from workbench.gui.panels.timing import TimingPanel
from workbench.gui.theme import Colours


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """A dock: ``place`` is a corner; panels of one corner are tabs, the first one in front."""

    id: str
    title: str
    place: str
    make: Callable[[Desk, Colours], Panel]


PANELS = (
    PanelSpec("layers", "Layers", "left top", LayersPanel),
    PanelSpec("plan", "Plan", "left bottom", PlanPanel),
    PanelSpec("sensitivity", "Sensitivity", "right top", SensitivityPanel),
    PanelSpec("pareto", "Pareto front", "right top", ParetoPanel),
    PanelSpec("accuracy", "Accuracy", "right top", AccuracyPanel),
    PanelSpec("agreement", "Agreement", "right top", AgreementPanel),
    PanelSpec("error_budget", "Error budget", "right top", ErrorBudgetPanel),
    PanelSpec("distributions", "Distributions", "right bottom", DistributionsPanel),
    PanelSpec("channels", "Channels", "right bottom", ChannelsPanel),
    PanelSpec("calibration_data", "Calibration data", "right bottom", CalibrationDataPanel),
    PanelSpec("timing", "Timing", "right bottom", TimingPanel),
    PanelSpec("jobs", "Jobs", "right bottom", JobsPanel),
)
