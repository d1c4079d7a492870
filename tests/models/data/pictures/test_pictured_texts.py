"""Pictures with their texts, for networks that read both: as transformers' own processor makes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from tests.zoo.architectures import save as save_tiny
from workbench.errors import DataError
from workbench.measurement.calibrate import calibrate
from workbench.measurement.divergence import sample_divergence
from workbench.measurement.gradients import drawn_gradients
from workbench.measurement.metrics.logits import KL, PERPLEXITY, TOP1_AGREEMENT, next_tokens
from workbench.measurement.metrics.metric import Outputs
from workbench.models.data.batches import units_of
from workbench.models.data.datasets import Dataset, open_dataset
from workbench.models.data.pictures.pictured_rows import read_pictured_rows
from workbench.models.data.samples import read_samples
from workbench.models.execution.dependence import unused_layers
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.models.summary import OutputKind
from workbench.quantization.learning.loop import divergence, task_loss

TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {% for c in m.content %}{% if c.type == 'image' %}<image>{% else %}"
    "{{ c.text }}{% endif %}{% endfor %}</s>{% endfor %}"
)
TILES = ("<fake_token_around_image>", "<end_of_utterance>", "<global-img>",
         *(f"<row_{row}_col_{column}>" for row in (1, 2, 3) for column in (1, 2, 3)))  # fmt: skip


def tokenizer(special: Sequence[str]) -> Any:
    """Return a tokenizer of characters, and of special tokens from the third on."""
    names = ["<pad>", "<s>", "</s>", *special, "<unk>", *map(chr, range(32, 127))]
    own = Tokenizer(models.WordLevel(dict(zip(names, range(len(names)), strict=True)), unk_token="<unk>"))
    own.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    own.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=own, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>",
        additional_special_tokens=list(special),
    )  # fmt: skip


def vocabulary(count: int) -> dict[str, Any]:
    """Return what makes a tiny network know all ids of a tokenizer."""
    return {"text_config__vocab_size": count, "text_config__max_position_embeddings": 256}


def llava(folder: Path, template: str | None = TEMPLATE) -> Model:
    """Lay out a LLaVA with its processor."""
    own = tokenizer(["<image>"])
    save_tiny(folder, "LlavaForConditionalGeneration", image_token_index=3, **vocabulary(len(own)))
    transformers.LlavaProcessor(
        image_processor=transformers.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size=32), tokenizer=own,
        patch_size=8, vision_feature_select_strategy="default", image_token="<image>", num_additional_image_tokens=1,
        chat_template=template,
    ).save_pretrained(folder)  # fmt: skip
    return open_model(folder)


def pictures(folder: Path, *shapes: tuple[int, int]) -> list[str]:
    """Write pictures of noise, height x width, and return their names."""
    random, names = np.random.default_rng(0), [f"{number}.png" for number in range(len(shapes))]
    for name, shape in zip(names, shapes, strict=True):
        Image.fromarray(random.integers(0, 256, (*shape, 3), dtype=np.uint8)).save(folder / name)
    return names


def table(file: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write a table."""
    file.write_text("\n".join(json.dumps(row) for row in rows))
    return file


