"""Tables, texts, conversations, images and sounds as users have them."""

from __future__ import annotations

import bz2
import gzip
import json
import re
import socket
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
import torch
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers
from tokenizers.processors import TemplateProcessing

from tests.models.data.test_datasets import model
from workbench.errors import DataError
from workbench.models.data import rows as rows_of_tables
from workbench.models.data import text
from workbench.models.data.datasets import open_dataset
from workbench.models.data.reading import Reading
from workbench.models.data.tables import read_table
from workbench.models.data.text import windows

datasets = pytest.importorskip("datasets")

TEMPLATE = "{% for m in messages %}<{{ m.role }}> {{ m.content }} {% endfor %}"
ROWS: list[dict[str, Any]] = [{"id": n, "text": f"w{n} w{n + 1} w{n + 2}"[: 5 + n], "label": n % 3} for n in range(8)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tokenizer that puts w1 before a text and w2 behind it, with a chat template."""
    folder = tmp_path / "model"
    folder.mkdir()
    words = {f"w{number}": number for number in range(50)} | {"<user>": 50, "<assistant>": 51}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = TemplateProcessing(
        single="w1 $A w2", pair="w1 $A w2 $B:1 w2:1", special_tokens=[("w1", 1), ("w2", 2)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": TEMPLATE, "model_max_length": 16}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture
def encoder(folder: Path) -> Any:
    return model(tokens=True, vocabulary=60, positions=16, tokenizer=folder, sentences=True)


@pytest.fixture
def decoder(folder: Path) -> Any:
    return model(tokens=True, vocabulary=60, positions=16, tokenizer=folder)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    table = datasets.Dataset.from_list(rows)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix in (".csv", ".tsv"):
        mark = "," if path.suffix == ".csv" else "\t"
        lines = [mark.join(rows[0]), *(mark.join(str(value) for value in row.values()) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    elif path.suffix == ".parquet":
        table.to_pandas().to_parquet(path)
    else:
        table.save_to_disk(str(path.parent / "saved"))
        next((path.parent / "saved").glob("*.arrow")).rename(path)
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".tsv", ".parquet", ".arrow"])
def test_every_kind_of_table(tmp_path: Path, encoder: Any, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows become sentences with special tokens, padding, masks and labels; no network, nothing left behind."""
    file = write(tmp_path / f"rows{suffix}", ROWS)
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("the network was touched"))
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(cache))
    data = open_dataset(file, encoder)
    (batch,) = data.batches(8)
    for row, ids, mask in zip(ROWS, batch["input_ids"].tolist(), batch["attention_mask"].tolist(), strict=True):
        words = [int(word[1:] or 0) if word in {f"w{n}" for n in range(50)} else 0 for word in row["text"].split()]
        assert ids[: sum(mask)] == [1, *words, 2]
        assert mask == [1] * sum(mask) + [0] * (len(mask) - sum(mask))
    assert batch["labels"].tolist() == [row["label"] for row in ROWS]
    assert list(cache.iterdir()) == []
    assert data.record.path == f"{file}?text=sentences"
    again = open_dataset(data.record.path, encoder, recorded=True)
    assert again.record == data.record


def test_a_batch_ends_where_its_longest_sentence_does(tmp_path: Path, encoder: Any) -> None:
    (tmp_path / "lines.txt").write_text("w5\n\nw6\nw3 w4 w5 w6\n")
    shapes = [tuple(batch["input_ids"].shape) for batch in open_dataset(tmp_path / "lines.txt", encoder).batches(2)]
    assert shapes == [(2, 3), (1, 6)]


def test_columns_are_chosen_and_named(tmp_path: Path, encoder: Any) -> None:
    file = write(tmp_path / "rows.jsonl", [{"a": "w3", "b": "w4", "n": 0.5}, {"a": "w5", "b": "w6", "n": 1.5}])
    (batch,) = open_dataset(f"{file}?column=b", encoder).batches(2)
    assert batch["input_ids"].tolist() == [[1, 4, 2], [1, 6, 2]]
    (batch,) = open_dataset(f"{file}?column=a,b", encoder).batches(2)
    assert batch["input_ids"].tolist() == [[1, 3, 2, 4, 2], [1, 5, 2, 6, 2]]
    with pytest.raises(DataError, match="has no column 'c'.*its columns are a, b, n"):
        open_dataset(f"{file}?column=c", encoder)
    with pytest.raises(DataError, match="which column is meant.*a, b, n"):
        open_dataset(file, encoder)
    with pytest.raises(DataError, match="no option 'colum'; the closest are column"):
        open_dataset(f"{file}?colum=a", encoder)


@pytest.mark.parametrize("mark", [";", "\t", ","])
def test_columns_are_parted_as_the_first_line_says(tmp_path: Path, encoder: Any, mark: str) -> None:
    (tmp_path / "a.csv").write_text(f"text{mark}label\nw3{mark}1\nw4{mark}0\n")
    (batch,) = open_dataset(tmp_path / "a.csv", encoder).batches(2)
    assert batch["input_ids"].tolist() == [[1, 3, 2], [1, 4, 2]]
    assert batch["labels"].tolist() == [1, 0]


