"""Files of integer operators, as ONNX Runtime's own quantizer writes them, open as a model and its plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import workbench as wb
from tests.models.onnx.graphs import NETWORKS, batch, exported, in_integers, run
from workbench.deployment.exporters import exporter
from workbench.errors import NotAModelError
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.numerics.formats import parse_scheme
from workbench.planning.plan import resolve
from workbench.progress import silent
from workbench.steps.files.first_look import start

pytest.importorskip("onnxruntime")

LAYERS = {"perceptron": 2, "convolutions": 4, "words": 6}


def answers(kind: str, model: Model, values: torch.Tensor) -> np.ndarray:
    with torch.no_grad():
        return np.asarray(model.run({NETWORKS[kind][1]: values}).numpy())


@pytest.mark.parametrize("per_channel", (False, True))
@pytest.mark.parametrize("dynamic", (False, True), ids=("qoperator", "dynamic"))
@pytest.mark.parametrize("kind", sorted(NETWORKS))
def test_it_computes_what_the_file_does(kind: str, dynamic: bool, per_channel: bool, tmp_path: Path) -> None:
    exported(kind, tmp_path / "m.onnx")
    in_integers(kind, tmp_path / "m.onnx", tmp_path / "q.onnx", dynamic=dynamic, per_channel=per_channel)
    model = open_model(tmp_path / "q.onnx")
    assert len(model.summary.layers) >= LAYERS[kind] - (kind == "words")  # a tied head is a table of its own
    session = start(model)
    plan = resolve(session.plan, model.summary.layers)
    for layer in model.summary.stored:
        stored = model.encoded(layer.name)
        assert stored is not None and stored.scheme.startswith("int8-")
        assert torch.equal(parse_scheme(stored.scheme).decode(stored), model.weight(layer.name).float())
    inputs = {plan[layer.name].inputs for layer in model.summary.stored if layer.kind != "embedding"}
    assert inputs <= ({"int8-token-asym", "int8-tensor-asym"} if dynamic else {"int8-tensor-asym", "int8-tensor"})
    values = batch(kind, samples=1)
    quantized = wb.quantize(model, session.plan, session=session)
    ours, theirs = answers(kind, quantized.bind(model), values), run(tmp_path / "q.onnx", kind, values)
    step = np.abs(theirs).max() / (100 if dynamic else 60)  # a token's own range is narrower than the whole tensor's
    assert np.abs(ours - theirs).max() < step
    exporter("onnx").export(quantized, model, tmp_path / "again.onnx", silent)
    again = run(tmp_path / "again.onnx", kind, values)
    assert np.abs(again - ours).max() < step


def test_a_bias_that_is_not_added_to_the_product_itself_is_added_once(tmp_path: Path) -> None:
    import onnx
    from onnx import helper, numpy_helper

    rng = np.random.default_rng(0)
    arrays = [numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name)
              for name, shape in (("fc.weight", (8, 4)), ("fc.bias", (4,)))]  # fmt: skip
    nodes = [helper.make_node("MatMul", ["x", "fc.weight"], ["y"]), helper.make_node("Relu", ["y"], ["z"]),
             helper.make_node("Add", ["z", "fc.bias"], ["logits"])]  # fmt: skip
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, ["n", 8])],
        [helper.make_tensor_value_info("logits", 1, None)], arrays,
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    values: Any = torch.from_numpy(rng.normal(size=(3, 8)).astype(np.float32))
    model = open_model(tmp_path / "m.onnx")
    expected = run(tmp_path / "m.onnx", "perceptron", values)
    assert answers("perceptron", model, values) == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kind", ["QLinearMatMul", "QLinearConv", "QGemm", "MatMulInteger", "QLinearAdd", "Gather"])
def test_operators_without_what_they_need_are_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    import onnx
    from onnx import helper

    exported("perceptron", tmp_path / "m.onnx")
    in_integers("perceptron", tmp_path / "m.onnx", tmp_path / "q.onnx", dynamic=False, per_channel=False)
    document = onnx.load(tmp_path / "q.onnx")
    codes = next(name for node in document.graph.node for name in node.output if name.endswith("_quantized"))
    domain = "com.microsoft" if kind in ("QGemm", "QLinearAdd") else ""
    document.graph.node.append(helper.make_node(kind, [codes], ["broken"], domain=domain))
    document.graph.output.append(helper.make_tensor_value_info("broken", 2, None))
    (tmp_path / "h.onnx").write_bytes(document.SerializeToString())
    with pytest.raises(NotAModelError) as refusal:
        open_model(tmp_path / "h.onnx")
    assert "\n" not in str(refusal.value)
