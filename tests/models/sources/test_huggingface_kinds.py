"""Folders whose networks take or give what few others do: characters, pictures beside text, series, videos."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import nn

from tests.models.networks import Rows, model_of
from tests.models.sources.test_huggingface import save
from tests.zoo.architectures import save as save_tiny
from tests.zoo.architectures import shrink
from workbench.errors import DataError
from workbench.measurement.calibrate import calibrate
from workbench.measurement.divergence import sample_divergence
from workbench.measurement.evaluate import evaluate
from workbench.models.data.datasets import open_dataset
from workbench.models.sources import open_model
from workbench.models.sources.heads.outputs import text_config
from workbench.models.summary import OutputKind


def test_characters_have_no_vocabulary(tmp_path: Path) -> None:
    from transformers import CanineConfig

    config = CanineConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24, num_hash_buckets=32,
        num_hash_functions=2, local_transformer_stride=8, downsampling_rate=2, max_position_embeddings=64,
    )  # fmt: skip
    save(tmp_path, "CanineForSequenceClassification", config)
    assert open_model(tmp_path).inputs.vocabulary is None


@pytest.mark.parametrize("name", [
    "XLMWithLMHeadModel", "FlaubertWithLMHeadModel", "XLNetLMHeadModel", "RobertaForCausalLM", "BertLMHeadModel",
    "GPT2LMHeadModel", "GPTNeoXForCausalLM", "CpmAntForCausalLM", "EvollaForProteinText2Text",
])  # fmt: skip
@pytest.mark.parametrize("decoder", [False, True])
def test_words_are_predicted_by_those_before_them_or_by_all(tmp_path: Path, name: str, decoder: bool) -> None:
    """A network in which a later word changes what stands at an earlier one predicts no next word."""
    save_tiny(tmp_path, name)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"is_decoder": decoder, "causal": decoder}))
    model = open_model(tmp_path)
    batch = model.sample(1)
    assert batch is not None
    other = {**batch, "input_ids": batch["input_ids"].clone()}
    other["input_ids"][:, -1] = 5 if int(batch["input_ids"][0, -1]) != 5 else 6
    sees_all = bool((model.run(batch) - model.run(other))[:, :-1].abs().max() > 1e-6)
    assert model.summary.output is (OutputKind.TOKEN_CLASSES if sees_all else OutputKind.TOKEN_LOGITS)
    assert model.inputs.sentences is sees_all


@pytest.mark.parametrize(("kind", "config"), [("BertModel", "BertConfig"), ("ViTModel", "ViTConfig")])
def test_a_checkpoint_without_the_pooler_opens_without_it(tmp_path: Path, kind: str, config: str) -> None:
    """facebook/dino-vitb16 and many sentence models have none; nothing that is judged uses one."""
    settings = shrink(getattr(transformers, config)())
    network = getattr(transformers, kind)(settings, add_pooling_layer=False).eval()
    network.save_pretrained(tmp_path)
    model = open_model(tmp_path)
    batch = model.sample(2)
    assert batch is not None and not any("pooler" in layer.name for layer in model.summary.layers)
    given = {network.main_input_name: next(iter(batch.values()))}
    with torch.no_grad():
        torch.testing.assert_close(model.run(batch), network(**given).last_hidden_state.mean(dim=1))


def test_a_picture_s_size_is_that_of_its_encoder(tmp_path: Path) -> None:
    """Without a processor's file in the folder, TrOCR's and Donut's were tried with pictures of another size."""
    picture = shrink(transformers.ViTConfig())
    text = shrink(transformers.GPT2Config(), add_cross_attention=True, is_decoder=True)
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(picture, text)
    save(tmp_path, "VisionEncoderDecoderModel", config)
    model = open_model(tmp_path)
    batch = model.sample(2)
    assert batch is not None and model.run(batch).shape[:2] == batch["decoder_input_ids"].shape


