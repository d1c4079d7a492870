"""The name of an export is not another form's, and its place can take it: refused before any work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gui import sessions
from workbench.errors import ExportError
from workbench.steps.files.export import export


@pytest.mark.parametrize(("kind", "name"), [("huggingface", "replay.py"), ("plan", "model.safetensors")])
def test_the_name_of_another_form_is_refused(tmp_path: Path, kind: str, name: str) -> None:
    with pytest.raises(ExportError, match=rf"{name} ends in \.\w+, which {kind} does not write; give "):
        export(sessions.opened(), kind, tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("kind", "name", "says"), [
    ("plan", "folder", "is a folder, and plan writes a file; give its name: .*model.json"),
    ("gguf", "folder", "is a folder, and gguf writes a file"), ("gptq", "file", "is a file, and gptq writes a folder"),
    ("onnx", "none/model.onnx", "there is no folder .*none; create it"),
    ("onnx", "file/model.onnx", "there is no folder"), ("onnx", "x" * 300 + "/model.onnx", "there is no folder"),
])  # fmt: skip
def test_a_place_that_cannot_take_it_is_refused_before_work(
    tmp_path: Path, kind: str, name: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    monkeypatch.setattr("workbench.steps.files.export.reopen", lambda *_, **__: pytest.fail("the model was opened"))
    with pytest.raises(ExportError, match=says):
        export(sessions.opened(), kind, tmp_path / name)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_plan_goes_where_the_user_says(tmp_path: Path) -> None:
    for name in ("plan.json", "plan", "plan.v2"):
        assert export(sessions.opened(), "plan", tmp_path / name)[0].is_file()
