"""A table's columns as plain values: pyarrow parses the file in a limited process, which hands over JSON and bytes.

A few bytes of Parquet or Arrow say a value a billion times.  What a file of a size may become is bounded: its values as
they lie in memory and its cells before they are read, its JSON as it is written.  Numbers and lists of whole numbers
are handed over as arrays: of honest ones that are nearly all zeros (padded ids, their masks) a file holds little.
"""

from __future__ import annotations

import base64
import codecs
import csv
import decimal
import importlib
import io
import json
import os
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from workbench.errors import BackendUnavailableError, DataError, first_line
from workbench.limited import SECONDS, limited
from workbench.memory import size_text
from workbench.models.data.json_rows import LONGEST, PIECE, TOO_LONG, bounded, json_rows
from workbench.models.data.table_paths import ARROW, PACKED, shards_of, suffix_of
from workbench.models.readers.mapped import MappedFile
from workbench.plain_file import require_room, require_utf8
from workbench.readable import few

MARKS = (b",", b"\t", b";")
"""What separates the columns of a text."""

BYTES = f"\0{secrets.token_hex(16)}"
"""The key under which JSON has bytes, in base 64: one that no file can know."""

LEAST, ROOM, SPEED = 1 << 29, 40, 2e6
"""Memory that reading any table may take; what a byte of the file adds to it; bytes that a second parses at least."""

LEAST_JSON, LEAST_CELLS, CELLS = 1 << 24, 1 << 20, 16
"""Bytes of JSON and cells that any file may become; a byte adds half of ROOM, and CELLS (pictures of mostly zeros)."""

LEAST_NUMBERS = 1 << 23
"""Numbers that any file may become, as CELLS: half a gigabyte as Python's own."""

