"""One file for each dock, a folder where it needs several.  A panel gets a frozen state and redraws what differs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.gui.context.context import Context
    from workbench.gui.panels.panel import Panel
    from workbench.gui.shell.theme import Colours


@dataclass(frozen=True, slots=True)
class later:  # noqa: N801  (reads as a function)
    """Makes a panel of a class in a module of this folder; the module is imported when the panel is first shown."""

    module: str
    name: str

    def __call__(self, context: Context, colours: Colours) -> Panel:
        panel: Panel = getattr(import_module(f"{__name__}.{self.module}"), self.name)(context, colours)
        return panel


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """A dock: ``place`` is a corner, whose panels are tabs, the first one in front; ``key`` is its own shortcut, which
    no other panel changes.  ``make`` is the panel's class, or ``later`` where to find it."""

    id: str
    title: str
    place: str
    key: str
    make: Callable[[Context, Colours], Panel]

    def makes(self, kind: type[Panel]) -> bool:
        """Return whether the panel is of the class ``kind``, without importing it."""
        if isinstance(self.make, later):
            return (f"{__name__}.{self.make.module}", self.make.name) == (kind.__module__, kind.__name__)
        return self.make is kind


PANELS = (
    PanelSpec("layers", "Layers", "left top", "Alt+1", later("layers", "LayersPanel")),
    PanelSpec("plan", "Plan", "left bottom", "Alt+2", later("plan.panel", "PlanPanel")),
    PanelSpec("sensitivity", "Sensitivity", "right top", "Alt+3", later("sensitivity", "SensitivityPanel")),
    PanelSpec("pareto", "Pareto front", "right top", "Alt+4", later("pareto", "ParetoPanel")),
    PanelSpec("accuracy", "Accuracy", "right top", "Alt+5", later("accuracy.panel", "AccuracyPanel")),
    PanelSpec("agreement", "Agreement", "right top", "Alt+6", later("agreement", "AgreementPanel")),
    PanelSpec("error_budget", "Error budget", "right top", "Alt+7", later("error_budget", "ErrorBudgetPanel")),
    PanelSpec("compare", "Compare", "right top", "Alt+8", later("compare", "ComparePanel")),
    PanelSpec("distributions", "Distributions", "right bottom", "Alt+9",
              later("distributions.panel", "DistributionsPanel")),
    PanelSpec("channels", "Channels", "right bottom", "Alt+0", later("channels", "ChannelsPanel")),
    PanelSpec("calibration_data", "Calibration data", "right bottom", "Alt+Shift+1",
              later("calibration_data.panel", "CalibrationDataPanel")),
    PanelSpec("timing", "Timing", "right bottom", "Alt+Shift+2", later("timing.panel", "TimingPanel")),
    PanelSpec("reconstruction", "Reconstruction", "right top", "Alt+Shift+4",
              later("reconstruction", "ReconstructionPanel")),
    PanelSpec("deploy", "Deploy", "right top", "Alt+Shift+5", later("deploy.panel", "DeployPanel")),
    PanelSpec("jobs", "Jobs", "right bottom", "Alt+Shift+3", later("jobs", "JobsPanel")),
)  # fmt: skip
