"""Taking turns in compiled code: a counter that several threads raise without the interpreter's lock.

Importing this imports numba.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from workbench.numerics.statistics.tokens_compiled import compiled

_types: Any = importlib.import_module("numba").types
_cgutils: Any = importlib.import_module("numba.core.cgutils")
_intrinsic: Any = importlib.import_module("numba.extending").intrinsic

SPINS = 4000
"""Looks at a counter before one gives up waiting in compiled code: some tens of microseconds."""


def _raised(typing: Any, counters: Any, index: Any, by: Any) -> Any:
    """Add ``by`` to ``counters[index]`` (int64) in one step that no thread can come between; return what was there."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        array = context.make_array(kind)(context, builder, arguments[0])
        place = _cgutils.get_item_pointer(context, builder, kind, array, [arguments[1]])
        return builder.atomic_rmw("add", place, arguments[2], "seq_cst")

    return _types.int64(counters, _types.intp, _types.int64), generate


_raise_counter: Any = _intrinsic(_raised)


@compiled
def raise_counter(counters: np.ndarray, index: int, by: int) -> int:
    """Return ``counters[index]`` (int64 ``[n]``) as it was and raise it: no two threads see the same."""
    return int(_raise_counter(counters, index, by))


@compiled
def next_turn(counters: np.ndarray, index: int) -> int:
    """Raise ``counters[index]`` by one; each value that is returned goes to one thread."""
    return int(_raise_counter(counters, index, 1))


@compiled
def await_counter(counters: np.ndarray, index: int, value: int) -> bool:
    """Wait for a short while until ``counters[index]`` has reached ``value``; tell if it has."""
    spins = 0
    while spins < SPINS and _raise_counter(counters, index, 0) < value:
        spins += 1
    return spins < SPINS
