"""What the limited process adds to opening a file: ``python -m tests.benchmarks.limited_child [FOLDER GIGABYTES]``.

For each kind of file the median of 20 openings with the process, and with its work done in this one; their difference
has to stay below 150 ms.  With GIGABYTES, only the histograms of a random safetensors file of that size, in FOLDER.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import IO, Any, cast
from unittest import mock

import numpy as np

from tests.fuzz.formats import FORMATS
from tests.fuzz.mutated import _in_place
from workbench import limited
from workbench.session.file import hdf5_child, tree

KINDS = ("session", "safetensors", "pt", "pt2", "gguf", "onnx", "tokenizer.json", "parquet", "npz", "png")
TIMES = 20


class Ended(Exception):
    """The reader of sessions is done."""


def _ended(code: int) -> None:
    raise Ended


def _read_here(image: bytes, settings: hdf5_child.Settings, result: IO[bytes], errors: IO[bytes]) -> int:
    with mock.patch("os._exit", _ended), mock.patch.object(hdf5_child, "_limit"), suppress(Ended):
        hdf5_child.read(bytes(image), settings, cast("Any", result), cast("Any", errors))
    return 0


@contextmanager
def without_processes() -> Iterator[None]:
    """Do in this process what the limited one does."""
    with mock.patch.object(limited, "_forked", _in_place), mock.patch.object(tree, "_forked", _read_here):
        yield


def _seconds(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def opened(name: str) -> dict[str, object]:
    """Open a file of one kind ``TIMES`` times each way, in turns; returns the medians in milliseconds."""
    kind, times = FORMATS[name], (list[float](), list[float]())
    with tempfile.TemporaryDirectory() as place:
        file = kind.make(Path(place))
        kind.open(file)  # imports
        for _ in range(TIMES):
            times[0].append(_seconds(lambda: kind.open(file)))
            with without_processes():
                times[1].append(_seconds(lambda: kind.open(file)))
    limited_ms, here = (1e3 * median(each) for each in times)
    return {"kind": name, "ms": round(limited_ms, 1), "without": round(here, 1), "adds": round(limited_ms - here, 1)}


def histograms(folder: Path, gigabytes: float) -> dict[str, object]:
    """Write a file of random weights, and count its histograms each way, once."""
    from workbench.measurement.calibrate import weight_statistics
    from workbench.models.sources import open_model

    side, file = 4096, folder / "random.safetensors"
    count, random = round(gigabytes * 1e9 / (4 * side * side)), np.random.default_rng(14)
    size = 4 * side * side
    tensors = {
        f"layers.{i}.weight": {"dtype": "F32", "shape": [side, side], "data_offsets": [i * size, (i + 1) * size]}
        for i in range(count)
    }
    header = json.dumps(tensors).encode()
    with file.open("wb") as stream:
        stream.write(len(header).to_bytes(8, "little") + header)
        for _ in range(count):
            stream.write(random.standard_normal((side, side), np.float32).data)
    try:
        times = []
        for here in (True, False, True, False):
            if here:
                with without_processes():
                    times.append(_seconds(lambda: weight_statistics(open_model(file))))
            else:
                times.append(_seconds(lambda: weight_statistics(open_model(file))))
        size = file.stat().st_size
    finally:
        os.unlink(file)
    texts = [f"{seconds:.1f}" for seconds in times]
    return {"histograms of GB": round(size / 1e9, 2), "without, with, without, with (s)": texts}


def main() -> None:
    """Print a line of JSON for each."""
    if len(sys.argv) > 2:
        print(json.dumps(histograms(Path(sys.argv[1]), float(sys.argv[2]))), flush=True)
    else:
        for name in KINDS:
            print(json.dumps(opened(name)), flush=True)


if __name__ == "__main__":
    main()
