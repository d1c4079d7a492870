"""The rules of the target transformers, tried in it: what they accept runs as evaluated, what they refuse does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import workbench
from tests.deployment.exporters.llamas import folder_of
from workbench.deployment.exporters import exporter
from workbench.deployment.exporters.compressed_tensors import CompressedTensors
from workbench.deployment.targets import target
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.numerics.ranges import Range
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.quantization.quantized_model import QuantizedModel
from workbench.steps.files.export import applied

transformers = pytest.importorskip("transformers")
pytest.importorskip("compressed_tensors", reason="compressed-tensors is not installed")

DOWN = "model.layers.0.mlp.down_proj"
UP, TABLE = "model.layers.1.mlp.up_proj", "model.embed_tokens"
IDS = torch.arange(40).reshape(2, 20)
ACCEPTED = (
    ("int4-g32", None), ("int2-g16", None), ("int4-tensor-asym", None), ("int4-channel", "int8-token-asym"),
    ("int8-channel", "int8-tensor"), ("int8-channel-asym", "int8-tensor-asym"), ("int8-g32", "nvfp4"),
    ("fp8-e4m3-b32x32", "fp8-e4m3-token"), ("fp8-e4m3-channel", "fp8-e4m3-tensor"),
)  # fmt: skip
REFUSED = (
    ("int4-g32-asym", None), ("int8-channel-asym", None), ("int8-channel", "int8-token"), ("int8-channel", "int8-g32"),
    ("nvfp4", None), ("mxfp4", "mxfp4"),
)  # fmt: skip
UNPACKED = ("int4-g32-asym", "int8-channel-asym", "mxfp4", "mxfp8-e4m3")
"""Weights that transformers takes where all have this scheme: it unpacks them as it loads them."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return open_model(folder_of("llama", tmp_path_factory.mktemp("llama"), intermediate_size=128))


def quantized(model: Model, weights: str, inputs: str | None, name: str = UP, beside: str = "keep") -> QuantizedModel:
    plan = Plan().assign([name], weights=weights, algorithm="rtn").assign([DOWN], weights=beside, algorithm="rtn")
    made = quantize(model, plan)
    calibrated = Range(low=-2.0, high=2.5, method="min-max", clipped=0.0)
    return replace(made, plan=plan.assign([name], inputs=inputs), ranges={(name, "input"): calibrated})


def difference(made: QuantizedModel, model: Model, folder: Path) -> float:
    """Return how far transformers' logits are from the evaluated ones, relative; infinite where it does not run."""
    exporter("compressed-tensors").export(made, model, folder, silent)
    with torch.no_grad():
        evaluated = made.bind(model).run({"input_ids": IDS, "attention_mask": torch.ones_like(IDS)})
        try:
            network = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
            there = network(input_ids=IDS).logits
        except (RuntimeError, AttributeError):
            return float("inf")
    return float((there - evaluated).norm() / evaluated.norm())


@pytest.mark.parametrize("weights, inputs", ACCEPTED)
def test_what_the_target_accepts_runs_as_it_was_evaluated(
    model: Model, tmp_path: Path, weights: str, inputs: str | None
) -> None:
    made = quantized(model, weights, inputs)
    assert target("transformers").legal(model.summary.by_name[UP], weights, inputs) is None
    assert difference(made, model, tmp_path / "out") < 1e-5
    assert CompressedTensors().remarks(made, model, tmp_path / "out") == []


@pytest.mark.parametrize("weights, inputs", REFUSED)
def test_what_the_target_refuses_does_not_and_the_export_says_so(
    model: Model, tmp_path: Path, weights: str, inputs: str | None
) -> None:
    made = quantized(model, weights, inputs, beside="int8-b32x32")
    assert target("transformers").legal(model.summary.by_name[UP], weights, inputs)
    assert difference(made, model, tmp_path / "out") > 1e-4
    (remark,) = CompressedTensors().remarks(made, model, tmp_path / "out")
    assert UP in remark and "--repair of workbench check --target transformers" in remark


@pytest.mark.parametrize("weights", UNPACKED)
@pytest.mark.parametrize("name", [UP, TABLE])
def test_a_single_scheme_runs_there_unpacked(model: Model, tmp_path: Path, weights: str, name: str) -> None:
    """Where the scales have 16 bits, it rounds products of them and codes to 16 bits."""
    made = quantized(model, weights, None, name)
    assert difference(made, model, tmp_path / "out") < (1e-3 if weights == "int4-g32-asym" else 1e-5)
    assert CompressedTensors().remarks(made, model, tmp_path / "out") == []


@pytest.mark.parametrize("weights, runs", [
    ("fp8-e4m3-channel", True), ("fp8-e4m3-tensor", True), ("int8-b32x32", True), ("int8-channel", False),
    ("int4-g32", False), ("int8-tensor-asym", False),
])  # fmt: skip
def test_tables_run_there_only_where_they_are_not_packed(
    model: Model, tmp_path: Path, weights: str, runs: bool
) -> None:
    """transformers 5 initializes every table once more, and packed ones have no weight."""
    made = quantized(model, weights, None, TABLE, beside="int2-g16")
    assert (target("transformers").legal(model.summary.by_name[TABLE], weights) is None) == runs
    assert (difference(made, model, tmp_path / "out") < 1e-5) == runs
    assert bool(CompressedTensors().remarks(made, model, tmp_path / "out")) != runs


@pytest.mark.parametrize("transforms", [(), ("rotation",)])
def test_nvfp4_inputs_run_there_with_the_calibrated_scale_for_the_tensor(
    model: Model, tmp_path: Path, transforms: tuple[str, ...]
) -> None:
    """Its inverse is 448 x 6 over the largest input that calibration saw, as ModelOpt and llm-compressor choose it."""
    np.save(tmp_path / "tokens.npy", np.random.default_rng(0).integers(0, 1024, (12, 20)))
    session = workbench.calibrate(model, tmp_path / "tokens.npy", batch_size=4)
    plan = Plan(transforms=transforms).assign([UP], weights="int8-g32", inputs="nvfp4", algorithm="rtn")
    made = workbench.quantize(model, plan, session=session)
    assert difference(made, model, tmp_path / "out") < 1e-5
    seen = []
    made.rewritten(model).run(
        {"input_ids": torch.from_numpy(np.load(tmp_path / "tokens.npy"))}, layers=(UP,),
        tap=lambda name, rows, _: seen.append(rows.detach().abs().max()),
    )  # fmt: skip
    (stored,) = load_file(tmp_path / "out" / "model.safetensors")[f"{UP}.input_global_scale"]
    assert float(stored) == pytest.approx(448 * 6 / float(torch.stack(seen).max()), rel=1e-5)


def test_an_export_notes_what_transformers_does_not_load(model: Model, tmp_path: Path) -> None:
    plan = Plan().assign([UP], weights="int4-g32-asym", algorithm="rtn").assign([DOWN], weights="int8-b32x32")
    made, _ = applied(
        model, plan, "compressed-tensors", tmp_path / "out", session=None, settings=(), progress=silent
    )  # fmt: skip
    (note,) = (each for each in made.notes if "transformers" in each)
    assert note.startswith("1 of the layers do not run in transformers as they were evaluated") and UP in note
