"""A mapped file that is cut while it is open is a named error, whoever reads it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from workbench.errors import ModelError
from workbench.models.execution.widened import widened
from workbench.models.readers.mapped import MappedFile, require_whole

SIZE = 1 << 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "weights.bin"
    made.write_bytes(bytes(SIZE))
    return made


def test_a_file_that_was_cut_is_named_before_it_is_read(path: Path) -> None:
    file = MappedFile(path)
    weight = widened(file.tensor(0, (512, 1024), torch.bfloat16))
    require_whole(weight.data_ptr())
    os.truncate(path, 4096)
    with pytest.raises(ModelError, match=r"weights\.bin was truncated .* had 1,048,576 bytes and has 4,096"):
        torch.ones(1, 1024) @ weight.T
    with pytest.raises(ModelError, match="restore the file"):
        file.tensor(0, (4,), torch.int16)
    os.truncate(path, SIZE)
    require_whole(weight.data_ptr())


def test_a_cut_file_is_of_no_concern_to_who_reads_another(path: Path, tmp_path: Path) -> None:
    (tmp_path / "whole.bin").write_bytes(bytes(SIZE))
    cut, whole = MappedFile(path), MappedFile(tmp_path / "whole.bin")
    weight = widened(whole.tensor(0, (512, 1024), torch.bfloat16))
    os.truncate(path, 0)
    assert not (torch.ones(1, 1024) @ weight.T).any() and not whole.tensor(64, (4,), torch.int16).any()
    with pytest.raises(ModelError, match=r"weights\.bin was truncated"):
        cut.tensor(0, (4,), torch.int16)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not cut mapped files")
def test_a_command_that_reads_what_is_gone_ends_with_one_line(path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from workbench.log import name_bus_errors\n"
        "from workbench.models.readers.mapped import MappedFile\n"
        "name_bus_errors(); file = MappedFile(Path(sys.argv[1])); os.truncate(sys.argv[1], 0); print(file.data[9])"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("workbench: a part of a mapped file no longer exists")
    assert ended.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="pages leave by Linux's advice")
def test_tensors_that_were_read_one_after_another_do_not_stay_resident(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors.torch import save_file

    from workbench.models.sources import stored

    monkeypatch.setattr(stored, "RESIDENT", 1 << 20)
    tensors = {f"w{number}": torch.full((1 << 20,), float(number)) for number in range(16)}
    save_file(tensors, tmp_path / "model.safetensors")

    def resident() -> int:
        text = Path("/proc/self/status").read_text(encoding="utf-8")
        return next(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("RssFile"))

    def grown(passing: bool) -> int:
        store = stored.tensors_in_files([tmp_path / "model.safetensors"], passing=passing)
        before = resident()
        assert [float(store.read(name).sum()) / (1 << 20) for name in tensors] == list(map(float, range(16)))
        first = store.read("w0")
        assert all(bool((store.read(name) == tensors[name]).all()) for name in tensors) and not first.any()
        return resident() - before

    assert grown(passing=True) < 16 << 20 < 60 << 20 < grown(passing=False)


def test_what_is_put_away_keeps_its_values() -> None:
    from workbench.memory import Spill, put_away_again

    values, spill = torch.randn(1 << 19).numpy(), Spill(room=0)
    away = spill.put_away(values)
    assert (away == values).all() and away is not values and spill.spilled == values.nbytes
    away[:4] = 7.0
    put_away_again()
    assert (away[4:] == values[4:]).all() and (away[:4] == 7.0).all()
    small = values[:4]
    assert spill.put_away(small) is small
