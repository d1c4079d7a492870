"""Checkpoints whose tensors transformers renames (pictures and text, vision): exported under their own names, opened
again, and loaded by transformers with our answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from workbench.deployment.exporters import exporter
from workbench.errors import NotAModelError
from workbench.models.model import Model
from workbench.models.readers.mapped import MappedFile
from workbench.models.readers.safetensors_header import read_header
from workbench.models.sources import open_model
from workbench.planning.plan import Plan, resolve
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.steps.files.first_session import as_stored

transformers = pytest.importorskip("transformers")

SCHEMES = {
    "compressed-tensors": ("int4-g32", "int8-channel", "nvfp4"),
    "gptq": ("int4-g32",),
    "mlx": ("int4-g32", "mxfp4"),
    "torchao": ("int4-g32", "int8-channel", "fp8-e4m3-channel"),
}
NEEDS = {"torchao": "torchao", "compressed-tensors": "compressed_tensors"}
LOAD = """
import sys, numpy as np, torch, transformers
network = getattr(transformers, sys.argv[2]).from_pretrained(sys.argv[1], dtype=torch.float32)
with torch.no_grad():
    np.save(sys.argv[3], network(torch.arange(12)[None]).logits.numpy())
"""


@pytest.fixture(scope="module")
def llava(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A Llava of a few thousand weights, in the names that its checkpoints have had from the beginning."""
    place, text = tmp_path_factory.mktemp("llava"), transformers.LlamaConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=128, pad_token_id=0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    vision = transformers.CLIPVisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=28, patch_size=14
    )
    torch.manual_seed(0)
    config = transformers.LlavaConfig(text_config=text, vision_config=vision, image_token_index=5)
    transformers.LlavaForConditionalGeneration(config).save_pretrained(place)
    return open_model(place)


def names_in(folder: Path) -> set[str]:
    return set(read_header(MappedFile(folder / "model.safetensors")).tensors)


def planned(model: Model, kind: str) -> Plan:
    plan = Plan()
    for number, layer in enumerate(layer for layer in model.summary.stored if layer.kind == "linear"):
        plan = plan.assign([layer.name], weights=SCHEMES[kind][number % len(SCHEMES[kind])], algorithm="rtn")
    return plan


@pytest.mark.parametrize("kind", SCHEMES)
def test_exports_have_the_checkpoints_names_and_open_again(kind: str, llava: Model, tmp_path: Path) -> None:
    if kind in NEEDS:
        pytest.importorskip(NEEDS[kind])
    plan, source = planned(llava, kind), Path(llava.summary.source.path)
    quantized = quantize(llava, plan)
    exporter(kind).export(quantized, llava, tmp_path / "out", silent)
    owners = {name.rpartition(".")[0] for name in names_in(source)}
    assert any(owner.startswith("language_model.model.layers.") for owner in owners)
    assert {name.rpartition(".")[0] for name in names_in(tmp_path / "out")} == owners
    again = open_model(tmp_path / "out")
    read = as_stored(again, Plan())
    assert again.summary.cannot_run is None
    expected, actual = resolve(plan, llava.summary.layers), resolve(read, again.summary.layers)
    assert {name: each.weights for name, each in actual.items()} == {
        name: each.weights for name, each in expected.items()
    }
    for name, stored in quantize(again, read).tensors.items():
        for part, values in stored.arrays.items():
            assert values.tobytes() == quantized.tensors[name].arrays[part].tobytes(), (name, part)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["compressed-tensors", "torchao"])
def test_transformers_gives_our_answers(kind: str, llava: Model, tmp_path: Path) -> None:
    pytest.importorskip(NEEDS[kind])
    names = [layer.name for layer in llava.summary.stored if layer.kind == "linear"]
    quantized, out = quantize(llava, Plan().assign(names, weights="int4-g32", algorithm="rtn")), tmp_path / "out"
    exporter(kind).export(quantized, llava, out, silent)
    arguments = [str(out), "LlavaForConditionalGeneration", str(tmp_path / "logits.npy")]
    subprocess.run([sys.executable, "-c", LOAD, *arguments], check=True, capture_output=True)
    ids = torch.arange(12)[None]
    ours = quantized.bind(llava).run({"input_ids": ids, "attention_mask": torch.ones_like(ids)}).detach().numpy()
    assert np.linalg.norm(np.load(tmp_path / "logits.npy") - ours) < 1e-3 * np.linalg.norm(ours)


def test_a_configuration_of_endless_layers_is_refused_before_it_is_built(llava: Model, tmp_path: Path) -> None:
    exporter("mlx").export(quantize(llava, planned(llava, "mlx")), llava, tmp_path / "out", silent)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    config["text_config"]["num_hidden_layers"] = 10**12
    (tmp_path / "out" / "config.json").write_text(json.dumps(config))
    with pytest.raises(NotAModelError, match="num_hidden_layers is 1,000,000,000,000"):
        open_model(tmp_path / "out")