def turn(role: str, *content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message."""
    return {"role": role, "content": list(content)}


QUESTIONS, ANSWERS = ("what is it", "a longer question", "who"), ("a cat", "no", "all of them")


def three_tables(folder: Path, names: Sequence[str]) -> list[Path]:
    """Write the same rows in columns, as messages beside pictures, and as LLaVA has them."""
    rows = list(zip(names, QUESTIONS, ANSWERS, strict=True))
    place = {"type": "image"}

    def said(text: str) -> dict[str, str]:
        return {"type": "text", "text": text}

    return [
        table(folder / "columns.jsonl", [{"image": a, "question": b, "answer": c} for a, b, c in rows]),
        table(folder / "messages.jsonl", [
            {"images": [a], "messages": [turn("user", place, said(b)), turn("assistant", said(c))]} for a, b, c in rows
        ]),
        table(folder / "llava.jsonl", [
            {"image": a, "conversations": [{"from": "human", "value": f"<image>\n{b}"}, {"from": "gpt", "value": c}]}
            for a, b, c in rows
        ]),
    ]  # fmt: skip


def same(one: Dataset, other: Dataset) -> bool:
    return one.tensors.keys() == other.tensors.keys() and all(
        torch.equal(each, other.tensors[name]) for name, each in one.tensors.items()
    )


def test_columns_and_conversations_become_what_the_processor_makes(tmp_path: Path) -> None:
    model, names = llava(tmp_path / "model"), pictures(tmp_path, (40, 60), (60, 40), (33, 33))
    first, *others = (open_dataset(file, model) for file in three_tables(tmp_path, names))
    assert all(same(first, each) for each in others)
    processor: Any = transformers.AutoProcessor.from_pretrained(str(tmp_path / "model"), local_files_only=True)
    texts = [f"user: <image>{b}</s>assistant: {c}</s>" for b, c in zip(QUESTIONS, ANSWERS, strict=True)]
    opened = [Image.open(tmp_path / name).convert("RGB") for name in names]
    theirs = processor(text=texts, images=opened, padding=True, padding_side="right", return_tensors="pt")
    assert {*first.tensors} == {"input_ids", "attention_mask", "pixel_values", "scored"}
    for name in first.tensors.keys() - {"scored"}:
        torch.testing.assert_close(first.tensors[name], theirs[name])
    ids, counted = next_tokens(first.tensors, first.tensors["attention_mask"] != 0)
    assert not counted[ids == 3].any(), "a loss would be that of places of pictures, which no network predicts"
    assert counted[ids > 3].all()


def test_losses_count_the_same_tokens_of_texts_with_pictures(tmp_path: Path) -> None:
    """KL, its gradient draws, agreement, the task's loss and perplexity: where a place of a picture follows, none."""
    model, names = llava(tmp_path / "model"), pictures(tmp_path, (40, 60), (60, 40), (33, 33))
    batch = next(open_dataset(three_tables(tmp_path, names)[0], model).batches(3))
    ids, real = batch["input_ids"], batch["attention_mask"] != 0
    counts = [[bool(real[s, t]) and (t + 1 == ids.shape[1] or int(ids[s, t + 1]) != 3) for t in range(ids.shape[1])]
              for s in range(3)]  # fmt: skip
    mask = torch.tensor(counts)
    assert 0 < int((real & ~mask).sum()) == int((ids == 3).sum())
    output = model.run(batch).detach()
    other = torch.where(mask[..., None], output, output.roll(1, -1))
    kind = model.summary.output
    assert not sample_divergence(output, other, batch, kind).any()
    assert float(divergence(output, other, batch, kind)) < 1e-9
    assert float(task_loss(output, batch, kind)) == pytest.approx(float(task_loss(other, batch, kind)))
    generators = [torch.Generator().manual_seed(each) for each in range(3)]
    assert torch.equal(next(drawn_gradients(output, batch, kind, generators, 1)).any(-1), mask)
    assert units_of(batch, model.summary) == int(mask.sum())
    outputs = Outputs(reference=output, quantized=other, batch=batch, kind=kind)
    (kl, agreement, perplexity) = (each.measure(outputs) for each in (KL, TOP1_AGREEMENT, PERPLEXITY))
    assert kl and agreement and perplexity
    assert kl.units.tolist() == agreement.units.tolist() == mask.sum(1).tolist()
    assert not kl.values.any() and torch.equal(agreement.values, agreement.baselines)
    assert perplexity.units.tolist() == [count - 1 for count in mask.sum(1).tolist()], "nothing follows the last token"
    assert torch.equal(perplexity.values, perplexity.baselines)


def test_tables_as_data_sets_have_them(tmp_path: Path) -> None:
    """Pictures as bytes in objects or lists of them, several answers, answers called labels, The Cauldron's pairs."""
    import pyarrow as pa
    from pyarrow import parquet

    model, names = llava(tmp_path / "model"), pictures(tmp_path, (40, 60), (60, 40), (33, 33))
    place, said = {"type": "image", "text": None}, [{"type": "text", "text": text} for text in QUESTIONS]
    bytes_of = [{"bytes": (tmp_path / name).read_bytes(), "path": None} for name in names]
    turns = [
        [turn("user", place, question), turn("assistant", {"type": "text", "text": answer})]
        for question, answer in zip(said, ANSWERS, strict=True)
    ]
    pairs = [[{"user": b, "assistant": c, "source": "a"}] for b, c in zip(QUESTIONS, ANSWERS, strict=True)]
    tables = {
        "objects": {"image": bytes_of, "question": QUESTIONS, "answers": [[answer, "other"] for answer in ANSWERS]},
        "labels": {"image": bytes_of, "query": QUESTIONS, "label": [[answer] for answer in ANSWERS]},
        "lists": {"images": [[each] for each in bytes_of], "messages": turns},
        "cauldron": {"images": [[each] for each in bytes_of], "texts": pairs},
    }
    expected = open_dataset(three_tables(tmp_path, names)[0], model)
    for name, columns in tables.items():
        parquet.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        assert same(open_dataset(tmp_path / f"{name}.parquet", model), expected), name


@pytest.mark.parametrize("begin", ["", "<s>"])
def test_a_text_begins_as_transformers_has_it_begin(tmp_path: Path, begin: str) -> None:
    """A template that writes no BOS has the tokenizer add it (LLaVA 1.5), one that does has no second one."""
    model, names = llava(tmp_path / "model", begin + TEMPLATE), pictures(tmp_path, (40, 60))
    processor: Any = transformers.AutoProcessor.from_pretrained(str(tmp_path / "model"), local_files_only=True)
    picture = {"type": "image", "image": Image.open(tmp_path / names[0])}
    theirs = processor.apply_chat_template(
        [turn("user", picture, {"type": "text", "text": "what"})], tokenize=True, return_dict=True, return_tensors="pt"
    )
    file = table(tmp_path / "a.jsonl", [{"image": names[0], "text": "what"}])
    assert torch.equal(open_dataset(file, model).tensors["input_ids"], theirs["input_ids"])
    assert int((theirs["input_ids"] == 1).sum()) == 1


def test_several_pictures_of_a_row_are_handed_over_in_a_row(tmp_path: Path) -> None:
    model, names = llava(tmp_path / "model"), pictures(tmp_path, (40, 60), (60, 40), (33, 33))
    rows = [{"images": [a, b], "text": "ab"} for a, b in zip(names, names[1:], strict=False)]
    data = open_dataset(table(tmp_path / "a.jsonl", rows), model)
    singles = torch.cat([model.run(batch) for batch in data.batches(1)])
    torch.testing.assert_close(model.run(next(data.batches(2))), singles)
    assert not torch.allclose(singles[0], singles[1])


def test_pictures_without_places_come_first_in_what_the_user_says(tmp_path: Path) -> None:
    names = pictures(tmp_path, (40, 60))
    system, said = {"role": "system", "content": "be brief"}, {"role": "user", "content": "what"}
    file = table(tmp_path / "a.jsonl", [{"images": names, "messages": [system, said]}])
    (row,), _ = read_pictured_rows(file, "", generates=True)
    assert [[part["type"] for part in message["content"]] for message in row.messages] == [["text"], ["image", "text"]]


@pytest.mark.parametrize("content", [
    [{"type": "image"}, {"type": "text", "text": "what"}], [{"type": "image", "text": None}, {"text": "what"}],
    [{"image": "0.png"}, "what"], "<image>\nwhat",
])  # fmt: skip
def test_parts_of_messages_are_understood_in_the_ways_in_which_data_have_them(tmp_path: Path, content: Any) -> None:
    pictures(tmp_path, (40, 60))
    beside = {} if "0.png" in str(content) else {"images": ["0.png"]}
    file = table(tmp_path / "a.jsonl", [{"messages": [{"role": "user", "content": content}], **beside}])
    (row,), _ = read_pictured_rows(file, "", generates=True)
    assert [part["type"] for part in row.messages[0]["content"]] == ["image", "text"]
    assert row.text == "what" and row.pictures == [tmp_path / "0.png"]


def test_numbers_are_answers_and_numbers_of_classes_are_none(tmp_path: Path) -> None:
    pictures(tmp_path, (40, 60))
    counted = tmp_path / "counted.csv"
    counted.write_text("image,question,answer\n0.png,how many,3\n")
    (row,), _ = read_pictured_rows(counted, "", generates=True)
    assert (row.text, row.answer) == ("how many", "3")
    classed = table(tmp_path / "classed.jsonl", [{"image": "0.png", "caption": "a cat", "label": 3}])
    (row,), _ = read_pictured_rows(classed, "", generates=True)
    assert (row.text, row.answer) == ("a cat", None)


def test_tables_without_pictures_are_read_as_for_any_model(tmp_path: Path) -> None:
    model = llava(tmp_path / "model")
    ids = open_dataset(f"{table(tmp_path / 'a.jsonl', [{'input_ids': [5, 6, 7, 8] * 70}])}?column=input_ids", model)
    assert {*ids.tensors} == {"input_ids"}
    rated = table(tmp_path / "b.jsonl", [{"review": "good" * 80, "stars": 3}] * 2)
    assert "input_ids" in open_dataset(f"{rated}?column=review,stars", model).tensors
    plain = table(tmp_path / "c.jsonl", [{"text": "good" * 80, "id": 3}] * 2)
    assert {*open_dataset(plain, model).tensors} == {"input_ids"}


def test_what_reads_pictures_is_calibrated_by_them(tmp_path: Path) -> None:
    model, names = llava(tmp_path / "model"), pictures(tmp_path, (40, 60), (60, 40), (33, 33))
    data = open_dataset(three_tables(tmp_path, names)[0], model)
    idle = unused_layers(model, data)
    assert idle and all(".vision_tower.encoder.layers.1." in name for name in idle)
    curvature = calibrate(model, data, batch_size=2).curvature
    assert "model.multi_modal_projector.linear_1" in curvature
    words = table(tmp_path / "words.jsonl", [{"messages": [turn("user", {"type": "text", "text": "hello"})]}] * 3)
    assert "pixel_values" not in open_dataset(words, model).tensors


def test_rows_of_other_shapes_are_filled_up_as_the_processor_fills_up_a_batch(tmp_path: Path) -> None:
    own = tokenizer(["<image>", *TILES])
    folder = tmp_path / "model"
    longer = {**vocabulary(len(own)), "text_config__max_position_embeddings": 512}
    save_tiny(folder, "Idefics3ForConditionalGeneration", image_token_id=3, **longer)
    processor: Any = transformers.Idefics3Processor(
        image_processor=transformers.Idefics3ImageProcessor(
            size={"longest_edge": 64}, max_image_size={"longest_edge": 32}
        ),
        tokenizer=own, image_seq_len=4, chat_template=TEMPLATE,
    )  # fmt: skip
    processor.save_pretrained(folder)
    model, names = open_model(folder), pictures(tmp_path, (20, 60), (60, 60), (20, 60))
    data = open_dataset(three_tables(tmp_path, names)[0], model, usual_window=512)
    texts = [f"user: <image>{b}</s>assistant: {c}</s>" for b, c in zip(QUESTIONS, ANSWERS, strict=True)]
    opened = [[Image.open(tmp_path / name).convert("RGB")] for name in names]
    theirs = processor(text=texts, images=opened, padding=True, padding_side="right", return_tensors="pt")
    for name in data.tensors.keys() - {"scored"}:
        torch.testing.assert_close(data.tensors[name], theirs[name].to(data.tensors[name].dtype))
    assert data.notes == () and model.run(next(data.batches(3))).shape[:2] == data.tensors["input_ids"].shape


def test_rows_have_as_many_pictures_as_they_like(tmp_path: Path) -> None:
    """None, one and two: no network sees what fills up the others."""
    model, names = llava(tmp_path / "model"), pictures(tmp_path, (40, 60), (60, 40), (33, 33))
    rows = [{"images": names[:count], "question": text} for count, text in zip((1, 0, 2), QUESTIONS, strict=True)]
    data = open_dataset(table(tmp_path / "a.jsonl", rows), model)
    assert data.tensors["pixel_values in a row"].shape == (3, 2, 3, 32, 32)
    together = model.run(next(data.batches(3)))
    for row, batch in enumerate(data.batches(1)):
        real = batch["attention_mask"][0] != 0
        torch.testing.assert_close(model.run(batch)[0, real], together[row, real])
    shown = read_samples(data, model.inputs, 0, 3)
    assert [sample.picture is not None for sample in shown] == [True, False, True]
    assert np.isfinite(calibrate(model, data, batch_size=2).curvature["lm_head"].rows).all()


def test_without_a_template_the_picture_comes_first(tmp_path: Path) -> None:
    model, names = llava(tmp_path / "model", template=None), pictures(tmp_path, (40, 60))
    file = table(tmp_path / "a.jsonl", [{"image": names[0], "caption": "a cat"}] * 2)
    ids = open_dataset(file, model).tensors["input_ids"][0]
    assert int((ids == 3).sum()) == 16 and ids[:2].tolist() == [1, 3]
    chat = table(tmp_path / "b.jsonl", [{"image": names[0], "messages": [turn("user")]}] * 2)
    marked = open_dataset(chat, model).tensors["input_ids"][0]
    assert int((marked == 3).sum()) == 16


def test_a_pair_of_towers_takes_pictures_and_captions(tmp_path: Path) -> None:
    folder, own = tmp_path / "model", tokenizer([])
    save_tiny(folder, "CLIPModel", **vocabulary(len(own)))
    processor: Any = transformers.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size=32)
    transformers.CLIPProcessor(image_processor=processor, tokenizer=own).save_pretrained(folder)
    model, names = open_model(folder), pictures(tmp_path, (40, 60), (60, 40))
    file = table(
        tmp_path / "a.jsonl", [{"file_name": name, "text": f"{name} " * 60**row} for row, name in enumerate(names)]
    )
    data = open_dataset(file, model)
    assert data.tensors["pixel_values"].shape == (2, 3, 32, 32) and data.tensors["input_ids"].shape == (2, 256)
    assert data.notes == ("a.jsonl: 1 of 2 texts were cut to 256 tokens",), (
        "captions are cut as the processor cuts them"
    )
    assert model.run(next(data.batches(2))).shape[0] == 2


