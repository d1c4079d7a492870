"""A disk that is full at any write: the old file is whole, nothing is left beside it, and one line says so."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs a C compiler, to fill the disk"
)


@pytest.mark.parametrize(("what", "writers"), [("files", 8), pytest.param("folders", 2, marks=pytest.mark.slow)])
def test_every_write_may_be_the_one_that_fails(tmp_path: Path, what: str, writers: int) -> None:
    shim, folder = tmp_path / "full.so", tmp_path / "files"
    folder.mkdir()
    source = Path(__file__).with_name("full_disk.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, source, "-ldl"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(shim), "FULL_FOLDER": str(folder), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.faults.full_disk", str(shim), str(folder), what]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-3000:]
    lines = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    for line in lines:
        print(line)
        assert line["writes"] >= 2 and not line["problems"], line
    assert len(lines) == writers
