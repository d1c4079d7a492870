"""A family of number formats whose names have no parts to choose: a list of schemes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from workbench.numerics.scheme import Scheme

S = TypeVar("S", bound=Scheme)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFamily(Generic[S]):
    """``schemes`` by name."""

    name: str
    title: str
    schemes: tuple[S, ...]

    @property
    def examples(self) -> tuple[str, ...]:
        """Every name of the family."""
        return tuple(scheme.name for scheme in self.schemes)

    def parse(self, name: str) -> S | None:
        """Return the scheme called ``name`` (lower case), or None."""
        return next((scheme for scheme in self.schemes if scheme.name == name), None)
