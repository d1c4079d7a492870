"""The last result of a function, for as long as it is asked about the same objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, TypeVarTuple

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class Latest(Generic[Result, *Arguments]):
    """Calls ``function`` again only where an argument is another object: snapshots are frozen, so equal ones are it."""

    def __init__(self, function: Callable[[*Arguments], Result]) -> None:
        self._function = function
        self._arguments: tuple[object, ...] | None = None
        self._result: Result

    def __call__(self, *arguments: *Arguments) -> Result:
        """Return ``function(*arguments)``, or what it returned for the same objects just before."""
        if self._arguments is None or not same_objects(self._arguments, arguments):
            self._result = self._function(*arguments)
            self._arguments = arguments
        return self._result


def same_objects(first: tuple[object, ...], second: tuple[object, ...]) -> bool:
    """Tell whether both hold the same objects in one order."""
    return len(first) == len(second) and all(a is b for a, b in zip(first, second, strict=True))
