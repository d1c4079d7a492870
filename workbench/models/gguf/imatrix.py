"""llama.cpp's importance matrices: the mean square of every input column of every tensor, as its tool writes them.

Two forms are read and written.  GGUF: for each tensor ``NAME.in_sum2`` float32 ``[matrices, columns]``, sums of squares
over tokens, and ``NAME.counts`` float32 ``[matrices, 1]``, the tokens (one matrix for each expert).  The older binary
one, little-endian: the number of entries; of each the length of its name, the name, a number of calls, the number of
values and float32 means times calls; then the calls of the whole run and the data's name.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.errors import DataError, NotAModelError
from workbench.models.gguf.container import MAGIC, GgufFile, read_gguf
from workbench.models.gguf.tensors import library
from workbench.plain_file import opened, read_bytes

SUMS, COUNTS = ".in_sum2", ".counts"
CHUNK = 512
"""Tokens of a chunk, in which llama.cpp counts (its default context)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InputSquares:
    """``means`` float32 ``[matrices, columns]``: E[x**2] over the ``counts`` (int64 ``[matrices]``) tokens of each.

    One matrix, or one for each expert; a count of 0 says that nothing was seen (its means are 0).
    """

    means: np.ndarray
    counts: np.ndarray


def read_imatrix(path: str | Path) -> dict[str, InputSquares]:
    """Return the entries by tensor; raises DataError, in one line, for a file that is none, damaged or cut short."""
    place = Path(path)
    try:
        with opened(place) as file:
            head = file.read(len(MAGIC))
        entries = _of_gguf(place) if head == MAGIC else _of_legacy(place)
    except OSError as error:
        raise DataError(f"the importance matrix {place} cannot be read: {error.strerror or error}") from error
    except NotAModelError as error:
        raise DataError(f"not an importance matrix: {error}") from error
    for name, entry in entries.items():
        if not np.isfinite(entry.means).all() or (entry.means < 0).any():
            raise DataError(f"{place} has negative or infinite squares for {name}; make it again")
    return entries


def _of_gguf(path: Path) -> dict[str, InputSquares]:
    file = read_gguf(path)
    names = [name.removesuffix(SUMS) for name in file.tensors if name.endswith(SUMS)]
    if not names:
        raise DataError(
            f"{path} is a GGUF file without an importance matrix: none of its {len(file.tensors)} tensors is called "
            f"NAME{SUMS}; give what llama-imatrix wrote"
        )
    return {name: _entry_of(file, name) for name in names}


def _entry_of(file: GgufFile, name: str) -> InputSquares:
    if name + COUNTS not in file.tensors:
        raise DataError(f"{file.path} has the sums of {name} without their counts; it is cut short, make it again")
    tensors = [file.tensors[name + part] for part in (SUMS, COUNTS)]
    if any(tensor.type != "F32" for tensor in tensors):
        kinds = " and ".join(tensor.type for tensor in tensors)
        raise DataError(f"{file.path} holds {name} as {kinds}; sums and counts are F32")
    sums, counts = (file.raw(tensor.name).reshape(-1).view("<f4").astype(np.float64) for tensor in tensors)
    if not (sums.size and counts.size and sums.size % counts.size == 0 and (np.isfinite(counts) & (counts >= 0)).all()):
        raise DataError(f"{file.path}: the {sums.size} sums and {counts.size} counts of {name} do not fit together")
    means = sums.reshape(counts.size, -1) / np.maximum(counts, 1)[:, None]
    return InputSquares(means=means.astype(np.float32), counts=np.rint(counts).astype(np.int64))


def _of_legacy(path: Path) -> dict[str, InputSquares]:
    data, entries = read_bytes(path), dict[str, InputSquares]()
    at = 4
    try:
        number = struct.unpack_from("<i", data)[0]
        if not 0 < number <= len(data) // 13:
            raise DataError(f"{path} is not an importance matrix: give what llama-imatrix wrote (.gguf or .dat)")
        for _ in range(number):
            length = struct.unpack_from("<i", data, at)[0]
            name = struct.unpack_from(f"<{length}s", data, at + 4)[0].decode()
            calls, size = struct.unpack_from("<ii", data, at + 4 + length)
            at += 12 + length
            values = np.frombuffer(data, "<f4", size, at) if size > 0 else np.zeros(0, np.float32)
            if not size > 0 or calls < 0:
                raise DataError(f"{path} has {size} values of {calls} calls for {name}; it is damaged")
            at += values.nbytes
            means = (values / max(calls, 1)).reshape(1, -1)
            entries[name] = InputSquares(means=means, counts=np.array([max(calls, 1) * CHUNK]))
    except (struct.error, ValueError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a whole importance matrix: {len(entries)} entries can be read") from error
    return entries


def write_imatrix(path: Path, entries: Mapping[str, InputSquares], data: str) -> None:
    """Write the GGUF form; ``data`` names what was calibrated on.  Raises OSError."""
    gguf = library()
    writer: Any = gguf.GGUFWriter(path, "")
    writer.kv_data[0].clear()
    writer.add_type("imatrix")
    writer.add_array("imatrix.datasets", [data or "calibration"])
    writer.add_uint32("imatrix.chunk_count", _chunks(entries))
    writer.add_uint32("imatrix.chunk_size", CHUNK)
    for name, entry in entries.items():
        sums = (entry.means.astype(np.float64) * entry.counts[:, None]).astype(np.float32)
        writer.add_tensor(name + SUMS, sums)
        writer.add_tensor(name + COUNTS, entry.counts.astype(np.float32)[:, None])
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()


def write_legacy(path: Path, entries: Mapping[str, InputSquares], data: str) -> None:
    """Write the binary form of llama.cpp before July 2025; experts that saw nothing get ones.  Raises OSError."""
    parts = [struct.pack("<i", len(entries))]
    for name, entry in entries.items():
        calls = -(-int(entry.counts.max()) // CHUNK)
        means = np.where(entry.counts[:, None] > 0, entry.means, np.float32(1))
        raw = name.encode()
        parts += [struct.pack(f"<i{len(raw)}sii", len(raw), raw, calls, means.size)]
        parts += [(means * np.float32(calls)).astype("<f4").tobytes()]
    label = (data or "calibration").encode()
    parts.append(struct.pack(f"<ii{len(label)}s", _chunks(entries), len(label), label))
    path.write_bytes(b"".join(parts))


def _chunks(entries: Mapping[str, InputSquares]) -> int:
    return -(-max((int(entry.counts.max()) for entry in entries.values()), default=0) // CHUNK)
