"""Tables are parsed in the limited process alone, and hand over plain values."""

from __future__ import annotations

import datetime
import decimal
import gzip
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from workbench.errors import DataError
from workbench.models.data import json_rows, table_file
from workbench.models.data.table_file import Columns, read_columns
from workbench.models.data.tables import read_table, read_texts

pyarrow = pytest.importorskip("pyarrow")


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".tsv", ".parquet", ".arrow"])
def test_another_process_parses(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"x{suffix}").write_text("anything")
    monkeypatch.setattr(table_file, "_parsed", lambda *_: Columns({"pid": "number"}, lambda name: [os.getpid()], 1))
    (pid,) = read_columns(tmp_path / f"x{suffix}", lambda table: ["pid"])["pid"]
    assert pid != os.getpid()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_a_process_that_has_never_used_pyarrow_reads(tmp_path: Path, suffix: str) -> None:
    """Its own allocator took more addresses than the limited process may have, unless it had them before."""
    from pyarrow import csv, ipc, parquet

    table, file = pyarrow.table({"text": ["a", "b"], "n": [1, 2]}), tmp_path / f"x{suffix}"
    if suffix == ".csv":
        csv.write_csv(table, file)
    elif suffix == ".parquet":
        parquet.write_table(table, file)
    else:
        with ipc.new_stream(str(file), table.schema) as stream:
            stream.write_table(table)
    program = (
        "import sys, pathlib; from workbench.models.data.table_file import read_columns\n"
        "print(read_columns(pathlib.Path(sys.argv[1]), lambda table: list(table.kinds)))"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True)
    assert ended.stdout.strip() == "{'text': ['a', 'b'], 'n': [1, 2]}", ended.stderr[-1000:]


def test_values_of_every_kind(tmp_path: Path) -> None:
    from pyarrow import parquet

    rows: dict[str, list[Any]] = {
        "i": [1, None], "f": [0.1, float("inf")], "s": ["a", "ä\n"], "b": [b"\0\xff", b""], "l": [[1, 2], []],
        "d": [{"bytes": b"x", "path": None}, {"bytes": b"y", "path": "p"}], "t": [datetime.datetime(2024, 1, 2)] * 2,
        "n": [decimal.Decimal("1.5")] * 2, "k": [True, False],
    }  # fmt: skip
    table = pyarrow.table({**rows, "c": pyarrow.array(["u", "v"]).dictionary_encode()})
    parquet.write_table(table, tmp_path / "x.parquet")
    kinds: dict[str, str] = {}

    def choose(table: Columns) -> list[str]:
        assert table.kinds["c"] == table.kinds["s"] == "string" and table.kinds["k"] == table.kinds["f"] == "number"
        return list(table.kinds)

    columns = read_columns(tmp_path / "x.parquet", choose)
    assert not kinds and columns["c"] == ["u", "v"] and columns["n"] == [1.5, 1.5]
    assert columns["t"][0].startswith("2024-01-02")
    for name in ("i", "f", "s", "b", "l", "d", "k"):
        assert columns[name] == rows[name], name