def test_an_embedding_of_padded_sounds_is_that_of_their_own_frames(tmp_path: Path) -> None:
    save_tiny(tmp_path, "Wav2Vec2Model", feat_extract_norm="layer")
    mask = (torch.arange(1600) < torch.tensor([1600, 810])[:, None]).long()
    sounds = torch.randn(2, 1600, generator=torch.Generator().manual_seed(0)) * mask
    network = transformers.Wav2Vec2Model.from_pretrained(tmp_path).eval()
    with torch.no_grad():
        states = network(sounds, attention_mask=mask).last_hidden_state
    real = network._get_feature_vector_attention_mask(states.shape[1], mask)
    expected = torch.stack([each[own].mean(dim=0) for each, own in zip(states, real, strict=True)])
    torch.testing.assert_close(open_model(tmp_path).run({"inputs": sounds, "attention_mask": mask}), expected)


def test_questions_about_pictures_are_answered_by_the_decoder(tmp_path: Path) -> None:
    """BLIP for questions answers its pictures' states and a loss: its logits lie within, its labels begin otherwise."""
    save_tiny(tmp_path, "BlipForQuestionAnswering")
    model = open_model(tmp_path)
    batch = model.sample(2)
    assert batch is not None and {*batch} == {"pixel_values", "input_ids", "decoder_input_ids"}
    assert model.summary.output is OutputKind.TOKEN_LOGITS and model.inputs.has_decoder
    network = transformers.BlipForQuestionAnswering.from_pretrained(tmp_path).eval()
    labels = torch.tensor([[7, 8, 9], [10, 11, -100]])
    ids = torch.tensor([[network.decoder_start_token_id, 7, 8], [network.decoder_start_token_id, 10, 11]])
    mask = torch.ones_like(batch["input_ids"])
    mask[1, 5:] = 0
    with torch.no_grad():
        states = network.vision_model(batch["pixel_values"]).last_hidden_state
        asked = network.text_encoder(batch["input_ids"], mask, encoder_hidden_states=states).last_hidden_state
        expected = network.text_decoder(ids, encoder_hidden_states=asked, encoder_attention_mask=mask).logits
    given = {**batch, "attention_mask": mask}
    torch.testing.assert_close(model.run({**given, "decoder_input_ids": ids}), expected)
    del given["decoder_input_ids"]
    torch.testing.assert_close(model.run({**given, "labels": labels}), expected)


@pytest.mark.parametrize(("name", "ids"), [
    ("PerceiverForMaskedLM", True), ("PerceiverForSequenceClassification", True),
    ("PerceiverForImageClassificationLearned", False),
])  # fmt: skip
def test_inputs_are_ids_where_rows_of_a_table_are_looked_up_by_them(tmp_path: Path, name: str, ids: bool) -> None:
    """Perceiver calls words and pictures ``inputs``; words were handed over as fractions."""
    save_tiny(tmp_path, name, d_latents=32, num_latents=4, num_self_attends_per_block=1, num_self_attention_heads=2,
              num_cross_attention_heads=2)  # fmt: skip
    model = open_model(tmp_path)
    assert model.inputs.tokens is ids and model.inputs.vocabulary == (96 if ids else None)
    batch = model.sample(3)
    assert batch is not None and next(iter(batch.values())).is_floating_point() is not ids
    network = getattr(transformers, name).from_pretrained(tmp_path).eval()
    with torch.no_grad():
        expected = network(**{"inputs": next(iter(batch.values()))}).logits
    given = expected[:, :7] if name.endswith("LM") else expected
    torch.testing.assert_close(model.run(batch), given)
    if ids:
        np.save(tmp_path / "ids.npy", batch["input_ids"].numpy())
        assert torch.equal(open_dataset(tmp_path / "ids.npy", model).tensors["input_ids"], batch["input_ids"])


def test_one_logit_for_each_position_is_in_the_answer_or_not(tmp_path: Path) -> None:
    save_tiny(tmp_path, "TapasForQuestionAnswering")
    model = open_model(tmp_path)
    batch = model.sample(6)
    assert batch is not None and tuple(model.run(batch).shape) == (6, batch["input_ids"].shape[1], 2)
    figures = evaluate(model, model, Rows(**batch))
    assert figures["kl"].value == 0


