"""The session: everything that is known about one model, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from workbench.errors import MissingResultError
from workbench.measurement.evaluation import Evaluation, Timing
from workbench.measurement.units import NATS
from workbench.models.data.record import DataRecord
from workbench.models.summary import ModelSummary
from workbench.numerics.curvature import Curvature
from workbench.numerics.ranges import Range
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.numerics.statistics.outliers import TokenOutliers
from workbench.planning.plan import Plan
from workbench.sensitivity.audit import PlanAudit
from workbench.sensitivity.error_budget import BudgetPair
from workbench.sensitivity.metrics import BY_NAME, METRICS, REFINED, TABLE_METRICS
from workbench.sensitivity.metrics.metric import Part
from workbench.sensitivity.metrics.refined import refined_table
from workbench.sensitivity.table import Sensitivity

SCHEMA_VERSION = 1
"""The version of the file layout; a file of a later version is refused with a clear message."""

TAPS = ("weight", "input", "output")
"""Where statistics are taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where and with what the session was made: version strings only, no paths."""

    workbench: str
    python: str
    numpy: str
    torch: str
    device: str
    threads: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Session:
    """A model's facts and everything computed about it.  Frozen: ``dataclasses.replace`` makes the next one.

    ``statistics`` maps (layer, tap) with tap in TAPS; ``ranges`` maps (layer, tap, method) to calibrated ranges and
    ``active_ranges`` (layer, tap) to the one in force, which may be a person's own (method ``manual``).
    ``outliers`` maps (layer, ``input`` | ``output``) to the tokens that carry the largest values.
    ``sensitivities`` maps a metric to its table; ``plans`` are named plans besides the current ``plan``.
    ``error_budget`` and ``audit`` are the last ones measured; each names its plan.
    ``locked`` layers keep their assignment in every search.
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
    evaluations: tuple[Evaluation, ...] = ()
    error_budget: BudgetPair | None = None
    audit: PlanAudit | None = None
    timings: tuple[Timing, ...] = ()
    notes: tuple[str, ...] = ()

    def require_table(self, metric: str | None = None) -> Sensitivity:
        """Return the table of ``metric``, or the best one there is; raises MissingResultError naming what to run.

        ``refined`` is the predicted table with the measured cells in place and the others corrected by them.
        """
        if metric == REFINED.name:
            return refined_table(*(self.require_table(name) for name in REFINED.derived_from))
        for name in (metric,) if metric else TABLE_METRICS:
            if name in self.sensitivities:
                return self.sensitivities[name]
        raise MissingResultError(
            f"the session holds no sensitivity table{f' for the metric {metric}' if metric else ''}; "
            "compute the sensitivity first",
            command=f"workbench sensitivity S.qwb --metric {metric or 'predicted_kl'}",
        )

    def table(self, metric: str) -> Sensitivity | None:
        """Return the table of ``metric``, which may be ``refined``; None where it is not there."""
        if metric != REFINED.name:
            return self.sensitivities.get(metric)
        predicted, measured = (self.sensitivities.get(name) for name in REFINED.derived_from)
        return None if predicted is None or measured is None else refined_table(predicted, measured)

    def inputs_table(self, metric: str) -> Sensitivity | None:
        """Return what quantized inputs cost beside the losses of ``metric`` (the predicted or the measured KL).

        That of the same kind if there is one, else the other; None for other metrics, whose losses do not add to it.
        """
        return self._beside(metric, "inputs")

    def cache_table(self, metric: str) -> Sensitivity | None:
        """Return what a quantized key-value cache costs beside the losses of ``metric``, as :meth:`inputs_table`."""
        return self._beside(metric, "cache")

    def _beside(self, metric: str, part: Part) -> Sensitivity | None:
        if metric not in BY_NAME or BY_NAME[metric].unit != NATS:
            return None
        names = [other.name for other in METRICS if other.part == part and other.name in self.sensitivities]
        return self.sensitivities[min(names, key=lambda name: not name.startswith(metric))] if names else None

    def save(self, path: str | Path) -> None:
        """Write the session to an HDF5 file (``.qwb``), atomically: the old file stays whole if anything fails."""
        from workbench.session.file.hdf5 import write_session

        write_session(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> Session:
        """Read a session; raises SessionError for a file that is no session, is damaged or is of a later version."""
        from workbench.session.file.hdf5 import read_session

        return read_session(Path(path))
