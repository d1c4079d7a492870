"""Weights in the branches of an If and in the body of a Loop are layers like others."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import workbench as wb
from tests.models.onnx.made import initializers, numbers, onnxruntime_output, output_of, refusal, save
from workbench.deployment.exporters import exporter
from workbench.errors import DataError
from workbench.models.onnx.operators import evaluate
from workbench.models.onnx.recurrent import NoCounterpartError
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent

pytest.importorskip("onnxruntime")

WIDTH = 32


def _branch(seed: int, shared: str) -> Any:
    """A convolution, a product with an initializer, one with a constant that is cut and turned, and ``shared``."""
    from onnx import helper

    node, (wide, ends) = helper.make_node, initializers({
        "wide": numbers(2 * WIDTH, WIDTH, seed=seed), "ends": np.array([WIDTH], np.int64),
    })  # fmt: skip
    names = {name: f"{name}{seed}" for name in ("y", "z")}  # inner names that both branches have, and others
    nodes = [
        node("Unsqueeze", ["x", "one"], ["lines"]), node("Conv", ["lines", "filter"], ["filtered"], pads=[1, 1]),
        node("Squeeze", ["filtered", "one"], ["flat"]), node("MatMul", ["flat", "first"], [names["y"]]),
        node("Constant", [], ["wide"], value=wide), node("Constant", [], ["ends"], value=ends),
        node("Slice", ["wide", "zero", "ends"], ["half"]), node("Transpose", ["half"], ["turned"], perm=[1, 0]),
        node("Gemm", [names["y"], "turned", "bias"], [names["z"]]), node("MatMul", [names["z"], shared], ["given"]),
    ]  # fmt: skip
    own = {"filter": numbers(1, 1, 3, seed=seed + 1), "first": numbers(WIDTH, WIDTH, seed=seed + 2),
           "bias": numbers(WIDTH, seed=seed + 3)}  # fmt: skip
    return helper.make_graph(nodes, "branch", [], [helper.make_tensor_value_info("given", 1, None)], initializers(own))


def branching(path: Path) -> Path:
    """A graph whose number ``mode`` says which branch runs."""
    from onnx import helper

    choose = [
        helper.make_node("Equal", ["mode", "seven"], ["first"]),
        helper.make_node("If", ["first"], ["out"], then_branch=_branch(1, "last"), else_branch=_branch(5, "last")),
    ]
    tensors = {"last": numbers(WIDTH, 8), "seven": np.array(7, np.int64), "one": np.array([1], np.int64),
               "zero": np.array([0], np.int64)}  # fmt: skip
    return save(path, choose, {"x": (1, ["n", WIDTH]), "mode": (7, [])}, ["out"], tensors)


def batch(mode: int) -> dict[str, np.ndarray]:
    """Return one sample, as the graph takes it."""
    return {"x": numbers(1, WIDTH, seed=9), "mode": np.array(mode, np.int64)}


def data(mode: int) -> dict[str, np.ndarray]:
    """Return one sample, as the model takes it."""
    return {"x": numbers(1, WIDTH, seed=9), "mode": np.array([mode], np.int64)}


@pytest.mark.parametrize("mode", (7, 3))
def test_weights_in_branches_are_layers(mode: int, tmp_path: Path) -> None:
    path = branching(tmp_path / "m.onnx")
    model = open_model(path)
    assert refusal(model) == "" and len(model.summary.stored) == 7  # three in each branch, and the one they share
    assert output_of(model, data(mode)) == pytest.approx(onnxruntime_output(path, batch(mode)), rel=1e-4, abs=1e-4)
    for layer in model.summary.stored:
        halved = model.with_weights({layer.name: model.weight(layer.name) / 2})
        own = not np.allclose(output_of(halved, data(7)), output_of(model, data(7)))
        other = not np.allclose(output_of(halved, data(3)), output_of(model, data(3)))
        assert own or other, layer.name


@pytest.mark.parametrize(("weights", "inputs"), (("int8-channel", "int8-tensor-asym"), ("int4-g32", None)))
def test_a_plan_reaches_into_branches(weights: str, inputs: str | None, tmp_path: Path) -> None:
    model = open_model(branching(tmp_path / "m.onnx"))
    np.savez(tmp_path / "d.npz", x=numbers(8, WIDTH, seed=9), mode=np.full(8, 7))
    session = wb.calibrate(model, tmp_path / "d.npz", samples=8)
    tapped = {name for name, tap in session.statistics if tap == "input"}
    assert len(tapped) >= 4  # all that the branch runs
    names = [layer.name for layer in model.summary.stored if inputs is None or layer.name in tapped]
    names = [name for name in names if not (weights == "int4-g32" and model.summary.layer(name).matrix[1] % 32)]
    quantized = wb.quantize(
        model, Plan().assign(names, weights=weights, inputs=inputs, algorithm="rtn"), session=session
    )
    exporter("onnx").export(quantized, model, tmp_path / "q.onnx", silent)
    for mode in (7, 3):
        ours = output_of(quantized.bind(model), data(mode))
        theirs = onnxruntime_output(tmp_path / "q.onnx", batch(mode))
        assert np.abs(ours - theirs).max() < 1e-3 * np.abs(theirs).max()
        assert not np.allclose(ours, output_of(model, data(mode)))
    again = open_model(tmp_path / "q.onnx")
    bound = quantized.bind(model)
    assert len(again.summary.stored) == 7
    sums = [sorted(float(each.weight(layer.name).sum()) for layer in each.summary.stored) for each in (again, bound)]
    assert sums[0] == pytest.approx(sums[1], rel=1e-4)


def test_the_body_of_a_loop_multiplies_with_a_layer(tmp_path: Path) -> None:
    from onnx import helper

    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("MatMul", ["state", "w"], ["product"]), helper.make_node("Tanh", ["product"], ["next"]),
         helper.make_node("Identity", ["going"], ["goes"])],
        "body", [value("step", 7, []), value("going", 9, []), value("state", 1, ["n", WIDTH])],
        [value("goes", 9, []), value("next", 1, None)], initializers({"w": numbers(WIDTH, WIDTH)}),
    )  # fmt: skip
    loop = helper.make_node("Loop", ["steps", "", "x"], ["out"], body=body)
    path = save(tmp_path / "m.onnx", [loop], {"x": (1, ["n", WIDTH])}, ["out"], {"steps": np.array(3, np.int64)})
    model, values = open_model(path), {"x": numbers(4, WIDTH, seed=2)}
    assert "Loop" in refusal(model) and [layer.matrix for layer in model.summary.stored] == [(WIDTH, WIDTH)]
    quantized = wb.quantize(
        model, Plan().assign([model.summary.stored[0].name], weights="int8-channel", algorithm="rtn")
    )
    exporter("onnx").export(quantized, model, tmp_path / "q.onnx", silent)
    ours, theirs = output_of(quantized.bind(model), values), onnxruntime_output(tmp_path / "q.onnx", values)
    assert theirs == pytest.approx(ours, rel=1e-3, abs=1e-5) and not np.allclose(ours, onnxruntime_output(path, values))


def _by_mode(path: Path, branches: tuple[Any, Any], dtype: int) -> Path:
    """A graph whose number ``mode`` says which of two branches runs, and a product behind them."""
    import onnx
    from onnx import helper

    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Equal", ["mode", "seven"], ["first"]),
             helper.make_node("If", ["first"], ["chosen"], then_branch=branches[0], else_branch=branches[1]),
             helper.make_node("MatMul", ["chosen", "last"], ["out"])]  # fmt: skip
    tensors = {"seven": np.array(7, np.int64), "last": numbers(8, 4).astype({1: np.float32, 10: np.float16}[dtype])}
    takes = [value("x", dtype, ["n", WIDTH]), value("mode", 7, [])]
    graph = helper.make_graph(nodes, "g", takes, [value("out", dtype, None)], initializers(tensors))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), str(path))
    return path


def test_branches_of_half_precision(tmp_path: Path) -> None:
    from onnx import helper

    def branch(seed: int) -> Any:
        nodes = [helper.make_node("MatMul", ["x", "w"], ["product"]), helper.make_node("Tanh", ["product"], ["given"])]
        own = {"w": numbers(WIDTH, 8, seed=seed).astype(np.float16)}
        given = helper.make_tensor_value_info("given", 10, ["n", 8])
        return helper.make_graph(nodes, "branch", [], [given], initializers(own))

    path = _by_mode(tmp_path / "m.onnx", (branch(1), branch(2)), 10)
    model = open_model(path)
    assert {layer.dtype for layer in model.summary.stored} == {"float16"}
    for mode in (7, 3):
        theirs = onnxruntime_output(path, {**batch(mode), "x": batch(mode)["x"].astype(np.float16)})
        assert output_of(model, data(mode)) == pytest.approx(theirs.astype(np.float32), abs=5e-3)


def test_a_weight_that_moves_out_is_not_hidden_by_a_name_in_another_branch(tmp_path: Path) -> None:
    from onnx import helper

    given = [helper.make_tensor_value_info("given", 1, None)]
    one = helper.make_graph([helper.make_node("MatMul", ["x", "k"], ["given"])], "one", [], given,
                            initializers({"k": numbers(WIDTH, 8)}))  # fmt: skip
    other = helper.make_graph(
        [helper.make_node("Mul", ["x", "k"], ["scaled"]), helper.make_node("MatMul", ["scaled", "w"], ["given"])],
        "other", [], given, initializers({"k": numbers(WIDTH, seed=1), "w": numbers(WIDTH, 8, seed=2)}),
    )  # fmt: skip
    path = _by_mode(tmp_path / "m.onnx", (one, other), 1)
    model = open_model(path)
    assert len(model.summary.stored) == 3
    for mode in (7, 3):
        assert output_of(model, data(mode)) == pytest.approx(onnxruntime_output(path, batch(mode)), rel=1e-4, abs=1e-5)


def _celu(seed: int) -> Any:
    from onnx import helper

    nodes = [helper.make_node("MatMul", ["x", "w"], ["product"]), helper.make_node("Celu", ["product"], ["given"])]
    own = initializers({"w": numbers(WIDTH, 8, seed=seed)})
    return helper.make_graph(nodes, "branch", [], [helper.make_tensor_value_info("given", 1, None)], own)


def _lstm(seed: int, gates_see_cells: bool) -> Any:
    from onnx import helper

    more = {"p": numbers(1, 24, seed=seed)} if gates_see_cells else {}
    taken = ["lines", "w", "r", *(["", "", "", "", "p"] if more else [])]
    nodes = [helper.make_node("Unsqueeze", ["x", "zero"], ["lines"]),
             helper.make_node("LSTM", taken, ["", "last"], hidden_size=8, name="cell"),
             helper.make_node("Squeeze", ["last", "zero"], ["given"])]  # fmt: skip
    own = {"w": numbers(1, 32, WIDTH, seed=seed), "r": numbers(1, 32, 8, seed=seed), "zero": np.array([0]), **more}
    return helper.make_graph(nodes, "branch", [], [helper.make_tensor_value_info("given", 1, None)], initializers(own))


WITHOUT_GRADIENTS = {
    "celu": ((_celu(1), _celu(2)), "Celu (node given in the then_branch of If chosen)"),
    "gates": ((_lstm(1, False), _lstm(2, True)), "LSTM (node cell) in If (node chosen): an LSTM with peepholes"),
}


@pytest.mark.parametrize("mode", (7, 3))
@pytest.mark.parametrize("kind", WITHOUT_GRADIENTS)
def test_an_operator_in_a_branch_that_torch_has_not_is_named_and_losses_are_measured(
    kind: str, mode: int, tmp_path: Path
) -> None:
    branches, place = WITHOUT_GRADIENTS[kind]
    model = open_model(_by_mode(tmp_path / "m.onnx", branches, 1))
    assert place in refusal(model) and any(place in note for note in model.notes)
    np.savez(tmp_path / "d.npz", x=numbers(8, WIDTH, seed=9), mode=np.full(8, mode))
    session = wb.calibrate(model, tmp_path / "d.npz", samples=8)
    table = wb.score(session, model=model, schemes=["int4-channel"]).sensitivities["predicted_kl"]
    assert not session.curvature and set(table.measured) == set(table.layers)
    assert table.of("last", "int4-channel") > 0


def test_data_that_reach_what_torch_does_not_run_are_not_called_wrong(tmp_path: Path) -> None:
    """The sample that the file was tried with takes the other branch."""
    from onnx import helper

    given = [helper.make_tensor_value_info("given", 1, None)]
    one = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["given"])], "one", [], given,
                            initializers({"w": numbers(WIDTH, 8)}))  # fmt: skip
    nodes = [helper.make_node("MatMul", ["x", "w"], ["product"]),
             helper.make_node("Pad", ["product", "around"], ["wide"], name="wider", mode="edge"),
             helper.make_node("Slice", ["wide", "first", "last", "rows"], ["given"])]  # fmt: skip
    own = {"w": numbers(WIDTH, 8, seed=2), "around": np.array([1, 0, 1, 0]), "first": np.array([1]),
           "last": np.array([-1]), "rows": np.array([0])}  # fmt: skip
    other = helper.make_graph(nodes, "other", [], given, initializers(own))
    path = _by_mode(tmp_path / "m.onnx", (one, other), 1)
    model, values = open_model(path), {"x": numbers(4, WIDTH, seed=9), "mode": np.full(4, 3)}
    assert refusal(model) == ""
    theirs = onnxruntime_output(path, {**values, "mode": np.array(3)})
    assert output_of(model, values) == pytest.approx(theirs, rel=1e-4, abs=1e-5)
    with pytest.raises(DataError, match=r"torch does not run its Pad \(node wider\) in If \(node chosen\): "):
        model.run({name: torch.from_numpy(each) for name, each in values.items()})


@pytest.mark.parametrize("peepholes", (False, True))
def test_a_branch_that_is_not_made_for_an_input_is_passed_over_and_an_operator_that_is_missing_is_not(
    peepholes: bool,
) -> None:
    """Of Silero's detector: the branch of another rate has a recurrent layer, which takes three axes."""
    from onnx import helper

    names = ["x", "w", "r", *(("", "", "", "", "p") if peepholes else ())]
    recurrent = helper.make_node("LSTM", names, ["y"], hidden_size=3)
    outputs = [helper.make_tensor_value_info("y", 1, None)]
    branches = {
        "then_branch": helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "then", [], outputs),
        "else_branch": helper.make_graph([recurrent], "else", [], outputs),
    }
    known = {"c": torch.tensor(True), "x": torch.randn(2, 2, 2, 4), "w": torch.randn(1, 12, 4),
             "r": torch.randn(1, 12, 3), "p": torch.randn(1, 9)}  # fmt: skip
    nodes = [helper.make_node("If", ["c"], ["z"], **branches)]
    with pytest.raises(NoCounterpartError, match="peepholes") if peepholes else nullcontext():
        evaluate(nodes, known, 17, both=True)
        torch.testing.assert_close(known["z"], known["x"].relu())