def test_pairs_with_scores_stay_together(tmp_path: Path, folder: Path) -> None:
    embedder = model(tokens=True, vocabulary=60, positions=16, tokenizer=folder, sentences=True, embeds=True)
    rows = [{"sentence1": f"w{n}", "sentence2": f"w{n + 1}", "score": n / 10} for n in range(3, 13)]
    data = open_dataset(write(tmp_path / "pairs.csv", rows), embedder, samples=4, seed=1)
    assert (len(data), data.record.samples) == (8, 4)
    batches = list(data.batches(3))
    assert [len(batch["input_ids"]) for batch in batches] == [2, 2, 2, 2]
    for batch in batches:
        first, second = batch["input_ids"][:, 1].tolist()
        assert second == first + 1
        assert batch["scores"].tolist() == pytest.approx([first / 10] * 2)


def test_conversations_go_through_the_chat_template(
    tmp_path: Path, decoder: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = [{"role": "user", "content": "w7"}, {"role": "assistant", "content": "w8 w9"}]
    longer = [{"from": "human", "value": "w3"}]
    file = tmp_path / "chat.jsonl"
    file.write_text(json.dumps({"messages": chat}) + "\n" + json.dumps({"messages": longer}) + "\n")
    (batch,) = open_dataset(file, decoder).batches(2)
    assert batch["input_ids"].tolist() == [[50, 7, 51, 8, 9], [50, 3, 0, 0, 0]]
    assert batch["attention_mask"].tolist() == [[1] * 5, [1, 1, 0, 0, 0]]
    monkeypatch.setattr(text, "SECONDS", 1.0)
    for template, reason in (
        ("{{ raise_exception('no system role') }}", "fails on row 1 of chat.jsonl.*no system role"),
        ("{{ ''.__class__.__mro__ }}", "fails on row 1.*SecurityError"),
        ("{% for", "fails on row 1"),
        ("{% set a = range(99999) %}" + "{% for b in a %}" * 3 + "{% endfor %}" * 3, "more than 1.0.* s.*malicious"),
        ("{{ 'a' * 9999999999 }}", "memory"),
        ("{{ 'a' * 400000000 }}", "takes too much memory"),
        ("{{ 'a' * 200000 }}", "fails on row 1.*it writes 200,000 characters, and 66,[0-9]+ are the most"),
        (None, "has no chat template"),
    ):
        settings = json.loads((folder / "tokenizer_config.json").read_text())
        (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": template}))
        with pytest.raises(DataError, match=reason):
            open_dataset(file, decoder)


PARTS = "{% for m in messages %}<{{ m.role }}> {% for part in m.content %}{{ part.text }} {% endfor %}{% endfor %}"


@pytest.mark.parametrize("template", [TEMPLATE, PARTS], ids=["of strings", "of parts"])
def test_parts_of_text_are_written_as_text_whatever_the_template_takes(
    template: str, tmp_path: Path, decoder: Any, folder: Path
) -> None:
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": template}))
    parts = [{"type": "text", "text": "w7"}, {"type": "text", "text": "w9"}]
    file = write(tmp_path / "chat.jsonl", [{"messages": [{"role": "user", "content": parts}]}] * 2)
    (batch,) = open_dataset(file, decoder).batches(2)
    assert batch["input_ids"].tolist() == [[50, 7, 9]] * 2


@pytest.mark.parametrize(
    ("other", "columns"), [("completion", ""), ("chosen", ""), ("completion", "prompt,completion")]
)
def test_a_prompt_goes_before_its_completion(
    tmp_path: Path, decoder: Any, encoder: Any, other: str, columns: str
) -> None:
    rows = [{other: " w5 w6", "prompt": f"w{n} w4", "rejected": "w9"} for n in range(10, 18)]
    file = write(tmp_path / "a.jsonl", rows)
    path = f"{file}?window=8&column={columns}"
    ids = open_dataset(path, decoder).tensors["input_ids"]
    assert ids[0].tolist() == [1, 10, 4, 5, 6, 11, 4, 5]
    data = open_dataset(path, encoder)
    assert data.tensors["input_ids"][0].tolist() == [1, 10, 4, 5, 6, 2]
    assert data.notes == (f"a.jsonl: the text of a row is its prompt followed by its {other}",)


def test_a_comma_names_no_column(tmp_path: Path, encoder: Any) -> None:
    file = write(tmp_path / "a.jsonl", ROWS)
    named = [open_dataset(f"{file}?column={column}", encoder).tensors["input_ids"] for column in ("text", " ,")]
    assert torch.equal(*named)


def test_a_conversation_goes_before_its_answer(tmp_path: Path, decoder: Any) -> None:
    asked, answer = [{"role": "user", "content": "w3"}], [{"role": "assistant", "content": "w4"}]
    file = write(tmp_path / "a.jsonl", [{"prompt": asked, "completion": answer}] * 4)
    assert open_dataset(file, decoder).tensors["input_ids"][0].tolist() == [50, 3, 51, 4]


def test_running_text_leaves_no_chosen_column_out(tmp_path: Path, decoder: Any) -> None:
    file = write(tmp_path / "a.jsonl", [{"question": f"w{n}", "answer": "w4 w5"} for n in range(10, 18)])
    data = open_dataset(f"{file}?window=8&column=question,answer", decoder)
    assert data.tensors["input_ids"][0].tolist() == [1, 10, 4, 5, 11, 4, 5, 12]
    assert data.notes == ("a.jsonl: the text of a row is its question followed by its answer",)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".json", ".txt"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_named(tmp_path: Path, decoder: Any, suffix: str, encoding: str) -> None:
    text = json.dumps({"text": "w1 w2"}) if suffix.startswith(".js") else "text,label\nw1 w2,1\n"
    file = tmp_path / f"a{suffix}"
    file.write_bytes(text.encode(encoding))
    with pytest.raises(DataError, match=r"UTF-(16|32); save it as UTF-8"):
        open_dataset(file, decoder)


def test_the_chat_template_gets_tools(tmp_path: Path, decoder: Any, folder: Path) -> None:
    template = (
        "{% for tool in tools or [] %}{{ tool.function.name }} {% endfor %}{% for each in messages %}"
        "{{ each.content or each.tool_calls[0].function.name }} {% endfor %}"
    )
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": template}))
    call = {"type": "function", "function": {"name": "w6", "arguments": {}}}
    chat = [{"role": "user", "content": "w7"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    tools = [{"type": "function", "function": {"name": "w5"}}]
    rows = [{"messages": chat, "tools": each} for each in (tools, json.dumps(tools), None)]
    (tmp_path / "tools.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (batch,) = open_dataset(tmp_path / "tools.jsonl", decoder).batches(3)
    assert batch["input_ids"].tolist() == [[5, 7, 6], [5, 7, 6], [7, 6, 0]]


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "arrow"])
def test_columns_within_objects_have_names(tmp_path: Path, decoder: Any, encoder: Any, kind: str) -> None:
    chats = [{"data": {"messages": [{"role": "user", "content": "w7"}]}}] * 2
    file = write(tmp_path / f"chat.{kind}", chats)
    (batch,) = open_dataset(f"{file}?column=data.messages", decoder).batches(2)
    assert batch["input_ids"].tolist() == [[50, 7]] * 2
    with pytest.raises(DataError, match="which column is meant.*data.messages"):
        open_dataset(file, decoder)
    pairs = [{"pair": {"en": "w3", "of": {"de": f"w{n}"}}, "pair.en": "w9", "label": n % 2} for n in (4, 5)]
    file = write(tmp_path / f"pairs.{kind}", pairs)
    (batch,) = open_dataset(f"{file}?column=pair.en,pair.of.de", encoder).batches(2)  # a column's own name counts
    assert batch["input_ids"].tolist() == [[1, 9, 2, 4, 2], [1, 9, 2, 5, 2]]
    assert batch["labels"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([{"text": "w3"}, {"text": 4}], "the text of row 2 is a number, that of row 1 is a text"),
        ([{"text": "w3", "label": 1}, {"text": "w4", "label": {}}], "the label of row 2 is an object"),
        ([{"input_ids": [1, "a"]}], "row 1 of input_ids holds 'a', a list of whole numbers"),
        ([{"input_ids": [1, 2]}, {"input_ids": ["a"]}], "row 2 of input_ids holds .a., a list of whole numbers"),
        ([{"input_ids": [1, 2.5]}], "row 1 of input_ids holds 2.5"),
        ([{"input_ids": [1, 10**30]}], "a number beyond 64 bits"),
        ([{"text": "w3", "label": 10**400}], "a number beyond 64 bits"),
        ([{"messages": "[{1"}], "row 1 is not a conversation"),
        ([{"messages": "[{" + "[" * 99999}], "row 1 is not a conversation"),
    ],
)
def test_cells_of_other_kinds_are_named(tmp_path: Path, decoder: Any, rows: list[Any], reason: str) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=reason):
        open_dataset(tmp_path / "rows.jsonl", decoder)


def test_columns_of_other_lengths_are_damage(tmp_path: Path, decoder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As mutated Parquet files have them."""
    from workbench.models.data import table_file

    file = write(tmp_path / "rows.jsonl", ROWS)
    monkeypatch.setattr(table_file, "_parsed", lambda *_: table_file.Columns({"text": "string"}, lambda name: [], 3))
    with pytest.raises(DataError, match="its columns do not have the 3 rows"):
        open_dataset(file, decoder)


def test_windows_begin_as_the_tokenizer_does(tmp_path: Path, decoder: Any) -> None:
    (tmp_path / "text.txt").write_text(" ".join(f"w{n}" for n in range(3, 48)))
    data = open_dataset(f"{tmp_path}/text.txt?window=6", decoder)
    (batch,) = data.batches(100)
    assert batch["input_ids"].tolist() == [[1, *range(start, start + 5)] for start in range(3, 48, 5)]
    assert "text=windows" in data.record.path
    (plain,) = open_dataset(f"{tmp_path}/text.txt?window=6", decoder, recorded=True).batches(100)
    assert plain["input_ids"].tolist() == [list(range(start, start + 6)) for start in range(3, 45, 6)]


@pytest.mark.parametrize(("count", "stride"), [(20, 2), (21, 3), (8, 4), (9, 8), (30, 1)])
def test_a_stride_scores_every_token_once(count: int, stride: int) -> None:
    cut = windows(torch.arange(count), 8, None, stride=stride)
    scored = cut["input_ids"][cut["scored"] == 1]
    assert sorted(scored.tolist()) == list(range(count))
    assert all(torch.equal(row, torch.arange(int(row[0]), int(row[0]) + 8)) for row in cut["input_ids"])


def test_rows_of_halves_share_no_document(tmp_path: Path, decoder: Any) -> None:
    rows = [{"text": " ".join([f"w{n}"] * 9)} for n in range(3, 43)]
    file = write(tmp_path / "documents.parquet", rows)
    halves = [open_dataset(file, decoder, split=split) for split in ("calibration", "evaluation")]
    first, other = (set(torch.unique(half.tensors["input_ids"][:, 1:]).tolist()) for half in halves)
    assert not first & other
    assert first | other == set(range(3, 43))


def test_a_long_context_is_the_default_where_the_text_is_long_enough(tmp_path: Path, folder: Path) -> None:
    roomy = model(tokens=True, vocabulary=60, positions=4096, tokenizer=folder)
    (tmp_path / "long.txt").write_text("w5 " * 20_000)
    long = open_dataset(tmp_path / "long.txt", roomy, usual_window=2048)
    assert long.tensors["input_ids"].shape == (9, 2048)
    assert open_dataset(long.record.path, roomy, recorded=True).record == long.record
    assert open_dataset(tmp_path / "long.txt", roomy).tensors["input_ids"].shape[1] == 256
    (tmp_path / "short.txt").write_text("w5 " * 5_000)
    short = open_dataset(tmp_path / "short.txt", roomy, usual_window=2048)
    assert short.tensors["input_ids"].shape[1] == 256
    assert short.notes[0] == "short.txt gives 2 windows of 2048 tokens: windows of 256 are taken"


def test_texts_as_labels_are_the_models_classes(tmp_path: Path, folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "label2id": {"good": 1, "bad": 0}}))
    spec = model(tokens=True, vocabulary=60, positions=16, tokenizer=folder, folder=folder, sentences=True)
    file = write(tmp_path / "rows.csv", [{"text": "w3", "label": "good"}, {"text": "w4", "label": "bad"}])
    assert open_dataset(file, spec).tensors["labels"].tolist() == [1, 0]
    file = write(tmp_path / "b.csv", [{"text": "w3", "label": "good"}, {"text": "w4", "label": "ugly"}])
    with pytest.raises(DataError, match="no class 'ugly'; its classes are good, bad"):
        open_dataset(file, spec)


def test_a_saved_data_set_is_its_table(tmp_path: Path, encoder: Any) -> None:
    """As ``save_to_disk`` writes it, and as a repository of the Hub has it: a readme is no data."""
    rows = [{"text": f"w{number} w5"} for number in range(3, 9)]
    expected = open_dataset(write(tmp_path / "a.jsonl", rows), encoder).tensors["input_ids"]
    datasets.Dataset.from_list(rows).save_to_disk(str(tmp_path / "saved"))
    (tmp_path / "hub" / "data").mkdir(parents=True)
    (tmp_path / "hub" / "README.md").write_text("w3 w4 w5")
    write(tmp_path / "hub" / "data" / "train.parquet", rows)
    for folder in (tmp_path / "saved", tmp_path / "hub"):
        assert torch.equal(open_dataset(folder, encoder).tensors["input_ids"], expected)
    write(tmp_path / "hub" / "data" / "test.parquet", rows)
    with pytest.raises(
        DataError, match=r"holds 2 tables \(data/test.parquet, data/train.parquet\); give one of them, as"
    ):
        open_dataset(tmp_path / "hub", encoder)
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match=r"none holds nothing that is read; expected a text file, a table"):
        open_dataset(tmp_path / "none", model(tokens=False, channels=3))


def sharded(folder: Path, split: str, suffix: str, count: int = 3) -> list[Path]:
    """Write ROWS as shards into a folder, and return these."""
    folder.mkdir(parents=True, exist_ok=True)
    cuts = [len(ROWS) * number // count for number in range(count + 1)]
    return [
        write(folder / f"{split}-{number:05}-of-{count:05}{suffix}", ROWS[cuts[number] : cuts[number + 1]])
        for number in range(count)
    ]


def refusal(path: Path, spec: Any) -> str:
    with pytest.raises(DataError) as caught:
        open_dataset(path, spec)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_shards_are_one_table_and_all_are_recorded(tmp_path: Path, encoder: Any, suffix: str) -> None:
    """In order, from the repository's folder, the shards' own, or the name before their numbers."""
    whole = open_dataset(write(tmp_path / "whole.jsonl", ROWS), encoder)
    shards = sharded(tmp_path / "hub" / "data", "train", suffix)
    data = open_dataset(tmp_path / "hub", encoder)
    assert data.record.path == f"{tmp_path}/hub/data/train?text=sentences"
    assert data.record.content_hash == whole.record.content_hash
    for path in (data.record.path, tmp_path / "hub" / "data", tmp_path / "hub" / "data" / "train"):
        assert open_dataset(path, encoder).record == data.record
    drawn = [
        open_dataset(path, encoder, split="evaluation", samples=3) for path in (tmp_path / "hub", whole.record.path)
    ]
    assert torch.equal(*(each.tensors["input_ids"] for each in drawn))
    for shard, kept in [(shard, shard.read_bytes()) for shard in shards]:
        write(shard, [{**row, "text": "w9"} for row in ROWS[:3]])
        assert open_dataset(data.record.path, encoder, recorded=True).record.content_hash != data.record.content_hash
        shard.write_bytes(kept)
    assert open_dataset(data.record.path, encoder, recorded=True).record == data.record


def test_saved_shards_and_splits(tmp_path: Path, encoder: Any) -> None:
    table = datasets.Dataset.from_list(ROWS)
    table.save_to_disk(str(tmp_path / "saved"), num_shards=3)
    data = open_dataset(tmp_path / "saved", encoder)
    assert data.tensors["labels"].tolist() == [row["label"] for row in ROWS]
    datasets.DatasetDict(train=table, test=table).save_to_disk(
        str(tmp_path / "both"), num_shards={"train": 2, "test": 1}
    )
    assert refusal(tmp_path / "both", encoder) == (
        f"{tmp_path}/both holds 2 tables (test, train); give one of them, as {tmp_path}/both/train"
    )
    for split in ("test", "train"):
        assert open_dataset(tmp_path / "both" / split, encoder).record.content_hash == data.record.content_hash
    sharded(tmp_path / "hub" / "data", "train", ".parquet")
    sharded(tmp_path / "hub" / "data", "test", ".parquet", 1)
    assert "holds 2 tables (data/test, data/train); give one of them, as" in refusal(tmp_path / "hub", encoder)
    for split in ("test", "train"):
        own = open_dataset(tmp_path / "hub" / "data" / split, encoder)
        assert own.record.content_hash == data.record.content_hash


def test_shards_that_are_not_one_table_are_told(tmp_path: Path, encoder: Any) -> None:
    shards = sharded(tmp_path, "train", ".jsonl")
    kept = shards[1].read_bytes()
    shards[1].unlink()
    for path in (tmp_path, tmp_path / "train"):
        assert "of its 3 shards train-00001-of-00003.jsonl is missing" in refusal(path, encoder)
    for other in ("train-00001-of-00004.jsonl", "train-00000-of-00003.csv"):
        (tmp_path / other).write_bytes(kept)
        assert f"{other}" in refusal(tmp_path / "train", encoder)
        assert "are of several tables" in refusal(tmp_path / "train", encoder)
        (tmp_path / other).unlink()
    for row in ({"text": "w3"}, {"label": 1, "other": "w3"}):
        write(shards[1], [row])
        assert (
            "train-00001-of-00003.jsonl has other columns than train-00000-of-00003.jsonl, of which text, label are "
            in (refusal(tmp_path / "train", encoder))
        )
    shards[1].write_bytes(b"")
    assert "train-00001-of-00003.jsonl is empty" in refusal(tmp_path / "train", encoder)


@pytest.mark.parametrize(("before", "first", "suffix"), [("", "0000", ".parquet"), ("train-", "0", ".jsonl"),
                                                         ("part_", "01", ".json.gz"), ("v", "1", ".csv")])  # fmt: skip
def test_shards_that_do_not_say_how_many_there_are(
    tmp_path: Path, encoder: Any, before: str, first: str, suffix: str
) -> None:
    """As the Hub converts data sets, and as people name parts; numbers that nothing parts from a name are its own."""
    whole = open_dataset(write(tmp_path / "whole.jsonl", ROWS), encoder)
    folder, names = tmp_path / "rows", []
    folder.mkdir()
    for number, start in enumerate(range(0, len(ROWS), 2), int(first)):
        names.append(f"{before}{number:0{len(first)}}{suffix}")
        plain = write(folder / names[-1].removesuffix(".gz"), ROWS[start : start + 2])
        if suffix.endswith(".gz"):
            (folder / names[-1]).write_bytes(gzip.compress(plain.read_bytes()))
            plain.unlink()
    if before == "v":
        assert f"holds {len(names)} tables (v1.csv, v2.csv" in refusal(folder, encoder)
        return
    data = open_dataset(folder, encoder)
    assert data.record.path.startswith(f"{folder}/{before}#{suffix}")
    assert data.record.content_hash == whole.record.content_hash
    assert open_dataset(data.record.path, encoder, recorded=True).record == data.record
    assert len(open_dataset(folder / names[0], encoder)) == 2  # its own rows alone
    (folder / names[0]).rename(folder / names[0].replace(first, "9" * len(first)))  # which is not all of them
    assert "tables" in refusal(folder, encoder)


def test_shards_whose_names_have_what_stands_for_numbers(tmp_path: Path, encoder: Any) -> None:
    whole = open_dataset(write(tmp_path / "whole.jsonl", ROWS), encoder)
    (tmp_path / "rows").mkdir()
    for number in range(2):
        write(tmp_path / "rows" / f"c#-{number:05}-of-00002.jsonl", ROWS[2 * number :][: (2, None)[number]])
    assert open_dataset(tmp_path / "rows", encoder).record.content_hash == whole.record.content_hash


def test_tables_whose_numbers_are_the_same_are_two(tmp_path: Path, encoder: Any) -> None:
    for name in ("rows-1.jsonl", "rows-01.jsonl"):
        write(tmp_path / name, ROWS)
    assert "holds 2 tables (rows-01.jsonl, rows-1.jsonl" in refusal(tmp_path, encoder)


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".tsv"])
@pytest.mark.parametrize("packed_as", ["gz", "zst", "bz2"])
def test_packed_texts_are_unpacked(tmp_path: Path, encoder: Any, suffix: str, packed_as: str) -> None:
    def pack(content: bytes) -> bytes:
        if packed_as == "zst":
            return bytes(pyarrow.compress(content, codec="zstd", asbytes=True))
        return gzip.compress(content) if packed_as == "gz" else bz2.compress(content)

    file = write(tmp_path / f"rows{suffix}", ROWS)
    plain, packed = open_dataset(file, encoder), tmp_path / f"c4.00000-of-00001{suffix}.{packed_as}"
    packed.write_bytes(pack(file.read_bytes()))
    file.unlink()
    for path in (packed, tmp_path / "c4"):
        assert open_dataset(path, encoder).record.content_hash == plain.record.content_hash
    for content, why in (
        (packed.read_bytes()[:-5], "cannot be unpacked as .*: "), (b"?", "cannot be unpacked as .*: "),
        (pack(b""), "is empty"),
        (pack(bytes(1 << 26)), "holds more than .* MB.* unpack it, or it is damaged or malicious"),
    ):  # fmt: skip
        packed.write_bytes(content)
        assert re.search(why, refusal(packed, encoder)), refusal(packed, encoder)


def test_a_folder_of_texts(tmp_path: Path, encoder: Any) -> None:
    (tmp_path / "texts" / "more").mkdir(parents=True)
    (tmp_path / "texts" / "b.txt").write_text("w4")
    (tmp_path / "texts" / "more" / "a.txt").write_text("w3\n")
    assert open_dataset(tmp_path / "texts", encoder).tensors["input_ids"].tolist() == [[1, 4, 2], [1, 3, 2]]


def test_images_and_numbers_of_a_table(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (2, 4, 4, 3), dtype=np.uint8)
    for number, image in enumerate(pixels):
        Image.fromarray(image).save(tmp_path / f"{number}.png")
    rows = [{"image": f"{number}.png", "label": number} for number in range(2)]
    (batch,) = open_dataset(write(tmp_path / "a.jsonl", rows), model(tokens=False, channels=3)).batches(2)
    torch.testing.assert_close(batch["inputs"], torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255)
    assert batch["labels"].tolist() == [0, 1]
    content = [{"image": {"bytes": (tmp_path / f"{n}.png").read_bytes(), "path": None}} for n in range(2)]
    features = datasets.Features({"image": datasets.Image()})
    datasets.Dataset.from_list(content, features=features).to_parquet(str(tmp_path / "b.parquet"))
    (same,) = open_dataset(tmp_path / "b.parquet", model(tokens=False, channels=3)).batches(2)
    assert torch.equal(same["inputs"], batch["inputs"])
    numbers = [{"x": 0.5 * n, "y": 2 * n, "label": n} for n in range(3)]
    (batch,) = open_dataset(write(tmp_path / "c.csv", numbers), model(tokens=False)).batches(3)
    assert batch["inputs"].tolist() == [[0.0, 0.0], [0.5, 2.0], [1.0, 4.0]]
    assert batch["labels"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [("a.jsonl", "{broken\n", "cannot be read as a table"), ("b.csv", "", "is empty"),
     ("c.jsonl", "[]\n", "a table|empty"),
     ("d.parquet", "no parquet", "cannot be read as a table"), ("e.arrow", "no arrow", "cannot be read as a table"),
     ("f.jsonl", '{"text": "w3"}\n{"text": null}\n', "1 rows have no text, the first is row 2"),
     ("g.jsonl", '{"messages": [{"content": "w3"}]}\n', "row 1 is not a conversation"),
     ("h.csv", "text\n", "is empty"), ("i.jsonl", '{"text": ["a"]}\n', "column text holds a list, the model")],
)  # fmt: skip
def test_bad_tables_are_told(tmp_path: Path, encoder: Any, name: str, content: str, reason: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=reason):
        open_dataset(tmp_path / name, encoder)


def test_options_follow_a_path_and_come_back() -> None:
    stated = Reading(column="a b,c", window=64, stride=3, text="windows")
    assert Reading.of(stated.after("/data/x.csv")) == ("/data/x.csv", stated)
    assert Reading.of("/data/x.csv") == ("/data/x.csv", Reading())
    assert Reading(stride=0).over(stated).stride == 0


@pytest.mark.parametrize(("tail", "reason"), [
    (f"window={'9' * 5000}", f"x.txt: window is '{'9' * 12}'; give a number of tokens"),
    ("window=8&window=16", "x.txt: the option window is given twice; give it once"),
])  # fmt: skip
def test_options_that_make_no_sense_are_told(tmp_path: Path, encoder: Any, tail: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        open_dataset(f"{tmp_path / 'x.txt'}?{tail}", encoder)


@pytest.mark.parametrize(("name", "content", "tail", "note"), [
    ("x.txt", "w3 w4 w5 " * 40, "text=windows&window=8&column=a", "x.txt is no table: the column a is left out"),
    ("x.jsonl", '{"text": "w3"}\n{"text": "w4"}\n', "stride=3",
     "x.jsonl: the stride is left out, as samples are no windows of running text"),
])  # fmt: skip
def test_options_that_say_nothing_of_the_data_are_named(
    tmp_path: Path, encoder: Any, name: str, content: str, tail: str, note: str
) -> None:
    (tmp_path / name).write_text(content)
    assert note in open_dataset(f"{tmp_path / name}?{tail}", encoder).notes
    assert not any("left out" in each for each in open_dataset(tmp_path / name, encoder).notes)


@pytest.mark.parametrize(("column", "reason"), [
    ("a,b", "the column b holds a list of whole numbers, the model takes text"),
    ("a,c", "the column c holds an object, the model takes text"),
    ("c", "the column c holds an object, the model takes text"),
    ("d", r"the column d is empty; name another \(--column\)"),
])  # fmt: skip
def test_columns_that_are_no_texts_are_named(tmp_path: Path, encoder: Any, column: str, reason: str) -> None:
    row = {"a": "w3 w4", "b": [1, 2], "c": {"d": 1}, "d": None}
    (tmp_path / "x.jsonl").write_text(f"{json.dumps(row)}\n" * 3)
    with pytest.raises(DataError, match=reason):
        open_dataset(f"{tmp_path / 'x.jsonl'}?column={column}", encoder)


@pytest.mark.parametrize("name", ["stride", "window"])
def test_no_tokens_are_not_the_usual_ones(tmp_path: Path, encoder: Any, name: str) -> None:
    (tmp_path / "x.txt").write_text("w3 w4 w5 " * 40)
    reading = replace(Reading(text="windows", window=8, stride=2), **{name: 0})
    with pytest.raises(DataError, match=f"the {name} is 0 tokens; at least 1 is needed"):
        open_dataset(reading.after(str(tmp_path / "x.txt")), encoder)


REALISTIC = (
    "{% set state = namespace(n=0) %}{% for m in messages %}{% if m['role'] == \"user\" %}"
    "{{ 'w5 ' + m['content'] + '\\n' }}{% else %}"
    "{{ m['content'] | tojson }}{% endif %}{% endfor %}{{ strftime_now('%Y') }}"
)


def test_a_process_that_has_just_begun_writes_by_a_template_of_real_models(tmp_path: Path, folder: Path) -> None:
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": REALISTIC}))
    program = (
        "import sys; from pathlib import Path; from workbench.models.data.inputs import InputSpec; "
        "from workbench.models.data.text import chat_texts; "
        "rows = [[{'role': 'user', 'content': 'w7'}, {'role': 'assistant', 'content': 'w8'}]]; "
        "print(chat_texts(rows, InputSpec(tokens=True, tokenizer=Path(sys.argv[1])), Path('chat.jsonl'), None, [0]))"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "w5 w7" in ended.stdout and '"w8"' in ended.stdout


def test_a_feather_file_is_a_table(tmp_path: Path, encoder: Any) -> None:
    file = write(tmp_path / "rows.parquet", ROWS)
    datasets.Dataset.from_parquet(str(file)).to_pandas().to_feather(tmp_path / "rows.feather")
    assert open_dataset(tmp_path / "rows.feather", encoder).record.content_hash == hash_of(file, encoder)


def hash_of(file: Path, spec: Any, **options: Any) -> str:
    return open_dataset(file, spec, **options).record.content_hash


def test_only_the_rows_that_are_drawn_are_tokenized(
    tmp_path: Path, folder: Path, encoder: Any, decoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "a.jsonl", [{"text": f"w{n} " * (n + 1), "label": n % 3} for n in range(3, 15)])
    whole, seen = open_dataset(file, encoder), list[Any]()
    monkeypatch.setattr(text, "tokenized", lambda work, *_: seen.append(work()) or seen[-1])
    few = open_dataset(file, encoder, samples=4, seed=5)
    assert [len(rows) for rows, *_ in seen] == [4]
    own = [whole.tensors["input_ids"][:, 1].tolist().index(row) for row in few.tensors["input_ids"][:, 1].tolist()]
    assert whole.tensors["labels"][own].tolist() == few.tensors["labels"].tolist()
    scored = [{"sentence1": f"w{n}", "sentence2": f"w{n + 1}", "score": n} for n in range(9)]
    pairs = write(tmp_path / "p.jsonl", scored)
    embedding = model(tokens=True, vocabulary=60, positions=16, tokenizer=folder, sentences=True, embeds=True)
    (batch,) = open_dataset(pairs, embedding, samples=3).batches(6)
    first = batch["input_ids"][:, 1].tolist()
    assert [b - a for a, b in zip(first[::2], first[1::2], strict=True)] == [1, 1, 1]
    assert batch["scores"].tolist() == [float(a) for a in first[::2] for _ in range(2)]
    chats = [{"messages": [{"role": "user", "content": f"w{n}"}]} for n in range(3, 9)]
    chats[4]["messages"][0].pop("role")
    with pytest.raises(DataError, match="row 5"):
        open_dataset(write(tmp_path / "c.jsonl", chats), encoder)


def test_large_tables_of_texts_are_drawn_from_and_that_is_said(
    tmp_path: Path, encoder: Any, decoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "a.jsonl", [{"text": f"w{n} " * 8, "label": n % 3} for n in range(3, 43)])
    every = open_dataset(file, decoder)
    monkeypatch.setattr(rows_of_tables, "MOST_ROWS", 6)
    monkeypatch.setattr(rows_of_tables, "MOST_TEXT", 300)
    drawn = open_dataset(file, encoder, seed=3)
    assert drawn.notes == ("a.jsonl holds 40 samples: 6 of them, drawn at random, are taken (--samples)",)
    assert (len(drawn), drawn.record.samples) == (6, 6)
    assert open_dataset(file, encoder, samples=6, seed=3).record == drawn.record
    assert len(open_dataset(file, encoder, samples=20)) == 20
    part = open_dataset(file, decoder)
    assert part.notes == ("a.jsonl: the text of 9 of 40 rows, drawn at random, is read",)
    assert 0 < len(part) < len(every)
    assert open_dataset(file, decoder).record == part.record
    halves = [open_dataset(file, decoder, split=split).tensors["input_ids"] for split in ("calibration", "evaluation")]
    first, other = ({*ids[:, 1:].flatten().tolist()} for ids in halves)
    assert not first & other
    write(file, [{"text": "w3 " * 200}])
    one = open_dataset(file, decoder)
    assert one.notes[0] == "a.jsonl: the first 300 characters of 1 of 1 rows are read"
    assert one.tensors["input_ids"].numel() < 150


def test_columns_of_numbers_are_refused_where_a_model_takes_text_before_they_are_handed_over(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", [{"a": 1, "b": 2.5}])
    with pytest.raises(DataError, match=r"the column a holds numbers, the model takes text \(--column\)"):
        read_table(file, "")
    assert read_table(file, "", "pictures").values == {"a": [1], "b": [2.5]}


def test_of_a_cell_that_is_refused_a_message_shows_the_beginning_and_the_end(
    tmp_path: Path, folder: Path, encoder: Any
) -> None:
    paired = model(tokens=True, vocabulary=60, positions=16, tokenizer=folder, sentences=True, embeds=True)
    long = "w3 " * 10_000
    file = write(tmp_path / "a.jsonl", [{"sentence1": "w3", "sentence2": "w4", "score": long}] * 2)
    with pytest.raises(DataError, match="the score of a pair is 'w3 w3.{60,200}…") as caught:
        open_dataset(file, paired)
    assert len(str(caught.value)) < 500
    file.write_text(json.dumps({"input_ids": [3, 4]}) + "\n" + json.dumps({"input_ids": [3, long]}) + "\n")
    with pytest.raises(DataError, match="row 2 of input_ids holds") as caught:
        open_dataset(file, encoder)
    assert len(str(caught.value)) < 500