def test_the_text_of_a_model_with_two_is_its_encoders() -> None:
    from transformers import MusicgenConfig

    config = MusicgenConfig(
        text_encoder={"model_type": "t5", "vocab_size": 77}, audio_encoder={"model_type": "encodec"},
        decoder={"model_type": "musicgen_decoder", "vocab_size": 99},
    )  # fmt: skip
    assert text_config(config).vocab_size == 77


def test_a_picture_and_a_text_are_both_needed(tmp_path: Path) -> None:
    save_tiny(tmp_path, "BlipForConditionalGeneration")
    model = open_model(tmp_path)
    assert model.inputs.requires[:2] == ("pixel_values", "input_ids")
    batch = model.sample(2)
    assert batch is not None and model.run(batch).shape[:2] == batch["input_ids"].shape
    np.savez(tmp_path / "a.npz", pixel_values=batch["pixel_values"])
    with pytest.raises(DataError, match="holds pixel_values; the model also needs input_ids"):
        open_dataset(tmp_path / "a.npz", model)


def test_an_encoder_of_text_and_picture_needs_both(tmp_path: Path) -> None:
    save_tiny(tmp_path, "ViltForQuestionAnswering")
    model = open_model(tmp_path)
    batch = model.sample(2)
    assert batch is not None and set(batch) == {"input_ids", "pixel_values"}
    np.savez(tmp_path / "a.npz", input_ids=batch["input_ids"])
    with pytest.raises(DataError, match=r"needs pixel_values \(samples x channels x height x width\)"):
        open_dataset(tmp_path / "a.npz", model)


def test_a_network_made_for_two_inputs_needs_both(tmp_path: Path) -> None:
    from transformers import OneFormerConfig, OneFormerForUniversalSegmentation, SwinConfig

    stages = {"depths": [1, 1, 1, 1], "num_heads": [2, 2, 2, 2], "window_size": 4, "image_size": 64}
    backbone = SwinConfig(embed_dim=16, **stages, out_features=[f"stage{number}" for number in range(1, 5)])
    width = dict.fromkeys(("hidden_dim", "mask_dim", "conv_dim", "encoder_feedforward_dim", "dim_feedforward"), 32)
    text = {f"text_encoder_{name}": 8 for name in ("width", "vocab_size", "context_length")}
    layers = {"encoder_layers": 1, "decoder_layers": 2, "query_dec_layers": 1, "text_encoder_num_layers": 1}
    config = OneFormerConfig(
        backbone_config=backbone, **width, **text, **layers, num_attention_heads=2, num_queries=4, task_seq_len=6,
        num_labels=3,
    )  # fmt: skip
    OneFormerForUniversalSegmentation(config).save_pretrained(tmp_path)
    model = open_model(tmp_path)
    assert model.inputs.main == "pixel_values" and model.inputs.requires == ("pixel_values", "task_inputs")
    sample = model.sample(2)
    assert sample is not None and sample["task_inputs"].shape == (2, 6)
    assert model.run(sample).shape == (2, 16 * 16, 3)
    np.savez(tmp_path / "a.npz", pixel_values=sample["pixel_values"])
    with pytest.raises(DataError, match=r"needs task_inputs \(samples x tokens of the task\)"):
        open_dataset(tmp_path / "a.npz", model)


def test_every_argument_without_a_default_is_needed(tmp_path: Path) -> None:
    save_tiny(tmp_path, "InstructBlipForConditionalGeneration")
    model = open_model(tmp_path)
    assert set(model.inputs.requires) == {"pixel_values", "qformer_input_ids", "input_ids"}
    np.savez(tmp_path / "a.npz", pixel_values=np.zeros((2, 3, 32, 32)), input_ids=np.ones((2, 4), np.int64))
    with pytest.raises(DataError, match="the model also needs qformer_input_ids"):
        open_dataset(tmp_path / "a.npz", model)


def test_a_refusal_names_what_else_the_network_takes(tmp_path: Path) -> None:
    save_tiny(tmp_path, "LxmertModel")
    model = open_model(tmp_path)
    with pytest.raises(DataError, match="it also takes .*visual_feats, visual_pos, visual_attention_mask$"):
        model.run({"input_ids": torch.ones(1, 7, dtype=torch.int64)})