EMPTY = frozenset(["", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "NA", "N/A", "n/a", "#N/A"])
TRUTHS = {word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
"""Cells of a CSV file without a value, and truths, as pyarrow has them."""

NESTED = 3
"""Objects within objects whose fields are columns of their own."""

LONGEST_ROW = 1 << 24
"""Bytes of the longest row of a CSV file."""

WIDE, COLUMNS_A_SECOND = 4_000, 8e3
"""Columns of a CSV file from which pyarrow, which takes 9 kB for each, is not used, and those that it parses in a
second at least."""

Numbers = tuple[np.ndarray, ...]
"""One number for each row; or the lengths of the rows' lists (int64) and what all hold together."""


@dataclass(frozen=True, slots=True)
class Columns:
    """A parsed table: ``kinds`` of its columns (string, number, other; what lies in objects is other), their values."""

    kinds: Mapping[str, str]
    values: Callable[[str], list[Any]]
    rows: int
    nbytes: Callable[[str], int] = lambda name: 0
    """What the file says that a column takes in memory."""

    numbers: Callable[[str], Numbers | None] = lambda name: None
    """A column's numbers, where it holds nothing else."""


def read_columns(file: Path, choose: Callable[[Columns], Sequence[str]]) -> dict[str, list[Any]]:
    """Return the columns that ``choose`` names (or none), of shards those of all in their order.

    Raises what ``choose`` raises, and DataError for what is no table.
    """
    try:
        _import()
    except ImportError as error:
        raise BackendUnavailableError(
            f"reading {file.name} needs the package pyarrow: {error}; pip install 'quantization-workbench[data]'"
        ) from None
    first, *others = shards_of(file) or [file]
    columns, size = _read(first, choose)
    for shard in others:
        more, nbytes = _read(shard, lambda table: choose(table) if columns.keys() <= table.kinds.keys() else [])
        if [*more] != [*columns]:
            raise DataError(f"{shard} has other columns than {first.name}, of which {few(columns)} are read; name "
                            "columns that all shards have (--column)")  # fmt: skip
        require_room(file, size := size + nbytes)
        for name, values in more.items():
            columns[name] += values
    return columns


def _read(file: Path, choose: Callable[[Columns], Sequence[str]]) -> tuple[dict[str, list[Any]], int]:
    """Return the columns of one file, and the bytes in which they were handed over."""
    content, suffix = _content(file), f".{suffix_of(file).split('.')[1]}"  # of a packed file what it holds

    def work() -> list[np.ndarray]:
        try:
            table = _parsed(content, suffix)
        except Exception as error:  # pyarrow raises many types
            raise DataError(f"{file} cannot be read as a table: {first_line(error)}") from None
        if not table.rows:
            raise DataError(f"{file} is empty; give at least one row")
        names = choose(table)
        _require_room(file, content.size, table, names)
        numbers = {name: own for name in names if (own := table.numbers(name)) is not None}
        columns = {name: table.values(name) for name in names if name not in numbers}
        if {*map(len, columns.values()), *(len(own[0]) for own in numbers.values())} - {table.rows}:
            raise DataError(f"{file} is damaged: its columns do not have the {table.rows} rows that it names")
        count, room = sum(len(own[-1]) for own in numbers.values()), LEAST_NUMBERS + CELLS * content.size
        if count > room:
            raise DataError(f"{file} holds {count:,} numbers in {size_text(content.size)}; a file of its size may have "
                            f"{room:,}: cut it into parts")  # fmt: skip
        text = json.dumps([names, {name: len(own) for name, own in numbers.items()}, columns], default=_plain).encode()
        if len(text) > most:
            raise DataError(f"{file} becomes {size_text(len(text))} of text, and {size_text(most)} is the most for a "
                            "file of its size; cut it into parts, or it is damaged or malicious")  # fmt: skip
        return [np.frombuffer(text, np.uint8), *(array for own in numbers.values() for array in own)]

    seconds = SECONDS + content.size / SPEED + min(_marks(content), WIDE) / COLUMNS_A_SECOND
    most, memory = LEAST_JSON + ROOM * content.size // 2, LEAST + ROOM * content.size
    answer = most + 16 * LEAST_NUMBERS
    text, *arrays = limited(work, str(file), DataError, seconds=seconds, memory=memory, answer=answer)
    names, numbers, columns = json.loads(text.tobytes(), object_hook=_value)
    left = iter(arrays)
    columns |= {name: _listed([next(left) for _ in range(count)]) for name, count in numbers.items()}
    return {name: columns[name] for name in names}, text.nbytes + sum(array.nbytes for array in arrays)


def _content(file: Path) -> MappedFile:
    """Return a file's bytes, unpacked; raises DataError, also where they are far more than a file holds."""
    try:
        content = MappedFile(file)
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}") from None
    if (packed := PACKED.get(file.suffix.lower())) is not None:
        import pyarrow

        most, data = LEAST_JSON + ROOM * content.size // 2, pyarrow.BufferReader(pyarrow.py_buffer(content.data))

        def work() -> Iterator[np.ndarray]:
            size = line = 0
            try:
                stream = pyarrow.CompressedInputStream(data, packed)
                while piece := stream.read(PIECE):
                    size, end = size + len(piece), piece.rfind(b"\n")
                    line = line + len(piece) if end < 0 else len(piece) - 1 - end
                    if size > most:
                        raise DataError(f"{file} holds more than {size_text(most)}, the most for a packed file of its "
                                        "size; unpack it, or it is damaged or malicious")  # fmt: skip
                    if line > LONGEST and not suffix_of(file).startswith(".json."):
                        raise ValueError(f"a line {TOO_LONG}")
                    yield np.frombuffer(piece, np.uint8)
            except OSError as error:
                raise DataError(f"{file} cannot be unpacked as {packed}: {first_line(error)}") from None

        seconds, memory = SECONDS + most / SPEED, LEAST + 2 * most
        pieces = limited(work, str(file), DataError, seconds=seconds, memory=memory, answer=most + PIECE)
        content.data = b"".join(piece.data for piece in pieces)
        content.size = len(content.data)
    if not content.size:
        raise DataError(f"{file} is empty; give at least one row")
    if suffix_of(file) not in (".parquet", *ARROW):  # which are read by columns
        require_room(file, content.size)
    return content


def _listed(numbers: Sequence[np.ndarray]) -> list[Any]:
    """Return what :data:`Numbers` hold as Python's own, row by row."""
    if len(numbers) == 1:
        plain: list[Any] = numbers[0].tolist()
        return plain
    lengths, values = numbers
    ends = lengths.cumsum()
    return [values[start:end].tolist() for start, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True)]


def _require_room(file: Path, size: int, table: Columns, names: Sequence[str]) -> None:
    """Raise DataError where chosen columns say that they are far more than a file of ``size`` bytes holds."""
    least = LEAST_NUMBERS if all(table.kinds[name] == "number" for name in names) else LEAST_CELLS
    cells, most = table.rows * len(names), least + CELLS * size
    if cells > most:
        raise DataError(f"{file} has {table.rows:,} rows of {len(names):,} columns in {size_text(size)}; a file of its "
                        f"size may have {most:,} cells: choose fewer columns (--column), or cut it")  # fmt: skip
    nbytes, room = sum(map(table.nbytes, names)), (LEAST + ROOM * size) // 2
    if nbytes > room:
        raise DataError(f"{file} becomes {size_text(nbytes)}, and {size_text(room)} is the most for a file of its "
                        "size; it is damaged or malicious")  # fmt: skip


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

    if suffix not in (".parquet", *ARROW):
        require_utf8(bytes(content.data[:4]))
    if suffix in (".jsonl", ".ndjson", ".json"):
        return _of_rows(json_rows(content.data, suffix))
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())  # where another program loaded it first
    stream = pyarrow.BufferReader(pyarrow.py_buffer(content.data))
    if suffix == ".parquet":
        from pyarrow import parquet

        file = parquet.ParquetFile(stream, pre_buffer=False)
        nbytes = _stated(file.metadata)
        return _of_arrow(
            file.schema_arrow, lambda name: file.read([name], use_threads=False)[name], file.metadata.num_rows,
            lambda name: nbytes[name],
        )  # fmt: skip
    if suffix in ARROW:
        table = _batches(content, stream)
    elif _marks(content) < WIDE:
        table = _csv(content, stream)
    else:
        return _wide(content)
    return _of_arrow(table.schema, lambda name: table[name], table.num_rows, lambda name: table[name].nbytes)


