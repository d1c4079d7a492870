"""Graphs of strangers: nodes without their inputs, attributes of other types, endless loops, outputs without end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from workbench.errors import UNFORESEEN, NotAModelError
from workbench.models.onnx.container import read_onnx
from workbench.models.onnx.graph import float_graph
from workbench.models.onnx.names import Names
from workbench.models.onnx.network import OnnxNetwork
from workbench.models.sources import open_model

node, FLOAT = helper.make_node, TensorProto.FLOAT
WEIGHT = numpy_helper.from_array(np.eye(16, dtype=np.float32), "w")
PRODUCT = node("MatMul", ["x", "w"], ["m"])

KINDS = (
    "Add", "Cast", "Concat", "Conv", "DequantizeLinear", "Equal", "Gather", "Gemm", "If", "LSTM", "Loop", "MatMul",
    "MatMulInteger", "QLinearMatMul", "QuantizeLinear", "Reshape", "Scan", "Slice", "Transpose", "Where",
)  # fmt: skip


def number(value: Any, name: str) -> Any:
    return numpy_helper.from_array(np.asarray(value), name)


def save(
    folder: Path, nodes: Sequence[Any], constants: Sequence[Any] = (), shape: Sequence[int | str] = ("N", 16)
) -> Path:
    takes, gives = (helper.make_tensor_value_info(name, FLOAT, size) for name, size in (("x", shape), ("y", None)))
    graph = helper.make_graph(nodes, "g", [takes], [gives], [WEIGHT, *constants])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    return folder / "m.onnx"


def opened(file: Path) -> None:
    """Open a file, or raise NotAModelError of one line."""
    try:
        open_model(file)
    except NotAModelError as error:
        assert "\n" not in str(error) and UNFORESEEN not in str(error)
        raise


def loop(times: int) -> list[Any]:
    values = [helper.make_tensor_value_info(name, kind, size) for name, kind, size in (
        ("i", TensorProto.INT64, []), ("on", TensorProto.BOOL, []), ("a", FLOAT, None), ("still", TensorProto.BOOL, []),
        ("b", FLOAT, None))]  # fmt: skip
    nodes = [node("Identity", ["on"], ["still"]), node("Identity", ["a"], ["b"])]
    body = helper.make_graph(nodes, "body", values[:3], values[3:])
    return [PRODUCT, node("Loop", ["times", "", "m"], ["y"], body=body)]


@pytest.mark.parametrize("taken", [[], ["m"], ["m"] * 9, ["w"], ["w"] * 9], ids=["0", "1", "9", "w", "9w"])
@pytest.mark.parametrize("kind", KINDS)
def test_nodes_without_their_inputs_or_with_too_many(tmp_path: Path, kind: str, taken: list[str]) -> None:
    for nodes in ([PRODUCT, node(kind, taken, ["y"])], [node(kind, ["w" if each == "m" else each for each in taken],
                  ["v"]), node("MatMul", ["x", "v"], ["y"])]):  # fmt: skip
        try:
            opened(save(tmp_path, nodes))
        except NotAModelError:
            continue
        assert len(taken) == 1 or kind in ("Concat", "Scan")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (node("Equal", ["m"], ["y"]), "its node Equal has 1 inputs; Equal has 2"),
        (node("Gemm", ["m"], ["y"]), "its node Gemm has 1 inputs; Gemm has at least 2"),
        (node("Relu", ["m"], ["y", "z"]), "its node Relu has 2 outputs; Relu has 1"),
        (node("Gemm", ["m", "w"], ["y"], transB="y"), "has an attribute transB that is not of the type INT"),
        (node("Transpose", ["m"], ["y"], perm="abc"), "has an attribute perm that is not of the type INTS"),
    ],
)
def test_a_node_that_is_not_as_its_operator_is_named(tmp_path: Path, wrong: Any, reason: str) -> None:
    with pytest.raises(NotAModelError, match=reason):
        opened(save(tmp_path, [PRODUCT, wrong]))


@pytest.mark.parametrize("kind", ["Gather", "Add", "Concat", "Reshape", "Where"])
def test_a_weight_that_is_computed_of_nothing(tmp_path: Path, kind: str) -> None:
    taken = ["w", "", ""] if kind == "Where" else ["w", ""]
    options = {"axis": 0} if kind == "Concat" else {}
    with pytest.raises(NotAModelError):
        opened(save(tmp_path, [node(kind, taken, ["v"], **options), node("MatMul", ["x", "v"], ["y"])]))


@pytest.mark.parametrize("value", [np.float32("nan"), np.float32("inf"), np.float32(2.5)])
def test_an_input_that_is_compared_with_no_whole_number(tmp_path: Path, value: np.float32) -> None:
    nodes = [node("Equal", ["x", "k"], ["e"]), node("Cast", ["e"], ["f"], to=1), node("MatMul", ["f", "w"], ["y"])]
    opened(save(tmp_path, nodes, [number(value, "k")]))


@pytest.mark.parametrize("shape", [("N", 16), ("N", "C", "H", 16), *(
    pytest.param(shape, marks=pytest.mark.slow) for shape in (("N", "T", 16), (4, 16))
)], ids=str)  # fmt: skip
def test_a_loop_without_end_is_tried_once(tmp_path: Path, shape: tuple[int | str, ...]) -> None:
    """Other sizes would not end it; all tries take five seconds of processor time together."""
    opened(save(tmp_path, loop(9), [number(9, "times")], shape))
    before = os.times()
    with pytest.raises(NotAModelError, match="takes more than 3 s or too much memory"):
        opened(save(tmp_path, loop(2**63 - 1), [number(2**63 - 1, "times")], shape))
    after = os.times()
    assert after.children_user + after.children_system - before.children_user - before.children_system < 5


def test_a_graph_that_fails_late_at_every_size_is_not_tried_for_ever(tmp_path: Path) -> None:
    """A loop takes most of the time that a try may, then a Reshape fails."""
    rounds, wrong = number(400_000, "times"), number([-1, 7, 11], "odd")
    loops = [*loop(0)[:-1], loop(0)[-1], node("Reshape", ["y", "odd"], ["z"])]
    loops[-2].output[0], loops[-1].input[0] = "l", "l"
    loops[-1].output[0] = "y"
    before = os.times()
    with pytest.raises(NotAModelError):
        opened(save(tmp_path, loops, [rounds, wrong], ("N", "T", 16)))
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    assert 0.1 < spent < 6


@pytest.mark.parametrize("make", [
    lambda: ([node("ConstantOfShape", ["s"], ["c"])], [number([2**33], "s")]),
    lambda: ([node("Concat", [f"c{at}"] * 2, [f"c{at + 1}" if at < 39 else "c"], axis=0) for at in range(40)],
             [number(np.ones(1, np.float32), "c0")]),
    lambda: ([node("Range", ["a", "b", "d"], ["c"])],
             [number(np.float32(each), name) for each, name in ((0, "a"), (1e10, "b"), (1, "d"))]),
])  # fmt: skip
def test_values_that_fill_the_memory_are_not_made(
    tmp_path: Path, make: Callable[[], tuple[list[Any], list[Any]]]
) -> None:
    nodes, constants = make()
    total = [node("ReduceSum", ["c"], ["r"], keepdims=0), PRODUCT, node("Add", ["m", "r"], ["y"])]
    with pytest.raises(NotAModelError):
        opened(save(tmp_path, [*nodes, *total], constants))


@pytest.mark.parametrize("shape", [(2**40, 16), ("N", 2**33, 16), (2**62, 2**62, 16)])
def test_inputs_without_end_are_refused_before_they_are_made(tmp_path: Path, shape: tuple[int | str, ...]) -> None:
    with pytest.raises(NotAModelError, match=r"its input x \(.*\) has more than 134,217,728 numbers"):
        opened(save(tmp_path, [node("MatMul", ["x", "w"], ["y"])], shape=shape))


def test_constants_that_take_each_other_twice_are_made_once(tmp_path: Path) -> None:
    """Fifty of them would otherwise be made 2**50 times."""
    nodes = [node("Reshape", [f"n{at}", f"n{at}"], [f"n{at + 1}"]) for at in range(50)]
    with pytest.raises(NotAModelError):
        opened(save(tmp_path, [*nodes, node("MatMul", ["x", "n50"], ["y"])], [number([1], "n0")]))


@pytest.mark.parametrize("name", [b"wwww", b"mmmm", b"xxxx"])
def test_a_name_that_is_not_text_is_named(tmp_path: Path, name: bytes) -> None:
    """A tensor's, a node's and the input's; protobuf leaves them as bytes."""
    weight = number(np.eye(16, dtype=np.float32), "wwww")
    graph = helper.make_graph(
        [node("MatMul", ["xxxx", "wwww"], ["y"], name="mmmm")], "g",
        [helper.make_tensor_value_info("xxxx", FLOAT, ["N", 16])], [helper.make_tensor_value_info("y", FLOAT, None)],
        [weight],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString().replace(name, b"a\xff\xfeb"))
    with pytest.raises(NotAModelError, match=r"^its name a\\xff\\xfeb is not UTF-8; save it again$"):
        open_model(tmp_path / "m.onnx")


