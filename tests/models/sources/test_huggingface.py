"""Hugging Face folders of every make, tiny and built here."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch
import transformers
from safetensors import safe_open
from transformers import PreTrainedConfig

from workbench.errors import NotAModelError, UnsafeModelError
from workbench.models.data.inputs import InputSpec
from workbench.models.layer import LayerKind
from workbench.models.sources import huggingface, open_model, reopen
from workbench.models.sources.heads.inputs import sample_of
from workbench.models.sources.huggingface import further_blocks
from workbench.models.summary import OutputKind

IDS = torch.arange(12).reshape(2, 6)
SMALL: dict[str, Any] = {
    "vocab_size": 48,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}


def save(folder: Path, kind: str, config: Any, dtype: torch.dtype = torch.float32) -> torch.nn.Module:
    """Save a network of transformers' class ``kind`` with reproducible weights; returns it in float32."""
    import transformers

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        network = getattr(transformers, kind)(config).to(dtype).eval()
    network.save_pretrained(folder, max_shard_size="5KB")
    plain: torch.nn.Module = network.float()
    return plain


def llama(folder: Path, dtype: torch.dtype = torch.float32, tied: bool = True) -> torch.nn.Module:
    from transformers import LlamaConfig

    return save(folder, "LlamaForCausalLM", LlamaConfig(**SMALL, tie_word_embeddings=tied), dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_llama_in_shards(tmp_path: Path, dtype: torch.dtype) -> None:
    plain = llama(tmp_path, dtype)
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    model = open_model(tmp_path)
    torch.testing.assert_close(model.run({"input_ids": IDS}), plain(input_ids=IDS).logits)
    assert {layer.dtype for layer in model.summary.layers} == {str(dtype).removeprefix("torch.")}
    name = "model.layers.1.mlp.up_proj"
    assert model.weight(name).dtype == dtype
    assert torch.equal(model.weight(name).float(), plain.get_parameter(f"{name}.weight"))
    held = model.held_weight(name)
    assert torch.equal(held, model.weight(name).float())
    assert held.data_ptr() == model.body.network.get_parameter(f"{name}.weight").data_ptr()  # nothing is converted
    assert torch.equal(model.with_weights({name: 2 * held}).held_weight(name), 2 * held)
    assert model.summary.by_name[name].block == "model.layers.1"
    assert model.summary.by_name["lm_head"].tied_to == "model.embed_tokens"


@pytest.mark.parametrize("tied", [True, False])
def test_bytes_are_those_of_the_files(tmp_path: Path, tied: bool) -> None:
    llama(tmp_path, torch.bfloat16, tied)
    stored = 0
    for file in tmp_path.glob("*.safetensors"):
        with safe_open(str(file), framework="pt") as tensors:
            stored += sum(tensors.get_tensor(name).nbytes for name in tensors.keys())  # noqa: SIM118
    assert open_model(tmp_path).summary.nbytes == stored


def test_two_openings_and_the_bare_shards_agree(tmp_path: Path) -> None:
    llama(tmp_path)
    model = open_model(tmp_path)
    bare = open_model(tmp_path / "model.safetensors.index.json")
    again = reopen(model.summary)
    assert model.summary.fingerprint == again.summary.fingerprint == bare.summary.fingerprint
    assert {layer.name for layer in bare.summary.layers} == {layer.name for layer in model.summary.stored}
    assert all(torch.equal(bare.weight(layer.name), model.weight(layer.name)) for layer in bare.summary.layers)


def test_gpt2_stores_its_linear_layers_transposed(tmp_path: Path) -> None:
    from transformers import GPT2Config

    plain = save(tmp_path, "GPT2LMHeadModel", GPT2Config(vocab_size=48, n_positions=16, n_embd=16, n_layer=1, n_head=2))
    model = open_model(tmp_path)
    layer = model.summary.by_name["transformer.h.0.attn.c_attn"]
    assert (layer.kind, layer.shape, layer.matrix) == (LayerKind.LINEAR, (16, 48), (48, 16))
    received: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
    model.run({"input_ids": IDS}, tap=lambda name, x, y: received.update({name: (x, y)}))
    x, y = received[layer.name]
    torch.testing.assert_close(y, x @ model.weight(layer.name).T + plain.get_parameter(f"{layer.name}.bias"))
    view = model.with_weights({layer.name: model.weight(layer.name) * 2})
    with torch.no_grad():
        plain.get_parameter(layer.parameter).mul_(2)
        torch.testing.assert_close(view.run({"input_ids": IDS}), plain(input_ids=IDS).logits)


def test_weights_of_another_configuration_are_named(tmp_path: Path) -> None:
    from tests.zoo.architectures import save

    save(tmp_path / "model", "BertForSequenceClassification")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(json.dumps({**config, "intermediate_size": 64}))
    with pytest.raises(NotAModelError, match=r"6 tensors .*dense\.bias \(48 in the file, 64 by config"):
        open_model(tmp_path / "model")


def test_mixture_of_experts(tmp_path: Path) -> None:
    from transformers import MixtralConfig

    config = MixtralConfig(**SMALL, num_key_value_heads=1, num_local_experts=3)
    plain = save(tmp_path, "MixtralForCausalLM", config, torch.bfloat16)
    model = open_model(tmp_path)
    experts = [layer for layer in model.summary.layers if layer.kind is LayerKind.EXPERTS]
    assert [layer.matrix for layer in experts[:2]] == [(3 * 48, 16), (3 * 16, 24)]
    assert {layer.dtype for layer in experts} == {"bfloat16"}
    name = experts[0].name
    view = model.with_weights({name: model.weight(name) * 0.5})
    with torch.no_grad():
        plain.get_parameter(experts[0].parameter).mul_(0.5)
        torch.testing.assert_close(view.run({"input_ids": IDS}), plain(input_ids=IDS).logits, rtol=1e-4, atol=1e-5)


def test_encoders_give_the_mean_over_tokens(tmp_path: Path) -> None:
    from transformers import BertConfig

    plain = save(tmp_path, "BertModel", BertConfig(**SMALL, max_position_embeddings=16))
    model = open_model(tmp_path)
    mask = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
    states = plain(input_ids=IDS, attention_mask=mask)[0]
    expected = torch.stack([states[0, :4].mean(0), states[1].mean(0)])
    assert model.summary.output is OutputKind.EMBEDDING
    torch.testing.assert_close(model.run({"input_ids": IDS, "attention_mask": mask}), expected)


def test_classifiers_of_text(tmp_path: Path) -> None:
    from transformers import BertConfig

    plain = save(tmp_path, "BertForSequenceClassification", BertConfig(**{**SMALL, "num_labels": 3}))
    model = open_model(tmp_path)
    assert model.summary.output is OutputKind.CLASS_LOGITS
    torch.testing.assert_close(model.run({"input_ids": IDS}), plain(input_ids=IDS).logits)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    llama(tmp_path)
    return tmp_path


def configure(folder: Path, **changes: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def test_a_model_of_the_hub_is_found_by_its_name_where_it_was_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the layout of the Hub's cache: ``refs`` name a commit, its files are links to ``blobs``."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    cached = tmp_path / "models--some--Small-Llama"
    for folder in ("blobs", "refs", "snapshots/a1"):
        (cached / folder).mkdir(parents=True)
    (cached / "refs/main").write_text("a1")
    llama(cached / "blobs")
    for file in (cached / "blobs").iterdir():
        (cached / "snapshots/a1" / file.name).symlink_to(f"../../blobs/{file.name}")
    summary = open_model("some/Small-Llama").summary
    assert summary.name == "Small-Llama" and summary.source.path == str(cached / "snapshots/a1")
    with pytest.raises(NotAModelError, match="hf download some/other-llama"):
        open_model("some/other-llama")


CODE = {"AutoConfig": "modeling.OwnConfig", "AutoModelForCausalLM": "modeling.Own"}


def test_code_of_the_folder_is_not_run_where_transformers_has_its_own(folder: Path) -> None:
    """As in the folders of Phi-3 and DeepSeek-V3, which are older than their networks in transformers."""
    before = open_model(folder).run({"input_ids": IDS})
    configure(folder, auto_map=CODE)
    (folder / "modeling.py").write_text("raise SystemExit('ran')")
    model = open_model(folder)
    assert torch.equal(model.run({"input_ids": IDS}), before)
    assert any("auto_map" in note and "LlamaForCausalLM" in note for note in model.notes)


@pytest.mark.parametrize("named", [
    {"architectures": ["OwnForCausalLM"]}, {"model_type": "own"}, {"architectures": [], "model_type": "own"},
])  # fmt: skip
def test_a_network_that_only_the_folder_s_code_has_is_refused(folder: Path, named: dict[str, Any]) -> None:
    configure(folder, auto_map=CODE, **named)
    (folder / "modeling.py").write_text("raise SystemExit('ran')")
    with pytest.raises(UnsafeModelError, match=r"(?i)does not have own.*auto_map\) is never run"):
        open_model(folder)


def test_pickled_weights_are_refused(folder: Path) -> None:
    for file in folder.glob("*.safetensors*"):
        file.unlink()
    (folder / "pytorch_model.bin").write_bytes(b"anything")
    with pytest.raises(UnsafeModelError, match="convert it to safetensors"):
        open_model(folder)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"model_type": 3}'])
def test_a_bad_configuration_is_told(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text)
    with pytest.raises(NotAModelError, match="config.json"):
        open_model(folder)


def test_an_unknown_architecture_is_told(folder: Path) -> None:
    configure(folder, model_type="nothing_of_this_kind")
    with pytest.raises(NotAModelError, match="cannot load"):
        open_model(folder)


def test_quantized_folders_are_refused(folder: Path) -> None:
    configure(folder, quantization_config={"quant_method": "hqq"})
    with pytest.raises(NotAModelError, match=r"already quantized \(hqq\), and of those gptq, awq"):
        open_model(folder)


@pytest.mark.parametrize("change", [{"hidden_size": 32}, {"num_hidden_layers": 3}])
def test_configuration_and_weights_must_belong_together(folder: Path, change: dict[str, int]) -> None:
    configure(folder, **change)
    with pytest.raises(NotAModelError):
        open_model(folder)


def test_a_missing_shard_is_named(folder: Path) -> None:
    shard = sorted(folder.glob("*.safetensors"))[0]
    shard.unlink()
    with pytest.raises(NotAModelError, match=shard.name):
        open_model(folder)


def bert(**settings: Any) -> Any:
    from transformers import BertConfig

    return BertConfig(**SMALL, **settings)


@pytest.mark.parametrize(
    ("kind", "settings", "output", "shape"),
    [
        ("BertForMaskedLM", {}, OutputKind.TOKEN_CLASSES, (2, 6, 48)),
        ("BertForTokenClassification", {"num_labels": 5}, OutputKind.TOKEN_CLASSES, (2, 6, 5)),
        ("BertForSequenceClassification", {"num_labels": 3}, OutputKind.CLASS_LOGITS, (2, 3)),
        ("BertForSequenceClassification", {"num_labels": 1}, OutputKind.EMBEDDING, (2, 1)),
        ("BertModel", {}, OutputKind.EMBEDDING, (2, 16)),
        ("BertForQuestionAnswering", {"num_labels": 2}, OutputKind.POSITION_CLASSES, (2, 2, 6)),
    ],
)
def test_the_class_that_the_configuration_names_is_loaded_with_its_head(
    tmp_path: Path, kind: str, settings: dict[str, Any], output: OutputKind, shape: tuple[int, ...]
) -> None:
    plain = save(tmp_path, kind, bert(**settings))
    model = open_model(tmp_path)
    outputs = model.run({"input_ids": IDS})
    assert model.summary.output is output and tuple(outputs.shape) == shape
    with torch.no_grad():
        answer = plain(input_ids=IDS)
    if kind == "BertForQuestionAnswering":
        answer.logits = torch.stack([answer.start_logits, answer.end_logits], dim=1)
    torch.testing.assert_close(outputs, answer[0].mean(dim=1) if kind == "BertModel" else answer.logits)
    if kind == "BertForMaskedLM":
        assert model.summary.by_name["cls.predictions.decoder"].tied_to == "bert.embeddings.word_embeddings"


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("BertForNothing", "BertForNothing, which transformers .* does not have"),
     ("pipeline", "pipeline, which transformers .* does not have")],
)  # fmt: skip
def test_a_head_that_is_not_supported_is_refused_and_never_left_out(tmp_path: Path, kind: str, reason: str) -> None:
    save(tmp_path, "BertForQuestionAnswering", bert())
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": [kind]}))
    with pytest.raises(NotAModelError, match=reason):
        open_model(tmp_path)


