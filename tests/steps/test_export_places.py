"""The name of an export is not another form's, and its place can take it: refused before any work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import workbench as wb
from tests.deployment.exporters.llamas import folder_of
from tests.gui import sessions
from workbench.errors import ExportError
from workbench.planning.plan import Plan
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


FACTORY = """
import torch

def build():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv1d(6, 8, 5), torch.nn.Flatten(), torch.nn.LayerNorm(8 * 36), torch.nn.Linear(8 * 36, 4)
    )
"""


def test_the_calibration_tells_what_a_network_takes(tmp_path: Path) -> None:
    """A graph is captured with samples: nothing but the data says how long the signals of this network are."""
    (tmp_path / "net.py").write_text(FACTORY)
    np.save(tmp_path / "signals.npy", np.random.default_rng(0).normal(size=(32, 6, 40)).astype(np.float32))
    model = wb.open(tmp_path / "net.py", trust=True)
    bare = Plan(model=model.summary.name, fingerprint=model.summary.fingerprint)
    plan = bare.assign([layer.name for layer in model.summary.layers], weights="int8-channel")
    with pytest.raises(ExportError, match="calibrate it first"):
        wb.apply(model, plan, "onnx", tmp_path / "early.onnx")
    session = wb.calibrate(model, tmp_path / "signals.npy", samples=8)
    (file,) = export(session, "onnx", tmp_path / "net.onnx", plan=plan, model=model)
    graph = wb.open(file)
    batch = {"inputs": torch.from_numpy(np.load(tmp_path / "signals.npy")[8:11])}
    assert torch.allclose(graph.run(batch), wb.quantize(model, plan).bind(model).run(batch), atol=1e-4)
    (tmp_path / "signals.npy").unlink()
    with pytest.raises(ExportError, match="what net takes is not known"):
        export(session, "onnx", tmp_path / "late.onnx", plan=plan, model=wb.open(tmp_path / "net.py", trust=True))


def test_a_plan_goes_where_the_user_says(tmp_path: Path) -> None:
    for name in ("plan.json", "plan", "plan.v2"):
        assert export(sessions.opened(), "plan", tmp_path / name)[0].is_file()


@pytest.mark.parametrize("kind", ["gguf", "safetensors", "huggingface", "script"])
def test_no_export_replaces_a_file_of_the_model(tmp_path: Path, kind: str) -> None:
    """Weights stay in their file, mapped: the model would be lost, and what is written would be made of both."""
    folder = tmp_path / "model"
    folder_of("llama", folder)
    first = wb.open(folder)
    (file,) = wb.apply(first, Plan(), "gguf", tmp_path / "m.gguf")
    (tmp_path / "net.py").write_text(FACTORY)
    path, out = {
        "gguf": (file, file), "safetensors": (folder, folder / "model.safetensors"), "huggingface": (folder, folder),
        "script": (tmp_path / "net.py", tmp_path / "net.py"),
    }[kind]  # fmt: skip
    before = {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
    link = tmp_path / f"link{out.suffix}"
    link.symlink_to(out)
    for place in (out, link):
        with pytest.raises(ExportError, match="is a file of the model itself|holds more than an earlier export"):
            wb.apply(wb.open(path, trust=True), Plan(), kind, place)
    assert {each: each.read_bytes() for each in before} == before


def test_an_export_beside_the_weights_is_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder_of("llama", folder)
    for _ in range(2):
        assert wb.apply(wb.open(folder), Plan(), "gguf", folder / "m.gguf") == (folder / "m.gguf",)
