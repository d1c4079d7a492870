"""What the tests of every scheme go through."""

from __future__ import annotations

from workbench.numerics.formats import REGISTRY, parse_scheme
from workbench.numerics.scheme import Scheme


def all_schemes() -> tuple[Scheme, ...]:
    """Return every typical scheme of every family, family by family."""
    return tuple(parse_scheme(name) for family in REGISTRY for name in family.examples)