def _stated(metadata: Any) -> dict[str, int]:
    """Return what each column of a Parquet file takes unpacked, as the file says."""
    nbytes = defaultdict[str, int](int)
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            nbytes[column.path_in_schema.partition(".")[0]] += column.total_uncompressed_size
    return nbytes


def _batches(content: MappedFile, stream: Any) -> Any:
    """Read the batches of an Arrow file or stream until they are more than such a file may hold."""
    import pyarrow

    if bytes(content.data[:6]) == b"ARROW1":
        file = pyarrow.ipc.open_file(stream)
        schema, batches = file.schema, map(file.get_batch, range(file.num_record_batches))
    else:
        batches = pyarrow.ipc.open_stream(stream)
        schema = batches.schema
    read, nbytes, most, rows = [], 0, (LEAST + ROOM * content.size) // 2, LEAST_CELLS + CELLS * content.size
    for batch in batches:
        nbytes += batch.nbytes
        if nbytes > most or batch.num_rows > rows:
            raise ValueError(
                f"its batches are more than {size_text(most)} or {rows:,} rows, the most for a file of its size"
            )
        batch.validate(full=True)
        read.append(batch)
    return pyarrow.Table.from_batches(read, schema)


def _csv(content: MappedFile, stream: Any) -> Any:
    import pyarrow
    from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

    try:
        table = read_csv(
            stream, ReadOptions(use_threads=False, block_size=LONGEST_ROW),
            ParseOptions(delimiter=_mark(content), newlines_in_values=True), ConvertOptions(strings_can_be_null=True),
        )  # fmt: skip
    except pyarrow.ArrowInvalid as error:
        if "straddl" not in str(error):
            raise
        raise ValueError(f"a row is longer than {size_text(LONGEST_ROW)}, or a quotation mark is missing") from None
    return table.rename_columns([name.strip() for name in table.column_names])


def _wide(content: MappedFile) -> Columns:
    """Parse a CSV file of very many columns: of numbers, or of texts as they stand."""
    text = io.StringIO(bytes(content.data).removeprefix(codecs.BOM_UTF8).decode(), newline="")
    header, *rows = (row for row in csv.reader(text, delimiter=_mark(content), strict=True) if row)
    names = bounded([name.strip() for name in header])
    odd = next((row for row in rows if len(row) != len(names)), names)
    if odd is not names:
        raise ValueError(f"it has {len(names):,} columns, and a row of {len(odd):,}")
    columns = dict(zip(names, zip(*rows, strict=True), strict=False)) if rows else {}
    if len(columns) < len(names) and rows:
        raise ValueError("it has two columns with the same name")
    typed = {name: _numbers(cells) for name, cells in columns.items()}
    kinds = {name: _kind([cell for cell in cells if cell is not None]) for name, cells in typed.items()}
    return Columns(kinds, typed.__getitem__, len(rows))


def _numbers(cells: Sequence[str]) -> list[Any]:
    """Return cells as whole numbers, fractions or truths where all are (None: without a value), else as they are."""
    for kind in (int, float, TRUTHS.__getitem__):
        with suppress(ValueError, KeyError):
            return [None if cell in EMPTY else kind(cell) for cell in cells]
    return [None if cell in EMPTY else cell for cell in cells]


def _mark(content: MappedFile) -> str:
    """Return what parts columns: commas, but a tab or semicolons where the first line has those alone."""
    first = _first_line(content)
    return next((mark for mark in MARKS[1:] if mark in first and b"," not in first), b",").decode()


def _marks(content: MappedFile) -> int:
    return max(map(_first_line(content).count, MARKS)) if suffix_of(content.path)[:4] in (".csv", ".tsv") else 0


def _first_line(content: MappedFile) -> bytes:
    return bytes(content.data[: 1 << 24]).partition(b"\n")[0]


