"""Whether two computations of the same thing found the same: their floating-point numbers, array by array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import zip_longest

import numpy as np

ALIKE = 1e-2
"""The distance of two arrays, over the size of one, that rounding in another order does not explain."""

FEW = 0.05
"""The part of the arrays that may be further apart: what is nearly 0 has no digits that can be relied on."""


def agree(first: object, second: object) -> bool:
    """Return whether all but FEW of the floating-point arrays and numbers in two objects are ALIKE, NaN as NaN."""
    pairs = list(zip_longest(_numbers(first), _numbers(second)))
    apart = sum(a is None or b is None or not _alike(a, b) for a, b in pairs)
    return apart <= FEW * len(pairs)


def _alike(first: np.ndarray, second: np.ndarray) -> bool:
    if first.shape != second.shape or not np.array_equal(np.isfinite(first), np.isfinite(second)):
        return False
    finite = np.isfinite(first)
    a, b = first[finite].astype(np.float64), second[finite].astype(np.float64)
    return bool(np.linalg.norm(a - b) <= ALIKE * max(np.linalg.norm(a), np.linalg.norm(b)))


def _numbers(thing: object) -> Iterator[np.ndarray]:
    """Yield the arrays of floats in records, lists and tables, in order; a single number is an array, too."""
    import torch

    if isinstance(thing, torch.Tensor):
        thing = thing.detach().cpu().double().numpy() if thing.is_floating_point() else None
    if isinstance(thing, float | np.ndarray | np.floating):
        array = np.atleast_1d(np.asarray(thing))
        if array.dtype.kind == "f" and array.size:
            yield array
    elif isinstance(thing, Mapping):
        yield from (number for value in thing.values() for number in _numbers(value))
    elif isinstance(thing, list | tuple):
        yield from (number for value in thing for number in _numbers(value))
    elif is_dataclass(thing) and not isinstance(thing, type):
        yield from (number for each in fields(thing) for number in _numbers(getattr(thing, each.name)))
