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
from workbench.steps.files.first_session import start

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
    assert any("over one range for all that runs at once" in note for note in model.notes) == dynamic
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


@pytest.mark.parametrize("bias", (False, True))
@pytest.mark.parametrize("kind", ("perceptron", "words"))
def test_products_that_onnx_runtime_scales_itself(kind: str, bias: bool, tmp_path: Path) -> None:
    exported(kind, tmp_path / "m.onnx")
    in_integers(kind, tmp_path / "m.onnx", tmp_path / "q.onnx", dynamic=True, per_channel=True)
    assert scaled_products(tmp_path / "q.onnx", tmp_path / "o.onnx", bias=bias) >= 2
    values = batch(kind, samples=1)
    model = open_model(tmp_path / "o.onnx")
    session = start(model)
    plan = resolve(session.plan, model.summary.layers)
    linear = [layer for layer in model.summary.stored if layer.kind != "embedding"]
    assert {plan[layer.name].inputs for layer in linear} == {"int8-token-asym"} and len(linear) >= 2
    assert all(plan[layer.name].weights.startswith("int8-") for layer in linear)
    ours = answers(kind, wb.quantize(model, session.plan, session=session).bind(model), values)
    theirs = run(tmp_path / "o.onnx", kind, values)
    assert np.abs(ours - theirs).max() < np.abs(theirs).max() / 100
    plain = run(tmp_path / "q.onnx", kind, values)
    assert (np.abs(theirs - plain).max() > np.abs(plain).max() / 50) == bias  # the operators are used as ONNX Runtime's


def scaled_products(source: Path, out: Path, *, bias: bool) -> int:
    """Write MatMulInteger, Cast and Mul as one MatMulIntegerToFloat, with a bias of 1 or none; return how many."""
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load(source)
    graph = model.graph
    makers = {output: node for node in graph.node for output in node.output}
    joined = 0
    for last in [node for node in graph.node if node.op_type == "Mul"]:
        cast = next((makers[name] for name in last.input if name in makers and makers[name].op_type == "Cast"), None)
        product = makers.get(cast.input[0]) if cast is not None else None
        if cast is None or product is None or product.op_type != "MatMulInteger":
            continue
        a, b, a_zero, b_zero = product.input
        both = makers[next(name for name in last.input if name != cast.output[0])]
        constants = {each.name: each for each in graph.initializer}
        b_scale, a_scale = sorted(both.input, key=lambda name: name not in constants)
        extra = []
        if bias:
            width = constants[b].dims[1]
            ones = numpy_helper.from_array(np.ones(width, np.float32), f"ones{joined}")
            graph.initializer.append(ones)
            extra = [ones.name]
        node = helper.make_node("MatMulIntegerToFloat", [a, b, a_scale, b_scale, a_zero, b_zero, *extra],
                                list(last.output), domain="com.microsoft")  # fmt: skip
        graph.node.insert(list(graph.node).index(last), node)
        for old in (last, both, cast, product):
            graph.node.remove(old)
        joined += 1
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    onnx.save(model, out)
    return joined


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