def test_answers_to_questions_begin_with_the_decoders_own_token(tmp_path: Path) -> None:
    folder, own = tmp_path / "model", tokenizer([])
    save_tiny(folder, "BlipForQuestionAnswering", text_config__encoder_hidden_size=32, text_config__bos_token_id=2,
              **vocabulary(len(own)))  # fmt: skip
    picture: Any = transformers.BlipImageProcessor(size={"height": 32, "width": 32})
    transformers.BlipProcessor(image_processor=picture, tokenizer=own).save_pretrained(folder)
    model, names = open_model(folder), pictures(tmp_path, (40, 60), (60, 40))
    rows = [{"image": name, "question": "what", "answer": said} for name, said in zip(names, ("cat", "a"), strict=True)]
    data = open_dataset(table(tmp_path / "a.jsonl", rows), model)
    a, c, t = own.convert_tokens_to_ids(["a", "c", "t"])
    assert data.tensors["labels"].tolist() == [[c, a, t], [a, -100, -100]]
    assert model.run(next(data.batches(2))).shape == (2, 3, len(own))


def test_a_reader_of_pictures_takes_what_they_say(tmp_path: Path) -> None:
    """TrOCR's output is the logits of the text, which stands beside its picture; it was their mean over the tokens."""
    folder, own = tmp_path / "model", tokenizer([])
    sizes = {"num_attention_heads": 4, "intermediate_size": 48, "image_size": 32, "patch_size": 8}
    encoder = transformers.ViTConfig(hidden_size=32, num_hidden_layers=1, **sizes)
    decoder = transformers.TrOCRConfig(
        vocab_size=len(own), d_model=32, decoder_layers=1, decoder_attention_heads=4, decoder_ffn_dim=48,
        cross_attention_hidden_size=32,
    )  # fmt: skip
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    config.decoder_start_token_id, config.pad_token_id = 1, 0
    transformers.VisionEncoderDecoderModel(config).save_pretrained(folder)
    processor: Any = transformers.ViTImageProcessor(size={"height": 32, "width": 32})
    transformers.TrOCRProcessor(image_processor=processor, tokenizer=own).save_pretrained(folder)
    model, names = open_model(folder), pictures(tmp_path, (40, 60), (60, 40), (33, 33))
    assert model.summary.output is OutputKind.TOKEN_LOGITS
    file = table(tmp_path / "a.jsonl", [{"image": a, "text": b} for a, b in zip(names, QUESTIONS, strict=True)])
    data = open_dataset(file, model)
    labels = [[1, *(own.convert_tokens_to_ids(letter) for letter in text)] for text in QUESTIONS]
    assert [[each for each in row if each >= 0] for row in data.tensors["labels"].tolist()] == labels
    assert model.run(next(data.batches(3))).shape == (3, max(map(len, labels)), len(own))
    named = table(tmp_path / "b.jsonl", [{"image": a, "said": b} for a, b in zip(names, QUESTIONS, strict=True)])
    assert torch.equal(open_dataset(f"{named}?column=image,said", model).tensors["labels"], data.tensors["labels"])
    for path in (tmp_path, table(tmp_path / "c.jsonl", [{"image": name} for name in names])):
        with pytest.raises(DataError, match="also needs the texts of the pictures; give a table with image and text"):
            open_dataset(path, model)


