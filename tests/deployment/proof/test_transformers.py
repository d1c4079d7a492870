"""A compressed-tensors folder in transformers: answers equal to ours, sizes, speed; another plan's is refused."""

from __future__ import annotations

import importlib.util
from functools import partial
from pathlib import Path

import pytest
import torch
import transformers

from tests.deployment.exporters.llamas import folder_of
from workbench.deployment.exporters import exporter
from workbench.deployment.proof import child
from workbench.deployment.proof.transformers_proof import prove_in_folder, prove_in_transformers
from workbench.errors import BackendUnavailableError, ExportError
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize

pytest.importorskip("compressed_tensors")


def test_answers_are_those_of_the_evaluation_and_another_plans_file_is_refused(tmp_path: Path) -> None:
    model = open_model(folder_of("llama", tmp_path / "llama"))
    layers = [layer.name for layer in model.summary.stored if layer.kind == "linear"]
    schemes = ("int4-g32", "int4-g32-asym", "fp8-e4m3-channel", "mxfp4", "int8-channel", "int3-channel-asym")
    plan = Plan()
    for number, name in enumerate(layers):
        plan = plan.assign([name], weights=schemes[number % len(schemes)], algorithm="rtn")
    quantized, out = quantize(model, plan), tmp_path / "out"
    exporter("compressed-tensors").export(quantized, model, out, silent)
    samples = torch.arange(48).reshape(2, 24)
    proof = prove_in_transformers(
        quantized, model, out, samples, (4, 12, 20), data="numbers", text="hello", ids=(1,), threads=1, progress=silent
    )
    assert proof.difference < 1e-9 and proof.agreement == 1 and abs(proof.runtime_loss - proof.plan_loss) < 1e-6
    assert proof.plan_loss > 1e-4 and proof.tensor_bytes < proof.file_bytes and proof.generation_speed > 0
    assert proof.runtime.startswith("transformers ") and proof.tokens.startswith(("differ", "for", "1", "2", "3", "4"))
    assert proof.file_bytes == sum(file.stat().st_size for file in out.iterdir())
    own = prove_in_transformers(quantized, model, None, samples, (4,), data="numbers", threads=1, progress=silent)
    assert own.file_bytes == proof.file_bytes
    with pytest.raises(ExportError, match="q_proj"):
        other = quantize(model, plan.assign([layers[0]], weights="int8-channel"))
        prove_in_transformers(other, model, out, samples, (4,), data="numbers", progress=silent)


def test_what_the_library_rounds_explains_the_difference(tmp_path: Path) -> None:
    model = open_model(folder_of("llama", tmp_path / "llama"))
    names = [layer.name for layer in model.summary.stored if layer.kind == "linear"]
    for changes in ({"weights": "nvfp4"}, {"weights": "int8-channel", "inputs": "int8-token"}):
        quantized = quantize(model, Plan().assign(names, algorithm="rtn", **changes))
        samples = torch.arange(48).reshape(2, 24)
        proof = prove_in_transformers(quantized, model, None, samples, (4, 12), data="n", threads=1, progress=silent)
        assert 1e-9 < proof.difference < 4 * proof.rounding < proof.plan_loss * 4


SMALL = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}


@pytest.mark.parametrize("name, kinds, places", [
    ("BertForMaskedLM", ("linear",), (2, 9)), ("BertForSequenceClassification", ("linear",), ()),
    ("BertModel", ("embedding",), ()), ("BertForMaskedLM", (), (2,)),
])  # fmt: skip
def test_encoders_classifiers_packed_tables_and_empty_plans_run(
    name: str, kinds: tuple[str, ...], places: tuple[int, ...], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    getattr(transformers, name)(transformers.BertConfig(**SMALL)).save_pretrained(tmp_path / "bert")
    model = open_model(tmp_path / "bert")
    tied = {layer.tied_to for layer in model.summary.tied}
    names = [layer.name for layer in model.summary.stored if layer.kind in kinds and layer.name not in tied]
    quantized = quantize(model, Plan().assign(names, weights="int4-channel", algorithm="rtn"))
    samples = torch.arange(40).reshape(2, 20)
    proof = prove_in_transformers(quantized, model, None, samples, places, data="numbers", threads=1, progress=silent)
    assert abs(proof.difference) < 1e-9 and proof.generation_speed == 0 and (proof.plan_loss > 1e-7) == bool(kinds)


def test_an_encoder_decoder_is_refused_in_one_line(tmp_path: Path) -> None:
    transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=64, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0
    )).save_pretrained(tmp_path)  # fmt: skip
    model = open_model(tmp_path)
    with pytest.raises(ExportError, match="run on tokens alone, and .* needs decoder_input_ids too"):
        prove_in_transformers(
            quantize(model, Plan()), model, None, torch.arange(8)[None], (2,), data="numbers", progress=silent
        )


