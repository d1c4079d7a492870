"""What is still true of a snapshot: frozen parts that did not change are the same objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import compress
from operator import is_, is_not
from typing import Generic, TypeVar, TypeVarTuple

from workbench.planning.plan import Assignment

Assignments = Mapping[str, Assignment]
Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class Latest(Generic[Result, *Arguments]):
    """Calls ``function`` again only for other objects than in the last call and the one of others before it: an edit
    that is undone needs what was true just before."""

    def __init__(self, function: Callable[[*Arguments], Result]) -> None:
        self._function = function
        self._last: tuple[tuple[tuple[object, ...], Result], ...] = ()  # one object: a worker thread may ask as well

    def __call__(self, *arguments: *Arguments) -> Result:
        """Return ``function(*arguments)``, or what it returned for the same objects."""
        known = self._last
        found = next((each for each in known if same_objects(each[0], arguments)), None)
        if found is None:
            found = arguments, self._function(*arguments)
        if not known or known[0] is not found:
            self._last = (found, *known[:1])
        return found[1]


def same_objects(first: tuple[object, ...], second: tuple[object, ...]) -> bool:
    """Return whether both hold the same objects in the same order."""
    return len(first) == len(second) and all(a is b for a, b in zip(first, second, strict=True))


def changed_layers(old: Assignments, new: Assignments) -> list[str] | None:
    """Return the layers whose assignment is another object; None where the layers themselves differ.

    An edit of some layers keeps all other objects and their order, so that 10,000 layers take well under a millisecond.
    """
    if old is new:
        return []
    if len(old) == len(new) and all(map(is_, old, new)):
        return list(compress(new, map(is_not, old.values(), new.values())))
    if old.keys() != new.keys():
        return None
    return [name for name, after in new.items() if old[name] is not after]
