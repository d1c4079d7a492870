"""The session: everything that is known about one model, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from workbench.errors import MissingResultError
from workbench.measurement.units import NATS
from workbench.sensitivity.metrics import BY_NAME, METRICS, REFINED, TABLE_METRICS
from workbench.sensitivity.metrics.metric import Part
from workbench.sensitivity.metrics.refined import refined_table
from workbench.sensitivity.table import Sensitivity
from workbench.session.contents import SCHEMA_VERSION, TAPS, Contents, Environment

__all__ = ["SCHEMA_VERSION", "TAPS", "Environment", "Session"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Session(Contents):
    """A model's facts and everything computed about it (see :class:`Contents`), with what can be asked of it."""

    def __repr__(self) -> str:
        """Return what it is about and what it holds, without the numbers: a notebook shows it after every step."""
        data = self.calibration
        held = [
            f"{len(self.model.stored)} layers", f"calibrated on {data.samples} samples" if data else "not calibrated",
            *(f"{name} of {len(table.schemes)} schemes" for name, table in self.sensitivities.items()),
            f"plan {self.plan.name!r} of {len(self.plan.rules)} rules", f"{len(self.evaluations)} evaluations",
        ]  # fmt: skip
        return f"<Session of {self.model.name!r}: {', '.join(held)}>"

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

    def tables(self, metric: str) -> tuple[Sensitivity | None, Sensitivity | None, Sensitivity | None]:
        """Return the losses of weights, inputs and KV cache that go with ``metric``, None where one is not there."""
        return self.table(metric), self.inputs_table(metric), self.cache_table(metric)

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
        """Read a session; raises SessionError for a file that is not a session, is damaged, or has a later version."""
        from workbench.session.file.hdf5 import read_session

        return read_session(Path(path), Session)
