"""Damage that a file may have come by, or that somebody put there: bits, blocks, sectors, lengths, words of JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, *((1 << bits) - less for bits in (15, 16, 31, 32, 63, 64) for less in (0, 1)))
"""Lengths and offsets that overflow something."""

VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 1e308, 10**30, "", "\x1b[31m", "x" * 3000, "../../../etc/passwd", [], {}, [[]], {"": {}},
    [None], "float64", float("nan"), -(2**63), [1] * 300,
)  # fmt: skip
"""What JSON may hold where something else is expected."""

HEAD = 512
"""Bytes at the start, where most formats keep their structure: half of the damage falls there."""


def mutated(data: bytes, random: np.random.Generator, is_json: bool, whole: bool = False) -> bytes:
    """Return ``data`` with one to four damages; ``whole``: it stays JSON."""
    for _ in range(int(random.integers(1, 5))):
        if not data:
            break
        kind = 7 if whole else int(random.integers(0, 8 if is_json else 7))
        as_json = kind == 7 or (is_json and kind > 3)
        data = _json(data, random, 7 if whole else 5) if as_json else _bytes(data, random, kind)
    return data


def _bytes(data: bytes, random: np.random.Generator, kind: int) -> bytes:
    bound = min(len(data), HEAD) if random.random() < 0.5 else len(data)
    place = int(random.integers(0, bound))
    size = int(min(random.geometric(0.05), len(data) - place))
    match kind:
        case 0:
            return data[:place] + bytes([data[place] ^ 1 << int(random.integers(0, 8))]) + data[place + 1 :]
        case 1:
            return data[:place] + random.bytes(size) + data[place + size :]
        case 2:
            return data[:place]
        case 3:
            return data[:place] + data[place + size :]
        case 4:
            return data[: place + size] + data[place:]
        case 5:
            start = place // 512 * 512
            return data[:start] + bytes(min(512, len(data) - start)) + data[start + 512 :]
        case _:
            value, width = EXTREMES[int(random.integers(0, len(EXTREMES)))], int(random.choice([1, 2, 4, 8]))
            number = (value % (1 << 8 * width)).to_bytes(width, "little" if random.random() < 0.7 else "big")
            return (data[:place] + number + data[place + width :])[: len(data)]


def _json(data: bytes, random: np.random.Generator, kinds: int) -> bytes:
    """Replace, remove, rename, repeat or nest one value in the JSON; of seven ``kinds``, move or step it, too."""
    try:
        lines = data.decode().splitlines() if data.count(b"\n{") else [data.decode()]
        row = int(random.integers(0, len(lines)))
        tree = [json.loads(lines[row])]
    except ValueError:
        return data
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list) and len(places) < 5000:
                walk(node[key])

    walk(tree)
    node, key = places[int(random.integers(0, len(places)))]
    value = VALUES[int(random.integers(0, len(VALUES)))]
    match int(random.integers(0, kinds)):
        case 0 if isinstance(node, dict):
            del node[key]
        case 1 if isinstance(node, dict):
            node[str(value)[:50]] = node.pop(key)
        case 2 if isinstance(node, list):
            node.append(node[key])
        case 3:
            node[key] = [node[key]]
        case 5:
            other, place = places[int(random.integers(0, len(places)))]
            node[key] = json.loads(json.dumps(other[place]))
        case 6 if isinstance(node[key], int | float):
            node[key] = _stepped(node[key], random)
        case _:
            node[key] = value
    lines[row] = json.dumps(tree[0] if tree else None)
    return "\n".join(lines).encode()


def _stepped(number: float, random: np.random.Generator) -> float:
    return (number + 1, number - 1, 2 * number, -number, number // 2, number * 2**20)[int(random.integers(0, 6))]
