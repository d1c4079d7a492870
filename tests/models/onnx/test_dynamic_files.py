"""Files of quantize_dynamic: convolutions with a bias among integers, recurrent networks, constants in nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import workbench as wb
from tests.deployment.onnx.running import session_of
from workbench.deployment.exporters import exporter
from workbench.deployment.proof.onnx_process import saturates
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.progress import silent
from workbench.steps.files.first_session import start

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return (RNG.normal(size=shape) / np.sqrt(shape[-1])).astype(np.float32)


def written(nodes: list[Any], arrays: dict[str, np.ndarray], takes: list[Any], out: Path) -> Path:
    """Write a graph from ``x`` to ``y``."""
    from onnx import helper, numpy_helper

    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, takes)],
        [helper.make_tensor_value_info("y", 1, None)], tensors,
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), out)
    return out


def pictures(out: Path) -> Path:
    from onnx import helper

    arrays = {"a.weight": numbers(8, 3, 3, 3), "a.bias": numbers(8), "b.weight": numbers(6, 8, 3, 3),
              "b.bias": numbers(6), "c.weight": numbers(6, 5), "c.bias": numbers(5)}  # fmt: skip
    nodes = [helper.make_node("Conv", ["x", "a.weight", "a.bias"], ["h"], pads=[1] * 4, name="a"),
             helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node("Conv", ["r", "b.weight", "b.bias"], ["s"], strides=[2, 2], name="b"),
             helper.make_node("GlobalAveragePool", ["s"], ["p"]), helper.make_node("Flatten", ["p"], ["f"]),
             helper.make_node("Gemm", ["f", "c.weight", "c.bias"], ["y"], name="c")]  # fmt: skip
    return written(nodes, arrays, ["n", 3, 8, 8], out)


def recurrent(out: Path, *, two: bool = False) -> Path:
    """Write an LSTM over steps, the first axis, and a product."""
    from onnx import helper

    ways, hidden = 2 if two else 1, 12
    arrays = {"W": numbers(ways, 4 * hidden, 8), "R": numbers(ways, 4 * hidden, hidden), "B": numbers(ways, 8 * hidden),
              "head": numbers(ways * hidden, 5), "axes": np.array([0, 0, -1], np.int64)}  # fmt: skip
    nodes = [
        helper.make_node(
            "LSTM",
            ["x", "W", "R", "B"],
            ["h", "last", "cell"],
            hidden_size=hidden,
            name="lstm",
            direction="bidirectional" if two else "forward",
        ),
        helper.make_node("Transpose", ["h"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["t", "axes"], ["f"]),
        helper.make_node("MatMul", ["f", "head"], ["y"]),
    ]
    return written(nodes, arrays, [7, "n", 8], out)


def in_nodes(path: Path) -> None:
    """Turn initializers into nodes Constant."""
    from onnx import helper

    document = onnx.load(path)
    constants = [helper.make_node("Constant", [], [each.name], value=each) for each in document.graph.initializer]
    nodes = [*constants, *document.graph.node]
    del document.graph.initializer[:], document.graph.node[:]
    document.graph.node.extend(nodes)
    onnx.save(document, path)


def integers(source: Path, out: Path, **options: Any) -> Path:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(source, out, weight_type=QuantType.QUInt8, reduce_range=saturates(), **options)
    return out


def run(path: Path, values: np.ndarray) -> np.ndarray:
    return np.asarray(session_of(path).run(None, {"x": values})[0])


def as_planned(path: Path, values: np.ndarray, again: Path) -> tuple[Model, np.ndarray, np.ndarray]:
    """Return the opened model, its plan's outputs, and those of its export."""
    model = open_model(path)
    session = start(model)
    quantized = wb.quantize(model, session.plan, session=session)
    exporter("onnx").export(quantized, model, again, silent)
    with torch.no_grad():
        ours = quantized.bind(model).run({"x": torch.from_numpy(values)}).numpy()
    return model, ours, run(again, values)


def kinds(path: Path) -> set[str]:
    return {node.op_type for node in onnx.load(path).graph.node}


