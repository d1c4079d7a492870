"""Mixtures of experts run in ONNX Runtime as they were evaluated, whichever experts a token chooses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from tests.deployment.exporters.llamas import folder_of
from tests.deployment.onnx.running import session_of
from tests.models.onnx.made import refusal
from workbench.deployment.exporters import exporter
from workbench.deployment.targets import target
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.numerics.ranges import Range
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.quantization.quantized_model import QuantizedModel

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

SIZES = {
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
}


def opened(kind: str, folder: Path) -> Model:
    """A random mixture of experts: with shared experts, without, with biases and turned weights."""
    if kind in ("qwen2moe", "qwen3moe"):
        return open_model(folder_of(kind, folder))
    torch.manual_seed(0)
    config, network = {
        "mixtral": (transformers.MixtralConfig, transformers.MixtralForCausalLM),
        "gpt-oss": (transformers.GptOssConfig, transformers.GptOssForCausalLM),
    }[kind]
    network(config(**SIZES, **({"head_dim": 16} if kind == "gpt-oss" else {}))).save_pretrained(folder)
    return open_model(folder)


MORE = (("qwen2moe", "int8-channel", None), ("qwen3moe", "int4-g32", None), ("mixtral", "int8-channel", None),
        ("gpt-oss", "int4-g32", None), ("qwen3moe", "int8-channel", "int8-token"))  # fmt: skip


@pytest.mark.parametrize(("kind", "scheme", "inputs"), [
    ("qwen2moe", "int4-g32", None), ("gpt-oss", "int8-channel", None), ("mixtral", "int8-tensor", "int8-tensor-asym"),
    *(pytest.param(*more, marks=pytest.mark.slow) for more in MORE),
])  # fmt: skip
def test_a_mixture_runs_as_it_was_evaluated(kind: str, scheme: str, inputs: str | None, tmp_path: Path) -> None:
    model = opened(kind, tmp_path)
    names = [layer.name for layer in model.summary.stored if layer.kind in ("linear", "experts")]
    names = [name for name in names if target("onnxruntime").legal(model.summary.layer(name), scheme, inputs) is None]
    assert any(model.summary.layer(name).kind == "experts" for name in names)
    plan = Plan().assign(names, weights=scheme, inputs=inputs, algorithm="rtn")
    ranges = {(name, "input"): Range(low=-3.0, high=2.0, method="manual", clipped=0.0) for name in names}
    quantized = quantize(model, plan, ranges=ranges if inputs else None)
    exporter("onnx").export(quantized, model, tmp_path / "m.onnx", silent)
    session = session_of(tmp_path / "m.onnx")
    for samples, tokens in ((3, 9), (1, 5)):
        ids = np.random.default_rng(0).integers(0, 128, (samples, tokens))
        feed = {each.name: ids if each.name == "input_ids" else np.ones_like(ids) for each in session.get_inputs()}
        theirs = np.asarray(session.run(None, feed)[0])
        with torch.no_grad():
            ours = quantized.bind(model).run({"input_ids": torch.from_numpy(ids)}).numpy()
            before = model.run({"input_ids": torch.from_numpy(ids)}).numpy()
        assert np.abs(theirs - ours).max() < 1e-4 * np.abs(ours).max()
        assert np.abs(ours - before).max() > 1e-3 * np.abs(ours).max()
    _opens_with_its_plan(quantized, model, tmp_path / "m.onnx")


def _opens_with_its_plan(quantized: QuantizedModel, model: Model, path: Path) -> None:
    """The file's layers are the model's, with their codes, what a router is, and gradients for predicted losses."""
    again = open_model(path)
    theirs, ours = (
        {name: (layer.kind, layer.matrix, layer.experts, bool(layer.keep))
         for name, layer in each.summary.by_name.items() if name in quantized.tensors} for each in (again, model)
    )  # fmt: skip
    assert theirs == ours
    assert refusal(again) == ""
    for name, tensor in quantized.tensors.items():
        stored = again.encoded(name)
        assert stored is not None and stored.scheme.startswith(tensor.scheme)
        assert torch.equal(again.weight(name), quantized.bind(model).weight(name))


def test_a_file_of_a_mixture_is_planned_and_exported_again(tmp_path: Path) -> None:
    model = opened("mixtral", tmp_path)
    exporter("onnx").export(quantize(model, Plan()), model, tmp_path / "m.onnx", silent)
    again = open_model(tmp_path / "m.onnx")
    _give_every_expert_its_inputs(tmp_path / "m.onnx")
    names = [layer.name for layer in again.summary.stored if layer.kind == "experts"]
    plan = Plan().assign(names[:2], weights="int8-g32-asym", algorithm="rtn")
    quantized = quantize(again, plan.assign(names[2:], weights="int4-channel", algorithm="rtn"))
    exporter("onnx").export(quantized, again, tmp_path / "q.onnx", silent)
    _opens_with_its_plan(quantized, again, tmp_path / "q.onnx")


def _give_every_expert_its_inputs(path: Path) -> None:
    """OpenVINO spreads one batch of inputs over no batch of matrices that are constant, and stops."""
    import onnx

    graph = onnx.shape_inference.infer_shapes(onnx.load(path)).graph
    shapes = {each.name: [axis.dim_value for axis in each.type.tensor_type.shape.dim] for each in graph.value_info}
    products = [
        node.input[0] for node in graph.node if node.op_type == "MatMul" and len(shapes.get(node.output[0], ())) == 3
    ]
    first = [size for size in (shapes[name][0] for name in products if name in shapes) if size]  # samples have none
    assert first.count(SIZES["num_local_experts"]) == len(first) == 2 * SIZES["num_hidden_layers"]
