"""Tables are parsed in the limited process alone, and hand over plain values."""

from __future__ import annotations

import datetime
import decimal
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from workbench.errors import DataError
from workbench.models.data import table_file
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


def test_a_bomb_is_one_line(tmp_path: Path) -> None:
    from pyarrow import parquet

    table = pyarrow.table({"text": pyarrow.array(["x" * (1 << 20)]).dictionary_encode().take([0] * 20_000)})
    parquet.write_table(table, tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < 1 << 22
    with pytest.raises(DataError, match="memory|cannot be read") as caught:
        read_columns(tmp_path / "x.parquet", lambda table: ["text"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["wide.jsonl", "wide.csv"])
def test_a_column_for_each_of_many_numbers(tmp_path: Path, name: str) -> None:
    """Two hundred thousand of them took a quarter of an hour."""
    names = [f"c{number}" for number in range(100_000)]
    text = f"{','.join(names)}\n{','.join(['0.5'] * 100_000)}\n"
    (tmp_path / name).write_text(json.dumps(dict.fromkeys(names, 0.5)) if name.endswith("jsonl") else text)
    start = time.process_time()
    table = read_table(tmp_path / name, "")
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
    columns = read_columns(tmp_path / "x.jsonl", lambda table: [*table.kinds])
    assert columns == {"text": [rows[0]["text"], rows[1]["text"]], "\0bytes": [value, None]}


def test_bytes_stay_bytes(tmp_path: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"image": [b"\0\xff", b""]}), tmp_path / "x.parquet")
    assert read_columns(tmp_path / "x.parquet", lambda table: ["image"]) == {"image": [b"\0\xff", b""]}
