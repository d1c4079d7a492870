"""What transformers loads of packed folders and what it does not: said at the export, and true of the library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.zoo.architectures import save
from workbench.deployment.checkpoints import loading
from workbench.deployment.checkpoints.loading import loads_in_transformers
from workbench.deployment.exporters import exporter
from workbench.errors import NotAModelError
from workbench.models.model import Batch, Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.quantization.quantized_model import QuantizedModel

transformers = pytest.importorskip("transformers")
pytest.importorskip("compressed_tensors", reason="compressed-tensors is not installed")
pytest.importorskip("torchao", reason="torchao is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")

T5, BART, MAMBA = "T5ForConditionalGeneration", "BartForConditionalGeneration", "MambaForCausalLM"
ONE, MIXED = ("int4-channel",), ("int4-channel", "int8-channel")


def exported(
    name: str, form: str, schemes: tuple[str, ...], place: Path, within: str = ""
) -> tuple[Model, QuantizedModel, Path]:
    save(place / name, name)
    model, out, plan = open_model(place / name), place / form, Plan()
    tied = {layer.tied_to for layer in model.summary.tied}
    layers = [each.name for each in model.summary.stored if each.kind == "linear" and not each.keep]
    for number, layer in enumerate(each for each in layers if each not in tied and within in each):
        plan = plan.assign([layer], weights=schemes[number % len(schemes)], algorithm="rtn")
    made = quantize(model, plan)
    exporter(form).export(made, model, out, silent)
    return model, made, out


def sample(model: Model) -> Batch:
    batch = model.sample(2)
    assert batch is not None
    return {name: value for name, value in batch.items() if name != "labels"}


def difference(name: str, model: Model, made: QuantizedModel, out: Path) -> float:
    network: Any = getattr(transformers, name).from_pretrained(out, dtype=torch.float32)
    with torch.no_grad():
        there = model.body.call(network, sample(model))  # type: ignore[attr-defined]
        return float((there - made.bind(model).run(sample(model))).abs().max())


def test_settings_that_lost_their_kind_are_named(tmp_path: Path) -> None:
    model, _, out = exported("ResNetForImageClassification", "compressed-tensors", ONE, tmp_path)
    settings = json.loads((out / "config.json").read_text())
    del settings["model_type"]
    (out / "config.json").write_text(json.dumps(settings))
    with pytest.raises(NotAModelError, match=r"config\.json names no model_type"):
        loads_in_transformers(out, model)


@pytest.mark.parametrize("name", [
    T5, MAMBA, "ModernBertForMaskedLM", "FalconForCausalLM", "SiglipVisionModel", "ResNetForImageClassification",
    "LlamaForCausalLM", "CamembertForMaskedLM",
])  # fmt: skip
def test_one_scheme_loads_in_networks_that_initialize_packed_weights(name: str, tmp_path: Path) -> None:
    model, made, out = exported(name, "compressed-tensors", ONE, tmp_path)
    assert loads_in_transformers(out, model) == []
    assert difference(name, model, made, out) < 1e-5


def test_an_export_tries_its_folder_once_for_each_way_of_loading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = list[Path]()

    def counting(folder: Path, *rest: object) -> list[str]:
        tried.append(folder)
        return _tried(folder, *rest)  # type: ignore[arg-type]

    _tried = loading._tried
    monkeypatch.setattr(loading, "_tried", counting)
    for name, ways in (("LlamaForCausalLM", 1), (T5, 2)):  # T5 loads when it is unpacked
        tried.clear()
        model, made, out = exported(name, "compressed-tensors", ONE, tmp_path / name)
        assert exporter("compressed-tensors").remarks(made, model, out) == []  # type: ignore[attr-defined]
        assert len(tried) == ways


@pytest.mark.parametrize("name", [T5, MAMBA])
def test_several_schemes_do_not_and_a_sentence_says_so(name: str, tmp_path: Path) -> None:
    model, made, out = exported(name, "compressed-tensors", MIXED, tmp_path)
    (said,) = exporter("compressed-tensors").remarks(made, model, out)  # type: ignore[attr-defined]
    assert "does not load this folder" in said and "with one scheme for all layers" in said
    with pytest.raises(AttributeError, match="weight"):
        difference(name, model, made, out)


def test_an_encoder_decoder_generates_at_once_or_after_what_is_said(tmp_path: Path) -> None:
    """generate() calls the encoder alone, and weights are unpacked when the whole network is called."""
    from compressed_tensors.offload import remove_dispatch

    for schemes in (ONE, MIXED):
        model, _, out = exported(BART, "compressed-tensors", schemes, tmp_path / str(len(schemes)))
        network = getattr(transformers, BART).from_pretrained(out, dtype=torch.float32)
        said = loads_in_transformers(out, model)
        assert ["decompress_model(model)" in each for each in said] == [True] * (schemes == MIXED)
        if said:
            with pytest.raises(AttributeError, match="weight"):
                network.generate(sample(model)["input_ids"], max_new_tokens=3)
            network.hf_quantizer.compressor.decompress_model(network)
            remove_dispatch(network)
        assert network.generate(sample(model)["input_ids"], max_new_tokens=3).shape[1] > 1


def test_tensors_that_transformers_looks_for_under_other_names_are_said(tmp_path: Path) -> None:
    """Beside compressed-tensors, its Llama 4 has experts one by one."""
    model, _, out = exported("Llama4ForCausalLM", "compressed-tensors", ONE, tmp_path)
    (said,) = loads_in_transformers(out, model)
    assert "does not find model.layers.0.feed_forward.experts.0.down_proj.weight" in said and "and 21 more" in said


@pytest.mark.parametrize("name", [BART, "CLIPModel", "Wav2Vec2ForCTC", T5])
def test_torchao_runs_networks_with_parameters_of_their_own_and_without_tables(name: str, tmp_path: Path) -> None:
    """A name without a dot ended the loading of all of them; a head of sounds was looked for among tables of words."""
    model, made, out = exported(name, "torchao", ONE, tmp_path)
    assert loads_in_transformers(out, model, runs=True) == []
    assert difference(name, model, made, out) < 1e-5


@pytest.mark.parametrize("name, within, place", [
    ("FalconForCausalLM", "h.0.", "transformer.h.0.mlp.dense_4h_to_h"), (MAMBA, "", "backbone.layers.0.mixer"),
])  # fmt: skip
def test_weights_that_a_network_reads_itself_are_said_to_need_keeping_in_torchao(
    name: str, within: str, place: str, tmp_path: Path
) -> None:
    model, made, out = exported(name, "torchao", ONE, tmp_path, within)
    (said,) = exporter("torchao").remarks(made, model, out)  # type: ignore[attr-defined]
    assert f"does not run it ({place}: " in said and "keep such layers" in said
    with pytest.raises(NotImplementedError):
        difference(name, model, made, out)
