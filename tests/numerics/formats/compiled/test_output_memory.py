"""Memory of released results is used again, and never while anything still looks at it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from workbench.memory import give_back
from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.compiled import output_memory
from workbench.numerics.formats.compiled.output_memory import CAPACITY, SMALLEST, uninitialised

ROWS = 1024


@pytest.fixture(autouse=True)
def nothing_waits() -> Iterator[None]:
    output_memory._waiting.clear()
    yield
    output_memory._waiting.clear()


def columns(octets: int) -> int:
    return octets // 4 // ROWS


def test_freed_memory_that_is_given_back_waits_for_no_result() -> None:
    held, released = (uninitialised(ROWS, columns(SMALLEST)) for _ in range(2))
    del released
    gc.collect()
    assert len(output_memory._waiting) == 1
    give_back()
    assert not output_memory._waiting and held.shape == (ROWS, columns(SMALLEST))


def test_a_released_result_lends_its_memory_to_the_next() -> None:
    first = uninitialised(ROWS, columns(SMALLEST))
    assert first.shape == (ROWS, columns(SMALLEST)) and first.dtype == np.float32 and first.flags.writeable
    address = first.ctypes.data
    assert address % 64 == 0
    del first
    second = uninitialised(ROWS, columns(SMALLEST))
    third = uninitialised(ROWS, columns(SMALLEST))
    assert second.ctypes.data == address != third.ctypes.data


@pytest.mark.parametrize("name", ["int4-g32", "q4_0", "mxfp4"])
def test_a_live_view_of_any_kind_keeps_its_values(name: str) -> None:
    scheme = parse_scheme(name)
    weight = torch.randn(ROWS, columns(SMALLEST), generator=torch.Generator().manual_seed(0))
    stored = scheme.encode(weight, scheme.fit(weight))
    expected = scheme.decode(stored)[5:9, 3:].clone()
    views = (
        scheme.decode(stored)[5:9, 3:],
        scheme.decode(stored).numpy()[5:9, 3:],
        torch.nn.Parameter(scheme.decode(stored)).detach()[5:9, 3:],
        memoryview(scheme.decode(stored).numpy())[5:9],
    )
    gc.collect()
    for _ in range(len(views) + 1):
        scheme.round(weight * 2, scheme.fit(weight)).fill_(-1)
    for view in views[:3]:
        np.testing.assert_array_equal(np.asarray(view), expected.numpy())
    np.testing.assert_array_equal(np.asarray(views[3])[:, 3:], expected.numpy())


def test_small_results_and_other_sizes_take_memory_of_their_own() -> None:
    small = uninitialised(ROWS, columns(SMALLEST) - 1)
    large = uninitialised(ROWS, 2 * columns(SMALLEST))
    del small, large
    assert [memory.nbytes for memory in output_memory._waiting.values()] == [2 * SMALLEST + 64]
    address = next(iter(output_memory._waiting.values())).ctypes.data
    result = uninitialised(ROWS, columns(SMALLEST))  # half of what waits would be wasted
    assert not address <= result.ctypes.data < address + 2 * SMALLEST
    assert len(output_memory._waiting) == 1


def test_what_waits_is_bounded_and_the_oldest_goes_first() -> None:
    piece = CAPACITY // 4
    results = [uninitialised(ROWS, columns(piece)) for _ in range(6)]
    addresses = [result.ctypes.data for result in results]
    while results:
        del results[0]
    waiting = [memory.ctypes.data for memory in output_memory._waiting.values()]
    assert sum(memory.nbytes for memory in output_memory._waiting.values()) <= CAPACITY
    assert 0 < len(waiting) < 6
    assert all(any(0 <= late - start < 64 for start in waiting) for late in addresses[-len(waiting) :])
