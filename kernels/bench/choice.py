"""The fastest of several kernels for one shape, by measurement, with the figures of all: the choice can be shown."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from ..cpu.linear import FP32
from ..errors import BackendUnavailable, WrongResultError
from ..op import Op
from .measure import measure


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choice:
    """``op`` was the fastest: median ``microseconds`` by name of kernel, and ``refused``, the reasons of the others."""

    op: Op
    microseconds: dict[str, float]
    refused: dict[str, str]

    def text(self) -> str:
        """Return the choice in words."""
        others = [f"{name} {time:.0f} us" for name, time in self.microseconds.items() if name != self.op.name]
        refused = [f"{name}: {reason}" for name, reason in self.refused.items()]
        own = f"{self.op.name} {self.microseconds[self.op.name]:.0f} us"
        return "; ".join([own + (f" (slower: {', '.join(others)})" if others else ""), *refused])


def baseline(op: Op) -> Op:
    """Return the floating-point product that a kernel is timed beside, on the same device."""
    if op.device == "cpu":
        return FP32
    from .cuda_layers import FP16

    return FP16


@functools.cache
def fastest(candidates: tuple[Op, ...], rows: int, columns: int, batch: int, repeats: int = 7) -> Choice:
    """Check and time every kernel that takes the shape; raises BackendUnavailable with all reasons if none does.

    A kernel whose result is wrong on this machine is refused with that reason, and never taken.  Measured once in a
    process for each shape: the machine does not change under it.
    """
    reasons = {op.name: op.available() or op.refuses(rows, columns) for op in candidates}
    refused = {name: reason for name, reason in reasons.items() if reason}
    times: dict[str, float] = {}
    for op in candidates:
        if op.name in refused:
            continue
        try:
            times[op.name] = float(np.median(measure(rows, columns, batch, op, baseline(op), repeats=repeats).kernel))
        except WrongResultError as error:
            refused[op.name] = str(error)
    if not times:
        raise BackendUnavailable(f"no kernel takes {rows} x {columns}: " + "; ".join(map(": ".join, refused.items())))
    able = [op for op in candidates if op.name in times]
    return Choice(op=min(able, key=lambda op: times[op.name]), microseconds=times, refused=refused)