def test_a_codecs_answer_is_its_sound_not_its_loss(tmp_path: Path) -> None:
    save_tiny(tmp_path, "DacModel")
    model = open_model(tmp_path)
    batch = model.sample(2)
    assert batch is not None and tuple(model.run(batch).shape) == (2, 1600)


@pytest.mark.parametrize(
    ("name", "argument", "shape"),
    [("PatchTSTForPrediction", "past_values", (3, 32, 2)),
     ("VideoMAEForVideoClassification", "pixel_values", (3, 4, 3, 32, 32)),
     ("VJEPA2Model", "pixel_values_videos", (3, 2, 3, 32, 32)), ("DacModel", "input_values", (3, 1, 1600))],
)  # fmt: skip
def test_series_and_videos_are_run(tmp_path: Path, name: str, argument: str, shape: tuple[int, ...]) -> None:
    save_tiny(tmp_path, name)
    model = open_model(tmp_path)
    batch = model.sample(3)
    assert batch is not None and tuple(batch[argument].shape) == shape
    np.savez(tmp_path / "a.npz", **{argument: batch[argument], "observed": np.ones(3)})
    dataset = open_dataset(tmp_path / "a.npz", model)
    torch.testing.assert_close(model.run(next(dataset.batches(3))), model.run(batch))


