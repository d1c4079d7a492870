"""The families of schemes and their order by size."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from workbench.numerics.formats import REGISTRY, parse_scheme
from workbench.planning.plan import KEEP

REFERENCE_SHAPE = (4096, 4096)
"""The matrix on which schemes are ordered by their size."""


@lru_cache(maxsize=1)
def families() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return ``(title, scheme names)`` of every family, fewest bits first."""
    titles = []
    for family in REGISTRY:
        names = sorted({name for name in family.examples if _stores_weights(name)}, key=reference_bits)
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


def _stores_weights(name: str) -> bool:
    return not name.split("-asym")[0].endswith("-token")


def neighbour(scheme: str, choices: Iterable[str], direction: int) -> str | None:
    """Return the next scheme with more (1) or fewer (-1) bits among ``choices``; None at the end."""
    ordered = sorted(set(choices) | {scheme}, key=lambda name: (reference_bits(name), name))
    position = ordered.index(scheme) + direction
    return ordered[position] if 0 <= position < len(ordered) else None