def _write(folder: Path, name: str, values: Any) -> None:
    """Write a table of columns, or of one (``text``), as a Parquet file or a compressed Arrow stream or file."""
    from pyarrow import ipc, parquet

    columns = values if isinstance(values, dict) else {"text": values}
    table, file = pyarrow.table(columns), str(folder / name)
    if name.endswith("parquet"):
        parquet.write_table(table, file, compression="zstd")
        return
    make = ipc.new_stream if "stream" in name else ipc.new_file
    with make(file, table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(table)


def _lists() -> Any:
    return pyarrow.ListArray.from_arrays(pyarrow.array(np.zeros(8_000_001, np.int32)), pyarrow.array(np.zeros(0)))


BOMBS: dict[str, Callable[[], Any]] = {
    "dictionary.parquet": lambda: pyarrow.array(["x" * (1 << 20)]).dictionary_encode().take([0] * 1500),
    "rows.parquet": lambda: pyarrow.array(["x" * 100]).dictionary_encode().take(np.zeros(2_000_000, np.int32)),
    "zeros.parquet": lambda: pyarrow.array(np.zeros(10_000_000)),
    "long.parquet": lambda: pyarrow.array(["x" * (1 << 28)]),
    "lists.parquet": _lists,
    "zeros.arrow": lambda: pyarrow.array(np.zeros(40_000_000)),
    "zeros in a stream.arrow": lambda: pyarrow.array(np.zeros(40_000_000)),
    "long.arrow": lambda: pyarrow.array(["x" * (1 << 28)]),
    "nulls.arrow": lambda: pyarrow.nulls(2 * 10**9),
    "lists.arrow": _lists,
}


@pytest.mark.skipif(sys.platform != "linux", reason="limits")
def test_bombs_are_one_line_and_a_gigabyte(tmp_path: Path) -> None:
    """They took up to 5.9 GB: in the process that reads, in what it handed over, and here."""
    for name, make in BOMBS.items():
        _write(tmp_path, name, make())
        assert (tmp_path / name).stat().st_size < 1 << 19, name
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"a{number}":1}}\n' for number in range(20_000)))
    (tmp_path / "commas.csv").write_text(f"{',' * 150_000}\n" * 2)
    for name, start in (("line.jsonl", '{"text": "'), ("line.json", '[{"text": "')):
        (tmp_path / name).write_text(start)
        os.truncate(tmp_path / name, 1 << 30)
    program = (
        "import pathlib, resource, sys\n"
        "from workbench.errors import DataError\n"
        "from workbench.models.data.tables import read_table\n"
        "for file in sorted(pathlib.Path(sys.argv[1]).iterdir()):\n"
        "    try:\n"
        "        print(file.name, 'opened', read_table(file, ''))\n"
        "    except DataError as error:\n"
        "        assert chr(10) not in str(error)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1000)\n"
        "print(*(int(line.split()[1]) // 1000 for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True)
    megabytes = list(map(int, ended.stdout.split()))  # nothing was opened
    assert len(megabytes) == 2 and max(megabytes) < 1000, ended.stdout + ended.stderr[-1000:]


LONG = ["a", "x" * 5000, "b", "c", "d", "e"]
CELLS: dict[str, Callable[[], Any]] = {
    "among others.parquet": lambda: LONG,
    "alone.parquet": lambda: [LONG[1]],
    "bytes.parquet": lambda: [cell.encode() for cell in LONG],
    "large.parquet": lambda: pyarrow.array(LONG, pyarrow.large_string()),
    "within.parquet": lambda: [{"bytes": cell.encode(), "path": "p"} for cell in LONG],
    "listed.parquet": lambda: [[{"content": cell}, {"content": "a"}] for cell in LONG],
    "dictionary.arrow": lambda: pyarrow.array(LONG).dictionary_encode(),
    "stream.arrow": lambda: LONG,
}
TEXTS: dict[str, str] = {
    "x.jsonl": "".join(json.dumps({"text": cell}) + "\n" for cell in LONG),
    "last.jsonl": json.dumps({"text": LONG[1]}),
    "blank.jsonl": " " * 5000 + "x" * 5000,
    "x.json": json.dumps([{"text": cell} for cell in LONG]),
    "columns.json": json.dumps({"text": LONG}),
    "x.jsonl.gz": "".join(json.dumps({"text": cell}) + "\n" for cell in LONG),
    "x.json.gz": json.dumps([{"text": cell} for cell in LONG]),
    "x.csv": "text,n\n" + "".join(f"{cell},1\n" for cell in LONG),
    "mark.csv": 'text,n\n"a,1\n' + "b,1\n" * 2000,
}


@pytest.mark.parametrize("name", [*CELLS, *TEXTS])
def test_no_cell_is_longer_than_the_longest(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gigabyte in one took 25 seconds and three times its size."""
    if name in CELLS:
        _write(tmp_path, name, {"text": CELLS[name]()})
    else:
        text = TEXTS[name].encode()
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    if name not in ("blank.jsonl", "mark.csv"):
        alone = name in ("alone.parquet", "last.jsonl")
        assert len(read_columns(tmp_path / name, lambda table: ["text"])["text"]) == (1 if alone else len(LONG))
    monkeypatch.setattr(json_rows, "LONGEST", 4000)
    monkeypatch.setattr(table_file, "LONGEST", 4000)
    monkeypatch.setattr(table_file, "LONGEST_ROW", 4000)
    monkeypatch.setattr(json_rows, "PIECE", 500)
    with pytest.raises(DataError, match=r"longer than .* (the most|or a quotation)|is the most"):
        read_columns(tmp_path / name, lambda table: ["text"])


def test_a_list_is_read_in_pieces_as_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rows, "PIECE", 7)
    random_numbers, opened = random.Random(14), 0
    whole = json.dumps([{"a": "ä☃]},{", "b": [1, {"c": None}]}, {"a": '\\"[', "b": -1.5e3}, {}], ensure_ascii=False)
    for number in range(2000):
        text = whole if number % 2 else whole.replace(",", " ,\n\t")
        at = random_numbers.randrange(len(text))
        text = text if number < 2 else text[:at] + random_numbers.choice(' ,[]{}"1ä') * (number % 3) + text[at + 1 :]
        try:
            expected = json.loads(text)
        except ValueError:
            expected = None
        try:
            rows = json_rows.json_rows(b"\n " + text.encode() + b"\n ", ".json")
        except ValueError:
            rows = []
        if isinstance(expected, list) and all(isinstance(row, dict) for row in expected):
            assert rows == expected, text
            opened += 1
        elif text.startswith("["):
            assert not rows, text
    assert opened > 100


@pytest.mark.parametrize("name", ["x.json", "x.jsonl", "rows.jsonl", "x.csv", "wide.csv", "x.parquet", "x.arrow"])
def test_no_table_has_more_columns_than_the_most(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million took nine seconds."""
    columns = {f"c{number}": [number] for number in range(60)}
    row = {name: value for name, (value,) in columns.items()}
    if name.endswith("csv"):
        (tmp_path / name).write_text(f"{','.join(row)}\n{','.join(map(str, row.values()))}\n")
        monkeypatch.setattr(table_file, "WIDE", 40 if name == "wide.csv" else 400)
    elif "json" in name:
        rows = [{key: value} for key, value in row.items()] if name == "rows.jsonl" else [row]
        text = "\n".join(map(json.dumps, rows))
        (tmp_path / name).write_text(f"[{text}]" if name.endswith("json") else text)
    else:
        _write(tmp_path, name, columns)
    assert len(read_columns(tmp_path / name, lambda table: list(table.kinds))) == 60
    monkeypatch.setattr(json_rows, "MOST_COLUMNS", 59)
    with pytest.raises(DataError, match="it has 60 columns, and 59 are the most"):
        read_columns(tmp_path / name, lambda table: list(table.kinds))


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "stream.arrow"])
def test_small_files_may_hold_much_of_the_same(tmp_path: Path, name: str) -> None:
    _write(tmp_path, name, pyarrow.array(["the same sentence, of fifty characters or so, again"] * 100_000))
    assert (tmp_path / name).stat().st_size < 1 << 19
    table = read_table(tmp_path / name, "", "pictures")
    assert len(table) == 100_000 and set(table.values["text"]) == {table.values["text"][7]}