@pytest.mark.parametrize("as_nodes", (False, True), ids=("initializers", "constants"))
def test_convolutions_that_add_an_integer_bias_are_layers(as_nodes: bool, tmp_path: Path) -> None:
    path = integers(pictures(tmp_path / "m.onnx"), tmp_path / "q.onnx")
    if as_nodes:
        in_nodes(path)
    values = RNG.normal(size=(1, 3, 8, 8)).astype(np.float32)
    model, ours, again = as_planned(path, values, tmp_path / "again.onnx")
    assert len(model.summary.stored) == 3 and len(model.notes) == 1 and "rounds 3 inputs over one" in model.notes[0]
    assert all(model.encoded(layer.name) is not None for layer in model.summary.stored)
    theirs = run(path, values)
    assert np.abs(ours - theirs).max() < np.abs(theirs).max() / 50
    assert np.abs(again - ours).max() < np.abs(theirs).max() / 50
    assert "ConvInteger" in kinds(path) and "DynamicQuantizeLinear" not in kinds(tmp_path / "again.onnx")


@pytest.mark.parametrize("two", (False, True), ids=("forward", "bidirectional"))
@pytest.mark.parametrize("per_channel", (False, True))
def test_quantized_recurrent_networks_are_layers_and_their_inputs_are_named(
    per_channel: bool, two: bool, tmp_path: Path
) -> None:
    path = integers(recurrent(tmp_path / "m.onnx", two=two), tmp_path / "q.onnx", per_channel=per_channel)
    assert "DynamicQuantizeLSTM" in kinds(path)
    values = RNG.normal(size=(7, 3, 8)).astype(np.float32)
    model = open_model(path)
    assert sum(layer.kind == "recurrent" for layer in model.summary.stored) == 2
    encoded = [model.encoded(layer.name) for layer in model.summary.stored]
    assert all(each is not None and each.scheme.startswith("int8-") for each in encoded)
    assert len(model.notes) == 2 and "DynamicQuantizeLSTM" in model.notes[0]
    session = start(model)
    assert model.notes[0] in session.notes
    quantized = wb.quantize(model, session.plan, session=session)
    with torch.no_grad():  # samples come first in data, and second in the file
        ours = quantized.bind(model).run({"x": torch.from_numpy(values.swapaxes(0, 1))}).numpy()
    assert ours.shape == (3, 7, 5) and model.inputs.batch is None
    theirs = run(path, values).swapaxes(0, 1)
    assert np.abs(ours - theirs).max() < np.abs(theirs).max() / 30


@pytest.mark.parametrize("takes, axis, samples", [
    ([7, "n", 8], 1, None), (["steps", "rows", 8], 1, None), ([7, 2, 8], 1, 2), (["batch", 7, 8], 0, None),
    (["time", "batch_size", 8], 1, None),
])  # fmt: skip
def test_samples_lie_where_the_graph_has_them(takes: list[Any], axis: int, samples: int | None, tmp_path: Path) -> None:
    path = recurrent(tmp_path / "m.onnx")
    document = onnx.load(path)
    for size, wanted in zip(document.graph.input[0].type.tensor_type.shape.dim, takes, strict=True):
        size.Clear()
        setattr(size, "dim_value" if isinstance(wanted, int) else "dim_param", wanted)
    onnx.save(document, path)
    model = open_model(path)
    assert model.answer.takes["x"].axis == axis and model.inputs.batch == samples
    one = {"x": torch.from_numpy(RNG.normal(size=(4, 7, 8)).astype(np.float32))}
    with torch.no_grad():
        whole, parts = model.run(one), [model.run({"x": row[None]}) for row in one["x"]]
    assert whole.shape[0] == 4
    assert torch.allclose(whole, torch.cat(parts), atol=1e-6) == (axis == 1)


def test_what_is_no_layer_is_counted(tmp_path: Path) -> None:
    """A product with codes whose scale is computed, and one that is a layer."""
    from onnx import helper

    arrays = {"codes": RNG.integers(0, 255, (8, 6)).astype(np.uint8), "zero": np.array(128, np.uint8),
              "last": numbers(6, 4)}  # fmt: skip
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "codes", "z", "zero"], ["i"]),
        helper.make_node("Cast", ["i"], ["h"], to=1),
        helper.make_node("MatMul", ["h", "last"], ["y"]),
    ]
    model = open_model(written(nodes, arrays, ["n", 8], tmp_path / "m.onnx"))
    assert [layer.matrix for layer in model.summary.stored] == [(4, 6)]
    assert model.notes[0] == (
        "the weights of some operators are not layers and stay as the file has them: 1 MatMulInteger"
    )
