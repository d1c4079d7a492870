"""What a graph takes and gives is read off it: where samples lie, rates, states, probabilities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from tests.models.onnx.made import numbers, onnxruntime_output, output_of, save
from workbench.errors import DataError, NotAModelError
from workbench.models.sources import open_model
from workbench.models.summary import OutputKind

pytest.importorskip("onnxruntime")


def _with_state(path: Path) -> Path:
    """A graph with a state whose samples lie on its second axis, and one rate for all of them."""
    from onnx import helper

    node = helper.make_node
    nodes = [
        node("MatMul", ["x", "w"], ["y"]), node("Squeeze", ["state", "zero"], ["flat"]),
        node("Add", ["y", "flat"], ["sum"]), node("Equal", ["rate", "known"], ["is"]),
        node("Where", ["is", "sum", "nothing"], ["z"]), node("MatMul", ["z", "v"], ["out"]),
    ]  # fmt: skip
    tensors = {"w": numbers(16, 8), "v": numbers(8, 4, seed=1), "zero": np.array([0], np.int64),
               "known": np.array(16000, np.int64), "nothing": np.array(0, np.float32)}  # fmt: skip
    takes = {"x": (1, ["n", 16]), "state": (1, [1, "n", 8]), "rate": (7, [])}
    return save(path, nodes, takes, ["out"], tensors)  # type: ignore[arg-type]


def test_states_and_rates(tmp_path: Path) -> None:
    path = _with_state(tmp_path / "m.onnx")
    model = open_model(path)
    x, state, rate = numbers(5, 16), numbers(5, 8, seed=2), np.full(5, 16000)
    theirs = onnxruntime_output(path, {"x": x, "state": state[None], "rate": np.array(16000, np.int64)})
    assert output_of(model, {"x": x, "state": state, "rate": rate}) == pytest.approx(theirs, rel=1e-4, abs=1e-5)
    assert int(model.body.sample(2)["rate"][0]) == 16000  # type: ignore[attr-defined]
    with pytest.raises(DataError, match=r"state is \(1, 7\) in the data; the model takes samples x 1 x 8"):
        output_of(model, {"x": x, "state": state[:, :7], "rate": rate})
    np.savez(tmp_path / "d.npz", x=x, state=state, rate=rate)
    session = wb.calibrate(model, tmp_path / "d.npz", samples=5)
    assert {("w", "input"), ("v", "input")} <= set(session.statistics)


@pytest.mark.parametrize(
    ("last", "shape", "kind"),
    (("Softmax", ["n", 16], OutputKind.CLASS_LOGITS), ("Sigmoid", ["n", 16], OutputKind.POSITION_CLASSES),
     ("Softmax", ["n", "t", 16], OutputKind.POSITION_CLASSES), ("Tanh", ["n", 16], OutputKind.CLASS_LOGITS)),
)  # fmt: skip
def test_probabilities_are_logits_to_compare(
    last: str, shape: list[str | int], kind: OutputKind, tmp_path: Path
) -> None:  # fmt: skip
    from onnx import helper

    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node(last, ["y"], ["p"]),
             helper.make_node("Identity", ["p"], ["out"])]  # fmt: skip
    path = save(tmp_path / "m.onnx", nodes, {"x": (1, shape)}, ["out"], {"w": numbers(16, 6)})
    model, x = open_model(path), numbers(*(4 if isinstance(size, str) else size for size in shape))
    assert model.summary.output is kind
    raw, ours = onnxruntime_output(path, {"x": x}), output_of(model, {"x": x})
    if last == "Softmax":
        assert np.exp(ours) == pytest.approx(raw, rel=1e-4, abs=1e-6)
    elif last == "Sigmoid":
        assert ours.shape == (*raw.shape, 2) and (ours[..., 1] - ours[..., 0] > 0).tolist() == (raw > 0.5).tolist()
    else:
        assert ours == pytest.approx(raw, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(("channels", "kind"), [(5, OutputKind.POSITION_CLASSES), (3, OutputKind.EMBEDDING)])
def test_classes_at_every_pixel_are_compared_as_such(channels: int, kind: OutputKind, tmp_path: Path) -> None:
    from onnx import helper

    nodes = [helper.make_node("Conv", ["x", "w"], ["out"])]
    path = save(tmp_path / "m.onnx", nodes, {"x": (1, ["n", 3, 8, 6])}, ["out"], {"w": numbers(channels, 3, 1, 1)})
    model, x = open_model(path), numbers(2, 3, 8, 6, seed=1)
    assert model.summary.output is kind
    assert any("5 classes at every pixel" in note for note in model.notes) == (channels == 5)
    theirs = onnxruntime_output(path, {"x": x})
    if kind is OutputKind.POSITION_CLASSES:
        theirs = theirs.reshape(2, channels, -1).transpose(0, 2, 1)
    assert output_of(model, {"x": x}) == pytest.approx(theirs, rel=1e-4, abs=1e-5)


def test_a_softmax_of_simple_operators_is_one_too(tmp_path: Path) -> None:
    from onnx import helper

    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Exp", ["y"], ["e"]),
             helper.make_node("ReduceSum", ["e", "axes"], ["s"]),
             helper.make_node("Div", ["e", "s"], ["out"])]  # fmt: skip
    constants = {"w": numbers(16, 6), "axes": np.array([-1], np.int64)}
    path = save(tmp_path / "m.onnx", nodes, {"x": (1, ["n", 16])}, ["out"], constants)
    model, x = open_model(path), numbers(4, 16)
    raw, ours = onnxruntime_output(path, {"x": x}), output_of(model, {"x": x})
    assert model.summary.output is OutputKind.CLASS_LOGITS
    assert np.exp(ours) == pytest.approx(raw, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("samples", ("n", 1))
def test_samples_lie_where_the_graph_puts_them(samples: str | int, tmp_path: Path) -> None:
    from onnx import helper

    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]),
             helper.make_node("Transpose", ["y"], ["out"], perm=[1, 0, 2])]  # fmt: skip
    takes = {"x": (1, [samples, "t", 16])}
    path = save(tmp_path / "m.onnx", nodes, takes, ["out"], {"w": numbers(16, 6)})
    model, x = open_model(path), numbers(3, 7, 16)
    theirs = [onnxruntime_output(path, {"x": x[at : at + 1]})[:, 0] for at in range(3)]
    assert output_of(model, {"x": x}) == pytest.approx(np.stack(theirs), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("samples", ("n", 2))
def test_samples_lie_along_the_axis_that_turns_with_them(samples: str | int, tmp_path: Path) -> None:
    """Two steps of two samples, the steps first."""
    from onnx import helper

    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]),
             helper.make_node("Transpose", ["y"], ["out"], perm=[1, 0, 2])]  # fmt: skip
    path = save(tmp_path / "m.onnx", nodes, {"x": (1, [samples, 2, 16])}, ["out"], {"w": numbers(16, 6)})
    model, x = open_model(path), numbers(4, 2, 16)
    theirs = np.concatenate([onnxruntime_output(path, {"x": x[at : at + 2]}).swapaxes(0, 1) for at in (0, 2)])
    assert output_of(model, {"x": x}) == pytest.approx(theirs, rel=1e-4, abs=1e-5)


def test_a_graph_that_squeezes_a_single_sample(tmp_path: Path) -> None:
    from onnx import helper

    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Squeeze", ["y"], ["out"])]
    path = save(tmp_path / "m.onnx", nodes, {"x": (1, ["n", 16])}, ["out"], {"w": numbers(16, 1)})
    model, x = open_model(path), numbers(3, 16)
    theirs = onnxruntime_output(path, {"x": x})
    for rows in (slice(0, 3), slice(1, 2)):
        assert output_of(model, {"x": x[rows]})[:, 0] == pytest.approx(theirs[rows], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("gives", [["y", "w", "c"], ["w", "c", "y"]])
def test_stored_tensors_among_the_outputs_are_left_out(tmp_path: Path, gives: list[str]) -> None:
    from onnx import helper

    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    constants = {"w": numbers(16, 6), "c": numbers(3)}
    path, x = save(tmp_path / "m.onnx", nodes, {"x": (1, ["n", 16])}, gives, constants), numbers(4, 16)
    model = open_model(path)
    assert output_of(model, {"x": x}) == pytest.approx(x @ constants["w"], rel=1e-4, abs=1e-5)
    with pytest.raises(NotAModelError, match="returns no tensor"):
        open_model(save(path, nodes, {"x": (1, ["n", 16])}, ["w", "c"], constants))
