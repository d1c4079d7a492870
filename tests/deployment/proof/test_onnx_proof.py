"""ONNX files in ONNX Runtime and OpenVINO themselves: distances, speed, memory; a wrong file, a missing runtime."""

from __future__ import annotations

import importlib.util
import math
import os
import sys
import types
from pathlib import Path

import pytest
import torch
from transformers import ViTConfig, ViTForImageClassification

from tests.deployment.exporters.llamas import folder_of
from tests.models.networks import Rows
from workbench.deployment.exporters import exporter
from workbench.errors import BackendUnavailableError, ExportError
from workbench.measurement.evaluate import evaluate
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize

for package in ("onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(package)

from tests.deployment.onnx.test_plans import MODELS, with_ranges  # noqa: E402
from workbench.deployment.onnx.capture import _CAPTURED, capture  # noqa: E402
from workbench.deployment.proof import onnx_process, onnx_proof  # noqa: E402
from workbench.deployment.proof.child import bytes_of  # noqa: E402
from workbench.deployment.targets import target  # noqa: E402
from workbench.numerics.formats import all_schemes  # noqa: E402

TOKENS = {"input_ids": torch.arange(3, 51).reshape(2, 24), "attention_mask": torch.ones(2, 24, dtype=torch.int64)}


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return open_model(folder_of("llama", tmp_path_factory.mktemp("llama")))


def installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


@pytest.mark.parametrize("runtime", ["onnxruntime", pytest.param("openvino", marks=pytest.mark.skipif(
    not installed("openvino"), reason="openvino is not installed"))])  # fmt: skip
def test_a_decoder_answers_as_it_was_evaluated(llama: Model, runtime: str, tmp_path: Path) -> None:
    names = [layer.name for layer in llama.summary.stored if "mlp" in layer.name]
    plan = Plan().assign(names, weights="int4-g32-asym", algorithm="rtn")
    names = ["model.layers.0.self_attn.q_proj"]
    plan = plan.assign(names, weights="int8-channel", inputs="int8-token", algorithm="rtn")
    proof = onnx_proof.prove_in_onnx(
        quantize(llama, plan), llama, None, TOKENS, [2, 9, 22], runtime=runtime, data="tokens", threads=1
    )
    assert proof.plan_loss > 1e-3 and proof.runtime_loss == pytest.approx(proof.plan_loss, rel=0.05)
    assert abs(proof.difference) < 1e-4 and proof.agreement == 1.0 and proof.positions == 6
    assert proof.repeat < 1e-4 and proof.repeat_agreement == 1.0
    assert proof.prompt_speed > 0 and proof.peak_bytes > 1e7 and proof.tensor_bytes < proof.file_bytes
    exporter("onnx").export(quantize(llama, plan), llama, tmp_path / "model.onnx", silent)
    assert proof.file_bytes == (tmp_path / "model.onnx").stat().st_size


def test_the_floating_point_model_in_the_same_runtime_on_windows_without_a_mask(llama: Model) -> None:
    ids = {"input_ids": TOKENS["input_ids"]}
    proof = onnx_proof.prove_in_onnx(quantize(llama, Plan()), llama, None, ids, [2, 9], data="tokens", threads=1)
    assert abs(proof.plan_loss) < 1e-9 and abs(proof.runtime_loss) < 1e-7
    assert math.isnan(proof.repeat) and math.isnan(proof.repeat_agreement)


def test_classes_of_positions_are_counted_in_samples_as_the_evaluation_counts(tmp_path: Path) -> None:
    settings = ViTConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, patch_size=8,
                         image_size=16, num_labels=5, problem_type="multi_label_classification")  # fmt: skip
    ViTForImageClassification(settings).save_pretrained(tmp_path)
    model = open_model(tmp_path)
    quantized = quantize(model, Plan.uniform(model.summary.layers, "int4-channel"))
    data = Rows(inputs=torch.randn(4, 3, 16, 16))
    batch = next(data.batches(4))
    proof = onnx_proof.prove_in_onnx(quantized, model, None, batch, [], data="pictures", threads=1)
    measured = evaluate(model, quantized.bind(model), data)["kl"].value
    assert proof.plan_loss == pytest.approx(measured, rel=1e-4) and proof.positions == 20


def test_pictures_reach_a_graph_under_its_own_name(tmp_path: Path) -> None:
    """Data call them inputs, a network of transformers and its graph pixel_values."""
    settings = ViTConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
                         image_size=16, patch_size=8, num_labels=3)  # fmt: skip
    ViTForImageClassification(settings).save_pretrained(tmp_path)
    model = open_model(tmp_path)
    plan = Plan.uniform(model.summary.layers, "int8-channel")
    batch = {"inputs": torch.randn(4, 3, 16, 16), "labels": torch.tensor([0, 1, 2, 0])}
    proof = onnx_proof.prove_in_onnx(quantize(model, plan), model, None, batch, [], data="pictures", threads=1)
    assert abs(proof.difference) < 1e-5 and proof.agreement == 1.0 and proof.positions == 4


