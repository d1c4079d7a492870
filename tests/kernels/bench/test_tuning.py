"""Variants are measured once for each shape and device, and the answers are kept."""

from __future__ import annotations

import json

import pytest
from workbench_kernels.bench import tuning
from workbench_kernels.errors import BackendUnavailable

TIMES = {"slow": 3e-6, "fast": 1e-6, "middle": 2e-6}


def test_the_fastest_is_kept_and_not_measured_again(tmp_path):
    path = tmp_path / "deep" / "device.json"
    requested: list[str] = []

    def seconds(name: str) -> float:
        requested.append(name)
        return TIMES[name]

    first = tuning.tuned(path, "w4a16 1 x 64 x 64", tuple(TIMES), seconds)
    assert first.variant == "fast" and first.microseconds == pytest.approx({"slow": 3, "fast": 1, "middle": 2})
    assert tuning.tuned(path, "w4a16 1 x 64 x 64", tuple(TIMES), seconds) == first and len(requested) == 3
    tuning.tuned(path, "another shape", ("slow",), seconds)
    assert set(tuning.read(path)) == {"w4a16 1 x 64 x 64", "another shape"}
    TIMES["new"] = 0.5e-6
    assert tuning.tuned(path, "w4a16 1 x 64 x 64", tuple(TIMES), seconds).variant == "new"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "kernel tuning", "version": 2}', '{"format": "plan"}',
                                  '{"format": "kernel tuning", "version": 1, "choices": {"a": {}}}'])  # fmt: skip
def test_a_broken_file_is_measured_anew(tmp_path, text):
    path = tmp_path / "device.json"
    path.write_text(text)
    assert tuning.read(path) == {}
    assert tuning.tuned(path, "a", ("slow",), lambda name: TIMES[name]).variant == "slow"
    assert json.loads(path.read_text())["choices"]["a"]["variant"] == "slow"


def test_a_folder_that_cannot_be_written_costs_no_more_than_time(tmp_path):
    (tmp_path / "file").write_text("")
    assert tuning.tuned(tmp_path / "file" / "device.json", "a", ("fast",), lambda name: TIMES[name]).variant == "fast"


def test_variants_that_the_device_cannot_run_are_left_out_or_named(tmp_path):
    def seconds(name: str) -> float:
        if name != "fast":
            raise BackendUnavailable(f"{name} needs more shared memory")
        return 1e-6

    result = tuning.tuned(tmp_path / "a.json", "a", ("slow", "fast"), seconds)
    assert result.variant == "fast" and set(result.microseconds) == {"fast"}
    with pytest.raises(BackendUnavailable, match="no variant of b runs: slow: slow needs more shared memory"):
        tuning.tuned(tmp_path / "a.json", "b", ("slow",), seconds)


def test_every_device_has_a_file_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("WORKBENCH_KERNEL_CACHE", str(tmp_path / "cubins"))
    assert tuning.file_for("NVIDIA H200") == tmp_path / "tuning" / "nvidia-h200.json"
    assert tuning.file_for("NVIDIA A100-SXM4-80GB").name == "nvidia-a100-sxm4-80gb.json"
