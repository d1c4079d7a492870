"""A trial of a pass on one or two samples, and what it says about all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from torch.nn.modules.module import register_module_forward_pre_hook

from workbench.models.data.batches import Data
from workbench.models.data.record import DataRecord
from workbench.models.model import Batch
from workbench.preflight import SHORT, measured
from workbench.progress import heed

WARM = 30.0
"""Trials that take less are repeated: the first one loads what later ones have, for some 15 s on a busy machine.  Not
those of a few samples: the step itself would take no longer."""

PART = 5
"""So many times the samples of a trial of a batch are run in the step: the trial is a small part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pilot:
    """Seconds and bytes of a batch: ``fixed`` whatever its size, and for ``each`` sample in it."""

    fixed: float
    each: float
    fixed_bytes: float
    each_bytes: float

    def seconds(self, samples: int, batch: int) -> float:
        """Return the seconds of all batches."""
        return self.fixed * -(-samples // batch) + self.each * samples

    def nbytes(self, batch: int) -> int:
        """Return the bytes that a batch takes beside what was there before."""
        return int(self.fixed_bytes + self.each_bytes * batch)


def pilot(
    run: Callable[[int], object], samples: int, batch: int, passes: float = 1.0, *, least: float | None = None
) -> Pilot | None:  # fmt: skip
    """Try ``run(n)``, one batch of ``n`` samples; None where ``passes`` over all of them take less than ``least``.

    ``samples`` are run ``batch`` at a time; ``least`` is SHORT unless it is given.
    """
    least = SHORT if least is None else least
    first = _trial(run, 1)
    if passes * first[0] * samples < least:
        return None
    second = _trial(run, 1) if first[0] < WARM and passes * samples > PART else first
    if passes * second[0] * samples < least:
        return None
    nbytes = max(first[1], second[1])
    most = min(batch, 4)
    if most < 2 or most * PART > passes * samples or most * second[0] > WARM:
        return Pilot(fixed=0.0, each=second[0], fixed_bytes=0.0, each_bytes=nbytes)
    more = _trial(run, most)
    each = max((more[0] - second[0]) / (most - 1), more[0] / most / 2)
    each_bytes = max((more[1] - nbytes) / (most - 1), 0.0)
    return Pilot(
        fixed=max(second[0] - each, 0.0), each=each, fixed_bytes=max(nbytes - each_bytes, 0.0), each_bytes=each_bytes
    )


def _trial(run: Callable[[int], object], count: int) -> tuple[float, float]:
    heed()
    within = register_module_forward_pre_hook(lambda *_: heed())  # a pass of a large network takes long
    try:
        with measured() as spent:
            run(count)
    finally:
        within.remove()
    return spent.seconds, float(spent.peak - spent.before)


@dataclass(frozen=True, slots=True)
class FirstSamples:
    """The first ``count`` samples of ``data``, which still says how many there are."""

    data: Data
    count: int

    @property
    def record(self) -> DataRecord:
        """The record of all of the data."""
        return self.data.record

    def __len__(self) -> int:
        return len(self.data)

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """Yield the first samples as one batch."""
        yield from islice(self.data.batches(max(self.count, 1)), 1)
