"""Names of parameters: those of the file where they can be paths of modules, else like them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain, count
from typing import Any

import torch

TRANSPOSED_NAME = ".transposed"
"""How the name of a layer's transposed weight ends, by which the graph that runs leaves that node out."""

ENDINGS = re.compile(r"(\.codes|\.used|_quantized|_DQ_Q[248]|_Q[248]_?\w*|\.qweight|_DequantizeLinear\w*)$")
"""What exporters add to the name of a weight that they quantize."""

RESERVED = frozenset({*dir(torch.nn.Module()), "_onnx"})
"""What a part of a parameter's name cannot be."""

NAMELESS = re.compile(r"^(onnx::|/|const|initializer|[^.]*$)")
"""Names that exporters make up."""


def stem_of(source: str, node: Any) -> str:
    """Return the name of a weight without what exporters add; the node's where exporters made up the weight's."""
    stem = ENDINGS.sub("", source)
    if NAMELESS.match(stem) and "/" in node.name:
        stem = re.sub(rf"/{node.op_type}\w*$", "", node.name).strip("/") or stem
    return stem


class Names:
    """Paths of parameters; no two are equal, and none is a part of another.

    ``values`` are the names of the graph's tensors, which a path has only where it names that tensor.
    """

    def __init__(self, values: Iterable[str]) -> None:
        self.values, self.taken, self._above = set(values), set[str](), set[str]()
        self._next: dict[tuple[str, ...], int] = {}

    def fresh(self, name: str, source: str = "") -> str:
        """Return a name like ``name`` that can be a parameter's path, and that nothing else in the graph has."""
        parts = [part + "_" if part in RESERVED else part for part in re.split(r"[./:\s]+", name) if part]
        stem, last, key = parts[:-1], parts[-1], tuple(parts)
        for number in chain([0], count(self._next.get(key, 1))):  # thousands of nodes may have one name
            tail = f"_{number + 1}" if number else ""
            path = [*stem[:-1], stem[-1] + tail, last] if stem else [last + tail]
            full = ".".join(path)
            above = {".".join(path[:at]) for at in range(1, len(path))}
            used = full in self.taken or full in self._above or not above.isdisjoint(self.taken)
            used = used or (last == "weight" and ".".join(path[:-1]) in self._above)
            if not used and (full == source or full not in self.values):
                self.taken.add(full)
                self._above |= above
                self._next[key] = number + 1
                return full
        raise AssertionError("numbers do not end")
