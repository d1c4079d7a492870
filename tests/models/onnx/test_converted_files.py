"""Files as converters and quantizers leave them: without the ReLU before codes, out of order, in half precision."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.deployment.onnx.running import session_of
from tests.models.onnx.made import output_of, save
from tests.models.onnx.test_dynamic_files import RNG, numbers, written
from workbench.deployment.exporters import exporter
from workbench.deployment.proof.onnx_process import saturates
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def pictures(out: Path, *, most: float | None = None) -> Path:
    """Write two convolutions and a product, each but the last behind it cut off at 0 (and at ``most``)."""
    from onnx import helper

    arrays = {"a": numbers(8, 3, 3, 3) * 3, "b": numbers(6, 8, 3, 3) * 3, "c": numbers(6, 5)}
    nodes, taken = list[Any](), "x"
    for name in ("a", "b"):
        nodes.append(helper.make_node("Conv", [taken, name], [f"{name}.sum"], name=name))
        ends = ["low", "high"] if most is not None else []
        taken = f"{name}.out"
        nodes.append(helper.make_node("Clip" if ends else "Relu", [f"{name}.sum", *ends], [taken]))
    nodes += [helper.make_node("GlobalAveragePool", [taken], ["p"]), helper.make_node("Flatten", ["p"], ["f"]),
              helper.make_node("MatMul", ["f", "c"], ["y"], name="c")]  # fmt: skip
    if most is not None:
        arrays |= {"low": np.float32(0), "high": np.float32(most)}
    return written(nodes, arrays, ["n", 3, 8, 8], out)


def ran(path: Path, values: np.ndarray) -> np.ndarray:
    return np.asarray(session_of(path).run(None, {"x": values})[0])


@pytest.mark.parametrize("most", [None, 1.0])
@pytest.mark.parametrize("integers", [False, True])
def test_the_relu_that_a_quantizer_left_out_is_computed(tmp_path: Path, most: float | None, integers: bool) -> None:
    """Its codes begin at zero, and without them negative values went on: the answers had nothing in common."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    source, out = pictures(tmp_path / "f.onnx", most=most), tmp_path / "q.onnx"
    values = RNG.normal(size=(16, 3, 8, 8)).astype(np.float32)

    class Reader(CalibrationDataReader):  # type: ignore[misc]  # untyped
        def __init__(self) -> None:
            self.left = iter([{"x": values}])

        def get_next(self) -> Any:
            return next(self.left, None)

    form = QuantFormat.QOperator if integers else QuantFormat.QDQ
    quantize_static(str(source), str(out), Reader(), quant_format=form, reduce_range=saturates())
    assert not {"Relu", "Clip"} & {node.op_type for node in onnx.load(out).graph.node}
    expected, model = ran(source, values), open_model(out)
    got = output_of(model, {"x": values})
    assert np.linalg.norm(got - expected) < 0.03 * np.linalg.norm(expected)
    names = [layer.name for layer in model.summary.stored]
    exporter("onnx").export(quantize(model, Plan().assign(names, weights="fp32")), model, tmp_path / "o.onnx", silent)
    again = ran(tmp_path / "o.onnx", values)
    assert np.linalg.norm(again - expected) < 0.03 * np.linalg.norm(expected)


