"""Named members: an explicit tuple of ours plus what third parties publish as entry points."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from workbench.errors import WorkbenchError, nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def entry_points(*, group: str) -> Iterable[EntryPoint]:
    """Return what third parties publish; the window starts without importing ``importlib.metadata`` and ``email``."""
    from importlib import metadata

    return metadata.entry_points(group=group)


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """The name by which users write the member."""


T = TypeVar("T", bound=Named)


class Registry(Generic[T]):
    """Members by name: ``explicit`` first, then those of the entry-point ``group``, loaded on first use.

    ``kind`` names a member in messages ("number format"), ``error`` is what an unknown name raises.  An entry point
    publishes one member, or a tuple of members.  One that fails to load, is not a ``member_type``, has no name or takes
    a name that exists is named in a RuntimeWarning and skipped: a broken plug-in never stops the workbench.
    """

    def __init__(
        self,
        explicit: Iterable[T],
        group: str,
        *,
        kind: str,
        error: type[WorkbenchError],
        member_type: type | None = None,
    ) -> None:
        self._members: dict[str, T] = {}
        for member in explicit:
            if member.name in self._members:
                raise ValueError(f"two members of {group} are called {member.name}")
            self._members[member.name] = member
        self._group, self._kind, self._error, self._type = group, kind, error, member_type
        self._discovered = False

    def names(self) -> tuple[str, ...]:
        """Return every name, ours first."""
        return tuple(self._all())

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._all().values()))

    def __len__(self) -> int:
        return len(self._all())

    def __contains__(self, name: object) -> bool:
        return name in self._all()

    def get(self, name: str) -> T:
        """Return the member called ``name``; raises the registry's error, which names the closest."""
        members = self._all()
        try:
            return members[name]
        except KeyError:
            known = ", ".join(members) if len(members) <= 20 else f"one of {len(members)} names"
            message = f"no {self._kind} is called {name!r}{nearest(name, members)} (expected: {known})"
            raise self._error(message) from None

    def _all(self) -> dict[str, T]:
        if not self._discovered:
            self._discovered = True
            for entry in entry_points(group=self._group):
                self._add(entry)
        return self._members

    def _add(self, entry: EntryPoint) -> None:
        try:
            loaded = entry.load()
            for member in loaded if isinstance(loaded, tuple) else (loaded,):
                self._check(member)
                self._members[member.name] = member
        except Exception as problem:  # whatever a third party's import raises
            warnings.warn(
                f"the {self._kind} {entry.name} ({entry.value}) is skipped: {type(problem).__name__}: {problem}",
                RuntimeWarning,
                stacklevel=4,
            )

    def _check(self, member: T) -> None:
        if self._type is not None and not isinstance(member, self._type):
            raise TypeError(f"expected a {self._type.__name__}, got {type(member).__name__}")
        if not isinstance(member.name, str) or not member.name:
            raise TypeError("its name is not a non-empty string")
        if member.name in self._members:
            raise ValueError(f"the name {member.name} is taken")
