"""An exported graph layer by layer: equal to the rounding of sums, and a wrong layer is told from drifting codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

for package in ("onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(package)

from tests.deployment.onnx.test_plans import MODELS, with_ranges  # noqa: E402
from tests.models.networks import model_of  # noqa: E402
from workbench.deployment.exporters import exporter  # noqa: E402
from workbench.deployment.onnx.capture import _CAPTURED, capture  # noqa: E402
from workbench.deployment.proof import onnx_proof  # noqa: E402
from workbench.deployment.proof.child import memory_for  # noqa: E402
from workbench.deployment.proof.losses import cosine_distance  # noqa: E402
from workbench.deployment.proof.onnx_layers import ByLayers, by_layers  # noqa: E402
from workbench.models.model import Batch, Model  # noqa: E402
from workbench.models.sources import open_model  # noqa: E402
from workbench.models.summary import OutputKind  # noqa: E402
from workbench.planning.plan import Plan  # noqa: E402
from workbench.progress import silent  # noqa: E402


def looked_at(model: Model, bound: Model, batch: Batch, folder: Path) -> ByLayers | None:
    """Look at ``m.onnx`` in the process that runs ONNX Runtime."""

    def run(file: Path, arrays: Mapping[str, np.ndarray], names: Sequence[str]) -> dict[str, np.ndarray]:
        asked = {"output": "", "positions": [], "taps": list(names), "pieces": 0, "memory": memory_for(file)}
        out = onnx_proof._carry_out(file, arrays, folder, "onnxruntime", asked, 1, 60.0, silent)
        with np.load(f"{out}.npz") as stored:
            return {name: stored[str(at)] for at, name in enumerate(names)}

    arrays = {name: tensor.numpy() for name, tensor in batch.items()}
    return by_layers(folder / "m.onnx", bound, batch, arrays, run, folder)


def exported(which: str, inputs: str, out: Path) -> tuple[Model, Model, Batch]:
    """Write ``m.onnx``; return the model, the quantized model and a batch."""
    model, batch = MODELS[which]
    _CAPTURED.setdefault(model.body.network, {})[tuple(x.name for x in model.summary.tied)] = capture(model, batch)
    names = [layer.name for layer in model.summary.layers if layer.kind != "embedding"]
    plan = Plan().assign(names, weights="int8-channel", inputs=inputs, algorithm="rtn")
    quantized = with_ranges(model, batch, plan)
    exporter("onnx").export(quantized, model, out / "m.onnx", silent)
    return model, quantized.bind(model), batch


@pytest.mark.parametrize("inputs", ["int8-tensor", "int8-tensor-asym", "int8-token", "int8-token-asym"])
@pytest.mark.parametrize("which", sorted(MODELS))
def test_every_layer_that_is_fed_the_same_gives_the_same(which: str, inputs: str, tmp_path: Path) -> None:
    model, bound, batch = exported(which, inputs, tmp_path)
    found = looked_at(model, bound, batch, tmp_path)
    assert found is not None and 0 <= found.apart < 1e-5
    assert found.most < 0.02 and (found.first == "") == (found.most == 0)
    assert "fed the same inputs, no layer differs by more than" in found.in_words


def test_a_layer_that_computes_something_else_is_told_by_the_one_behind_it(tmp_path: Path) -> None:
    model, bound, batch = exported("pictures", "int8-tensor-asym", tmp_path)
    wrong = bound.with_weights({"grouped": bound.weight("grouped") * 1.2})
    found = looked_at(model, wrong, batch, tmp_path)
    assert found is not None and found.at == "wider" and found.apart > 0.02
    assert found.most > 0.1 and f"codes differ from {found.first} on" in found.in_words


class Padded(torch.nn.Module):
    """A network that pads on its own, which the captured graph leaves to the convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Conv2d(3, 8, 3, stride=2), torch.nn.Conv2d(8, 4, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        padded = torch.nn.functional.pad(images, (0, 1, 0, 1))
        logits: torch.Tensor = self.last(self.first(padded).relu()).mean((2, 3))
        return logits


def test_an_input_that_the_graph_pads_later_is_left_out(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, batch = model_of(Padded(), OutputKind.CLASS_LOGITS), {"inputs": torch.randn(1, 3, 8, 8)}
    _CAPTURED.setdefault(model.body.network, {})[()] = capture(model, batch)
    plan = Plan().assign(["first", "last"], weights="int8-channel", inputs="int8-tensor", algorithm="rtn")
    quantized = with_ranges(model, batch, plan)
    exporter("onnx").export(quantized, model, tmp_path / "m.onnx", silent)
    found = looked_at(model, quantized.bind(model), batch, tmp_path)
    assert found is not None and found.at == "last" and found.apart < 1e-5


def test_a_plan_without_rounded_inputs_has_nothing_to_look_at(tmp_path: Path) -> None:
    model, batch = MODELS["pictures"]
    assert looked_at(model, model, batch, tmp_path) is None


def test_embeddings_of_nothing_are_equal_and_lie_away_from_all_others() -> None:
    zeros, some = np.zeros((2, 3)), np.array([[0.0, 0, 0], [1, 2, 3]])
    assert cosine_distance(zeros, zeros) == 0 and cosine_distance(some, some) == pytest.approx(0, abs=1e-12)
    assert cosine_distance(zeros, some) == pytest.approx(0.5)
    assert cosine_distance(some, torch.tensor(-some).numpy()) == pytest.approx(1.0)


def test_models_that_take_a_fixed_number_of_samples_run_in_pieces(tmp_path: Path) -> None:
    from onnx import TensorProto, helper, numpy_helper, save

    weight = numpy_helper.from_array(np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])], [weight],
    )  # fmt: skip
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), tmp_path / "two.onnx")
    model = open_model(tmp_path / "two.onnx")
    batch = {"x": torch.randn(5, 8, generator=torch.Generator().manual_seed(0))}
    name = model.summary.stored[0].name
    plan = Plan().assign([name], weights="int8-channel", inputs="int8-tensor-asym", algorithm="rtn")
    quantized = with_ranges(model, batch, plan)
    proof = onnx_proof.prove_in_onnx(quantized, model, None, batch, [], data="rows", threads=1)
    assert proof.positions == 5 and abs(proof.difference) < 1e-9 and proof.plan_loss > 1e-7
    assert proof.layers and proof.apart_by_layer < 1e-6
