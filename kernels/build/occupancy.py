"""How many warps of a kernel fit a multiprocessor: from its registers, shared memory and block, without a device.

Limits: CUDA C++ Programming Guide 13.0, "Technical Specifications per Compute Capability"; allocation units: CUDA
Occupancy Calculator (registers by 256 a warp, in four partitions; shared memory by 128 bytes, and 1 KB of each block's
for the system from compute capability 8.0 on).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import ArgumentError
from .source import Resources

WARP = 32
REGISTERS = 65536
PARTITIONS = 4
REGISTER_UNIT = 256


@dataclass(frozen=True, slots=True)
class Limits:
    """What one multiprocessor holds: warps, blocks, and bytes of shared memory."""

    warps: int
    blocks: int
    shared: int
    reserved: int = 1024
    unit: int = 128


LIMITS = {
    (7, 5): Limits(32, 16, 64 << 10, 0, 256), (8, 0): Limits(64, 32, 164 << 10), (8, 6): Limits(48, 16, 100 << 10),
    (8, 9): Limits(48, 24, 100 << 10), (9, 0): Limits(64, 32, 228 << 10), (10, 0): Limits(64, 32, 228 << 10),
    (12, 0): Limits(48, 24, 100 << 10),
}  # fmt: skip
"""By compute capability; a device in between has those of the next lower one of its generation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Resident ``warps`` of the ``most`` that fit, and what limits them: registers, shared memory, warps or blocks.

    A device whose limits are not listed has 0 of 0, and ``limit`` says so.
    """

    warps: int
    most: int
    limit: str

    @property
    def fraction(self) -> float:
        """Return the part of the multiprocessor's warps that can be resident; NaN if it is unknown."""
        return self.warps / self.most if self.most else math.nan

    def text(self) -> str:
        """Return the fraction and what limits it, or that it is unknown and why."""
        return f"{self.fraction:.0%} ({self.limit})" if self.most else f"unknown ({self.limit})"


def limits(capability: tuple[int, int]) -> Limits:
    """Return a device's limits; raises ArgumentError for a generation that is not listed."""
    known = [key for key in LIMITS if key[0] == capability[0] and key <= capability]
    if not known:
        raise ArgumentError(f"no limits are listed for compute capability {capability}; listed: {sorted(LIMITS)}")
    return LIMITS[max(known)]


def occupancy(used: Resources, block: int, shared: int, capability: tuple[int, int]) -> Occupancy:
    """Return how much of a multiprocessor blocks of ``block`` threads with ``shared`` bytes of dynamic shared memory
    fill; unknown for a generation that is not listed."""
    try:
        of = limits(capability)
    except ArgumentError as error:
        return Occupancy(warps=0, most=0, limit=str(error))
    warps = -(-block // WARP)
    per_warp = max(-(-used.registers * WARP // REGISTER_UNIT) * REGISTER_UNIT, REGISTER_UNIT)
    bytes_each = -(-(used.shared + shared + of.reserved) // of.unit) * of.unit
    fits = {
        "registers": REGISTERS // PARTITIONS // per_warp * PARTITIONS // warps,
        "shared memory": of.shared // bytes_each if bytes_each else of.blocks,
        "warps": of.warps // warps,
        "blocks": of.blocks,
    }
    limit = min(fits, key=lambda name: fits[name])
    return Occupancy(warps=fits[limit] * warps, most=of.warps, limit=limit)