def test_a_wide_csv_file_is_read_as_a_narrow_one(tmp_path: Path) -> None:
    cells = ["1", "-7", "0.5", "1e3", "true", "", "null", "a b", "nan"]
    rows = [
        [f"c{number}" for number in range(500)], *([f'"{cell}"' if " " in cell else cell for cell in line] for line in (
            [random.Random(number).choice(cells[number % 3 : number % 3 + 3]) for number in range(row, 500 + row)]
            for row in range(4)
        ))
    ]  # fmt: skip
    (tmp_path / "x.csv").write_text("\ufeff" + "\r\n".join(map(";".join, rows)) + "\r\n")

    def choose(table: Columns) -> list[str]:
        return list(table.kinds)

    narrow = read_columns(tmp_path / "x.csv", choose)
    with mock.patch.object(table_file, "WIDE", 100):
        assert read_columns(tmp_path / "x.csv", choose) == narrow


@pytest.mark.parametrize("name", ["wide.jsonl", "wide.csv"])
def test_a_column_for_each_of_many_numbers(tmp_path: Path, name: str) -> None:
    """Two hundred thousand of them took a quarter of an hour."""
    names = [f"c{number}" for number in range(100_000)]
    text = f"{','.join(names)}\n{','.join(['0.5'] * 100_000)}\n"
    (tmp_path / name).write_text(json.dumps(dict.fromkeys(names, 0.5)) if name.endswith("jsonl") else text)
    start = time.process_time()
    table = read_table(tmp_path / name, "", "pictures")
    assert list(table.values) == names and table.values["c7"] == [0.5] and time.process_time() - start < 20


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: Path(path).write_text(" \n ")], ids=["pipe", "blank"])
def test_a_folder_without_text_is_named(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "a.txt")
    with pytest.raises(DataError, match="has no file with text in it"):
        read_texts(tmp_path, (".txt",))