@pytest.mark.parametrize("named", [None, [], {}, "BertForMaskedLM", [5]])
def test_without_a_named_class_the_network_is_opened_without_a_head(tmp_path: Path, named: object) -> None:
    save(tmp_path, "BertModel", bert())
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": named}))
    assert open_model(tmp_path).summary.output is OutputKind.EMBEDDING


def test_an_encoder_runs_with_its_decoder_and_alone(tmp_path: Path) -> None:
    from transformers import T5Config

    config = T5Config(vocab_size=48, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2)
    config.decoder_start_token_id = 0
    both = save(tmp_path / "both", "T5ForConditionalGeneration", config)
    with torch.no_grad():
        logits = both(input_ids=IDS, decoder_input_ids=IDS[:, :4]).logits
    model = open_model(tmp_path / "both")
    torch.testing.assert_close(model.run({"input_ids": IDS, "decoder_input_ids": IDS[:, :4]}), logits)
    assert model.inputs.requires == ("input_ids", "decoder_input_ids")
    plain = save(tmp_path / "encoder", "T5EncoderModel", config)
    with torch.no_grad():
        states = plain(input_ids=IDS)[0].mean(dim=1)
    torch.testing.assert_close(open_model(tmp_path / "encoder").run({"input_ids": IDS}), states)


