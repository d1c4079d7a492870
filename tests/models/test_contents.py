"""What all bytes of a model tell is kept for large files, and only while they stay the same."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from workbench.models import contents
from workbench.models.contents import Contents
from workbench.models.sources import open_model, stored
from workbench.models.sources.stored import contents_of, tensors_in_files

BEFORE = 1_700_000_000.0


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Contents]:
    """What was read of files, of which any size is large, changed long ago."""
    monkeypatch.setenv("WORKBENCH_CACHE_FOLDER", str(tmp_path / "cache"))
    monkeypatch.setattr(contents, "LARGE", 1)
    monkeypatch.setattr(contents, "SETTLED", -1e9)
    read, seen = stored._read, list[Contents]()

    def noted(store: stored.TensorStore) -> Contents:
        seen.append(read(store))
        return seen[-1]

    monkeypatch.setattr(stored, "_read", noted)
    return seen


def _file(folder: Path, value: float) -> Path:
    path = folder / "a.safetensors"
    save_file({"a.weight": torch.full((4, 8), value), "b": torch.tensor([torch.inf])}, path)
    os.utime(path, (BEFORE, BEFORE))
    return path


def test_large_files_are_read_once(tmp_path: Path, reads: list[Contents]) -> None:
    path = _file(tmp_path, 1.0)
    first, second = open_model(path).summary, open_model(path).summary
    assert len(reads) == 1 and first == second
    assert first.fingerprint == reads[0].fingerprint and first.non_finite == ("b",)
    (entry,) = (tmp_path / "cache" / "contents").iterdir()
    entry.write_text("{")
    assert open_model(path).summary == first and len(reads) == 2
    entry.write_text(json.dumps({"fingerprint": "sha256:none", "non_finite": []}))
    assert open_model(path).summary == first and len(reads) == 3


def test_a_file_of_the_same_name_size_and_time_is_read_again(tmp_path: Path, reads: list[Contents]) -> None:
    path = _file(tmp_path, 1.0)
    first = open_model(path).summary.fingerprint
    _file(tmp_path, 2.0)  # in place: the time of the entry tells them apart
    assert path.stat().st_mtime == BEFORE
    second = open_model(path).summary.fingerprint
    other = tmp_path / "other"
    save_file({"a.weight": torch.full((4, 8), 3.0), "b": torch.tensor([torch.inf])}, other)
    os.utime(other, (BEFORE, BEFORE))
    other.replace(path)
    assert len({first, second, open_model(path).summary.fingerprint}) == 3 and len(reads) == 3


def test_nothing_is_kept_of_what_changed_a_moment_ago_or_while_it_was_read(
    tmp_path: Path, reads: list[Contents], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _file(tmp_path, 1.0)
    read = stored._read

    def changing(store: stored.TensorStore) -> Contents:
        found = read(store)
        path.touch()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(stored, "_read", changing)
        contents_of(tensors_in_files([path]))
    monkeypatch.setattr(contents, "SETTLED", 1e9)
    contents_of(tensors_in_files([path]))
    assert len(reads) == 2 and not (tmp_path / "cache").exists()


def test_only_so_many_entries_are_kept_and_none_where_the_cache_is_off(
    tmp_path: Path, reads: list[Contents], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "MOST_ENTRIES", 2)
    for value in range(4):
        contents_of(tensors_in_files([_file(tmp_path, value)]))
    assert len([*(tmp_path / "cache" / "contents").iterdir()]) == 2
    monkeypatch.setenv("WORKBENCH_CACHE_FOLDER", "")
    contents_of(tensors_in_files([_file(tmp_path, 9.0)]))
    contents_of(tensors_in_files([tmp_path / "a.safetensors"]))
    assert len(reads) == 6 and len([*(tmp_path / "cache" / "contents").iterdir()]) == 2


def test_to_look_at_the_layers_large_files_are_not_read(tmp_path: Path, reads: list[Contents]) -> None:
    path = _file(tmp_path, 1.0)
    look = open_model(path, contents=False).summary
    assert look.fingerprint == "" and not reads
    whole = open_model(path).summary
    assert look.layers == whole.layers
    assert open_model(path, contents=False).summary == whole and len(reads) == 1
