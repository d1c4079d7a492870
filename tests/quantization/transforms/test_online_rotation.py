"""Inputs that are rotated while the model runs: the same outputs, evenly spread inputs, and what can run the file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.linalg import hadamard

import workbench
from tests.deployment.exporters.llamas import folder_of
from tests.measurement.moments import whole_curvature
from tests.quantization.transforms.networks import Gated, language_model, sentences
from workbench.deployment.exporters import exporter
from workbench.errors import ExportError, TransformError
from workbench.models.data.batches import Data
from workbench.models.execution.network import NetworkModel
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.numerics.equivalences.rotation import BlockRotation, online_block
from workbench.numerics.formats import parse_scheme
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.quantization.quantized_model import QuantizedModel
from workbench.quantization.transforms.apply import transform
from workbench.session.session import Session
from workbench.steps.files.export import applied

NAME = "online-rotation"
BEHIND = ("body.0.g", "body.1.g")
DOWN = tuple(f"model.layers.{number}.mlp.down_proj" for number in range(2))
IDS = torch.arange(40).reshape(2, 20)


@pytest.fixture(scope="module")
def gated() -> NetworkModel:
    """A network whose second layers of perceptrons have outliers in two of their 96 inputs."""
    model = language_model(Gated, inner=96)
    weights = {}
    for block in range(2):
        up, down = (model.weight(f"body.{block}.{name}").clone() for name in "fg")
        up[[3, 71]] *= 8.0
        down[:, [3, 71]] /= 4.0
        weights |= {f"body.{block}.f": up, f"body.{block}.g": down}
    return model.with_weights(weights)


def four_bits(model: Model, *transforms: str, **changes: Any) -> Plan:
    names = [layer.name for layer in model.summary.layers if layer.kind == "linear" and layer.tied_to is None]
    return replace(
        Plan().assign(names, **{"weights": "int4-channel", "algorithm": "rtn"} | changes), transforms=transforms
    )


def inputs_of(model: Model, layer: str, data: Data) -> torch.Tensor:
    seen: list[torch.Tensor] = []
    with torch.no_grad():
        model.run(next(data.batches(8)), layers=(layer,), tap=lambda name, rows, _: seen.append(rows))
    return torch.cat([rows.reshape(-1, rows.shape[-1]) for rows in seen])


@pytest.mark.parametrize("width", [12, 16, 172, 1536])
def test_blocks_are_those_of_sylvester_and_their_own_inverse(width: int) -> None:
    block = online_block(width)
    assert width % block == 0 and block & (block - 1) == 0 and width // block % 2
    rotate, x = BlockRotation(block), torch.randn(3, 5, width, generator=torch.Generator().manual_seed(0))
    whole = np.kron(np.eye(width // block), hadamard(block)) / np.sqrt(block)
    np.testing.assert_allclose(rotate(x).numpy(), x.double().numpy() @ whole, atol=1e-5)
    torch.testing.assert_close(rotate(rotate(x)), x, rtol=1e-5, atol=1e-5)


def test_what_is_rotated_lies_behind_activations_and_outputs_stay(gated: NetworkModel) -> None:
    data = sentences()
    result = transform(gated, four_bits(gated, NAME), data=data)
    assert dict(result.changes.rotated) == dict.fromkeys(BEHIND, 32) and 0 < result.deviation < 1e-5
    whole = torch.from_numpy(np.kron(np.eye(3), hadamard(32)) / np.sqrt(32)).float()
    for name in BEHIND:
        rows = inputs_of(result.model, name, data)
        torch.testing.assert_close(rows, inputs_of(gated, name, data) @ whole, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(result.model.weight(name), gated.weight(name) @ whole, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("others", [(), ("awq",), ("rotation-0",)])
def test_it_comes_last_and_the_curvature_is_that_of_the_rotated_model(
    gated: NetworkModel, others: tuple[str, ...]
) -> None:
    data, plan = sentences(), four_bits(gated, NAME, *others, inputs="int4-token")
    known = whole_curvature(gated, data, weighed=False)
    result = transform(gated, plan, curvature=known, data=data)
    assert set(result.changes.rotated) == set(BEHIND) and result.deviation < 1e-4
    again = whole_curvature(result.model, data, weighed=False)
    for name in result.changes.rotated:
        mine, true = result.curvature[name], again[name]
        assert mine.full is not None and true.full is not None
        np.testing.assert_allclose(mine.full, true.full, rtol=1e-3, atol=1e-4 * np.abs(true.full).max())


@pytest.mark.parametrize("inputs", ["int4-token", "int4-tensor"])
def test_inputs_in_four_bits_lose_less_where_features_are_outliers(gated: NetworkModel, inputs: str) -> None:
    """The quantizer sees rotated inputs, with ranges of their own: an input costs its rounding after the rotation."""
    data = sentences()
    plan = Plan(transforms=(NAME,)).assign(BEHIND, inputs=inputs, range_method="min-max")
    ranges = dict.fromkeys((name, "input") for name in BEHIND)
    result = transform(gated, plan, data=data, ranges=ranges)  # type: ignore[arg-type]
    for name in BEHIND:
        rows, rotated = inputs_of(gated, name, data), inputs_of(result.model, name, data)
        if inputs == "int4-tensor":
            known = result.ranges[name, "input"]
            assert max(-known.low, known.high) == pytest.approx(float(rotated.abs().max()), rel=1e-5)
        token, pairs = parse_scheme("int4-token"), ((rotated, result.model), (rows, gated))
        errors = [((token.quantize(each) - each) @ model.weight(name).T).square().sum() for each, model in pairs]
        assert errors[0] < 0.6 * errors[1], name
    quantized = quantize(gated, plan, data=data)
    evaluated = inputs_of(quantized.bind(gated), BEHIND[0], data)
    rotated = inputs_of(result.model, BEHIND[0], data)
    known = quantized.ranges.get((BEHIND[0], "input"))
    scheme = parse_scheme(inputs)
    rounded = scheme.quantize(rotated) if known is None else scheme.round(
        rotated, scheme.fit_range(known.low, known.high)
    )  # fmt: skip
    torch.testing.assert_close(evaluated, rounded)


def test_what_loses_by_it_stays_and_what_has_nothing_is_told(gated: NetworkModel) -> None:
    data = sentences()
    whole = {}
    for seed, name in enumerate(BEHIND):
        exact = torch.randint(-7, 8, gated.weight(name).shape, generator=torch.Generator().manual_seed(seed)).float()
        exact[:, 0] = 7.0  # whole numbers take four bits, and their rotation more
        whole[name] = exact
    model = gated.with_weights(whole)
    plan = Plan(transforms=(NAME,)).assign(BEHIND, weights="int4-channel", algorithm="rtn")
    result = transform(model, plan, curvature=whole_curvature(model, data), data=data)
    assert dict(result.changes.rotated) == {} and result.report == ()
    assert any("left body.0.g, body.1.g as they are" in note for note in result.notes)
    assert all(torch.equal(result.model.weight(name), whole[name]) for name in BEHIND)
    plan = Plan(transforms=(NAME,)).assign(["body.0.a"], weights="int4-channel")
    with pytest.raises(
        TransformError, match=r"no linear layer of an even number of inputs behind an act.*; take it out"
    ):
        transform(gated, plan, data=data)
    odd = language_model(Gated, inner=21)
    with pytest.raises(TransformError, match="finds nothing to rotate in Gated"):
        transform(odd, four_bits(odd, NAME), data=data)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return open_model(folder_of("llama", tmp_path_factory.mktemp("llama")))


@pytest.fixture(scope="module")
def session(llama: Model, tmp_path_factory: pytest.TempPathFactory) -> Session:
    file = tmp_path_factory.mktemp("data") / "tokens.npy"
    np.save(file, np.random.default_rng(0).integers(0, 1024, (8, 20)))
    return workbench.calibrate(llama, file, batch_size=4)


def rotated(llama: Model, **changes: Any) -> QuantizedModel:
    plan = replace(Plan().assign(DOWN, algorithm="rtn", **changes), transforms=(NAME,))
    made = quantize(llama, plan)  # without curvature, so that all of them are rotated
    assert dict(made.changes.rotated) == dict.fromkeys(DOWN, 32)
    return made


@pytest.mark.parametrize(
    "weights, inputs", [("int4-g32", None), ("int4-channel", "int4-token-asym"), ("int8-g32", "mxfp4")]
)
def test_the_file_runs_with_the_rotations_of_compressed_tensors_as_evaluated(
    llama: Model, tmp_path: Path, weights: str, inputs: str | None
) -> None:
    transformers = pytest.importorskip("transformers")
    transforms = pytest.importorskip("compressed_tensors.transform")
    made = rotated(llama, weights=weights, inputs=inputs)
    exporter("compressed-tensors").export(made, llama, tmp_path / "out", silent)
    config = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))["quantization_config"]
    (group,) = config["transform_config"]["config_groups"].values()
    assert (group["type"], group["head_dim"], group["randomize"]) == ("hadamard", 32, False)
    assert [(each["location"], each["targets"]) for each in group["apply"]] == [("input", list(DOWN))]
    with torch.no_grad():
        evaluated = made.bind(llama).run({"input_ids": IDS, "attention_mask": torch.ones_like(IDS)})
        network = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype=torch.float32)
        plain = network(input_ids=IDS).logits
        transforms.apply_transform_config(
            network, transforms.TransformConfig.model_validate(config["transform_config"])
        )  # fmt: skip
        there = network(input_ids=IDS).logits
    assert float((there - evaluated).norm() / evaluated.norm()) < 1e-5
    assert float((plain - evaluated).norm() / evaluated.norm()) > 0.1
    opened = open_model(tmp_path / "out")
    again = quantize(opened, workbench.start(opened).plan).bind(opened)
    there = again.run({"input_ids": IDS, "attention_mask": torch.ones_like(IDS)}).detach()
    assert float((there - evaluated).norm() / evaluated.norm()) < 1e-5


SCHEMES = {
    "huggingface": "int8-channel", "safetensors": "int8-channel", "state-dict": "int8-channel", "onnx": "int8-channel",
    "gptq": "int4-g32-sfp16", "mlx": "int4-g32-asym-zfp16", "torchao": "int8-channel", "gguf": "q8_0",
}  # fmt: skip


@pytest.mark.parametrize("kind", SCHEMES)
def test_forms_that_cannot_say_it_refuse_it_by_layer(llama: Model, tmp_path: Path, kind: str) -> None:
    pytest.importorskip({"gguf": "gguf", "onnx": "onnxscript", "torchao": "torchao"}.get(kind, "torch"))
    plan = replace(Plan().assign(DOWN, weights=SCHEMES[kind], algorithm="rtn"), transforms=(NAME,))
    with pytest.raises(ExportError, match=rf"rotates the inputs of {DOWN[0]}, {DOWN[1]} while the model runs.*take"):
        applied(llama, plan, kind, tmp_path / "out", session=None, settings=(), progress=silent)
    with pytest.raises(ExportError, match=f"rotates the inputs of {DOWN[0]}"):
        exporter(kind).export(rotated(llama, weights=SCHEMES[kind]), llama, tmp_path / "out", silent)
    assert not (tmp_path / "out").exists()


def test_the_export_says_what_runs_it(llama: Model, tmp_path: Path) -> None:
    pytest.importorskip("compressed_tensors")
    plan = replace(Plan().assign(DOWN, weights="int4-g32", algorithm="rtn"), transforms=(NAME,))
    made, _ = applied(
        llama, plan, "compressed-tensors", tmp_path / "out", session=None, settings=(), progress=silent
    )  # fmt: skip
    (note,) = (each for each in made.notes if "vLLM" in each)
    assert DOWN[0] in note and "apply_transform_config" in note


def test_sessions_and_scripts_keep_it(llama: Model, session: Session, tmp_path: Path) -> None:
    plan = replace(Plan().assign(DOWN, weights="int4-g32", inputs="int8-token"), transforms=(NAME,))
    planned = replace(session, plan=plan)
    planned.save(tmp_path / "s.qwb")
    again = Session.load(tmp_path / "s.qwb")
    assert again.plan == plan
    losses = [workbench.evaluate(each, model=llama, samples=4).metrics["kl"].value for each in (planned, again)]
    assert losses[0] == losses[1] > 0
    paths = workbench.export(again, "script", tmp_path / "replay.py")
    assert NAME in paths[0].read_text(encoding="utf-8")