def test_torchao_folders_of_16_bits_are_run_as_torchao_computes_them(tmp_path: Path) -> None:
    pytest.importorskip("torchao")
    folder = folder_of("llama", tmp_path / "llama", intermediate_size=128)
    network = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    network.save_pretrained(tmp_path / "half", max_shard_size="60KB")  # several files, which say what all of them hold
    assert len(list((tmp_path / "half").glob("*.safetensors"))) > 2
    model = open_model(tmp_path / "half")
    names = [layer.name for layer in model.summary.stored if layer.kind == "linear"]
    plan = Plan().assign(names, weights="int4-g32-asym", algorithm="rtn")
    plan = plan.assign(names[:3], weights="fp8-e4m3-channel", algorithm="rtn")
    samples = torch.arange(48).reshape(2, 24)
    run = partial(prove_in_folder, "torchao", data="numbers", threads=1, progress=silent)
    proof = run(quantize(model, plan), model, None, samples, (4, 12, 20))
    assert proof.difference < 1e-9 < proof.plan_loss and proof.agreement == 1 and proof.generation_speed > 0
    assert proof.runtime.startswith("transformers ") and ", torchao " in proof.runtime
    rounded = run(quantize(model, plan.assign(names[3:], inputs="int8-token-asym")), model, None, samples, (4, 12, 20))
    assert rounded.difference < 4 * rounded.rounding and abs(rounded.plan_loss - proof.plan_loss) > 1e-6


def test_a_run_in_mlx_lm_needs_its_package_and_windows_that_it_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = open_model(folder_of("gemma2", tmp_path / "gemma2"))
    name = next(layer.name for layer in model.summary.stored if layer.name.endswith("q_proj"))
    quantized = quantize(model, Plan().assign([name], weights="int8-g32", algorithm="rtn"))
    run = partial(prove_in_folder, "mlx", quantized, model, None, positions=(4,), data="numbers", progress=silent)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BackendUnavailableError, match=r"pip install 'quantization-workbench\[mlx\]'"):
        run(torch.arange(8)[None])
    monkeypatch.setattr(child, "require_package", lambda runtime: None)
    monkeypatch.setattr(child, "require_package", lambda runtime: None)
    with pytest.raises(ExportError, match="samples of at most 8 tokens, these have 24"):
        run(torch.arange(24)[None])


@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_mlx_lm_gives_the_answers_of_the_evaluation(name: str, tmp_path: Path) -> None:
    pytest.importorskip("mlx_lm")
    model = open_model(folder_of(name, tmp_path / "folder", intermediate_size=128))
    names = [layer.name for layer in model.summary.stored if layer.name.endswith("_proj") and layer.matrix[1] % 32 == 0]
    plan = Plan().assign(names, weights="int4-g32-asym-zfp16", algorithm="rtn")
    plan = plan.assign(names[:2], weights="mxfp4", algorithm="rtn")
    proof = prove_in_folder(
        "mlx", quantize(model, plan), model, None, torch.arange(48).reshape(2, 24), (4, 12), data="n", text="hello",
        ids=(1,), progress=silent,
    )  # fmt: skip
    assert proof.difference < 1e-9 < proof.plan_loss and proof.runtime.startswith("mlx-lm ")
    assert proof.generation_speed > 0 and proof.peak_bytes > 0