def test_a_multimodal_model_answers_text_with_token_logits(tmp_path: Path) -> None:
    from transformers import LlavaConfig

    vision = {"model_type": "clip_vision_model", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
              "intermediate_size": 24, "image_size": 16, "patch_size": 4, "projection_dim": 16}  # fmt: skip
    config = LlavaConfig(text_config={"model_type": "llama", **SMALL}, vision_config=vision, image_token_index=40)
    plain = save(tmp_path, "LlavaForConditionalGeneration", config)
    model = open_model(tmp_path)
    with torch.no_grad():
        torch.testing.assert_close(model.run({"input_ids": IDS}), plain(input_ids=IDS).logits)
    assert model.summary.output is OutputKind.TOKEN_LOGITS


@pytest.mark.parametrize("key", ["num_hidden_layers", "vocab_size", "hidden_size", "num_attention_heads"])
@pytest.mark.parametrize("value", [10**9, 10**30, 10**4000])
def test_counts_that_the_weights_cannot_fill_are_refused_at_once(tmp_path: Path, key: str, value: int) -> None:
    llama(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {key: value}))
    with pytest.raises(NotAModelError, match=f"says {key} is .* but the weights are") as caught:
        open_model(tmp_path)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("name", ["flash_attention_2", "kernels-community/flash-attn2"])
