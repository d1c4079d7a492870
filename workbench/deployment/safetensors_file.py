"""The safetensors format, written one tensor at a time; the library's own writer needs all of them in memory.

Eight bytes with the header's length (little-endian), the header (JSON, filled up with spaces to a multiple of 8), then
the tensors one after another.  Format: https://github.com/huggingface/safetensors.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.deployment.tensors import Entry, require_same_bytes
from workbench.errors import ExportError
from workbench.memory import let_go, put_away_again
from workbench.models.dtypes import DTYPES, tensor_bytes
from workbench.progress import Progress

if TYPE_CHECKING:
    from workbench.models.sources.stored import TensorStore

PIECE = 1 << 24
"""Bytes that are written or compared at a time, so that little of a mapped tensor is resident."""

_LARGEST_HEADER = 100_000_000


def write_safetensors(path: Path, entries: Iterable[Entry], metadata: Mapping[str, str], progress: Progress) -> None:
    """Write ``entries`` to ``path``, widest elements first so that every tensor lies aligned.

    Raises ExportError for two tensors of one name or a header that readers refuse, OSError if the disk does.
    """
    ordered = _ordered(entries)
    header, end = _header(ordered, metadata)
    with path.open("wb") as file:
        file.write(header)
        done = 0
        for entry in ordered:
            progress(done / max(end, 1), f"writing {entry.name}")
            data = entry.data()
            if data.nbytes != entry.nbytes:
                raise ExportError(f"{entry.name} has {data.nbytes} bytes, its shape and dtype need {entry.nbytes}")
            for piece in _pieces(data):
                file.write(piece.data)
                let_go(piece)
            done += data.nbytes
            put_away_again()


def prove_header(path: Path, entries: Iterable[Entry], metadata: Mapping[str, str]) -> None:
    """Raise ExportError unless a file begins as :func:`write_safetensors` wrote it; no reader looks at all of it."""
    header, _ = _header(_ordered(entries), metadata)
    with path.open("rb") as file:
        if file.read(len(header)) != header:
            raise ExportError(f"the header of {path} does not read back as it was written; try another place")


def name_taken(name: str) -> ExportError:
    """Return the error for a name that two tensors of a file would have."""
    return ExportError(f"two tensors would be called {name}; rename one of them in the model")


def _pieces(data: np.ndarray) -> Iterator[np.ndarray]:
    return (data[start : start + PIECE] for start in range(0, len(data), PIECE))


def _ordered(entries: Iterable[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: (-DTYPES[entry.dtype].bits, entry.name))


def _header(entries: list[Entry], metadata: Mapping[str, str]) -> tuple[bytes, int]:
    """Return what stands before the tensors, and their bytes."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    for entry in entries:
        if entry.name in header:
            raise name_taken(entry.name)
        start, end = end, end + entry.nbytes
        code = DTYPES[entry.dtype].code
        header[entry.name] = {"dtype": code, "shape": list(entry.shape), "data_offsets": [start, end]}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _LARGEST_HEADER:
        raise ExportError(
            f"the header would take {len(text)} bytes, readers accept {_LARGEST_HEADER}; make rules shorter"
        )
    return struct.pack("<Q", len(text)) + text, end


def read_safetensors(path: Path) -> TensorStore:
    """Return the tensors of a written file, which the library has to open; ExportError for a damaged one."""
    from safetensors import SafetensorError, safe_open

    from workbench.models.sources.stored import tensors_in_files

    try:
        with safe_open(str(path), framework="numpy"):
            pass
    except (SafetensorError, OSError) as error:
        raise ExportError(f"{path} is not a whole safetensors file: {error}") from None
    return tensors_in_files([path], ExportError)


def prove_bytes(store: TensorStore, entries: Iterable[Entry]) -> None:
    """Raise ExportError unless ``store`` holds the bytes of every entry."""
    for entry in entries:
        expected = entry.data()
        values = tensor_bytes(store.read(entry.name)) if entry.name in store.tensors else expected[:0]
        if len(values) != len(expected) or not all(map(_same, _pieces(values), _pieces(expected))):
            require_same_bytes(entry, values, expected)


def _same(first: np.ndarray, second: np.ndarray) -> bool:
    same = np.array_equal(first, second)
    let_go(first)
    let_go(second)
    return same
