"""The safetensors format, written one tensor at a time and read with numpy alone.

Eight bytes with the header's length (little-endian), the header (JSON, filled up with spaces to a multiple of 8), then
the tensors one after another.  Format: https://github.com/huggingface/safetensors.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench.deployment.tensors import Entry
from workbench.errors import ExportError
from workbench.models.dtypes import BY_CODE, DTYPES
from workbench.progress import Progress

_LARGEST_HEADER = 100_000_000


def write_safetensors(path: Path, entries: Iterable[Entry], metadata: Mapping[str, str], progress: Progress) -> None:
    """Write ``entries`` to ``path``, widest elements first so that every tensor lies aligned.

    Raises ExportError for two tensors of one name or a header that readers refuse, OSError if the disk does.
    """
    ordered = sorted(entries, key=lambda entry: (-DTYPES[entry.dtype].bits, entry.name))
    header, end = _header(ordered, metadata)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        done = 0
        for entry in ordered:
            progress(done / max(end, 1), f"writing {entry.name}")
            data = entry.load()
            if data.nbytes != _nbytes(entry):
                raise ExportError(f"{entry.name} has {data.nbytes} bytes, its shape and dtype need {_nbytes(entry)}")
            file.write(data.data)
            done += data.nbytes


def _header(entries: list[Entry], metadata: Mapping[str, str]) -> tuple[bytes, int]:
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    for entry in entries:
        if entry.name in header:
            raise ExportError(f"two tensors would be called {entry.name}; rename one of them in the model")
        start, end = end, end + _nbytes(entry)
        code = DTYPES[entry.dtype].code
        header[entry.name] = {"dtype": code, "shape": list(entry.shape), "data_offsets": [start, end]}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _LARGEST_HEADER:
        raise ExportError(
            f"the header would take {len(text)} bytes, readers accept {_LARGEST_HEADER}; make rules shorter"
        )
    return text, end


def _nbytes(entry: Entry) -> int:
    count = 1
    for size in entry.shape:
        count *= size
    return count * DTYPES[entry.dtype].bits // 8


class SafetensorsFile:
    """An open-once view of a file's header; ``read`` maps one tensor into memory."""

    def __init__(self, path: Path) -> None:
        """Read the header; raises ExportError for a foreign or truncated file."""
        self.path = path
        try:
            with path.open("rb") as file:
                (length,) = struct.unpack("<Q", file.read(8))
                if length > _LARGEST_HEADER:
                    raise ExportError(f"{path} is not a safetensors file")
                header = json.loads(file.read(length))
            self.metadata: dict[str, str] = header.pop("__metadata__", {})
            self.entries: dict[str, dict[str, Any]] = header
            self.start = 8 + length
            self.data_bytes = max((entry["data_offsets"][1] for entry in header.values()), default=0)
        except (struct.error, ValueError, AttributeError, KeyError, TypeError) as error:
            raise ExportError(f"{path} is not a safetensors file: its header cannot be read") from error
        except OSError as error:
            raise ExportError(f"{path} cannot be read: {error.strerror}") from error
        if path.stat().st_size != self.start + self.data_bytes:
            raise ExportError(f"{path} is truncated: its header speaks of {self.start + self.data_bytes} bytes")

    def read(self, name: str) -> np.ndarray:
        """Return one tensor; bfloat16 and float8 as bit patterns.  Read-only."""
        entry = self.entries.get(name)
        if entry is None:
            raise ExportError(f"{self.path} holds no tensor {name}")
        low, high = entry["data_offsets"]
        dtype = np.dtype(BY_CODE[entry["dtype"]].numpy)
        if high == low:
            return np.zeros(entry["shape"], dtype)
        data = np.memmap(self.path, mode="r", dtype=np.uint8, offset=self.start + low, shape=(high - low,))
        array: np.ndarray = np.asarray(data).view(dtype).reshape(entry["shape"])
        return array