def before_codes(nodes: list[Any], more: dict[str, Any], unit: float, opset: int, out: Path) -> Path:
    """Write nodes that make h of x, codes of h that begin at zero, and a product with the identity."""
    from onnx import helper

    pair = [helper.make_node("QuantizeLinear", ["h", "s", "z"], ["q"]),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"])]  # fmt: skip
    arrays = {"w": np.eye(8, dtype=np.float32), "s": np.float32(unit), "z": np.uint8(0), **more}
    product = helper.make_node("MatMul", ["d", "w"], ["y"], name="m")
    return save(out, [*nodes, *pair, product], {"x": (1, ["n", 8])}, ["y"], arrays, opset)


@pytest.mark.parametrize("opset", [10, 17])
@pytest.mark.parametrize("chain, unit, low, high", [
    (["Abs"], 0.01, None, None), (["Mul"], 0.01, None, None), (["Relu"], 0.01, 0, None),
    (["Relu", "Identity"], 0.01, 0, None), (["Relu", "Flatten"], 0.01, 0, None), (["Relu", "Add"], 0.01, 0, None),
    (["Add"], 0.01, 0, None), (["Add"], 6 / 255, 0, 6), (["Add"], 1 / 255, 0, 1), (["Add"], 6.001 / 255, 0, None),
    (["Abs"], 1 / 255, None, None), (["Clip"], 2 / 255, 0, 2), (["Relu"], 6 / 255, 0, None),
])  # fmt: skip
def test_codes_that_begin_at_zero_cut_off_what_the_network_does_alone(
    tmp_path: Path, chain: list[str], unit: float, low: float | None, high: float | None, opset: int
) -> None:
    """Their end is what calibration saw: the floating-point model was cut off there, behind Abs at 0.6 of its norm."""
    from onnx import helper

    values = (np.random.default_rng(3).normal(size=(16, 8)) * 3).astype(np.float32)
    nodes, expected, taken, bounds = list[Any](), values, "x", {}
    for at, kind in enumerate(chain):
        out, inputs, attributes = "h" if at == len(chain) - 1 else f"h{at}", [taken], dict[str, float]()
        if kind in ("Mul", "Add"):
            inputs, expected = [taken, taken], expected * expected if kind == "Mul" else expected + expected
        elif kind == "Clip" and opset > 10:
            inputs, bounds = [taken, "low", "high"], {"low": np.float32(-6), "high": np.float32(2)}
        elif kind == "Clip":
            attributes = {"min": -6.0, "max": 2.0}
        expected = np.abs(expected) if kind == "Abs" else np.maximum(expected, 0) if kind == "Relu" else expected
        nodes.append(helper.make_node(kind, inputs, [out], **attributes))
        taken = out
    model = open_model(before_codes(nodes, bounds, unit, opset, tmp_path / "f.onnx"))
    assert np.array_equal(output_of(model, {"x": values}), np.clip(expected, low, high))


def test_nodes_out_of_order_are_put_in_order(tmp_path: Path) -> None:
    path = pictures(tmp_path / "f.onnx")
    values = RNG.normal(size=(4, 3, 8, 8)).astype(np.float32)
    expected, file = ran(path, values), onnx.load(path)
    nodes = list(file.graph.node)
    random.Random(0).shuffle(nodes)
    del file.graph.node[:]
    file.graph.node.extend(nodes)
    onnx.save(file, path)
    assert np.array_equal(ran(path, values), expected), "ONNX Runtime takes it"
    assert np.allclose(output_of(open_model(path), {"x": values}), expected, atol=1e-5)


def test_nodes_in_order_stay_where_they_are_around_one_that_is_not(tmp_path: Path) -> None:
    """One node out of place sorted the layers of three branches by their depth."""
    from onnx import helper

    arrays = {f"{branch}{at}": numbers(8, 8) for branch in "abc" for at in range(3)}
    nodes = []
    for name in arrays:
        taken = "x" if name[1] == "0" else f"{name[0]}{int(name[1]) - 1}.out"
        nodes.append(helper.make_node("MatMul", [taken, name], [f"{name}.out"], name=name))
    nodes.append(helper.make_node("Sum", ["a2.out", "b2.out", "c2.out"], ["y"]))
    first = open_model(written(nodes, arrays, ["n", 8], tmp_path / "f.onnx"))
    late = open_model(written([*nodes[1:], nodes[0]], arrays, ["n", 8], tmp_path / "g.onnx"))
    names = [layer.name for layer in late.summary.stored]
    assert names == [layer.name for layer in first.summary.stored] == [*arrays]


def test_inputs_and_tensors_that_are_outputs_too(tmp_path: Path) -> None:
    """A half-precision input got two casts of one name, a tensor no node that gave it: both exports failed."""
    from onnx import helper, numpy_helper
    from onnxruntime import InferenceSession

    takes, gives = [["x", ["n", 8]]], [["y", ["n", 4]], ["x", ["n", 8]], ["k", [3]]]
    arrays = {"a": numbers(8, 4).astype("float16"), "k": np.arange(3, dtype="float16")}
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "a"], ["y"])], "g",
        *([helper.make_tensor_value_info(name, 10, shape) for name, shape in each] for each in (takes, gives)),
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )  # fmt: skip
    path, out = tmp_path / "f.onnx", tmp_path / "o.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    model, values = open_model(path), RNG.normal(size=(2, 8)).astype("float16")
    exporter("onnx").export(quantize(model, Plan().assign(["a"], weights="int8-channel")), model, out, silent)
    y, x, k = InferenceSession(str(out)).run(None, {"x": values})
    assert np.array_equal(x, values) and np.array_equal(k, arrays["k"]) and k.dtype == x.dtype == y.dtype == "float16"
    assert np.allclose(y, values @ arrays["a"], atol=0.02)


@pytest.mark.parametrize("kind", ["float16", "float64"])
def test_a_file_in_another_precision_keeps_what_it_takes_and_gives(tmp_path: Path, kind: str) -> None:
    """The exported graph computes in float32, and ONNX Runtime refused to load it with inputs of another type."""
    from onnx import helper, numpy_helper

    nodes = [helper.make_node("MatMul", ["x", "a"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node("MatMul", ["r", "c"], ["y"])]  # fmt: skip
    file = onnx.load(written(nodes, {"a": numbers(8, 32), "c": numbers(32, 6)}, ["n", 8], tmp_path / "f.onnx"))
    for tensor in file.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(kind), tensor.name))
    for value in (*file.graph.input, *file.graph.output):
        value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    onnx.save(file, tmp_path / "f.onnx")
    values = RNG.normal(size=(4, 8)).astype(kind)
    expected, model = ran(tmp_path / "f.onnx", values), open_model(tmp_path / "f.onnx")
    names = [layer.name for layer in model.summary.stored]
    plans = {"int8": Plan().assign(names, weights="int8-channel"), "same": Plan()}
    for name, made in plans.items() if kind == "float16" else [("int8", plans["int8"])]:  # float64 is refused as it is
        out = tmp_path / f"{name}.onnx"
        exporter("onnx").export(quantize(model, made), model, out, silent)
        answer = ran(out, values)
        assert answer.dtype == kind and np.allclose(answer, expected, atol=0.02)