def test_graphs_of_many_nodes_take_time_in_proportion(tmp_path: Path) -> None:
    count = 10_000
    products = [node("MatMul", ["x", f"w{at}"], [f"m{at}"], name="/same/MatMul") for at in range(count)]
    between = [node("Relu", ["x"], [f"r{at}"]) for at in range(count)]
    weights = [number(np.eye(2, dtype=np.float32), f"w{at}") for at in range(count)]
    last = node("Sum", [f"{name}{at}" for at in range(count) for name in "mr"], ["y"])
    nodes = [each for pair in zip(between, products, strict=True) for each in pair]
    takes, gives = (helper.make_tensor_value_info(name, FLOAT, [None, 2]) for name in "xy")
    graph = helper.make_graph([*nodes, last], "g", [takes], [gives], weights)
    path = tmp_path / "x.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())
    file = read_onnx(path)
    start = time.process_time()
    read = float_graph(file)
    assert len(read.layers) == count
    assert len(list(OnnxNetwork(file, read).parameters())) == count
    assert time.process_time() - start < 15


def test_many_parameters_of_one_name_get_paths_in_proportion() -> None:
    names = Names(["a.weight_2", "b.weight"])
    start = time.process_time()
    paths = [names.fresh("a.weight") for _ in range(20_000)]
    assert len({*paths}) == 20_000 and paths[:2] == ["a.weight", "a_2.weight"]
    assert names.fresh("b.weight") == "b_2.weight"
    assert names.fresh("b.weight", "b.weight") == "b.weight"
    assert time.process_time() - start < 5