@pytest.mark.parametrize("value", [5, "QQ==", "é", [1], {}])
def test_no_file_says_that_its_text_is_bytes(tmp_path: Path, value: Any) -> None:
    """The limited process marks bytes by a key of its own, which a table may have, too."""
    rows = [{"text": {"\0bytes": value}, "\0bytes": value}, {"text": {table_file.BYTES[:-1]: value}}]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    columns = read_columns(tmp_path / "x.jsonl", lambda table: [each for each in table.kinds if "." not in each])
    assert columns == {"text": [rows[0]["text"], rows[1]["text"]], "\0bytes": [value, None]}


def test_bytes_stay_bytes(tmp_path: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"image": [b"\0\xff", b""]}), tmp_path / "x.parquet")
    assert read_columns(tmp_path / "x.parquet", lambda table: ["image"]) == {"image": [b"\0\xff", b""]}


def test_pictures_of_mostly_zeros_have_more_cells_than_bytes(tmp_path: Path) -> None:
    from pyarrow import parquet

    pixels = np.zeros((8000, 400), np.uint8)
    pixels[:, ::40] = np.random.default_rng(0).integers(0, 255, (8000, 10))
    table = pyarrow.table({f"p{number}": column for number, column in enumerate(pixels.T)})
    parquet.write_table(table, tmp_path / "x.parquet", compression="zstd")
    assert 3 * (tmp_path / "x.parquet").stat().st_size < pixels.size > table_file.LEAST_CELLS
    read = read_table(tmp_path / "x.parquet", "", "pictures")
    assert np.array_equal(np.array(list(read.values.values())).T, pixels)


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "stream.arrow"])
def test_padded_ids_and_masks_take_hardly_a_byte_each(tmp_path: Path, name: str) -> None:
    """Tables of ids are nearly all zeros where texts are short; as JSON they were far more than their file."""
    ids = np.zeros((8000, 512), np.int64)
    ids[:, :8] = np.random.default_rng(0).integers(1, 30000, (8000, 8))
    masks = (ids > 0).astype(np.int8)
    _write(tmp_path, name, {"input_ids": list(ids), "attention_mask": list(masks)})
    assert 40 * (tmp_path / name).stat().st_size < 3 * 2 * ids.size, "JSON writes three characters for each"
    read = read_columns(tmp_path / name, lambda table: ["input_ids", "attention_mask"])
    assert [*read] == ["input_ids", "attention_mask"]
    assert np.array_equal(read["input_ids"], ids) and np.array_equal(read["attention_mask"], masks)


