"""GGUF metadata: values with their types, as the file stores them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64, INT64, FLOAT64 = range(13)
"""The numbers of the types in a file."""

FORMATS = {UINT8: "B", INT8: "b", UINT16: "H", INT16: "h", UINT32: "I", INT32: "i", FLOAT32: "f", BOOL: "B",
           UINT64: "Q", INT64: "q", FLOAT64: "d"}  # fmt: skip
"""The types of one size, as :mod:`struct` writes them."""


@dataclass(frozen=True, slots=True)
class Value:
    """``kind`` is one of the types above, ``element`` that of an array's elements; strings are ``bytes``."""

    kind: int
    data: Any
    element: int | None = None

    @property
    def plain(self) -> Any:
        """The value in Python's types; text that is not UTF-8 keeps its bytes as surrogates."""
        if self.kind == STRING:
            return self.data.decode("utf-8", "surrogateescape")
        if self.element == STRING:
            return [each.decode("utf-8", "surrogateescape") for each in self.data]
        return bool(self.data) if self.kind == BOOL else self.data


def value_of(plain: Any) -> Value:
    """Return the value of Python's ``plain`` with the type that llama.cpp's own converter gives it."""
    match plain:
        case bool():
            return Value(BOOL, plain)
        case int():
            return Value(UINT32, plain)
        case float():
            return Value(FLOAT32, plain)
        case str():
            return Value(STRING, plain.encode("utf-8", "surrogateescape"))
        case bytes():
            return Value(ARRAY, list(plain), UINT8)
        case [str(), *_]:
            return Value(ARRAY, [each.encode("utf-8", "surrogateescape") for each in plain], STRING)
        case [float(), *_]:
            return Value(ARRAY, plain, FLOAT32)
        case [int(), *_]:
            return Value(ARRAY, plain, INT32)
    raise TypeError(f"GGUF metadata cannot hold {plain!r}")
