"""Sounds with their texts, for networks that read both: as transformers' own processor makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
import transformers

from tests.models.data.pictures.test_pictured_texts import ANSWERS, QUESTIONS, same, table, tokenizer, turn, vocabulary
from tests.zoo.architectures import save as save_tiny
from workbench.errors import DataError
from workbench.measurement.calibrate import calibrate
from workbench.models.data.datasets import open_dataset
from workbench.models.data.inputs import IN_A_ROW, entries_of
from workbench.models.data.pictures.pictured_rows import read_pictured_rows
from workbench.models.data.pictures.pictured_texts import in_a_row
from workbench.models.model import Model
from workbench.models.sources import open_model

TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {% for c in m.content %}{% if c.type == 'audio' %}<|AUDIO|>{% else %}"
    "{{ c.text }}{% endif %}{% endfor %}</s>{% endfor %}"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Lay out a Qwen2-Audio with its processor."""
    folder, own = tmp_path_factory.mktemp("model"), tokenizer(["<|AUDIO|>"])
    encoder = {"audio_config__num_mel_bins": 16, "audio_config__max_source_positions": 1500}
    save_tiny(folder, "Qwen2AudioForConditionalGeneration", audio_token_id=3, **encoder, **vocabulary(len(own)))
    transformers.Qwen2AudioProcessor(
        feature_extractor=transformers.WhisperFeatureExtractor(feature_size=16), tokenizer=own, chat_template=TEMPLATE
    ).save_pretrained(folder)
    return open_model(folder)


def sounds(folder: Path, *kinds: tuple[int, int, int]) -> list[str]:
    """Write sounds of noise (rate, points, channels) and return their names."""
    random, names = np.random.default_rng(0), [f"{number}.wav" for number in range(len(kinds))]
    for name, (rate, points, channels) in zip(names, kinds, strict=True):
        soundfile.write(folder / name, 0.1 * random.normal(size=(points, channels)), rate, subtype="FLOAT")
    return names


def test_columns_and_conversations_become_what_the_processor_makes(tmp_path: Path, model: Model) -> None:
    names = sounds(tmp_path, (16000, 8000, 1), (16000, 12000, 1), (16000, 6000, 1))
    rows = list(zip(names, QUESTIONS, ANSWERS, strict=True))
    kinds = [("audio", "audio"), ("audio", "audio_url"), ("audio", "path")]
    files = [
        table(tmp_path / "columns.jsonl", [{"audio": a, "question": b, "answer": c} for a, b, c in rows]),
        table(tmp_path / "paths.jsonl", [{"path": a, "prompt": b, "response": c} for a, b, c in rows]),
        table(tmp_path / "marks.jsonl", [
            {"audio": a, "conversations": [{"from": "human", "value": f"<audio>\n{b}"}, {"from": "gpt", "value": c}]}
            for a, b, c in rows
        ]),
        table(tmp_path / "parts.jsonl", [
            {"messages": [turn("user", {"type": kind, name: a}, {"type": "text", "text": b}),
                          turn("assistant", {"type": "text", "text": c})]}
            for (a, b, c), (kind, name) in zip(rows, kinds, strict=True)
        ]),
    ]  # fmt: skip
    first, *others = (open_dataset(file, model) for file in files)
    assert all(same(first, each) for each in others)
    folder = model.inputs.folder
    processor: Any = transformers.AutoProcessor.from_pretrained(str(folder), local_files_only=True)
    theirs = processor(
        text=[f"user: <|AUDIO|>{b}</s>assistant: {c}</s>" for b, c in zip(QUESTIONS, ANSWERS, strict=True)],
        audio=[soundfile.read(tmp_path / name, dtype="float32")[0] for name in names], sampling_rate=16000,
        padding=True, padding_side="right", return_tensors="pt",
    )  # fmt: skip
    assert {*first.tensors} == {*theirs, "scored"}
    for name in theirs:
        torch.testing.assert_close(first.tensors[name], theirs[name].to(first.tensors[name].dtype))
    assert torch.equal(first.tensors["scored"] == 0, first.tensors["input_ids"] == 3)
    assert "multi_modal_projector.linear" in " ".join(calibrate(model, first, batch_size=2).curvature)


def test_rows_have_as_many_sounds_as_they_like_at_any_rate(tmp_path: Path, model: Model) -> None:
    names = sounds(tmp_path, (44100, 22050, 2), (16000, 8000, 1))
    rows = [{"audios": names[:count], "text": text} for count, text in zip((1, 0, 2), QUESTIONS, strict=True)]
    data = open_dataset(table(tmp_path / "a.jsonl", rows), model)
    assert data.notes == (
        "a.jsonl: resampled from 44100 to 16000 Hz, the model's rate",
        "a.jsonl: the channels of 2 of 3 sounds are mixed to one, their mean",
    )
    together = model.run(next(data.batches(3)))
    for row, batch in enumerate(data.batches(1)):
        real = batch["attention_mask"][0] != 0
        torch.testing.assert_close(model.run(batch)[0, real], together[row, real], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("row, words", [
    ({"audio": "none.wav", "text": "a"}, "a sound of row 1 is 'none.wav'; expected its bytes, or a path beside"),
    ({"audio": "a.jsonl", "text": "a"}, "a.jsonl cannot be read as a sound"),
    ({"audio": "0.wav"}, "no column of texts stands beside the sounds; name it"),
    ({"audio": "0.wav", "text": "a" * 300}, ""),
    ({"messages": [turn("user", {"type": "input_audio", "input_audio": {"data": "AA"}})]}, "a sound of row 1 is dict"),
    ({"messages": [turn("user", {"type": "audio"})]}, "row 1 has more places for sounds than sounds"),
])  # fmt: skip
def test_rows_that_are_wrong_are_named(tmp_path: Path, model: Model, row: dict[str, Any], words: str) -> None:
    sounds(tmp_path, (16000, 8000, 1))
    file = table(tmp_path / "a.jsonl", [row])
    if words:
        with pytest.raises(DataError, match=words):
            open_dataset(file, model)
    else:
        assert open_dataset(file, model).notes == ("a.jsonl: 1 of 1 texts were cut to 256 tokens",)


@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_one_number_of_each_sound_is_handed_over_in_a_row(kind: type[np.generic]) -> None:
    """As the sizes that Phi-4-multimodal's processor makes."""
    ((name, tensor),) = in_a_row("audio_embed_sizes", [np.array([4, 6], kind), None, np.array([5], kind)]).items()
    assert name == "audio_embed_sizes" + IN_A_ROW and tensor.shape == (3, 2)
    assert entries_of(name, tensor).tolist() == [4, 6, 5]


def test_a_part_whose_type_is_no_word_is_no_place(tmp_path: Path) -> None:
    sounds(tmp_path, (16000, 8000, 1))
    content = [{"type": ["audio"], "text": "a"}, {"type": "text", "text": "b"}]
    file = table(tmp_path / "a.jsonl", [{"audio": "0.wav", "messages": [turn("user", *content)]}])
    (row,), _ = read_pictured_rows(file, "", generates=True)
    assert [part["type"] for part in row.messages[0]["content"]] == ["audio", "['audio']", "text"]
