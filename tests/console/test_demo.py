"""The demo without a display notices before its work that its files cannot be written."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from workbench.cli import main
from workbench.console import demo


@pytest.mark.parametrize(("name", "free", "words"), [
    ("", 0, "0 B are free"), ("model.safetensors", 1 << 30, "the exported file cannot be written"),
])  # fmt: skip
def test_a_place_that_takes_no_files_is_told_before_anything_is_computed(
    name: str, free: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(demo, "open_model", lambda path: pytest.fail("it began"))
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=free))
    if name:
        (tmp_path / name).mkdir()
    assert main(["demo", "--headless", "--out", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
