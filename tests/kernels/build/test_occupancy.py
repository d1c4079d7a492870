"""Theoretical occupancy against figures of NVIDIA's occupancy calculator and guides."""

from __future__ import annotations

import math

import pytest
from workbench_kernels.build.occupancy import LIMITS, limits, occupancy
from workbench_kernels.build.source import ARCHITECTURES, Resources, capability
from workbench_kernels.errors import ArgumentError


def used(registers: int, shared: int = 0) -> Resources:
    return Resources(registers=registers, stack=0, spills=0, shared=shared)


@pytest.mark.parametrize(
    ("registers", "block", "shared", "device", "warps", "limit"),
    [
        # CUDA C++ Best Practices Guide, "Calculating Occupancy": at 37 registers 128-thread blocks fill 75 % of cc 7.0
        # to 9.0 (12 of 16 blocks of 4 warps), and 320-thread blocks 63 %: 4 blocks of 10 warps.
        (37, 128, 0, (8, 0), 48, "registers"),
        (37, 320, 0, (8, 0), 40, "registers"),
        (32, 1024, 0, (9, 0), 64, "registers"),  # 2 x 1024 threads take all 65,536 registers
        (255, 128, 0, (9, 0), 8, "registers"),  # 8,192 a warp: two warps in each of four partitions
        (16, 32, 0, (9, 0), 32, "blocks"),  # 32 blocks of one warp
        (16, 256, 100 << 10, (9, 0), 16, "shared memory"),  # two blocks of 101 KB in 228
        (16, 1024, 0, (8, 6), 32, "warps"),  # 1,536 threads hold one block of 1,024
        (16, 128, 32 << 10, (7, 5), 8, "shared memory"),  # 64 KB, none of it reserved
    ],
)
def test_resident_warps(registers, block, shared, device, warps, limit):
    result = occupancy(used(registers), block, shared, device)
    assert (result.warps, result.limit) == (warps, limit)
    assert result.fraction == warps / LIMITS[device].warps


def test_static_shared_memory_counts_too():
    alone = occupancy(used(16), 256, 60 << 10, (9, 0)).warps
    assert occupancy(used(16, 60 << 10), 256, 0, (9, 0)).warps == alone
    assert occupancy(used(16, 60 << 10), 256, 60 << 10, (9, 0)).warps < alone


def test_a_generation_that_is_not_listed_is_unknown_by_name():
    result = occupancy(used(32), 256, 0, (11, 0))
    assert result.text().startswith("unknown (no limits are listed for compute capability (11, 0); listed: [(7, 5)")
    assert math.isnan(result.fraction)
    assert occupancy(used(16), 32, 0, (9, 0)).text() == "50% (blocks)"


def test_every_architecture_has_limits_and_other_generations_are_refused():
    for name in ARCHITECTURES:
        assert limits(capability(name)).warps > 0
    assert limits((8, 7)) == limits((8, 6))
    with pytest.raises(ArgumentError, match=r"no limits are listed for compute capability \(6, 1\)"):
        limits((6, 1))