IMAGE = {"type": "image"}
WRONG: dict[str, tuple[list[dict[str, Any]], str]] = {
    "no such file": ([{"image": "none.png", "text": "a"}], "a picture of row 1 is 'none.png'; expected its bytes"),
    "an address": (
        [{"messages": [turn("user", {**IMAGE, "url": "https://example.com/a.png"})]}], "nothing is downloaded"
    ),
    "an address as OpenAI's": (
        [{"messages": [turn("user", {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}})]}],
        "nothing is downloaded",
    ),
    "no such sound": ([{"audio": "none.wav", "text": "a"}], "a sound of row 1 is 'none.wav'; expected its bytes"),
    "too few": (
        [{"images": ["0.png"], "messages": [turn("user", IMAGE, IMAGE)]}], "row 1 has more places for pictures"
    ),
    "too many": (
        [{"images": ["0.png", "0.png"], "messages": [turn("user", IMAGE)]}], "row 1 has more pictures than places"
    ),
    "no picture": ([{"image": "a.jsonl", "text": "a"}], "a.jsonl cannot be read as an image"),
    "no text": ([{"image": "0.png"}], "no column of texts stands beside the pictures"),
    "a number": ([{"image": "0.png", "text": 3}], "row 1 has no text beside its picture"),
    "too long": (
        [{"messages": [turn("user", {"type": "text", "text": "a" * 300}, {**IMAGE, "path": "0.png"})]}],
        "has 3.. tokens, the model takes 256; give shorter texts",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_rows_that_are_wrong_are_named(tmp_path: Path, name: str) -> None:
    rows, words = WRONG[name]
    pictures(tmp_path, (40, 60))
    model = llava(tmp_path / "model")
    with pytest.raises(DataError, match=words):
        open_dataset(table(tmp_path / "a.jsonl", rows), model)


def test_a_template_that_fails_is_named(tmp_path: Path) -> None:
    names = pictures(tmp_path, (40, 60))
    model = llava(tmp_path / "model", "{{ raise_exception('only one turn') }}")
    file = table(tmp_path / "a.jsonl", [{"image": names[0], "text": "a"}])
    with pytest.raises(DataError, match="cannot read row 1 of .*: only one turn; fix the row"):
        open_dataset(file, model)


def test_labels_of_which_none_counts_are_left_out(tmp_path: Path) -> None:
    """PaliGemma's processor gives labels of -100 alone where it has no answer: a loss was that of no token."""
    folder, own = tmp_path / "model", tokenizer(["<image>"])
    save_tiny(folder, "PaliGemmaForConditionalGeneration", image_token_index=3, **vocabulary(2000))
    processor: Any = transformers.SiglipImageProcessor(size={"height": 32, "width": 32})
    processor.image_seq_length = 16
    transformers.PaliGemmaProcessor(image_processor=processor, tokenizer=own).save_pretrained(folder)
    file = table(tmp_path / "a.jsonl", [{"image": pictures(tmp_path, (40, 60))[0], "text": "a cat"}])
    tensors = open_dataset(file, open_model(folder)).tensors
    assert {*tensors} == {"input_ids", "attention_mask", "token_type_ids", "pixel_values", "scored"}


def test_pictures_that_a_processor_passes_over_are_told(tmp_path: Path) -> None:
    names, model = pictures(tmp_path, (40, 60)), llava(tmp_path / "model")
    file = tmp_path / "model" / "processor_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "processor_class": "BarkProcessor"}))
    with pytest.raises(DataError, match="makes no input of the pictures of row 1"):
        open_dataset(table(tmp_path / "a.jsonl", [{"image": names[0], "text": "a"}]), model)


def test_patches_of_several_samples_are_handed_over_in_a_row(tmp_path: Path) -> None:
    save_tiny(tmp_path, "Qwen2VLForConditionalGeneration", image_token_id=5)
    model = open_model(tmp_path)
    vision = model.body.network.config.vision_config
    width = vision.in_channels * vision.temporal_patch_size * vision.patch_size**2
    ids = torch.tensor([[7, 5, 8], [9, 5, 10]])
    batch = {
        "input_ids": ids, "attention_mask": torch.ones_like(ids), "mm_token_type_ids": (ids == 5).to(torch.int64),
        "pixel_values in a row": torch.randn(2, vision.spatial_merge_size**2, width),
        "image_grid_thw": torch.tensor([[1, vision.spatial_merge_size, vision.spatial_merge_size]] * 2),
    }  # fmt: skip
    singles = [model.run({name: each[row : row + 1] for name, each in batch.items()}) for row in range(2)]
    torch.testing.assert_close(model.run(batch), torch.cat(singles))
    words = {name: each for name, each in batch.items() if not name.startswith(("pixel", "image"))}
    assert not torch.allclose(model.run(words), torch.cat(singles))