def _of_rows(rows: list[dict[str, Any]]) -> Columns:
    own = bounded({*chain(*rows)})
    whole, present = [dict(_fields(row)) for row in rows], defaultdict[str, list[Any]](list)
    for row in whole:
        for name, value in row.items():
            present[name] += [] if value is None else [value]
    kinds = {name: _kind(values) if name in own else "other" for name, values in present.items()}
    return Columns(kinds, lambda name: [row.get(name) for row in whole], len(rows))


def _fields(row: Mapping[str, Any], within: str = "", depth: int = NESTED) -> Iterator[tuple[str, Any]]:
    """Yield what objects in a row hold, as ``data.messages``, and then the row's own values, whose names count."""
    for name, value in row.items() if depth else ():
        if isinstance(value, dict) and "bytes" not in value:  # of a picture or a sound
            yield from _fields(value, f"{within}{name}.", depth - 1)
    yield from ((within + name, value) for name, value in row.items())


def _kind(values: list[Any]) -> str:
    if values and all(isinstance(value, str) for value in values):
        return "string"
    return "number" if values and all(isinstance(value, int | float) for value in values) else "other"


def _of_arrow(schema: Any, column: Callable[[str], Any], rows: int, nbytes: Callable[[str], int]) -> Columns:
    from pyarrow import compute, types

    def paths_of(fields: Any, within: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        for field in fields:
            if len(within) < NESTED and types.is_struct(field.type) and field.type.get_field_index("bytes") < 0:
                yield from paths_of(field.type, (*within, field.name))
        yield from ((*within, field.name) for field in fields)

    def kind(stored: Any) -> str:
        stored = stored.value_type if types.is_dictionary(stored) else stored
        if types.is_string(stored) or types.is_large_string(stored):
            return "string"
        return "number" if types.is_primitive(stored) and not types.is_temporal(stored) else "other"

    def values(name: str) -> list[Any]:
        top, *within = paths[name]
        _require_short(name, nbytes(top) // rows)  # before it is read
        cells = column(top)
        for part in within:
            cells = compute.struct_field(cells, part)
        if types.is_temporal(cells.type):
            cells = cells.cast("string")
        _require_short(name, _longest(cells))
        listed: list[Any] = cells.to_pylist()
        return listed

    if len(set(bounded(schema.names))) < len(schema.names):
        raise ValueError("it has two columns with the same name")
    paths = {".".join(path): path for path in paths_of(schema)}  # a column's own name counts
    kinds = {name: kind(schema.field(name).type) if len(path) == 1 else "other" for name, path in paths.items()}

    def numbers(name: str) -> Numbers | None:
        plain = len(paths[name]) == 1 and _holds_numbers(schema.field(name).type)
        return _numbers_of(column(name)) if plain else None

    return Columns(kinds, values, rows, lambda name: nbytes(paths[name][0]), numbers)


def _longest(cells: Any) -> int:
    """Return the bytes of the longest text, also in lists and objects."""
    from pyarrow import compute, types

    stored = cells.type
    if types.is_struct(stored):
        return max((_longest(compute.struct_field(cells, [at])) for at in range(stored.num_fields)), default=0)
    if types.is_list(stored) or types.is_large_list(stored):
        return _longest(compute.list_flatten(cells))
    if types.is_dictionary(stored):
        return max((_longest(chunk.dictionary) for chunk in cells.chunks), default=0)
    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return (compute.max(compute.binary_length(cells)).as_py() or 0) if any(has(stored) for has in texts) else 0


def _require_short(name: str, longest: int) -> None:
    """Raise ValueError for a cell that would take many seconds and many times its size."""
    if longest > LONGEST:
        raise ValueError(f"a cell of {name} has {size_text(longest)}, and {size_text(LONGEST)} is the most; cut it")


def _holds_numbers(stored: Any) -> bool:
    """Return whether an Arrow type is of numbers, or of lists of whole ones; but for 64 bits unsigned."""
    from pyarrow import types

    lists = types.is_list(stored) or types.is_large_list(stored) or types.is_fixed_size_list(stored)
    inner = stored.value_type if lists else stored
    whole = types.is_integer(inner) and not types.is_uint64(inner)
    return bool(whole or (not lists and (types.is_float32(inner) or types.is_float64(inner))))


def _numbers_of(cells: Any) -> Numbers | None:
    """Return the numbers of such a column; None where something is missing."""
    from pyarrow import compute, types

    if types.is_primitive(cells.type):
        return None if cells.null_count else (cells.to_numpy(),)
    values = compute.list_flatten(cells)
    if cells.null_count or values.null_count:
        return None
    return compute.list_value_length(cells).to_numpy().astype(np.int64), values.to_numpy()