@pytest.mark.parametrize(
    ("name", "shape"),
    [("DecisionTransformerModel", (3, 7, 4)), ("TimesFmModelForPrediction", (3, 128)),
     ("Pix2StructForConditionalGeneration", (3, 5, 96)), ("SpeechEncoderDecoderModel", (3, 5, 96)),
     ("ModernVBertForMaskedLM", (3, 7, 96))],
)  # fmt: skip
def test_what_the_configuration_says_of_the_inputs_is_run(tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
    """Its answer is what the head gives: actions and not the states before them, a forecast and not its states."""
    save_tiny(tmp_path, name)
    model = open_model(tmp_path)
    batch = model.sample(3)
    assert batch is not None and tuple(batch) == model.inputs.requires
    output = model.run(batch)
    assert tuple(output.shape) == shape
    np.savez(tmp_path / "a.npz", **batch)
    torch.testing.assert_close(model.run(next(open_dataset(tmp_path / "a.npz", model).batches(3))), output)


class RandomLength(nn.Module):
    """As many numbers as chance says."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(6, 40)
        self.count = 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        out: torch.Tensor = self.one(x)[:, : self.count]
        return out


@pytest.mark.parametrize("run", [calibrate, lambda model, data: evaluate(model, model, data)])
def test_answers_of_other_lengths_are_told(run: Any) -> None:
    model = model_of(RandomLength(), OutputKind.EMBEDDING)
    with pytest.raises(DataError, match=r"answers the same sample with \(\d+,\) numbers and with \(\d+,\)"):
        run(model, Rows(inputs=torch.randn(5, 6)))
    with pytest.raises(DataError, match="a quantized model cannot be compared"):
        sample_divergence(torch.zeros(2, 3), torch.zeros(2, 4), {}, OutputKind.EMBEDDING)


def test_choices_are_classes(tmp_path: Path) -> None:
    save_tiny(tmp_path, "BertForMultipleChoice")
    model = open_model(tmp_path)
    batch = model.sample(3)
    assert batch is not None and batch["input_ids"].ndim == 3
    assert model.summary.output is OutputKind.CLASS_LOGITS
    assert tuple(model.run(batch).shape) == tuple(batch["input_ids"].shape[:2])


@pytest.mark.parametrize("padding", [5, -1])
@pytest.mark.parametrize("name", ["GPT2", "Llama", "OPT", "CTRL", "Bloom", "XLNet", "Bart", "Roberta"])
def test_classes_of_a_text_are_those_of_the_text_alone(tmp_path: Path, name: str, padding: int) -> None:
    """Padding is what the mask says: networks that compare ids, or read the last place, took it for the text."""
    if name in ("Bart", "Roberta") and padding < 0:
        pytest.skip("their tables of words, or positions, have a row for it")
    save_tiny(tmp_path, f"{name}ForSequenceClassification", pad_token_id=padding)
    model, rows = open_model(tmp_path), [[7, 8, 9, 10, 11, 2], [7, 9, 2], [12, 2]]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"input_ids": row}) for row in rows), encoding="utf-8")
    network = getattr(transformers, f"{name}ForSequenceClassification").from_pretrained(tmp_path).eval()
    with torch.no_grad():
        expected = torch.cat([network(torch.tensor([row])).logits for row in rows])
    data = open_dataset(tmp_path / "a.jsonl", model)
    torch.testing.assert_close(model.run(next(data.batches(3))), expected, atol=1e-5, rtol=1e-4)
    seen = calibrate(model, data, batch_size=3).statistics
    assert min(seen[key].count for key in seen if key[1] == "output") > 0


def test_a_classifier_without_a_padding_id_takes_any_number_of_texts(tmp_path: Path) -> None:
    save_tiny(tmp_path, "LlamaForSequenceClassification")
    config = tmp_path / "config.json"
    settings = {**json.loads(config.read_text(encoding="utf-8")), "pad_token_id": None}
    config.write_text(json.dumps(settings), encoding="utf-8")
    model = open_model(tmp_path)
    batch = model.sample(3)
    assert batch is not None
    ids = batch["input_ids"]
    mask = torch.ones_like(ids)
    mask[1, 4:] = mask[2, 2:] = 0
    ids[mask == 0] = 7
    ids[:, 1] = 8
    alone = [model.run({"input_ids": ids[row : row + 1, : int(mask[row].sum())]}) for row in range(3)]
    torch.testing.assert_close(model.run({"input_ids": ids, "attention_mask": mask}), torch.cat(alone))
    assert model.body.network.config.pad_token_id is None
    ids[1, 3] = 7
    with pytest.raises(DataError, match="names no pad_token_id"):
        model.run({"input_ids": ids, "attention_mask": mask})


def test_encoder_decoders_that_classify_take_the_text_alone(tmp_path: Path) -> None:
    save_tiny(tmp_path, "BartForSequenceClassification")
    model = open_model(tmp_path)
    batch = model.sample(3)
    assert batch is not None and set(batch) == {"input_ids"} and not model.inputs.has_decoder
    assert tuple(model.run(batch).shape) == (3, 5)


def test_a_codec_gives_its_sound_and_not_its_codes(tmp_path: Path) -> None:
    save_tiny(tmp_path, "EncodecModel")
    model = open_model(tmp_path)
    batch = model.sample(2)
    assert batch is not None and model.run(batch).is_floating_point()
    assert any(not layer.keep for layer in model.summary.stored)


def test_a_forecast_is_the_parameters_of_its_distribution(tmp_path: Path) -> None:
    """They are a tuple; without it the encoder's states were the output, and the decoder counted for nothing."""
    from transformers import TimeSeriesTransformerConfig, TimeSeriesTransformerForPrediction

    sizes = {f"{part}_{what}": 2 if what != "ffn_dim" else 16 for part in ("encoder", "decoder")
             for what in ("layers", "attention_heads", "ffn_dim")}  # fmt: skip
    config = TimeSeriesTransformerConfig(
        prediction_length=3, context_length=6, lags_sequence=[1, 2], num_time_features=2, d_model=8, **sizes
    )
    network = TimeSeriesTransformerForPrediction(config).eval()
    network.save_pretrained(tmp_path)
    model = open_model(tmp_path)
    batch = {
        "past_values": torch.randn(4, 8), "past_time_features": torch.randn(4, 8, 2),
        "past_observed_mask": torch.ones(4, 8, dtype=torch.int64), "future_values": torch.randn(4, 3),
        "future_time_features": torch.randn(4, 3, 2),
    }  # fmt: skip
    with torch.no_grad():
        expected = torch.stack(network(**batch).params, dim=-1)
    torch.testing.assert_close(model.run(batch), expected)
