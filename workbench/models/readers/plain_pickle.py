"""Pickles as data: the operations that build plain values, and names of objects that nothing here calls or imports.

Reads what ``torch.save`` writes.  No object of a file is ever made: a name is a :class:`Named`, and a call of one that
is listed becomes what its arguments describe.  Operations: pickletools of the standard library.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import IO, Any

MOST_OPERATIONS = 5_000_000
"""Of one pickle: more would take seconds and hundreds of megabytes."""

LARGEST_KEY, MOST_TUPLES, LARGEST_BITS = 16, 1000, 60
"""Parts of a key, entries of a table with such keys, and bits of a number that is a key."""

CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
VALUES = {
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING", "BINSTRING",
    "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES",
    "BINBYTES8",
}  # fmt: skip
EMPTY: dict[str, Callable[[], object]] = {
    "EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "EMPTY_SET": set,
}  # fmt: skip
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
MARKED: dict[str, Callable[[list[Any]], object]] = {
    "TUPLE": tuple, "LIST": list, "FROZENSET": lambda items: frozenset(keys(items)),
    "DICT": lambda items: dict(zip(keys(items[::2]), items[1::2], strict=True)),
}  # fmt: skip
SCALARS = (str, int, float, bool, bytes, type(None))


class NotPlainError(Exception):
    """A pickle that names or makes objects that are not data."""


class ScriptedError(NotPlainError):
    """A file that holds a TorchScript program."""


@dataclass(frozen=True, slots=True)
class Named:
    """An object that a pickle names: ``collections.OrderedDict``."""

    name: str


class PlainPickle:
    """Reads one pickle of a stream.  ``call`` makes a value of a name and arguments, ``stored`` of a persistent id."""

    def __init__(
        self, call: Callable[[str, tuple[Any, ...]], object], known: Callable[[str], bool],
        stored: Callable[[Any], object],
    ) -> None:  # fmt: skip
        self._call, self._known, self._stored = call, known, stored
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def read(self, stream: IO[bytes]) -> Any:
        """Return the value; raises NotPlainError, ValueError, and what damage makes of lists (IndexError, KeyError,
        TypeError)."""
        for number, (operation, argument, _) in enumerate(pickletools.genops(stream)):
            if number > MOST_OPERATIONS:
                raise ValueError(f"it has more than {MOST_OPERATIONS} parts")
            if operation.name == "STOP":
                return self._stack.pop()
            self._do(operation.name, argument)
        raise ValueError("it does not end")

    def _do(self, name: str, argument: Any) -> None:
        push = self._stack.append
        if name in VALUES:
            push(argument)
        elif name in CONSTANTS:
            push(CONSTANTS[name])
        elif name in EMPTY:
            push(EMPTY[name]())
        elif name in TUPLES:
            push(tuple(self._top(TUPLES[name])))
        elif name in MARKED:
            push(MARKED[name](self._marked()))
        elif name == "BYTEARRAY8":
            push(bytes(argument))
        elif name == "MARK":
            self._marks.append(len(self._stack))
        elif name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self._memo[len(self._memo) if argument is None else argument] = self._stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            push(self._memo[argument])
        elif name in ("POP", "POP_MARK"):
            self._stack.pop() if name == "POP" else self._marked()
        elif name not in ("PROTO", "FRAME"):
            self._fill_or_make(name, argument)

    def _fill_or_make(self, name: str, argument: Any) -> None:
        match name:
            case "APPEND" | "APPENDS" | "ADDITEMS":
                items = self._top(1) if name == "APPEND" else self._marked()
                target = self._stack[-1]
                target.update(keys(items, len(target))) if isinstance(target, set) else _list(target).extend(items)
            case "SETITEM" | "SETITEMS":
                items = self._top(2) if name == "SETITEM" else self._marked()
                table = _table(self._stack[-1])
                table.update(zip(keys(items[::2], len(table)), items[1::2], strict=True))
            case "GLOBAL" | "STACK_GLOBAL":
                parts = argument.split(" ", 1) if name == "GLOBAL" else self._top(2)
                self._stack.append(self._named(".".join(parts)))
            case "REDUCE":
                function, arguments = self._top(2)
                self._stack.append(self._reduced(function, arguments))
            case "BUILD":  # metadata of a state dict, attributes of a parameter
                self._top(1)
                if isinstance(self._stack[-1], Named):
                    raise NotPlainError(f"it changes {self._stack[-1].name}")
            case "PERSID" | "BINPERSID":
                self._stack.append(self._stored(argument if name == "PERSID" else self._top(1)[0]))
            case _:
                raise NotPlainError(f"it has the operation {name}")

    def _named(self, name: str) -> Named:
        if not self._known(name):
            raise NotPlainError(f"it names {name[:100]}")
        return Named(name)

    def _reduced(self, function: Any, arguments: Any) -> object:
        if not isinstance(function, Named) or not isinstance(arguments, tuple):
            raise NotPlainError("it calls something that is not a name")
        return self._call(function.name, arguments)

    def _top(self, count: int) -> list[Any]:
        if len(self._stack) - (self._marks[-1] if self._marks else 0) < count:
            raise ValueError("it takes more values than it has")
        items = self._stack[-count:]
        del self._stack[-count:]
        return items

    def _marked(self) -> list[Any]:
        mark = self._marks.pop()
        items = self._stack[mark:]
        del self._stack[mark:]
        return items


def keys(items: Iterable[Any], others: int = 0) -> list[Any]:
    """Return keys of a table that has ``others`` already; raises ValueError for those whose hash can take for ever.

    Python's hashes of whole numbers and of tuples are not secret: a file may choose many with the same one.
    """
    listed = list(items)
    for key in listed:
        if isinstance(key, tuple) and (len(key) > LARGEST_KEY or others + len(listed) > MOST_TUPLES):
            raise ValueError("too much in its tables is under keys of several parts")
        for part in key if isinstance(key, tuple) else (key,):
            if not isinstance(part, SCALARS) or (isinstance(part, int) and part.bit_length() > LARGEST_BITS):
                raise ValueError("a key of its tables is neither a text nor a number of usual size")
    return listed


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("it appends to something that is not a list")
    return value


def _table(value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise ValueError("it sets entries of something that is not a table")
    return value
