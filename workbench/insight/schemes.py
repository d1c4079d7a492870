"""The families of schemes and their order by size."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from workbench.numerics.formats import REGISTRY, parse_scheme
from workbench.planning.plan import KEEP

REFERENCE_SHAPE = (4096, 4096)
"""The matrix on which schemes are ordered by their size."""


@lru_cache(maxsize=1)
def families() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return ``(title, scheme names)`` of every family, fewest bits first."""
    titles = []
    for family in REGISTRY:
        of_weights = {name for name in family.examples if not name.split("-asym")[0].endswith("-token")}
        names = sorted(of_weights, key=reference_bits)
        if names:
            titles.append((family.title, tuple(names)))
    return tuple(titles)


@lru_cache(maxsize=4096)
def family_of(name: str) -> str:
    """Return the title of the family that a scheme belongs to."""
    family = parse_scheme(name).family
    return next((member.title for member in REGISTRY if member.name == family), family)


@lru_cache(maxsize=4096)
def reference_bits(name: str) -> float:
    """Return bits per weight of the scheme on a large square matrix; ``keep`` sorts last."""
    if name == KEEP:
        return float("inf")
    rows, columns = REFERENCE_SHAPE
    return parse_scheme(name).bits(REFERENCE_SHAPE) / (rows * columns)


def neighbour(scheme: str, choices: Iterable[str], direction: int) -> str | None:
    """Return the scheme with the next more (1) or fewer (-1) bits among ``choices``; None at the end.

    Its family goes first, others where that ends; of several with equal bits the one whose values are most alike.
    """
    bits, family = reference_bits(scheme), _family(scheme)
    beyond = [name for name in choices if direction * (reference_bits(name) - bits) > 0]
    return min(
        beyond,
        key=lambda name: (_family(name) != family, direction * reference_bits(name), unlike(name, scheme), name),
        default=None,
    )


def unlike(first: str, second: str) -> int:
    """Return in how many of three ways the values of two schemes differ, 0 to 3: whether they lie on both sides of
    zero and evenly apart, and how many bits a code has."""
    return sum(ours != theirs for ours, theirs in zip(_values(first), _values(second), strict=True))


@lru_cache(maxsize=4096)
def _values(name: str) -> tuple[bool, bool, int]:
    values = np.zeros(0) if name == KEEP else parse_scheme(name).values()
    if not values.size:
        return True, False, 0
    gaps = np.diff(values)
    return bool(values[0] < 0), bool(np.ptp(gaps) < 1e-6), round(math.log2(values.size))


def _family(name: str) -> str:
    return name if name == KEEP else family_of(name)
