"""Products of every form are layers, and torch's operators give what ONNX Runtime's do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import workbench as wb
from tests.models.onnx.made import numbers, onnxruntime_output, output_of, refusal, save
from workbench.deployment.exporters import exporter
from workbench.models.layer import LayerKind
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent

pytest.importorskip("onnxruntime")


def agrees(path: Path, values: dict[str, np.ndarray]) -> Model:
    """Return the opened model after comparing both ways of running it with ONNX Runtime's on the whole file."""
    model, theirs = open_model(path), onnxruntime_output(path, values)
    assert refusal(model) == ""
    assert output_of(model, values) == pytest.approx(theirs, rel=1e-4, abs=1e-5)
    output = model.run({name: torch.from_numpy(each) for name, each in values.items()})
    assert output.detach().numpy() == pytest.approx(theirs, rel=1e-4, abs=1e-5)
    assert output.requires_grad
    return model


@pytest.mark.parametrize("pads", ({"pads": [0, 1, 2, 1]}, {"auto_pad": "SAME_UPPER"}, {"auto_pad": "SAME_LOWER"},
                                  {"auto_pad": "VALID"}), ids=str)  # fmt: skip
@pytest.mark.parametrize(("stride", "dilation"), ((1, 1), (2, 1), (1, 2), (3, 1)))
def test_edges_of_convolutions(pads: dict[str, Any], stride: int, dilation: int, tmp_path: Path) -> None:
    from onnx import helper

    if dilation > 1 and str(pads.get("auto_pad")).startswith("SAME"):
        pytest.skip("ONNX Runtime has no dilation with these edges")
    more = {"strides": [stride] * 2, "dilations": [dilation] * 2, "kernel_shape": [3, 2], **pads}
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["y"], **more)]
    tensors = {"w": numbers(3, 3, 3, 2), "b": numbers(3)}  # other channels of the same size are classes
    path = save(tmp_path / "m.onnx", nodes, {"x": (1, ["n", 3, "h", "w"])}, ["y"], tensors)
    for size in ((11, 8), (12, 13)):
        model = agrees(path, {"x": numbers(2, 3, *size)})
    assert [layer.kind for layer in model.summary.stored] == [LayerKind.CONV2D]


@pytest.mark.parametrize("more", ({"pads": [1, 0]}, {"pads": [1, 1], "strides": [2], "output_padding": [1]}), ids=str)
def test_edges_of_transposed_convolutions(more: dict[str, Any], tmp_path: Path) -> None:
    from onnx import helper

    nodes = [helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], **more)]
    tensors = {"w": numbers(4, 6, 3), "b": numbers(6)}
    path = save(tmp_path / "m.onnx", nodes, {"x": (1, ["n", 4, "t"])}, ["y"], tensors)
    model = agrees(path, {"x": numbers(2, 4, 9)})
    assert [layer.matrix for layer in model.summary.stored] == [(6, 12)]


@pytest.mark.parametrize("kind", ("MaxPool", "AveragePool"))
@pytest.mark.parametrize("more", ({"pads": [0, 1, 1, 0]}, {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
                                  {"pads": [1, 1, 1, 1], "strides": [2, 2]}), ids=str)  # fmt: skip
def test_edges_of_pooling(kind: str, more: dict[str, Any], tmp_path: Path) -> None:
    from onnx import helper

    nodes = [helper.make_node("Conv", ["x", "w"], ["y"]), helper.make_node(kind, ["y"], ["z"], kernel_shape=[3, 3],
                                                                           **more)]  # fmt: skip
    tensors = {"w": numbers(5, 3, 1, 1)}
    path = save(tmp_path / "m.onnx", nodes, {"x": (1, ["n", 3, "h", "w"])}, ["z"], tensors)
    agrees(path, {"x": numbers(2, 3, 9, 8)})


def test_ids_below_0_count_from_the_end(tmp_path: Path) -> None:
    from onnx import helper

    nodes = [helper.make_node("Sub", ["ids", "two"], ["moved"]), helper.make_node("Gather", ["table", "moved"], ["y"]),
             helper.make_node("ReduceMax", ["y", "axis"], ["most"], keepdims=0),
             helper.make_node("MatMul", ["most", "w"], ["z"])]  # fmt: skip
    tensors = {"table": numbers(20, 8), "w": numbers(8, 5, seed=1), "two": np.array(2, np.int64),
               "axis": np.array([1], np.int64)}  # fmt: skip
    path = save(tmp_path / "m.onnx", nodes, {"ids": (7, ["n", "t"])}, ["z"], tensors)
    model = agrees(path, {"ids": np.array([[0, 1, 2], [5, 19, 0]])})
    assert [layer.kind for layer in model.summary.stored] == [LayerKind.EMBEDDING, LayerKind.LINEAR]


@pytest.mark.parametrize("keepdims", (0, 1))
@pytest.mark.parametrize("axes", ([1], [1, -1], [2, 1]), ids=str)
def test_products_along_axes(axes: list[int], keepdims: int, tmp_path: Path) -> None:
    from onnx import helper

    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]),
             helper.make_node("ReduceProd", ["y", "axes"], ["z"], keepdims=keepdims)]  # fmt: skip
    tensors = {"w": numbers(4, 4), "axes": np.array(axes, np.int64)}
    agrees(save(tmp_path / "m.onnx", nodes, {"x": (1, ["n", 3, 4, 4])}, ["z"], tensors),
           {"x": numbers(2, 3, 4, 4)})  # fmt: skip


