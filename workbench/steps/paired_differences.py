"""Two evaluations on the same samples: what differs, and whether so many samples resolve it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.errors import DataError
from workbench.measurement.evaluation import Evaluation
from workbench.measurement.paired import Difference, between
from workbench.progress import Progress

if TYPE_CHECKING:
    from workbench.engine.model_cache import ModelCache


def paired_differences(first: Evaluation, second: Evaluation) -> tuple[Difference, ...]:
    """Return ``first - second`` of every metric that both have; DataError where they ran on different samples."""
    if first.data_hash != second.data_hash:
        raise DataError(
            f"{first.plan_name} ran on {first.data_name}, {second.plan_name} on other samples ({second.data_name}); "
            "evaluate both on the same data to compare them sample by sample"
        )
    shared = [name for name in first.metrics if name in second.metrics]
    return tuple(between(first.metrics[name], second.metrics[name]) for name in shared)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComparePlans:
    """Compare two evaluations sample by sample; the response is a Difference for each metric."""

    first: Evaluation
    second: Evaluation

    @property
    def title(self) -> str:
        """What a person reads in the jobs panel."""
        return f"Compare {self.first.plan_name} with {self.second.plan_name}"

    def run(self, models: ModelCache, progress: Progress) -> tuple[Difference, ...]:
        """Resample; raises DataError where the samples do not pair."""
        return paired_differences(self.first, self.second)
