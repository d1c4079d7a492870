"""What a session holds: the fields, which the session file writes and reads; results of all layers are columns."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.measurement.evaluation import Evaluation, Timing
from workbench.models.data.record import DataRecord
from workbench.models.summary import ModelSummary
from workbench.numerics.curvature import Curvature
from workbench.numerics.ranges import Range
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.numerics.statistics.outliers import TokenOutliers
from workbench.planning.plan import Plan
from workbench.sensitivity.audit import PlanAudit
from workbench.sensitivity.error_budget import BudgetPair
from workbench.sensitivity.table import Sensitivity
from workbench.session.budget import Budget
from workbench.session.columns import Columns
from workbench.session.results import StepResult
from workbench.session.table import Layout, Table
from workbench.version import VERSION

SCHEMA_VERSION = 1
"""The version of the file layout; a file of a later version is refused with a clear message."""

TAPS = ("weight", "input", "output")
"""Where statistics are taken."""


ANY = "any runtime"
"""The target of a plan that may be run anywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where and with what the session was made: version strings only, no paths."""

    workbench: str
    python: str
    numpy: str
    torch: str
    device: str
    threads: int

    @staticmethod
    def here(device: str = "cpu") -> Environment:
        """Return this process's versions and number of compute threads, with the name of the device that it used."""
        import torch

        return Environment(
            workbench=VERSION, python=platform.python_version(), numpy=np.__version__, torch=str(torch.__version__),
            device=device, threads=torch.get_num_threads(),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Contents:
    """A model's facts and everything computed about it.  Frozen: ``dataclasses.replace`` makes the next one.

    ``statistics`` maps (layer, tap) with tap in TAPS; ``ranges`` maps (layer, tap, method) to calibrated ranges and
    ``active_ranges`` (layer, tap) to the one in force, which may be the user's own (method ``manual``).
    ``outliers`` maps (layer, ``input`` | ``output``) to the tokens that carry the largest values.
    ``sensitivities`` maps a metric to its table; ``plans`` are named plans beside the current ``plan``.
    ``error_budget`` and ``audit`` are the last ones measured; each names its plan.
    ``results`` maps a step to what it computed last, for steps whose results have no field of their own.
    ``target`` names the runtime or device that the plan is for: ``ANY`` if any was chosen, empty if none was.
    ``budget`` is what the user lets a search use (None: never chosen).
    ``locked`` layers keep their assignment in every search.  The fields in LAYOUTS are tables of columns, whatever
    mapping they were given as.
    """

    model: ModelSummary
    environment: Environment
    plan: Plan
    calibration: DataRecord | None = None
    evaluation: DataRecord | None = None
    statistics: Mapping[tuple[str, str], LayerStatistics] = field(default_factory=dict)
    ranges: Mapping[tuple[str, str, str], Range] = field(default_factory=dict)
    active_ranges: Mapping[tuple[str, str], Range] = field(default_factory=dict)
    curvature: Mapping[str, Curvature] = field(default_factory=dict)
    outliers: Mapping[tuple[str, str], TokenOutliers] = field(default_factory=dict)
    sensitivities: Mapping[str, Sensitivity] = field(default_factory=dict)
    plans: Mapping[str, Plan] = field(default_factory=dict)
    locked: frozenset[str] = frozenset()
    target: str = ""
    budget: Budget | None = None
    evaluations: tuple[Evaluation, ...] = ()
    error_budget: BudgetPair | None = None
    audit: PlanAudit | None = None
    timings: tuple[Timing, ...] = ()
    results: Mapping[str, StepResult] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, layout in LAYOUTS.items():
            value = getattr(self, name)
            if not isinstance(value, Table):
                object.__setattr__(self, name, Table(layout, value))

    def columns(self, name: str) -> Mapping[str, Columns[object]]:
        """Return the columns of the field ``name`` (see LAYOUTS): by tap, or all under an empty name."""
        table: Table[str, object] = getattr(self, name)
        return table.parts


LAYOUTS: Mapping[str, Layout[Any, Any]] = {
    "statistics": Layout(LayerStatistics, "layer", by_tap=True),
    "outliers": Layout(TokenOutliers, "layer", by_tap=True),
    "ranges": Layout(Range, "layer", "tap", "method_key"),
    "active_ranges": Layout(Range, "layer", "tap", edited=True),
    "curvature": Layout(Curvature, "layer"),
}
"""The results that are held as columns, by field."""