def test_numbers_are_the_same_as_one_by_one(tmp_path: Path) -> None:
    """Of every type and in lists of any length, with nothing among them or not."""
    from pyarrow import parquet

    numbers = np.random.default_rng(0)
    kinds = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")
    bounds = {
        kind: np.array([0, 1, 100] if "f" in kind else [np.iinfo(kind).min, np.iinfo(kind).max, 7], kind)
        for kind in kinds
    }
    columns = {kind: pyarrow.array(values) for kind, values in bounds.items()}
    for kind, values in bounds.items():
        rows = [values[: numbers.integers(0, 4)].tolist() for _ in range(3)]
        columns[f"{kind} lists"] = pyarrow.array(rows, pyarrow.list_(pyarrow.from_numpy_dtype(kind)))
    columns |= {"gaps": pyarrow.array([1, None, 3]), "gaps in lists": pyarrow.array([[1, None], [], [3]]),
                "no lists": pyarrow.array([[1], None, [3]]), "truths": pyarrow.array([True, False, True]),
                "fixed": pyarrow.array([[1, 2]] * 3, pyarrow.list_(pyarrow.int32(), 2)),
                "deep": pyarrow.array([[[1], [2]], [], [[3, 4]]])}  # fmt: skip
    table = pyarrow.table(columns)
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=2)
    read = read_columns(tmp_path / "x.parquet", lambda table: list(table.kinds))
    for name, column in table.to_pydict().items():
        assert read[name] == column and list(map(type, read[name])) == list(map(type, column)), name


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow"])
def test_more_numbers_than_memory_is_for_are_one_line(tmp_path: Path, name: str) -> None:
    many = pyarrow.array(np.zeros(table_file.LEAST_NUMBERS + 2_000_000, np.int8))
    lists = pyarrow.ListArray.from_arrays(pyarrow.array([0, len(many)], pyarrow.int32()), many)
    _write(tmp_path, name, lists)
    with pytest.raises(DataError, match="holds 10,388,608 numbers in .*: cut it into parts"):
        read_columns(tmp_path / name, lambda table: ["text"])


def test_one_json_object_may_be_columns(tmp_path: Path) -> None:
    """As ``json.dump`` of a table's columns and pandas' ``to_json`` write it; lists of words or ids are one row's."""
    file, rows = tmp_path / "x.json", {"text": ["a", "b"], "label": [0, 1]}
    part, entries = ["7", "3"], [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
    for columns in (
        rows, *({name: dict(zip(keys, column, strict=True)) for name, column in rows.items()} for keys in ("01", part)),
        dict(zip(part, entries, strict=True)),
        {"columns": [*rows], "index": part, "data": [[*entry.values()] for entry in entries]},
        {"columns": [*rows], "data": [[*entry.values()] for entry in entries]},
    ):  # fmt: skip
        file.write_text(json.dumps(columns))
        assert read_columns(file, lambda table: ["text", "label"]) == rows
    file.write_text(json.dumps({"input_ids": [[1, 2], [3]], "label": [0, 1]}))
    assert read_columns(file, lambda table: ["input_ids"]) == {"input_ids": [[1, 2], [3]]}
    for row in ({"input_ids": [1, 2], "labels": [0, 1]}, {"tokens": ["a", "b"], "ner_tags": [0, 1]},
                {"text": "a", "label": [1, 2]}, {"text": ["a", "b"], "label": [1]}):  # fmt: skip
        file.write_text(json.dumps(row))
        assert read_columns(file, lambda table: [*table.kinds][:1]) == {name: [row[name]] for name in [*row][:1]}


def test_one_json_object_holds_rows_or_is_one(tmp_path: Path) -> None:
    """As SQuAD and many exports have it, on one line or many; a conversation is a row."""
    rows, file = [{"text": "a"}, {"text": "b"}], tmp_path / "x.json"
    for text in (json.dumps({"version": 1, "data": rows}), json.dumps({"data": rows}, indent=2), json.dumps(rows)):
        file.write_text(text)
        assert read_columns(file, lambda table: ["text"]) == {"text": ["a", "b"]}
    chat = [{"role": "user", "content": "a"}]
    for text in (json.dumps({"messages": chat}), json.dumps({"messages": chat}, indent=2)):
        file.write_text(text)
        assert read_columns(file, lambda table: ["messages"]) == {"messages": [chat]}
    file.write_text('{"text": "a", "data": [1, 2], "rows": ["b"]}')  # one row, with columns of such names
    assert read_columns(file, lambda table: ["text", "data"]) == {"text": ["a"], "data": [[1, 2]]}
    file.write_text('{"text": "a"}\n{"text": \n')
    with pytest.raises(DataError, match="line 2 is not JSON"):
        read_columns(file, lambda table: ["text"])
