"""A model with NaN in one layer: the layer is named, and everything that can goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

import workbench as wb
from workbench.session.session import Session

BROKEN = "model.layers.1.mlp.up_proj"


@pytest.fixture
def session(llama: Path, tokens: Path, tmp_path: Path) -> Session:
    folder = tmp_path / "broken"
    shutil.copytree(llama, folder)
    weights = load_file(folder / "model.safetensors")
    weights[f"{BROKEN}.weight"][0, 0] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return wb.calibrate(wb.open(folder), tokens, batch_size=4)


def test_the_layer_is_named_and_the_weights_are_seen(session: Session) -> None:
    assert any(BROKEN in note for note in session.notes)
    assert session.calibration is None
    assert session.statistics[BROKEN, "weight"].non_finite == 1
    assert {layer.name for layer in session.model.layers} == {layer for layer, _ in session.statistics}


def test_the_rest_is_scored_planned_and_exported(session: Session, tmp_path: Path) -> None:
    scored = wb.score(session, "weight_error", schemes=("int4-g32-asym",))
    table = scored.sensitivities["weight_error"]
    assert np.isnan(table.of(BROKEN, "int4-g32-asym"))
    others = [name for name in table.layers if name != BROKEN]
    assert np.isfinite([table.of(name, "int4-g32-asym") for name in others]).all()
    plan = wb.search(scored, bits_per_weight=12.0)
    assert plan.of(BROKEN).weights == "keep"
    written = wb.export(scored, "safetensors", tmp_path / "out.safetensors", plan=plan)
    assert written[0].exists()


@pytest.mark.parametrize("fill, broken", [(-np.inf, 0), (np.nan, 1)])
def test_the_number_that_a_mask_is_filled_with_is_no_broken_weight(tmp_path: Path, fill: float, broken: int) -> None:
    onnx = pytest.importorskip("onnx")
    make, arrays = onnx.helper, onnx.numpy_helper
    numbers = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    held = [
        arrays.from_array(np.array([fill], np.float32), "fill"), arrays.from_array(numbers, "weight"),
        arrays.from_array(np.array([False, True, False, False]), "mask"),
    ]  # fmt: skip
    nodes = [make.make_node("MatMul", ["x", "weight"], ["y"]), make.make_node("Where", ["mask", "fill", "y"], ["z"])]
    sizes = [[make.make_tensor_value_info(name, 1, ["n", width])] for name, width in (("x", 6), ("z", 4))]
    graph = make.make_graph(nodes, "masked", *sizes, held)
    onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=10), tmp_path / "m.onnx")
    assert len([note for note in wb.start(wb.open(tmp_path / "m.onnx")).notes if "of fill hold NaN" in note]) == broken
