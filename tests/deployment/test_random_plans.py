"""Random plans, repaired for a target: each is exported, and takes the bytes that its form is said to take."""

from __future__ import annotations

import json
import random
from pathlib import Path

import gguf
import pytest

from tests.deployment.exporters.llamas import folder_of
from tests.zoo.architectures import save
from workbench.deployment.checkpoints.sizes import more_bytes
from workbench.deployment.exporters import exporter
from workbench.deployment.networks import unknown_network
from workbench.deployment.targets import FLOATING
from workbench.insight.legality import refusals, repair
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.models.summary import searchable
from workbench.numerics.formats import activation_schemes, all_schemes
from workbench.numerics.ranges.calibrated import Range
from workbench.planning.plan import Plan, resolve
from workbench.planning.totals import plan_totals
from workbench.progress import silent
from workbench.quantization.quantize import quantize

FORMS = (("gguf", "gguf"), ("vllm", "compressed-tensors"), ("transformers", "compressed-tensors"),
         ("gptq", "gptq"), ("torchao", "torchao"), ("mlx", "mlx"), ("", "safetensors"))  # fmt: skip
SCHEMES = [scheme.name for scheme in all_schemes() if scheme.is_quick]
INPUTS = (*(scheme.name for scheme in activation_schemes()), *[None] * 12)
ONE_LAYER = {"tie_word_embeddings": True, "num_hidden_layers": 1}
ODD = {"hidden_size": 72, "intermediate_size": 100, "head_dim": 18, "attention_bias": True, "mlp_bias": True}


def opened(name: str, place: Path) -> Model:
    if name == "GptOssForCausalLM":
        save(place, name)
        return open_model(place)
    return open_model(
        folder_of(name.split()[0], place, **(ONE_LAYER if "tied" in name else ODD if "odd" in name else {}))
    )


def tensor_bytes(out: Path) -> int:
    if out.suffix == ".gguf":
        return sum(tensor.n_bytes for tensor in gguf.GGUFReader(out).tensors)
    (file,) = out.glob("*.safetensors") if out.is_dir() else (out,)
    with file.open("rb") as stream:
        header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
    return sum(
        each["data_offsets"][1] - each["data_offsets"][0] for name, each in header.items() if name != "__metadata__"
    )


@pytest.mark.parametrize("name", ["llama tied", "llama odd", "qwen3moe", "gemma3", "GptOssForCausalLM"])
def test_a_repaired_plan_is_exported_and_takes_the_bytes_that_are_told(name: str, tmp_path: Path) -> None:
    """Tied tables, mixtures of several schemes and gpt-oss's experts passed for transformers, and were then refused."""
    pytest.importorskip("torchao")
    model, chance = opened(name, tmp_path / "model"), random.Random(name)
    layers, plan = model.summary.layers, Plan()
    for layer in searchable(layers):
        plan = plan.assign([layer.name], weights=chance.choice(SCHEMES), inputs=chance.choice(INPUTS), algorithm="rtn")
    ranges = {(layer.name, "input"): Range(low=-1.0, high=2.0, method="min-max", clipped=0.0) for layer in layers}
    for target, kind in FORMS:
        if target and unknown_network(target, model.summary):
            continue
        repaired = repair(plan, layers, target)
        assert not repaired.left
        out = tmp_path / f"{target or kind}{'.gguf' if kind == 'gguf' else '.safetensors' if not target else ''}"
        assignments = resolve(repaired.plan, layers)
        if {each.weights for each in assignments.values()} <= {*FLOATING}:  # nothing to pack
            continue
        exporter(kind).export(quantize(model, repaired.plan, ranges=ranges), model, out, silent)
        told = plan_totals(model.summary, repaired.plan).nbytes + more_bytes(kind, layers, assignments)
        assert tensor_bytes(out) == told, (target, kind)


@pytest.mark.parametrize("target", ["vllm", "transformers", "torchao", "onnxruntime"])
def test_a_plan_of_weights_alone_gets_no_calibrated_inputs(target: str, tmp_path: Path) -> None:
    """Widths that Marlin does not run were given static inputs, for which a plan holds no ranges."""
    layers = opened("llama odd", tmp_path).summary.layers
    plan = Plan()
    for number, layer in enumerate(layer for layer in searchable(layers) if layer.kind == "linear"):
        plan = plan.assign([layer.name], weights=SCHEMES[number % len(SCHEMES)])
    repaired = repair(plan, layers, target).plan
    assert not refusals(repaired, layers, target)
    assert not any("tensor" in (each.inputs or "") for each in resolve(repaired, layers).values())
