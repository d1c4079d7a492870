"""Sizes, limits, tensors on the disk."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from workbench import memory
from workbench.errors import MemoryLimitError
from workbench.memory import Scratch, Spill, available_memory, left_text, limit, limited_to, memory_limit, parse_size
from workbench.models.readers.mapped import MappedFile


@pytest.mark.parametrize(
    ("text", "nbytes"), [("2GB", 2 * 10**9), ("1.5 GiB", 3 << 29), ("800M", 8 * 10**8), ("4096", 4096), ("1k", 1000)]
)
def test_sizes(text: str, nbytes: int) -> None:
    assert parse_size(text) == nbytes


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "0", "two", "1 XB", "1e3", "nan", "0.0001", "9" * 400])
def test_what_is_no_size_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="write a number and a unit"):
        parse_size(text)


def test_a_limit_holds_within_its_block_and_the_lowest_counts() -> None:
    assert limit() is None
    with memory_limit("3GB"), limited_to(10**9):
        assert limit() == 10**9 and available_memory() < 10**9
    with limited_to(1):
        assert available_memory() == 0
    assert limit() is None


@pytest.mark.parametrize(("limited", "given_back"), [(False, [800]), (True, [400, 420, 640, 800])])
def test_pieces_take_the_memory_of_the_first_again(
    monkeypatch: pytest.MonkeyPatch, limited: bool, given_back: list[int]
) -> None:
    """Fresh pages for each batch were a tenth of a calibration's time; under a limit nothing stays."""
    sizes, given = [400, 420, 640, 800, 300], list[int]()
    now = [300 << 20]
    monkeypatch.setattr(memory, "anonymous_memory", lambda: now[0])
    monkeypatch.setattr(memory, "give_back", lambda: given.append(now[0] >> 20))
    with limited_to(10**9 if limited else None):
        given.clear()  # a limit begins with it
        footprint = memory.Footprint()
        for size in sizes:
            now[0] = size << 20
            footprint.settle()
        assert given == given_back


def test_what_is_left_is_told() -> None:
    assert left_text(5 * 10**8) == "500 MB of memory are free"
    with memory_limit("150MB"):
        text = left_text(available_memory())
    assert text.startswith("of 150 MB that are allowed, the program takes ") and text.endswith("and nothing is left")


def test_tensors_on_the_disk_are_files_without_names(tmp_path: Path) -> None:
    values = torch.arange(12.0).reshape(3, 4)
    scratch = Scratch(tmp_path / "made")
    copy, zeros = scratch.copy(values), scratch.empty((0, 3), torch.int64)
    assert torch.equal(copy, values) and zeros.shape == (0, 3) and copy.dtype == values.dtype
    copy[1] = 7
    assert float(copy.sum()) == float(values.sum()) - 22 + 28
    assert not list((tmp_path / "made").iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="files are opened again by their names elsewhere")
def test_a_tensor_s_file_never_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was killed while it wrote left it; where anybody may write it could be exchanged for a link."""
    names = list[str]()
    monkeypatch.setattr(memory, "reserve", lambda *what: names.extend(map(str, tmp_path.iterdir())))
    away = Scratch(tmp_path).written(np.arange(40))
    assert names == [] and np.array_equal(away, np.arange(40))


def test_the_first_tensors_stay_in_memory() -> None:
    spill, each = Spill(room=5 << 20), torch.ones(1 << 19)
    copies = [spill.keep(each) for _ in range(4)]
    assert [tensor is each for tensor in copies] == [True, True, False, False]
    assert all(torch.equal(tensor, each) for tensor in copies) and spill.spilled == 4 << 20
    assert spill.keep(torch.ones(5)).numel() == 5 and spill.spilled == 4 << 20
    assert spill.zeros(each, 1024, 1024).sum() == 0


def test_a_full_disk_is_told_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, nbytes: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(memory, "reserve", full)
    with pytest.raises(MemoryLimitError, match=r"12 MB that do not fit .*No space left.*free some of it.*--memory"):
        Scratch(tmp_path).empty((3_000_000,), torch.float32)
    assert not list(tmp_path.iterdir())


def test_arrays_are_put_away_into_files(monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.arange(1 << 20, dtype=np.int16).reshape(-1, 512).T
    spill = Spill(room=0)
    away = spill.put_away(array)
    assert away is not array and away.dtype == array.dtype and np.array_equal(away, array)
    away[3] = 7
    memory.put_away_again(away)
    assert (away[3] == 7).all() and spill.spilled == array.nbytes

    def full(file: int, nbytes: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(memory, "reserve", full)
    with pytest.raises(MemoryLimitError, match="No space left"):
        spill.put_away(array)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MemoryLimitError, match=r"cannot be put on the disk, at .*file.*name another"):
        Scratch(tmp_path / "file" / "folder").empty((3,), torch.float32)


def test_pages_of_a_passing_file_leave_and_are_read_again(tmp_path: Path) -> None:
    file = tmp_path / "numbers"
    file.write_bytes(bytes(range(256)) * 4096)
    mapped, own = MappedFile(file, passing=True), torch.arange(1 << 20)
    tensor = mapped.tensor(256, (1 << 19,), torch.uint8)
    before = tensor.clone()
    for values in (tensor, tensor[100:9000], tensor[:0], own, own.numpy()):
        memory.let_go(values)
    assert torch.equal(tensor, before) and int(own.sum()) == (1 << 19) * ((1 << 20) - 1)


def test_arrays_without_values_lie_in_files_beyond_the_room() -> None:
    spill = Spill(room=1 << 21)
    inside, outside = (spill.empty((1 << 19, 4), np.dtype(np.uint8)) for _ in range(2))
    outside[...] = 7
    memory.put_away_again()
    assert spill.spilled == inside.nbytes == outside.nbytes and (outside == 7).all()
