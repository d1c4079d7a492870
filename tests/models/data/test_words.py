"""Words with tags, as data sets of token classification have them: against transformers' own alignment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from tests.models.data.test_datasets import model
from workbench.errors import DataError
from workbench.models.data.datasets import open_dataset

ROWS = [
    {"id": "0", "tokens": ["Ada", "met", "Bob"], "pos_tags": [1, 2, 1], "ner_tags": [1, 0, 3]},
    {"id": "1", "tokens": ["hello", "a"], "pos_tags": [4, 5], "ner_tags": [0, 2]},
]
NAMES = ["O", "B-PER", "I-PER", "B-LOC"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tokenizer of letters, so that every word has several tokens."""
    folder = tmp_path / "model"
    letters = Tokenizer(models.WordPiece({"[UNK]": 0, **{f"{mark}{chr(97 + n)}": n + 1 + 26 * (mark != "")
                        for mark in ("", "##") for n in range(26)}}, unk_token="[UNK]"))  # fmt: skip
    letters.normalizer, letters.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=letters, unk_token="[UNK]").save_pretrained(str(folder))
    config = {"id2label": {str(number): name for number, name in enumerate(NAMES)}}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def spec_of(folder: Path) -> Any:
    return model(tokens=True, vocabulary=60, positions=8, tokenizer=folder, folder=folder, sentences=True)


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("names", [False, True])
def test_tags_are_labels_of_the_first_tokens_of_words(tmp_path: Path, folder: Path, names: bool) -> None:
    rows = [{**row, "ner_tags": [NAMES[tag] for tag in row["ner_tags"]]} for row in ROWS] if names else ROWS
    data = open_dataset(written(tmp_path / "a.jsonl", rows), spec_of(folder))
    own = PreTrainedTokenizerFast.from_pretrained(str(folder))(
        [row["tokens"] for row in ROWS], is_split_into_words=True
    )
    for number, row in enumerate(ROWS):
        length = min(len(own["input_ids"][number]), 8)
        assert data.tensors["input_ids"][number, :length].tolist() == own["input_ids"][number][:length]
        places = own.word_ids(number)[:length]
        first = [places.index(place) == at for at, place in enumerate(places)]
        tags: Any = row["ner_tags"]
        expected = [tags[place] if begins else -100 for place, begins in zip(places, first, strict=True)]
        assert data.tensors["labels"][number].tolist() == expected + [-100] * (8 - length)
        assert data.tensors["attention_mask"][number].tolist() == [1] * length + [0] * (8 - length)
    assert data.notes == ("a.jsonl: 1 of 2 texts were cut to 8 tokens",)


def test_a_column_of_tags_can_be_chosen(tmp_path: Path, folder: Path) -> None:
    path = written(tmp_path / "a.jsonl", ROWS)
    labels = open_dataset(f"{path}?column=tokens,pos_tags", spec_of(folder)).tensors["labels"]
    assert labels[1][labels[1] >= 0].tolist() == [4, 5]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"tokens": ["a", "b"], "ner_tags": [0]}, "row 3 has 2 words and 1 of tags"),
        ({"tokens": [], "ner_tags": []}, r"row 3 is no list of words: \[\]"),
        ({"tokens": ["a", None], "ner_tags": [0, 0]}, "row 3 is no list of words"),
        ({"tokens": ["a"], "ner_tags": ["B-ORG"]}, "no class 'B-ORG'; its classes are O, B-PER, I-PER, B-LOC"),
    ],
)
def test_odd_rows_are_told(tmp_path: Path, folder: Path, row: dict[str, Any], reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        open_dataset(written(tmp_path / "a.jsonl", [*ROWS, row]), spec_of(folder))
