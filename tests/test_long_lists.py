"""Messages stay short, however many names, and of whatever length, a stranger's file has."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.models.data.test_datasets import model
from tests.models.networks import convolutions
from workbench import errors
from workbench.errors import DataError, WorkbenchError, nearest
from workbench.models.data.datasets import open_dataset
from workbench.models.data.tables import read_table
from workbench.models.sources import open_model
from workbench.readable import few

NAMES = [f"name{number}" for number in range(10_000)]
MANY = " and 9,[0-9]{3} more"


def _table(folder: Path, column: str, value: Any = 1) -> None:
    pytest.importorskip("pyarrow")
    (folder / "x.jsonl").write_text(json.dumps(dict.fromkeys(NAMES, value)))
    read_table(folder / "x.jsonl", column)


def _archive(folder: Path) -> None:
    with zipfile.ZipFile(folder / "x.npz", "w") as archive:
        for name in NAMES:
            with archive.open(f"{name}.npy", "w") as member:
                np.save(member, np.zeros(1))
    open_dataset(folder / "x.npz", model(tokens=False))


def _shards(folder: Path) -> None:
    index = {"metadata": {}, "weight_map": {name: f"{name}.safetensors" for name in NAMES}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    open_model(folder / "model.safetensors.index.json")


def _sets(folder: Path) -> None:
    torch.save({name: {"a": torch.zeros(1)} for name in NAMES}, folder / "m.pt")
    open_model(folder / "m.pt")


def _batch(folder: Path) -> None:
    network = convolutions(0)
    network.run({"inputs": torch.zeros(1, 2, 3)} | {name: torch.zeros(1) for name in NAMES})


def _inputs(folder: Path) -> None:
    convolutions(0).run({name: torch.zeros(1) for name in NAMES})


@pytest.mark.parametrize("work", [
    lambda folder: _table(folder, "", "words"), lambda folder: _table(folder, "nam1"),
    lambda folder: _table(folder, ",".join(NAMES), "words"), _archive, _shards, _sets, _batch, _inputs,
], ids=["which column", "no column", "too many texts", "arrays", "shards", "sets", "batch", "inputs"])  # fmt: skip
def test_a_message_names_few_of_many(tmp_path: Path, work: Callable[[Path], None]) -> None:
    with pytest.raises(WorkbenchError, match=MANY) as caught:
        work(tmp_path)
    assert len(str(caught.value)) < 1000 and "\n" not in str(caught.value)


def test_few_counts_the_rest_and_cuts_long_names() -> None:
    assert few(NAMES) == "name0, name1, name2 and 9,997 more" and few(NAMES[:3]) == "name0, name1, name2"
    assert few(iter("abcde"), 2) == "a, b and 3 more" and few([]) == ""
    assert re.fullmatch("a{80}…a{80}, b", few(["a" * 10**6, "b"])) and few(["\x1b[31m"]) == r"\x1b[31m"


def test_no_message_is_longer_than_a_page() -> None:
    for kind in (DataError, errors.SessionError):
        text = str(kind("begins " + "x" * 10**6 + " ends"))
        assert len(text) <= errors.LONGEST + 1 and text.startswith("begins x") and text.endswith("x ends")
    assert str(DataError("x" * errors.LONGEST)) == "x" * errors.LONGEST


def test_a_wrong_name_is_compared_with_some_of_many_long_ones() -> None:
    assert nearest("nam1", NAMES[:50]) == "; the closest are name1, name41, name31"
    assert nearest("x" * 10**6, ["x" * 10**6]) == "" and nearest("nane77", NAMES * 100).startswith("; the closest")
