"""Archives of NumPy arrays: as NumPy reads them, piece by piece, and no larger than a file of their size may be."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.errors import DataError, MemoryLimitError
from workbench.models.readers import npz_file
from workbench.models.readers.npz_file import read_npz


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_are_those_that_numpy_reads(tmp_path: Path, save: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz_file, "PIECE", 1000)
    random = np.random.default_rng(0)
    arrays = {
        "a": random.normal(size=(7, 50, 3)), "by columns": np.asfortranarray(random.integers(0, 9, (30, 40))),
        "big end first": np.arange(5, dtype=">i4"), "none": np.zeros((0, 3), np.float32), "one": np.array(True),
        "ä": np.arange(3000, dtype=np.uint8)[::2],
    }  # fmt: skip
    save(tmp_path / "x.npz", **arrays)
    read = read_npz(tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz", allow_pickle=False) as reference:
        assert list(read) == reference.files
        for name in reference.files:
            expected = reference[name]
            assert read[name].dtype == expected.dtype and read[name].shape == expected.shape
            assert np.array_equal(read[name], expected), name


def write(path: Path, header: dict[str, Any], nbytes: int, of: bytes = b"\0") -> Path:
    """Write an archive of one array, of so many bytes, whose header may say anything."""
    piece = of * ((1 << 20) // len(of))
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("x.npy", "w", force_zip64=True) as to,
    ):
        np.lib.format.write_array_header_1_0(to, {"descr": "<f4", "fortran_order": False, **header})
        for _ in range(nbytes >> 20):
            to.write(piece)
    return path


SIZES: dict[str, tuple[dict[str, Any], int, str]] = {
    "zeros": ({"shape": (1 << 27,)}, 300 << 20, "537 MB in .* save it without compression"),
    "says more than it has": ({"shape": (1 << 40, 1 << 10)}, 1 << 20, "is the most for a file of its size"),
    "says more than a number": ({"shape": (1 << 80,)}, 1 << 20, "is the most for a file of its size"),
    "negative": ({"shape": (-5, 1 << 20)}, 1 << 20, "a size below 0"),
    "ends before": ({"shape": (1 << 20,)}, 1 << 20, "ends before its array does"),
    "goes on": ({"shape": (1 << 10,)}, 1 << 20, "goes on after its array"),
    "objects": ({"shape": (1 << 10,), "descr": "|O"}, 1 << 20, "holds objects"),
}


@pytest.mark.parametrize("name", SIZES)
def test_what_it_says_is_checked_first(tmp_path: Path, name: str) -> None:
    header, nbytes, words = SIZES[name]
    with pytest.raises(DataError, match=words) as caught:
        read_npz(write(tmp_path / "x.npz", header, nbytes))
    assert "\n" not in str(caught.value)


def test_a_length_of_a_header_is_no_reason_to_fill_the_memory(tmp_path: Path) -> None:
    with (
        zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("x.npy", "w") as to,
    ):
        to.write(b"\x93NUMPY\x02\x00\xff\xff\xff\x7f")
        for _ in range(300):
            to.write(b" " * (1 << 20))
    with pytest.raises(DataError, match="too much memory|cannot be read"):
        read_npz(tmp_path / "x.npz")


def test_a_flipped_bit_is_noticed(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.arange(1000.0))
    data = bytearray((tmp_path / "x.npz").read_bytes())
    data[4000] ^= 4
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(DataError, match="cannot be read: Bad CRC-32"):
        read_npz(tmp_path / "x.npz")


def test_what_does_not_fit_into_memory_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "x.npz", x=np.zeros(1 << 17))
    monkeypatch.setattr(npz_file, "available_memory", lambda: 1 << 20)
    with pytest.raises(MemoryLimitError, match="holds 1.05 MB"):
        read_npz(tmp_path / "x.npz")


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_the_limited_process_never_holds_an_array(tmp_path: Path) -> None:
    """A gigabyte of zeros in 1 MB took two."""
    write(tmp_path / "zeros.npz", {"shape": (100 << 20,)}, 400 << 20)
    numbers = np.arange(1 << 12, dtype=np.float32)
    write(tmp_path / "whole.npz", {"shape": (50 << 20,)}, 200 << 20, numbers.tobytes())
    program = (
        "import pathlib, resource, sys\n"
        "from workbench.errors import DataError\n"
        "from workbench.models.readers.npz_file import read_npz\n"
        "for name in ('zeros.npz', 'whole.npz'):\n"
        "    try:\n"
        "        print(read_npz(pathlib.Path(sys.argv[1]) / name)['x'][-1])\n"
        "    except DataError as error:\n"
        "        print('refused')\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1000)"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True)
    zeros, last, megabytes = ended.stdout.split()
    assert (zeros, float(last)) == ("refused", 4095.0), ended.stderr[-1000:]
    assert int(megabytes) < 150
