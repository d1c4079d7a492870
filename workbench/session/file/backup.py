"""A second copy of what only the user can make, in a session's file: plans, locks, ranges, and the model's facts.

One zeroed sector in the root of an HDF5 file takes everything in it along, and so does an end that was cut off.  The
copy is a small session in HDF5 of its own, compressed, with its length, a checksum and a mark; only a repair reads it.
It is the first array of the HDF5, and once more behind it: neither a lost beginning nor a lost end takes both along.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any, TypeVar

from workbench.session.contents import LAYOUTS, Contents

C = TypeVar("C", bound=Contents)

MARK = b"QWB SPARE COPY\r\n"
FOOTER = 8 + 4 + len(MARK)

EDITED = ("plan", "plans", "locked", "active_ranges")
"""Fields of a session that only the user can make."""


def without_computed(session: C) -> C:
    """Return the session with what the user made, what it is about, and nothing that a step can compute again."""
    empty: dict[str, Any] = {name: {} for name in (*LAYOUTS, "sensitivities", "results") if name not in EDITED}
    return replace(session, evaluations=(), timings=(), error_budget=None, audit=None, **empty)


def packed(image: memoryview) -> bytes:
    """Return ``image``, the HDF5 of a spare copy, compressed, and how to find it among other bytes."""
    data = zlib.compress(image, 1)
    return data + len(data).to_bytes(8, "little") + zlib.crc32(data).to_bytes(4, "little") + MARK


def inside(view: memoryview) -> memoryview:
    """Return the packed spare copy that lies among the bytes of a file, no bytes where none is whole."""
    return split(view[: bytes(view).find(MARK) + len(MARK)])[1]


def split(view: memoryview) -> tuple[memoryview, memoryview]:
    """Return what is before the spare copy at the end of ``view``, and that copy; no bytes without a whole one."""
    length, checksum = (int.from_bytes(view[-FOOTER:][a:b], "little") for a, b in ((0, 8), (8, 12)))
    start = len(view) - FOOTER - length
    if view[-len(MARK) :] != MARK or start < 0 or zlib.crc32(data := view[start:-FOOTER]) != checksum:
        return view, view[:0]
    return view[:start], data


def unpacked(data: memoryview, largest: int) -> memoryview | None:
    """Return the HDF5 of a spare copy, None where there is none or it would take more than ``largest`` bytes."""
    reader = zlib.decompressobj()
    try:
        image = reader.decompress(data, largest)
    except zlib.error:
        return None
    return memoryview(image) if reader.eof else None
