"""A table's columns as plain values: pyarrow parses the file in a limited process, which hands over JSON and bytes."""

from __future__ import annotations

import base64
import codecs
import decimal
import importlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.errors import BackendUnavailableError, DataError, first_line
from workbench.limited import MEMORY, SECONDS, limited
from workbench.models.readers.mapped import MappedFile

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".arrow")
MARKS = (b",", b"\t", b";")
"""What separates the columns of a text."""

BYTES = f"\0{secrets.token_hex(16)}"
"""The key under which JSON has bytes, in base 64: one that no file can know."""

ROOM, SPEED, COLUMNS_A_SECOND = 40, 2e6, 8e3
"""Memory that a byte of a file may become; bytes, and columns of a CSV file, that are parsed in a second at least."""


@dataclass(frozen=True, slots=True)
class Columns:
    """A parsed table: ``kinds`` (string, number, other) of its columns in their order, and a column's values."""

    kinds: Mapping[str, str]
    values: Callable[[str], list[Any]]
    rows: int


def read_columns(file: Path, choose: Callable[[Columns], Sequence[str]]) -> dict[str, list[Any]]:
    """Return the columns that ``choose`` names; raises what it raises, and DataError for what is no table."""
    try:
        _import()
    except ImportError as error:
        raise BackendUnavailableError(
            f"reading {file.name} needs the package pyarrow: {error}; pip install 'quantization-workbench[data]'"
        ) from None
    try:
        content = MappedFile(file)
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}") from None
    if not content.size:
        raise DataError(f"{file} is empty; give at least one row")

    def work() -> list[np.ndarray]:
        try:
            table = _parsed(content, file.suffix.lower())
        except Exception as error:  # pyarrow raises many types
            raise DataError(f"{file} cannot be read as a table: {first_line(error)}") from None
        if not table.rows:
            raise DataError(f"{file} is empty; give at least one row")
        columns = {name: table.values(name) for name in choose(table)}
        if {len(values) for values in columns.values()} != {table.rows}:
            raise DataError(f"{file} is damaged: its columns do not have the {table.rows} rows that it names")
        return [np.frombuffer(json.dumps(columns, default=_plain).encode(), np.uint8)]

    columns = max(map(_first_line(content).count, MARKS)) if file.suffix.lower() in (".csv", ".tsv") else 0
    seconds = SECONDS + content.size / SPEED + columns / COLUMNS_A_SECOND
    memory = 2 * MEMORY + ROOM * content.size
    (answer,) = limited(work, str(file), DataError, seconds=seconds, memory=memory)
    values: dict[str, list[Any]] = json.loads(answer.tobytes(), object_hook=_value)
    return values


def _import() -> None:
    """Load what the limited process cannot; pyarrow's own allocator asks for a gigabyte of addresses at once."""
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    for module in ("pyarrow", "pyarrow.compute", "pyarrow.csv", "pyarrow.ipc", "pyarrow.parquet"):
        importlib.import_module(module)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {BYTES: base64.b64encode(value).decode()}
    return float(value) if isinstance(value, decimal.Decimal) else str(value)


def _value(table: dict[str, Any]) -> Any:
    return base64.b64decode(table[BYTES]) if [*table] == [BYTES] else table


def _parsed(content: MappedFile, suffix: str) -> Columns:
    import pyarrow

    if suffix in (".jsonl", ".ndjson", ".json"):
        return _of_rows(_json_rows(bytes(content.data).removeprefix(codecs.BOM_UTF8).decode(), suffix))
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())  # where another program loaded it first
    stream = pyarrow.BufferReader(pyarrow.py_buffer(content.data))
    if suffix == ".parquet":
        from pyarrow import parquet

        file = parquet.ParquetFile(stream, pre_buffer=False)
        return _of_arrow(
            file.schema_arrow, lambda name: file.read([name], use_threads=False)[name], file.metadata.num_rows
        )
    if suffix == ".arrow":
        is_file = bytes(content.data[:6]) == b"ARROW1"
        table = (pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream)(stream).read_all()
        table.validate(full=True)
    else:
        table = _csv(content, stream)
    return _of_arrow(table.schema, lambda name: table[name], table.num_rows)


def _csv(content: MappedFile, stream: Any) -> Any:
    """Parse lines parted by commas, but by a tab or semicolons where the first line has those alone."""
    from pyarrow import csv

    first = _first_line(content)
    mark = next((mark for mark in MARKS[1:] if mark in first and b"," not in first), b",").decode()
    return csv.read_csv(
        stream, csv.ReadOptions(use_threads=False, block_size=1 << 24),
        csv.ParseOptions(delimiter=mark, newlines_in_values=True), csv.ConvertOptions(strings_can_be_null=True),
    )  # fmt: skip


def _first_line(content: MappedFile) -> bytes:
    return bytes(content.data[: 1 << 24]).partition(b"\n")[0]


def _json_rows(text: str, suffix: str) -> list[dict[str, Any]]:
    rows = json.loads(text) if suffix == ".json" and text.lstrip()[:1] == "[" else list(_json_lines(text))
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("its rows are not tables of names and values")
    return rows


def _json_lines(text: str) -> Iterator[Any]:
    for number, line in enumerate(text.split("\n"), 1):  # other line ends may stand within a string
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise ValueError(f"line {number} is not JSON ({first_line(error)})") from None


def _of_rows(rows: list[dict[str, Any]]) -> Columns:
    names = dict.fromkeys(name for row in rows for name in row)

    def values(name: str) -> list[Any]:
        return [row.get(name) for row in rows]

    kinds = {name: _kind([value for value in values(name) if value is not None]) for name in names}
    return Columns(kinds, values, len(rows))


def _kind(values: list[Any]) -> str:
    if values and all(isinstance(value, str) for value in values):
        return "string"
    return "number" if values and all(isinstance(value, int | float) for value in values) else "other"


def _of_arrow(schema: Any, column: Callable[[str], Any], rows: int) -> Columns:
    from pyarrow import types

    def kind(stored: Any) -> str:
        stored = stored.value_type if types.is_dictionary(stored) else stored
        if types.is_string(stored) or types.is_large_string(stored):
            return "string"
        return "number" if types.is_primitive(stored) and not types.is_temporal(stored) else "other"

    def values(name: str) -> list[Any]:
        cells = column(name)
        if types.is_temporal(cells.type):
            cells = cells.cast("string")
        listed: list[Any] = cells.to_pylist()
        return listed

    if len(set(schema.names)) < len(schema.names):
        raise ValueError("it has two columns with the same name")
    return Columns({field.name: kind(field.type) for field in schema}, values, rows)
