"""A plan that a form cannot hold is refused before anything is quantized: each layer, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.deployment.exporters.llamas import folder_of
from workbench.deployment.endings import ENDINGS
from workbench.deployment.exporters import EXPORTERS, Refuses, exporter
from workbench.errors import ExportError
from workbench.insight.legality import repair
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.steps.files.export import apply

Q = "model.layers.0.self_attn.q_proj"
PLANS: dict[str, dict[str, Any]] = {
    "gguf": {"weights": "int4-g32-asym"}, "onnx": {"weights": "q4_k"}, "onnx-genai": {"weights": "int3-g32"},
    "compressed-tensors": {"weights": "q4_k"}, "gptq": {"weights": "mxfp4"}, "mlx": {"weights": "int4-g16"},
    "torchao": {"weights": "q4_k"}, "state-dict": {"weights": "int8-channel", "inputs": "int8-token"},
    "huggingface": {"weights": "int8-channel", "inputs": "int8-token"},
}  # fmt: skip
"""A plan for each form that it cannot hold."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return open_model(folder_of("llama", tmp_path_factory.mktemp("llama")))


def test_every_form_that_refuses_a_plan_is_here() -> None:
    names = {member.name for member in EXPORTERS if isinstance(member, Refuses)}
    assert set(PLANS) == names - {"safetensors"}  # which holds every scheme, and refuses two tensors of one name


@pytest.mark.parametrize("kind", PLANS)
def test_it_is_refused_before_anything_is_quantized(
    kind: str, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind in ("onnx", "onnx-genai"):
        pytest.importorskip("onnxscript")
    plan = Plan().assign([Q], algorithm="rtn", **PLANS[kind])
    with monkeypatch.context() as patch:
        patch.setattr("workbench.steps.files.export.quantize", lambda *_, **__: pytest.fail("it was quantized"))
        with pytest.raises(ExportError, match=Q) as caught:
            apply(model, plan, kind, tmp_path / "out")
    quantized = quantize(model, plan)
    with pytest.raises(ExportError) as later:
        exporter(kind).export(quantized, model, tmp_path / "out", silent)
    assert str(later.value) == str(caught.value) and not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind, inputs", [
    ("onnx", "int8-tensor-asym"), ("compressed-tensors", "int8-tensor-asym"), ("safetensors", "int8-tensor-asym"),
    ("compressed-tensors", "nvfp4"), ("safetensors", "nvfp4"),
])  # fmt: skip
def test_static_inputs_need_a_session(kind: str, inputs: str, model: Model, tmp_path: Path) -> None:
    plan = Plan().assign([Q], weights="int8-channel", inputs=inputs, algorithm="rtn")
    with pytest.raises(ExportError, match=rf"{Q}: {inputs} inputs need calibrated ranges.*--session S.qwb"):
        apply(model, plan, kind, tmp_path / "out")


@pytest.mark.parametrize("kind", [kind for kind, ending in ENDINGS.items() if not ending])
def test_a_folder_with_other_files_is_refused_before_anything_is_quantized(
    kind: str, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    monkeypatch.setattr("workbench.steps.files.export.quantize", lambda *_, **__: pytest.fail("it was quantized"))
    with pytest.raises(ExportError, match="exists and holds more than an earlier export"):
        apply(model, Plan().assign([Q], weights="int4-g32", algorithm="rtn"), kind, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("kind", ("gguf", "compressed-tensors"))
def test_what_fits_is_written(kind: str, model: Model, tmp_path: Path) -> None:
    scheme = "q8_0" if kind == "gguf" else "int4-g32"
    assert apply(model, Plan().assign([Q], weights=scheme, algorithm="rtn"), kind, tmp_path / "out")


@pytest.mark.parametrize("kind", ("gptq", "mlx", "torchao"))
def test_a_plan_with_nothing_to_pack_is_refused_before_too(
    kind: str, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "torchao":
        pytest.importorskip("torchao")
    monkeypatch.setattr("workbench.steps.files.export.quantize", lambda *_, **__: pytest.fail("it was quantized"))
    with pytest.raises(ExportError, match="there is nothing to write"):
        apply(model, Plan(), kind, tmp_path / "out")


@pytest.mark.parametrize("kind", ("gguf", "compressed-tensors", "gptq", "mlx", "torchao", "huggingface", "onnx-genai"))
def test_packed_weights_without_their_configuration_are_refused_in_a_line(
    kind: str, model: Model, tmp_path: Path
) -> None:
    for package in {"torchao": ["torchao"], "onnx-genai": ["onnxscript"]}.get(kind, []):
        pytest.importorskip(package)
    plan = Plan().assign([Q], weights="q8_0" if kind == "gguf" else "int4-g32", algorithm="rtn")
    exporter("safetensors").export(quantize(model, plan), model, tmp_path / "packed.safetensors", silent)
    weights = open_model(tmp_path / "packed.safetensors")
    fresh = Plan().assign([Q], weights={"gguf": "q8_0", "mlx": "int4-g32-asym"}.get(kind, "int4-g32"), algorithm="rtn")
    with pytest.raises(ExportError, match=r"config\.json|needs its network|no network|cannot be run"):
        apply(weights, fresh, kind, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["packed.safetensors"]


def test_inputs_that_a_gguf_file_cannot_say_are_named_with_the_line_that_repairs_the_plan(
    model: Model, tmp_path: Path
) -> None:
    names = [Q, Q.replace("q_proj", "k_proj")]
    plan = Plan().assign(names, weights="q8_0", inputs="int8-token", algorithm="rtn")
    with pytest.raises(ExportError, match="the inputs of 2 layers.*q_proj.*k_proj") as caught:
        apply(model, plan, "gguf", tmp_path / "out.gguf")
    assert "--target gguf --repair" in str(caught.value.command)
    mended = repair(plan, model.summary.layers, "gguf")
    assert not mended.left and apply(model, mended.plan, "gguf", tmp_path / "out.gguf")