def test_a_file_of_another_plan_is_told_by_its_first_tensor(llama: Model, tmp_path: Path) -> None:
    out = tmp_path / "model.onnx"
    exporter("onnx").export(quantize(llama, Plan()), llama, out, silent)
    other = Plan().assign(["model.layers.0.mlp.up_proj"], weights="int8-channel", algorithm="rtn")
    with pytest.raises(ExportError, match=r"model.layers.0.mlp.up_proj.weight\[0, 0\] reads back as"):
        onnx_proof.prove_in_onnx(quantize(llama, other), llama, out, TOKENS, [2], data="tokens")


def test_tensors_beside_a_file_count_under_the_names_of_other_programs_too(tmp_path: Path) -> None:
    for name in (
        "m.onnx",
        "m.onnx.0a1b2c3d.data",
        "m.onnx.data",
        "m.onnx_data",
        "m.onnx_data_1",
        "m.onnx.failed",
        "n.data",
    ):
        (tmp_path / name).write_bytes(bytes(8))
    assert bytes_of(tmp_path / "m.onnx") == 5 * 8


def test_damage_and_hangs_end_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(os.urandom(200))
    with pytest.raises(ExportError, match="ONNX Runtime does not run the file: .*"):
        onnx_proof.run(path, TOKENS, [1])
    with pytest.raises(ExportError, match="did not end within 0 seconds"):
        onnx_proof.run(path, TOKENS, [1], seconds=0.0)


def test_a_missing_runtime_is_named_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "openvino" else find(name))
    with pytest.raises(BackendUnavailableError, match=r"pip install 'quantization-workbench\[openvino\]'"):
        onnx_proof.require_runtime("openvino")


@pytest.mark.parametrize("scheme", ["int2-g16-asym", "int2-g32", "fp8-e4m3fnuz-channel"])
def test_what_openvino_does_not_read_is_refused_by_name(
    llama: Model, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_proof, "require_runtime", lambda name: None)
    plan = Plan().assign(["model.layers.0.mlp.up_proj"], weights=scheme, algorithm="rtn")
    with pytest.raises(ExportError, match="for OpenVINO cannot hold 1 tensor .*0.mlp.up_proj: ") as refused:
        onnx_proof.prove_in_onnx(quantize(llama, plan), llama, None, TOKENS, [2], runtime="openvino", data="tokens")
    assert "--target openvino --repair" in str(refused.value.command)


@pytest.mark.parametrize("saturates, rounds, told", [(True, True, True), (True, False, False), (False, True, False)])
def test_openvino_multiplies_codes_of_8_bits_only_where_the_sums_fit(
    saturates: bool, rounds: bool, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = types.SimpleNamespace(inputs=[], outputs=[types.SimpleNamespace(get_any_name=lambda: "logits")])
    given: list[dict[str, object]] = []
    core = types.SimpleNamespace(compile_model=lambda file, device, settings: given.append(settings) or compiled)
    fake = types.SimpleNamespace(Core=lambda: core, __version__="2026.4.1-1")
    monkeypatch.setitem(sys.modules, "openvino", fake)
    monkeypatch.setattr(onnx_process, "saturates", lambda: saturates)
    (tmp_path / "m.onnx").write_bytes(b"QuantizeLinear" if rounds else b"DequantizeLinear")
    *_, version = onnx_process._openvino(str(tmp_path / "m.onnx"), 1, False)
    assert (given[0].get("LP_TRANSFORMS_MODE") is False) == told == ("no VNNI here" in version)


@pytest.mark.skipif(not installed("openvino"), reason="openvino is not installed")
@pytest.mark.parametrize("which, names", [("tagger", ("up",)), ("pictures", ("grouped", "wider"))])
def test_openvino_runs_what_its_rules_accept_and_refuses_int2(
    which: str, names: tuple[str, ...], tmp_path: Path
) -> None:
    model, batch = MODELS[which]
    _CAPTURED.setdefault(model.body.network, {})[tuple(x.name for x in model.summary.tied)] = capture(model, batch)
    inputs = [None, "int8-tensor", "int8-tensor-asym", "int8-token", "fp8-e4m3-tensor"]
    tried = [(name, scheme.name, item) for name in names for scheme in all_schemes() for item in inputs]
    tried += [(name, "int8-channel-asym", item) for name in names for item in inputs]
    tried = [each for each in tried if target("openvino").legal(model.summary.by_name[each[0]], *each[1:]) is None]
    assert len(tried) > 12 and ("wider", "int8-channel-asym", "int8-tensor") not in tried
    for name, weights, item in tried:
        plan = Plan().assign([name], weights=weights, inputs=item, algorithm="rtn")
        quantized = with_ranges(model, batch, plan)
        exporter("onnx").export(quantized, model, tmp_path / "m.onnx", silent)
        there = onnx_proof.run(tmp_path / "m.onnx", batch, [], "openvino").values
        ours = quantized.bind(model).run(batch).detach().numpy()
        assert abs(there - ours).max() < (1e-4 if item is None else 5e-2) * abs(ours).max(), (name, weights, item)
    quantized = quantize(model, Plan().assign(names[:1], weights="int2-g16-asym", algorithm="rtn"))
    exporter("onnx").export(quantized, model, tmp_path / "m.onnx", silent)
    with pytest.raises(ExportError, match="OpenVINO does not run the file: Error: .*nsupported type"):
        onnx_proof.run(tmp_path / "m.onnx", batch, [], "openvino")
