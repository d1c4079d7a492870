"""A step that runs out of memory runs again in smaller batches, and then fails with a named error."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from workbench.engine.failure import portable
from workbench.errors import WorkbenchError
from workbench.steps.step import Context, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the step."""

    batch_size: int = 8
    samples: int = 3


def step(fits: int, error: type[Exception], sizes: list[int]) -> Step[Options, int]:
    def run(context: Context, options: Options) -> int:
        sizes.append(options.batch_size)
        if options.batch_size > fits:
            raise error("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4398046511104 bytes")
        return options.batch_size * options.samples

    return Step(name="fills", title="Fill the memory", summary="", options=Options, run=run, document=False)


@pytest.mark.parametrize("error", [MemoryError, RuntimeError, torch.OutOfMemoryError])
def test_batches_are_halved_until_they_fit(error: type[Exception]) -> None:
    sizes, notes = list[int](), list[str]()
    assert step(2, error, sizes)(None, Options(), notes=notes) == 6
    assert sizes == [8, 4, 2]
    assert notes[-1] == "Fill the memory: the memory ran out, so it ran with batches of 2"


def test_what_does_not_fit_at_all_is_one_line() -> None:
    sizes = list[int]()
    with pytest.raises(MemoryError) as caught:
        step(0, MemoryError, sizes)(None, Options())
    assert sizes == [8, 4, 2, 1]
    error = portable(caught.value, "Fill the memory")
    assert isinstance(error, WorkbenchError) and str(error).startswith("Fill the memory: the memory ran out; use fewer")


def test_other_faults_are_not_tried_again() -> None:
    sizes = list[int]()
    with pytest.raises(ValueError, match="allocate"):
        step(0, ValueError, sizes)(None, Options())
    assert sizes == [8]