@pytest.mark.parametrize("more", ({"alpha": 0.5, "beta": 2.0}, {"transA": 1, "transB": 1}, {"alpha": 3.0, "beta": 0.0}),
                         ids=str)  # fmt: skip
def test_factors_of_gemm(more: dict[str, Any], tmp_path: Path) -> None:
    from onnx import helper

    weight = numbers(7, 16) if more.get("transB") else numbers(16, 7)
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"], **more), helper.make_node("Relu", ["y"], ["z"])],
        {"x": (1, [16, "rows"] if more.get("transA") else ["n", 16])}, ["z"], {"w": weight, "b": numbers(7)},
    )  # fmt: skip
    model = agrees(path, {"x": numbers(16, 16)})
    assert [(layer.kind, layer.matrix) for layer in model.summary.stored] == [(LayerKind.LINEAR, (7, 16))]


@pytest.mark.parametrize("direction", ("forward", "reverse", "bidirectional"))
@pytest.mark.parametrize("kind", ("LSTM", "GRU"))
def test_recurrent_layers(kind: str, direction: str, tmp_path: Path) -> None:
    from onnx import helper

    ways, gates, hidden, width = 1 + (direction == "bidirectional"), {"LSTM": 4, "GRU": 3}[kind], 8, 12
    more: dict[str, Any] = {"linear_before_reset": 1} if kind == "GRU" else {}
    states = ["h", "c"] if kind == "LSTM" else ["h"]
    nodes = [
        helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
        helper.make_node(kind, ["steps", "w", "r", "b", "", *states], ["y", "last"], direction=direction,
                         hidden_size=hidden, **more),
        helper.make_node("Transpose", ["y"], ["turned"], perm=[2, 0, 1, 3]),
        helper.make_node("Reshape", ["turned", "sizes"], ["out"]),
    ]  # fmt: skip
    tensors = {
        "w": numbers(ways, gates * hidden, width),
        "r": numbers(ways, gates * hidden, hidden, seed=1),
        "b": numbers(ways, 2 * gates * hidden, seed=2),
        "sizes": np.array([0, -1, ways * hidden], np.int64),
    }
    takes: dict[str, Any] = {"x": (1, ["n", "t", width])}
    for name in states:
        takes[name] = (1, [ways, "n", hidden])
    path = save(tmp_path / "m.onnx", nodes, takes, ["out"], tensors)
    model = open_model(path)
    assert refusal(model) == "" and [layer.kind for layer in model.summary.stored] == [LayerKind.RECURRENT] * 2
    assert [layer.matrix for layer in model.summary.stored] == [(ways * 4 * hidden * gates // 4, width),
                                                                (ways * hidden * gates, hidden)]  # fmt: skip
    values = {"x": numbers(3, 5, width, seed=3), **{name: numbers(ways, 3, hidden, seed=4) for name in states}}
    ours = {name: each.transpose(1, 0, 2) if name in states else each for name, each in values.items()}  # by sample
    theirs = onnxruntime_output(path, values)
    assert output_of(model, ours) == pytest.approx(theirs, rel=1e-4, abs=1e-5)
    tensors_of = {name: torch.from_numpy(np.ascontiguousarray(each)) for name, each in ours.items()}
    assert model.run(tensors_of).detach().numpy() == pytest.approx(theirs, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("direction", ("forward", "reverse", "bidirectional"))
@pytest.mark.parametrize("kind", ("LSTM", "GRU"))
def test_sequences_of_other_lengths_have_gradients(kind: str, direction: str, tmp_path: Path) -> None:
    from onnx import helper

    ways, gates, hidden, width = 1 + (direction == "bidirectional"), {"LSTM": 4, "GRU": 3}[kind], 8, 12
    lasts = ["h", "c"] if kind == "LSTM" else ["h"]
    more: dict[str, Any] = {"linear_before_reset": 1} if kind == "GRU" else {}
    nodes = [helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
             helper.make_node("Cast", ["lengths"], ["short"], to=6),
             helper.make_node(kind, ["steps", "w", "r", "b", "short"], ["y", *lasts], direction=direction,
                              hidden_size=hidden, **more),
             helper.make_node("Unsqueeze", [lasts[-1], "zero"], ["last"]),
             helper.make_node("Concat", ["y", "last"], ["all"], axis=0),
             helper.make_node("Transpose", ["all"], ["out"], perm=[2, 0, 1, 3])]  # fmt: skip
    tensors = {"w": numbers(ways, gates * hidden, width), "r": numbers(ways, gates * hidden, hidden, seed=1),
               "b": numbers(ways, 2 * gates * hidden, seed=2), "zero": np.array([0], np.int64)}  # fmt: skip
    takes: dict[str, Any] = {"x": (1, ["n", "t", width]), "lengths": (7, ["n"])}
    path = save(tmp_path / "m.onnx", nodes, takes, ["out"], tensors)
    model, values = open_model(path), {"x": numbers(4, 5, width, seed=3), "lengths": np.array([3, 5, 1, 4])}
    assert refusal(model) == ""
    theirs = onnxruntime_output(path, values)
    batch = {name: torch.from_numpy(each) for name, each in values.items()}
    assert model.run(batch).detach().numpy() == pytest.approx(theirs, rel=1e-4, abs=1e-6)
    weight = model.weight("w").clone().requires_grad_()
    with torch.enable_grad():
        (ours,) = torch.autograd.grad(model.with_weights({"w": weight}).run(batch).square().sum(), weight)
    assert ours.reshape(-1, gates, hidden, width).numpy() == pytest.approx(_by_torch(kind, direction, tensors, batch),
                                                                        rel=1e-3, abs=1e-5)  # fmt: skip


def _by_torch(kind: str, direction: str, tensors: dict[str, np.ndarray], batch: dict[str, torch.Tensor]) -> np.ndarray:
    """Return the gradient ``[directions, gates, hidden, width]`` at the inputs' weight, by torch's packed sequences."""
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    order = [0, 2, 3, 1] if kind == "LSTM" else [1, 0, 2]  # of torch's gates among ONNX's
    ways, width, hidden = len(tensors["w"]), tensors["w"].shape[2], tensors["r"].shape[2]
    layer = getattr(torch.nn, kind)(width, hidden, batch_first=True, bidirectional=ways == 2)
    for way, end in zip(range(ways), ("", "_reverse"), strict=False):
        parts = (tensors["w"][way], tensors["r"][way], *tensors["b"][way].reshape(2, -1))
        for name, part in zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), parts, strict=True):
            gates = np.split(part, len(order))
            getattr(layer, f"{name}_l0{end}").data = torch.from_numpy(np.concatenate([gates[at] for at in order]))
    x, lengths = batch["x"], batch["lengths"]
    if direction == "reverse":
        x = torch.stack([torch.cat([row[:n].flip(0), row[n:]]) for row, n in zip(x, lengths.tolist(), strict=True)])
    with torch.enable_grad():
        packed, last = layer(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
        last = last[1] if kind == "LSTM" else last
        loss = pad_packed_sequence(packed, batch_first=True)[0].square().sum() + last.square().sum()
        loss.backward()
    ends = ("", "_reverse")[:ways]
    found = np.stack([getattr(layer, f"weight_ih_l0{end}").grad.numpy() for end in ends])
    return found.reshape(ways, len(order), hidden, width)[:, np.argsort(order)]


@pytest.mark.parametrize("scheme", ("int8-channel", "int4-g16-asym", "int4-channel", "fp8-e4m3-channel", "bf16"))
def test_plans_of_recurrent_layers_run_in_onnx_runtime(scheme: str, tmp_path: Path) -> None:
    from onnx import helper

    nodes = [helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
             helper.make_node("GRU", ["steps", "w", "r", "b"], ["", "y"], hidden_size=32, linear_before_reset=1),
             helper.make_node("Squeeze", ["y", "zero"], ["z"])]  # fmt: skip
    tensors = {"w": numbers(1, 96, 16), "r": numbers(1, 96, 32, seed=1), "b": numbers(1, 192, seed=2),
               "zero": np.array([0], np.int64)}  # fmt: skip
    path = save(tmp_path / "m.onnx", nodes, {"x": (1, ["n", "t", 16])}, ["z"], tensors)
    model, values = open_model(path), {"x": numbers(3, 7, 16)}
    names = [layer.name for layer in model.summary.stored]
    quantized = wb.quantize(model, Plan().assign(names, weights=scheme, algorithm="rtn"))
    exporter("onnx").export(quantized, model, tmp_path / "q.onnx", silent)
    ours, theirs = output_of(quantized.bind(model), values), onnxruntime_output(tmp_path / "q.onnx", values)
    assert ours == pytest.approx(theirs, rel=1e-3, abs=1e-5)
    assert not np.allclose(ours, output_of(model, values), atol=1e-5)
    again = open_model(tmp_path / "q.onnx")
    for old, new in zip(model.summary.stored, again.summary.stored, strict=True):
        assert torch.equal(again.weight(new.name), quantized.bind(model).weight(old.name))


@pytest.mark.parametrize("scheme", ("int4-channel", "int4-channel-asym", "int4-tensor"))
def test_rows_of_an_odd_number_of_4_bit_codes(scheme: str, tmp_path: Path) -> None:
    from onnx import helper

    nodes = [
        helper.make_node("Conv", ["x", "filter"], ["a"]),
        helper.make_node("Squeeze", ["a", "last"], ["b"]),
        helper.make_node("MatMul", ["b", "w"], ["c"]),
        helper.make_node("Gemm", ["c", "v"], ["y"], transB=1),
    ]
    tensors = {"filter": numbers(9, 3, 3), "w": numbers(9, 7, seed=1), "v": numbers(5, 7, seed=2),
               "last": np.array([2], np.int64)}  # fmt: skip
    path = save(tmp_path / "m.onnx", nodes, {"x": (1, ["n", 3, 3])}, ["y"], tensors)
    model, values = open_model(path), {"x": numbers(4, 3, 3)}
    names = [layer.name for layer in model.summary.stored]
    quantized = wb.quantize(model, Plan().assign(names, weights=scheme, algorithm="rtn"))
    exporter("onnx").export(quantized, model, tmp_path / "q.onnx", silent)
    ours = output_of(quantized.bind(model), values)
    assert ours == pytest.approx(onnxruntime_output(tmp_path / "q.onnx", values), rel=1e-4, abs=1e-5)
    again = open_model(tmp_path / "q.onnx")
    for old, new in zip(model.summary.stored, again.summary.stored, strict=True):
        assert torch.equal(again.weight(new.name), quantized.bind(model).weight(old.name))
        stored = again.encoded(new.name)
        assert stored is not None and stored.scheme.startswith(scheme)


def test_weights_that_are_computed_of_constants_are_layers(tmp_path: Path) -> None:
    from onnx import helper

    nodes = [
        helper.make_node("Concat", ["a", "b"], ["both"], axis=1), helper.make_node("Mul", ["both", "gain"], ["w"]),
        helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Gather", ["few", "often"], ["many"]),
        helper.make_node("MatMul", ["y", "many"], ["z"]),
    ]  # fmt: skip
    tensors = {
        "a": numbers(16, 8), "b": numbers(16, 24, seed=1), "gain": numbers(1, 32, seed=2), "few": numbers(2, 4096),
        "often": np.arange(32, dtype=np.int64) % 2,
    }  # fmt: skip
    path = save(tmp_path / "m.onnx", nodes, {"x": (1, ["n", 16])}, ["z"], tensors)
    model = agrees(path, {"x": numbers(3, 16)})
    assert (32, 16) in {layer.matrix for layer in model.summary.stored}
    product = np.concatenate([tensors["a"], tensors["b"]], 1) * tensors["gain"]
    layer = next(layer for layer in model.summary.stored if layer.matrix == (32, 16))
    assert np.array_equal(model.weight(layer.name).numpy(), product.T)


def test_a_constant_that_would_fill_the_memory_is_not_computed(tmp_path: Path) -> None:
    from onnx import helper

    nodes = [helper.make_node("Gather", ["row", "often"], ["large"]), helper.make_node("MatMul", ["x", "w"], ["y"]),
             helper.make_node("MatMul", ["y", "large"], ["z"])]  # fmt: skip
    tensors = {"row": numbers(1, 65536), "often": np.zeros(64, np.int64), "w": numbers(16, 64)}
    path = save(tmp_path / "m.onnx", nodes, {"x": (1, ["n", 16])}, ["z"], tensors)
    model = open_model(path)
    assert "large" not in str([layer.name for layer in model.summary.stored])
    values = {"x": numbers(3, 16)}
    assert output_of(model, values) == pytest.approx(onnxruntime_output(path, values), rel=1e-4, abs=1e-5)
