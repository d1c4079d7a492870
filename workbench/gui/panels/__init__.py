"""One file for each dock, a folder where it needs several.  A panel gets a frozen state and redraws what differs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.gui.context.context import Context
    from workbench.gui.panels.panel import Panel
    from workbench.gui.shell.theme import Colours


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """A dock: ``place`` is a corner, whose panels are tabs, the first one in front; ``key`` is its own shortcut, which
    no other panel changes.  ``make`` imports the panel's file and makes the panel."""

    id: str
    title: str
    place: str
    key: str
    make: Callable[[Context, Colours], Panel]


def _layers(context: Context, colours: Colours) -> Panel:
    from workbench.gui.panels.layers import LayersPanel

    return LayersPanel(context, colours)


def _plan(context: Context, colours: Colours) -> Panel:
    from workbench.gui.panels.plan.panel import PlanPanel

    return PlanPanel(context, colours)


def _sensitivity(context: Context, colours: Colours) -> Panel:
    from workbench.gui.panels.sensitivity import SensitivityPanel

    return SensitivityPanel(context, colours)


def _pareto(context: Context, colours: Colours) -> Panel:
    from workbench.gui.panels.pareto import ParetoPanel

    return ParetoPanel(context, colours)


def _accuracy(context: Context, colours: Colours) -> Panel:
    from workbench.gui.panels.accuracy.panel import AccuracyPanel

    return AccuracyPanel(context, colours)


def _agreement(context: Context, colours: Colours) -> Panel:
    from workbench.gui.panels.agreement import AgreementPanel

    return AgreementPanel(context, colours)


def _error_budget(context: Context, colours: Colours) -> Panel:
    from workbench.gui.panels.error_budget import ErrorBudgetPanel

    return ErrorBudgetPanel(context, colours)


def _reconstruction(context: Context, colours: Colours) -> Panel:
    from workbench.gui.panels.reconstruction import ReconstructionPanel

    return ReconstructionPanel(context, colours)


def _compare(context: Context, colours: Colours) -> Panel:
    from workbench.gui.panels.compare import ComparePanel

    return ComparePanel(context, colours)


def _distributions(context: Context, colours: Colours) -> Panel:
    from workbench.gui.panels.distributions.panel import DistributionsPanel

    return DistributionsPanel(context, colours)


def _channels(context: Context, colours: Colours) -> Panel:
    from workbench.gui.panels.channels import ChannelsPanel

    return ChannelsPanel(context, colours)


def _calibration_data(context: Context, colours: Colours) -> Panel:
    from workbench.gui.panels.calibration_data.panel import CalibrationDataPanel

    return CalibrationDataPanel(context, colours)


def _timing(context: Context, colours: Colours) -> Panel:
    from workbench.gui.panels.timing.panel import TimingPanel

    return TimingPanel(context, colours)


def _jobs(context: Context, colours: Colours) -> Panel:
    from workbench.gui.panels.jobs import JobsPanel

    return JobsPanel(context, colours)


PANELS = (
    PanelSpec("layers", "Layers", "left top", "Alt+1", _layers),
    PanelSpec("plan", "Plan", "left bottom", "Alt+2", _plan),
    PanelSpec("sensitivity", "Sensitivity", "right top", "Alt+3", _sensitivity),
    PanelSpec("pareto", "Pareto front", "right top", "Alt+4", _pareto),
    PanelSpec("accuracy", "Accuracy", "right top", "Alt+5", _accuracy),
    PanelSpec("agreement", "Agreement", "right top", "Alt+6", _agreement),
    PanelSpec("error_budget", "Error budget", "right top", "Alt+7", _error_budget),
    PanelSpec("compare", "Compare", "right top", "Alt+8", _compare),
    PanelSpec("distributions", "Distributions", "right bottom", "Alt+9", _distributions),
    PanelSpec("channels", "Channels", "right bottom", "Alt+0", _channels),
    PanelSpec("calibration_data", "Calibration data", "right bottom", "Alt+Shift+1", _calibration_data),
    PanelSpec("timing", "Timing", "right bottom", "Alt+Shift+2", _timing),
    PanelSpec("reconstruction", "Reconstruction", "right top", "Alt+Shift+4", _reconstruction),
    PanelSpec("jobs", "Jobs", "right bottom", "Alt+Shift+3", _jobs),
)