def test_attention_is_never_code_of_the_hub(tmp_path: Path, name: str) -> None:
    """With the package kernels, transformers would fetch it and run it."""
    llama(tmp_path)
    configure(tmp_path, attn_implementation=name, _attn_implementation=name, experts_implementation=name)
    assert open_model(tmp_path).summary.layers


def test_parts_of_default_sizes_are_refused_before_they_are_made(tmp_path: Path) -> None:
    """The part that config.json only names would be a Llama of 7 billion weights."""
    llama(tmp_path)
    configure(
        tmp_path, model_type="llava", architectures=["LlavaForConditionalGeneration"],
        text_config={"model_type": "llama"},
    )  # fmt: skip
    start = psutil.Process().memory_info().rss
    with pytest.raises(NotAModelError, match="with its defaults, describes a network of [67],.* weights"):
        open_model(tmp_path)
    assert psutil.Process().memory_info().rss - start < 1 << 29


def test_blocks_that_the_configuration_does_not_count_are_named(tmp_path: Path) -> None:
    save(tmp_path, "BertModel", bert())
    settings = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(settings | {"num_hidden_layers": 1}))
    with pytest.raises(NotAModelError, match=r"the weights have encoder.layer.1.*, which config.json does not count"):
        open_model(tmp_path)


def test_tensors_without_a_place_are_named(tmp_path: Path) -> None:
    network = llama(tmp_path / "whole")
    extra = {"model.layers.0.mlp.extra.weight": torch.zeros(3, 3)}
    network.save_pretrained(tmp_path / "more", state_dict=network.state_dict() | extra)  # type: ignore[operator]
    assert open_model(tmp_path / "more").notes == (
        "1 tensors of the weights have no place in LlamaForCausalLM and are left out: model.layers.0.mlp.extra.weight",
    )
    assert open_model("demo:language-model").notes == ()


