"""A weight that several products share is one tensor of the exported file, and each product has inputs of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from tests.models.onnx.made import numbers, onnxruntime_output, output_of, refusal, save
from workbench.deployment.exporters import exporter
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent

pytest.importorskip("onnxruntime")


def _tensors(path: Path) -> dict[str, tuple[int, ...]]:
    import onnx

    return {tensor.name: tuple(tensor.dims) for tensor in onnx.load(str(path)).graph.initializer}


@pytest.mark.parametrize("inputs", (None, "int8-tensor-asym", "int8-token"))
def test_convolutions_of_other_strides(inputs: str | None, tmp_path: Path) -> None:
    from onnx import helper

    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1]), helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w"], ["c"], pads=[1, 1], strides=[2]), helper.make_node("Tanh", ["c"], ["d"]),
        helper.make_node("Conv", ["d", "w"], ["e"], pads=[1, 1], strides=[2]),
        helper.make_node("Conv", ["e", "w"], ["out"], pads=[1, 1]),
    ]  # fmt: skip
    path = save(tmp_path / "m.onnx", nodes, {"x": (1, ["n", 8, "t"])}, ["out"], {"w": 2 * numbers(8, 8, 3)})
    model = open_model(path)
    assert len(model.summary.stored) == 1 and len(model.summary.layers) == 2  # the first and the last are one module
    values = {"x": numbers(4, 8, 32, seed=1) * 3}
    np.savez(tmp_path / "d.npz", **values)
    session = wb.calibrate(model, tmp_path / "d.npz", samples=4)
    names = [layer.name for layer in model.summary.layers]
    plan = Plan().assign(names, weights="int8-channel", inputs=inputs, algorithm="rtn")
    quantized = wb.quantize(model, plan, session=session)
    exporter("onnx").export(quantized, model, tmp_path / "q.onnx", silent)
    assert [shape for name, shape in _tensors(tmp_path / "q.onnx").items() if shape[:2] == (8, 8)] == [(8, 8, 3)]
    ours, theirs = output_of(quantized.bind(model), values), onnxruntime_output(tmp_path / "q.onnx", values)
    assert np.abs(ours - theirs).mean() < 2e-3 * np.abs(theirs).mean()  # a value on a border may round otherwise
    assert np.abs(ours - output_of(model, values)).mean() > 4e-3 * np.abs(theirs).mean()


@pytest.mark.parametrize("inputs", (None, "int8-tensor-asym"))
def test_a_table_that_is_the_head_too(inputs: str | None, tmp_path: Path) -> None:
    from onnx import helper

    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["a"]), helper.make_node("Tanh", ["a"], ["b"]),
             helper.make_node("Transpose", ["table"], ["turned"], perm=[1, 0]),
             helper.make_node("MatMul", ["b", "turned"], ["logits"])]  # fmt: skip
    takes = {"input_ids": (7, ["n", "t"])}
    path = save(tmp_path / "m.onnx", nodes, takes, ["logits"], {"table": 4 * numbers(40, 32)})  # type: ignore[arg-type]
    model, ids = open_model(path), np.random.default_rng(0).integers(0, 40, (16, 12))
    (head,) = model.summary.tied
    np.save(tmp_path / "tokens.npy", ids)
    session = wb.calibrate(model, tmp_path / "tokens.npy", samples=16)
    plan = Plan().assign([str(head.tied_to), head.name], weights="int8-channel", algorithm="rtn")
    plan = plan.assign([head.name], weights="int8-channel", inputs=inputs, algorithm="rtn") if inputs else plan
    quantized = wb.quantize(model, plan, session=session)
    exporter("onnx").export(quantized, model, tmp_path / "q.onnx", silent)
    assert [shape for shape in _tensors(tmp_path / "q.onnx").values() if sorted(shape) == [32, 40]] == [(40, 32)]
    values = {"input_ids": ids[:4]}
    ours, theirs = output_of(quantized.bind(model), values), onnxruntime_output(tmp_path / "q.onnx", values)
    assert np.abs(ours - theirs).mean() < 1e-4 * np.abs(theirs).mean()
    assert np.abs(ours - output_of(model, values)).mean() > 1e-3 * np.abs(theirs).mean()


def test_batch_norms_let_gradients_pass(tmp_path: Path) -> None:
    from onnx import helper

    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]),
             helper.make_node("BatchNormalization", ["a", "scale", "bias", "mean", "variance"], ["b"]),
             helper.make_node("GlobalAveragePool", ["b"], ["c"]), helper.make_node("Flatten", ["c"], ["d"]),
             helper.make_node("Gemm", ["d", "v"], ["out"])]  # fmt: skip
    vectors = {name: np.abs(numbers(8, seed=at)) for at, name in enumerate(("scale", "bias", "mean", "variance"))}
    path = save(
        tmp_path / "m.onnx", nodes, {"x": (1, ["n", 3, "h", "w"])}, ["out"],
        {"w": numbers(8, 3, 3, 3), "v": numbers(8, 4, seed=9), **vectors},
    )  # fmt: skip
    model, values = open_model(path), {"x": numbers(8, 3, 9, 9)}
    assert refusal(model) == ""
    assert output_of(model, values) == pytest.approx(onnxruntime_output(path, values), rel=1e-4, abs=1e-5)
    np.savez(tmp_path / "d.npz", **values)
    assert set(wb.calibrate(model, tmp_path / "d.npz", samples=8).curvature) == {"w", "v"}
