"""Operators of mixtures of experts: products of batches of matrices, routing, putting numbers at places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.models.onnx.made import numbers, output_of, refusal, save
from tests.models.onnx.test_operators import agrees
from workbench.models.layer import LayerKind
from workbench.models.sources import open_model

pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("axis", (1, -1))
@pytest.mark.parametrize("largest", (0, 1))
def test_the_largest_of_numbers_of_which_some_are_equal(largest: int, axis: int, tmp_path: Path) -> None:
    from onnx import helper

    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("Relu", ["y"], ["z"]),
        helper.make_node("TopK", ["z", "k"], ["v", "i"], largest=largest, axis=axis),
        helper.make_node("Cast", ["i"], ["places"], to=1),
        helper.make_node("Add", ["v", "places"], ["out"]),
    ]
    tensors = {"w": numbers(16, 8), "k": np.array([2], np.int64)}
    agrees(save(tmp_path / "m.onnx", nodes, {"x": (1, ["n", 5, 16])}, ["out"], tensors), {"x": numbers(4, 5, 16)})


@pytest.mark.parametrize("how", ("none", "add", "mul", "max", "min"))
def test_numbers_that_are_put_at_places(how: str, tmp_path: Path) -> None:
    from onnx import helper

    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("Slice", ["y", "zero", "two", "one"], ["few"]),
        helper.make_node("Shape", ["few"], ["s"]),
        helper.make_node("Expand", ["places", "s"], ["at"]),
        helper.make_node("ScatterElements", ["y", "at", "few"], ["out"], axis=1, reduction=how),
    ]
    tensors = {"w": numbers(16, 8), "places": np.array([[3, -1]], np.int64), "zero": np.array([0], np.int64),
               "one": np.array([1], np.int64), "two": np.array([2], np.int64)}  # fmt: skip
    agrees(save(tmp_path / "m.onnx", nodes, {"x": (1, ["n", 16])}, ["out"], tensors), {"x": numbers(4, 16)})


@pytest.mark.parametrize("end", ("Relu", "Hardmax"))
@pytest.mark.parametrize("place", (0, 1))
def test_a_batch_of_matrices_has_its_inputs_along_the_columns(place: int, end: str, tmp_path: Path) -> None:
    """Each of 3 matrices has 16 inputs and 8 outputs, whether torch follows the graph (Relu) or not."""
    from onnx import helper

    weight, more = (numbers(3, 16, 8), ["n", 1, 5, 16]) if place else (numbers(3, 8, 16), ["n", 1, 16, 5])
    nodes = [
        helper.make_node("MatMul", ["x", "w"] if place else ["w", "x"], ["y"]),
        helper.make_node(end, ["y"], ["z"]),
    ]
    path = save(tmp_path / "m.onnx", nodes, {"x": (1, more)}, ["z"], {"w": weight})
    model = open_model(path)
    assert bool(refusal(model)) == (end == "Hardmax")
    (layer,) = model.summary.stored
    assert (layer.kind, layer.experts, layer.matrix) == (LayerKind.EXPERTS, 3, (24, 16))
    outputs_first = weight.swapaxes(1, 2) if place else weight
    assert np.array_equal(model.weight(layer.name).numpy(), outputs_first.reshape(24, 16))


@pytest.mark.parametrize("turned", ({}, {"transB": 1}, {"transA": 1}, {"transA": 1, "transB": 1}), ids=str)
@pytest.mark.parametrize("place", (0, 1))
@pytest.mark.parametrize("batch", ((), (3,)))
def test_turned_factors_of_the_runtimes_own_product(
    batch: tuple[int, ...], place: int, turned: dict[str, Any], tmp_path: Path
) -> None:
    from onnx import helper

    own, other = ("transB", "transA") if place else ("transA", "transB")
    inputs_first = (place == 1) != bool(turned.get(own))
    weight = numbers(*batch, *((16, 8) if inputs_first else (8, 16)))
    summed_last = (place == 1) != bool(turned.get(other))
    nodes = [
        helper.make_node("FusedMatMul", ["x", "w"] if place else ["w", "x"], ["y"], domain="com.microsoft", **turned)
    ]
    takes = {"x": (1, ["n", *(1 for _ in batch), *((5, 16) if summed_last else (16, 5))])}
    path = save(tmp_path / "m.onnx", nodes, takes, ["y"], {"w": weight}, domains={"com.microsoft": 1})
    (layer,) = open_model(path).summary.stored
    assert layer.matrix == (8 * (batch or (1,))[0], 16)
    model = open_model(path)
    values, weights = {"x": numbers(2, *takes["x"][1][1:], seed=1)}, torch.from_numpy(weight)
    if turned.get(own):
        weights = weights.transpose(-1, -2)
    x = torch.from_numpy(values["x"]).transpose(-1, -2) if turned.get(other) else torch.from_numpy(values["x"])
    expected = x @ weights if place else weights @ x
    assert output_of(model, values) == pytest.approx(expected.numpy(), rel=1e-4, abs=1e-5)