def test_an_unknown_name_of_the_configuration_is_told_as_such(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"hidden_act": "golu"}))
    with pytest.raises(NotAModelError, match="transformers cannot load .*: there is no 'golu'"):
        open_model(folder)


def test_what_is_left_out_and_is_no_further_block_is_let_pass() -> None:
    used = [f"layers.{number}.{part}" for number in range(2) for part in ("up.weight", "experts.0.w", "experts.1.w")]
    block = [name.replace("layers.0", "layers.2") for name in used[:3]]
    assert further_blocks(used, block) == ["layers.2"]
    assert further_blocks(used, ["layers.1.experts.2.w"]) == ["layers.1.experts.2"]
    assert further_blocks(used, [*block, "layers.2.next_token.weight"]) == []  # a head that predicts further tokens
    assert further_blocks(used, ["layers.2.up.weight", "cls.weight", "layers.0.rotary.inv_freq"]) == []
    rotary = [f"layers.{number}.rotary.inv_freq" for number in range(3)]  # left out of every block
    assert further_blocks(used, [*block, *rotary]) == ["layers.2"]


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"model_type": "timm_wrapper", "architecture": "hf-hub:evil/model"}, "architecture"),
        ({"model_type": "timm_wrapper", "architecture": "local-dir:../evil"}, "architecture"),
        ({"model_type": "timm_wrapper", "model_args": {"checkpoint_path": "evil.pt"}}, "model_args"),
        ({"vision_config": {"model_type": "timm_backbone", "backbone": "local-dir:evil"}}, "backbone"),
        ({"parts": [{"backbone_kwargs": {"pretrained_cfg": {"file": "evil.pt"}}}]}, "backbone_kwargs"),
    ],
)
def test_no_other_file_is_unpickled_by_timm(tmp_path: Path, settings: dict[str, Any], key: str) -> None:
    llama(tmp_path)
    configure(tmp_path, **settings)
    with pytest.raises(UnsafeModelError, match=rf"elsewhere \({key}\), where a pickle can run code; remove that"):
        open_model(tmp_path)


def test_timm_may_be_told_what_harms_nobody(tmp_path: Path) -> None:
    llama(tmp_path)
    configure(tmp_path, backbone="resnet18", backbone_kwargs={"out_indices": [1]}, model_args={"pretrained": False})
    assert open_model(tmp_path).summary.layers


def test_no_part_begins_with_weights_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would come from the Hub, or from a folder that the settings name."""
    from transformers import DPTConfig
    from transformers.models.auto.configuration_auto import AutoConfig

    config = DPTConfig(use_pretrained_backbone=False)
    config.use_pretrained_backbone = True
    config.backbone_config = DPTConfig()
    config.backbone_config.use_pretrained_backbone = True
    monkeypatch.setattr(AutoConfig, "from_pretrained", lambda *_, **__: config)
    stated = {"architectures": ["DPTForDepthEstimation"], "model_type": "dpt"}
    _, settings = huggingface.class_and_settings(transformers, tmp_path, stated)
    assert not settings.use_pretrained_backbone and not settings.backbone_config.use_pretrained_backbone


def test_nothing_is_asked_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    asked, made = list[bool](), transformers.AutoConfig.from_pretrained
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(
        transformers.AutoConfig, "from_pretrained",
        lambda *words, **options: [asked.append(constants.HF_HUB_OFFLINE), made(*words, **options)][1],
    )  # fmt: skip
    llama(tmp_path)
    open_model(tmp_path)
    assert asked and all(asked) and constants.HF_HUB_OFFLINE is False


@pytest.mark.parametrize("size", [(10**9, 10**9), (0, 4), (-1, 4), ("a", 4), (2.5, 4), 10**30, "xy", [1, 2, 3]])
def test_samples_of_senseless_sizes_are_not_made(size: Any) -> None:
    network = SimpleNamespace(config=PreTrainedConfig(image_size=size))
    assert sample_of(network, InputSpec(requires=("pixel_values",), size=size))(2) == {}
    assert sample_of(network, InputSpec(requires=("pixel_values",)))(2).keys() <= {"pixel_values"}
    series = SimpleNamespace(config=PreTrainedConfig(context_length=size, num_input_channels=3))
    assert sample_of(series, InputSpec(requires=("past_values",)))(2) == {}
