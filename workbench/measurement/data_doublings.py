"""Statistics of more and more of a data set, from one pass over it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from workbench.measurement.calibrate import calibrate
from workbench.models.data.batches import Data
from workbench.models.data.record import DataRecord
from workbench.models.model import Batch, Model
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.progress import Progress, part_of, silent

DOUBLINGS = 4
"""How often the data are doubled at most: an eighth of them first, then a quarter, half, all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRange:
    """The batches ``start`` to ``stop`` of a data set, whose batches hold ``batch_size`` samples."""

    data: Data
    start: int
    stop: int
    batch_size: int

    @property
    def record(self) -> DataRecord:
        """That of the whole."""
        return self.data.record

    def __len__(self) -> int:
        return max(min(len(self.data), self.stop * self.batch_size) - self.start * self.batch_size, 0)

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """Yield the batches; ``batch_size`` has to be that of the part."""
        if batch_size != self.batch_size:
            raise ValueError(f"the part is made of batches of {self.batch_size} samples, not of {batch_size}")
        return islice(self.data.batches(batch_size), self.start, self.stop)


def statistics_by_step(
    model: Model, data: Data, *, batch_size: int = 8, progress: Progress = silent
) -> list[tuple[int, dict[tuple[str, str], LayerStatistics]]]:
    """Return (samples so far, statistics of all of them) while the data double, the last step being all of them.

    Raises CannotRunError and DataError.
    """
    count = -(-len(data) // batch_size)
    ends = sorted({-(-count // 2**step) for step in range(DOUBLINGS)} - {0})
    steps: list[tuple[int, dict[tuple[str, str], LayerStatistics]]] = []
    start, samples = 0, 0
    statistics: dict[tuple[str, str], LayerStatistics] = {}
    for stop in ends or [0]:
        part = BatchRange(data=data, start=start, stop=stop, batch_size=batch_size)
        report = part_of(progress, start / max(count, 1), stop / max(count, 1))
        more = calibrate(model, part, batch_size=batch_size, curvature=False, progress=report)
        statistics = statistics | {
            key: statistics[key].merge(added) if key in statistics else added for key, added in more.statistics.items()
        }
        start, samples = stop, samples + more.samples
        steps.append((samples, statistics))
    return steps
