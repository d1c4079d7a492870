"""Data as nobody meant them: right, or one sentence with the row, what came and what was expected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from tests.models.data.test_datasets import model
from workbench.errors import DataError, MemoryLimitError
from workbench.models.data.datasets import open_dataset

soundfile = pytest.importorskip("soundfile")
TEXT = {"text": "w1 w2 w3 w4"}
IDS = {"input_ids": [5, 6, 7]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    tokenizer = Tokenizer(models.WordLevel({f"w{number}": number for number in range(50)}, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 16, "chat_template": "{{ messages }}"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def spec_of(folder: Path, **options: Any) -> Any:
    return model(tokens=True, vocabulary=60, positions=8, tokenizer=folder, **options)


def lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


REFUSED: dict[str, tuple[list[Any], str]] = {
    "a number among texts": ([TEXT, {"text": 5}], "the text of row 2 is a number, that of row 1 is a text"),
    "a list among texts": ([TEXT, {"text": ["a"]}], "the text of row 2 is a list, that of row 1 is a text"),
    "half a character": ([TEXT, {"text": "\ud800"}], r"row 2 of the column text holds half a character"),
    "an empty row of ids": ([IDS, {"input_ids": []}], "1 rows have no token ids, the first is row 2"),
    "an empty first row of ids": ([{"input_ids": []}, IDS], "1 rows have no token ids, the first is row 1"),
    "a null among ids": ([IDS, {"input_ids": [1, None]}], "row 2 of input_ids holds None, a list of whole numbers"),
    "a fraction among ids": ([IDS, {"input_ids": [1.5]}], "row 2 of input_ids holds 1.5"),
    "nested ids": ([{"input_ids": [[1]]}], r"row 1 of input_ids holds \[1\]"),
    "a mask of another length": ([IDS | {"attention_mask": [1]}], "row 1 has 3 token ids and 1 of attention_mask"),
    "a mask of zeros": ([IDS | {"attention_mask": [0, 0, 0]}], "the attention mask is 0 all through in 1 of 1 samples"),
    "a conversation that is no JSON": ([{"messages": "[{bad"}], "row 1 is not a conversation"),
    "a role that is a list": ([{"messages": [{"from": [1], "value": "x"}]}], "row 1 is not a conversation"),
    "labels of two kinds": ([TEXT | {"label": 1}, TEXT | {"label": "a"}], "the label of row 2 is a text"),
    "labels that are lists": ([TEXT | {"label": [0, 1]}], "the label in row 1 is a list of whole numbers"),
    "labels that are tables": ([TEXT | {"label": {"a": 1}}], "the label in row 1 is an object"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_odd_rows_are_told(tmp_path: Path, folder: Path, name: str) -> None:
    rows, reason = REFUSED[name]
    with pytest.raises(DataError, match=reason):
        open_dataset(lines(tmp_path / "a.jsonl", rows), spec_of(folder, sentences=True))


def test_a_damaged_line_is_told_by_its_number(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "w1"}\n\n{"text": \n')
    with pytest.raises(DataError, match="line 3 is not JSON"):
        open_dataset(tmp_path / "a.jsonl", spec_of(folder))


def test_three_texts_are_no_sample(tmp_path: Path, folder: Path) -> None:
    path = lines(tmp_path / "a.jsonl", [{"a": "w1", "b": "w2", "c": "w3"}])
    with pytest.raises(DataError, match="one text or a pair of them, not a, b, c"):
        open_dataset(f"{path}?column=a,b,c", spec_of(folder, sentences=True))


def test_a_table_in_another_encoding_is_told(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "a.csv").write_bytes("text\nhé\n".encode("latin-1"))
    with pytest.raises(DataError, match="row 1 of the column text is not UTF-8"):
        open_dataset(tmp_path / "a.csv", spec_of(folder))


def test_unicode_line_separators_do_not_part_rows(tmp_path: Path, folder: Path) -> None:
    rows = "".join(json.dumps({"text": f"w1\u2028w{number}"}, ensure_ascii=False) + "\n" for number in range(3))
    (tmp_path / "a.jsonl").write_text(rows, encoding="utf-8")
    assert len(open_dataset(tmp_path / "a.jsonl", spec_of(folder, sentences=True))) == 3


def test_a_byte_order_mark_is_no_text(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf" + b"w1 w2 " * 8)
    assert open_dataset(tmp_path / "a.txt", spec_of(folder)).tensors["input_ids"][0, :2].tolist() == [1, 2]


def test_text_in_brackets_is_no_conversation(tmp_path: Path, folder: Path) -> None:
    path = lines(tmp_path / "a.jsonl", [{"text": "[{1} is w1 w2"}, TEXT])
    assert open_dataset(path, spec_of(folder, sentences=True)).tensors["input_ids"].shape == (2, 4)


def test_ids_come_with_their_mask_segments_and_labels(tmp_path: Path, folder: Path) -> None:
    rows = [
        {"input_ids": [5, 6, 7], "attention_mask": [1, 1, 0], "token_type_ids": [0, 1, 1], "labels": [5, -100, 7]},
        {"input_ids": [8, 9], "attention_mask": [1, 1], "token_type_ids": [0, 0], "labels": [8, 9]},
    ]
    path = lines(tmp_path / "a.jsonl", rows)
    tensors = open_dataset(path, spec_of(folder, takes=("input_ids", "token_type_ids"))).tensors
    assert {name: tensor.tolist() for name, tensor in tensors.items()} == {
        "input_ids": [[5, 6, 7], [8, 9, 0]], "attention_mask": [[1, 1, 0], [1, 1, 0]],
        "token_type_ids": [[0, 1, 1], [0, 0, 0]], "labels": [[5, -100, 7], [8, 9, -100]],
    }  # fmt: skip


def test_ids_longer_than_the_context_are_cut(tmp_path: Path, folder: Path) -> None:
    dataset = open_dataset(lines(tmp_path / "a.jsonl", [{"input_ids": [5] * 20}, IDS]), spec_of(folder))
    assert dataset.tensors["input_ids"].shape == (2, 8)
    assert dataset.tensors["attention_mask"].sum(dim=1).tolist() == [8, 3]
    assert dataset.notes == ("a.jsonl: 1 of 2 rows were cut to 8 tokens",)


def test_ids_and_the_ids_of_answers(tmp_path: Path, folder: Path) -> None:
    requires = ("input_ids", "decoder_input_ids")
    path = lines(tmp_path / "a.jsonl", [IDS | {"labels": [4, 3]}, IDS | {"labels": [2]}])
    tensors = open_dataset(path, spec_of(folder, requires=requires)).tensors
    assert tensors["labels"].tolist() == [[4, 3], [2, -100]]
    assert tensors["decoder_attention_mask"].tolist() == [[1, 1], [1, 0]]
    with pytest.raises(DataError, match="also needs the answers: labels, a list of token ids"):
        open_dataset(lines(tmp_path / "b.jsonl", [IDS]), spec_of(folder, requires=requires))


def test_answers_longer_than_the_context_are_cut(tmp_path: Path, folder: Path) -> None:
    path = lines(tmp_path / "a.jsonl", [{"source": "w1", "target": "w2 " * 20}, {"source": "w1", "target": "w2"}])
    requires = ("input_ids", "decoder_input_ids")
    dataset = open_dataset(path, spec_of(folder, requires=requires, sentences=True))
    assert dataset.tensors["labels"].shape == (2, 8)
    assert "a.jsonl: 1 of 2 answers were cut to 8 tokens" in dataset.notes


WINDOWS = np.arange(12).reshape(3, 4)
SOUND = np.zeros((3, 50), np.float32)
PAIR = {"requires": ("input_ids", "decoder_input_ids"), "takes": ("input_ids", "decoder_input_ids", "labels")}


@pytest.mark.parametrize(
    ("arrays", "options", "reason"),
    [
        ({"input_ids": WINDOWS > 3}, {}, r"holds \(3, 4\) bool, the model takes token ids"),
        ({"input_ids": WINDOWS.astype(complex)}, {}, "input_ids holds complex numbers; give numbers"),
        ({"input_ids": WINDOWS, "labels": np.full((3, 4), -100)}, PAIR, "decoder's mask .* is 0 all through in 3 of 3"),
        ({"input_ids": WINDOWS, "decoder_input_ids": WINDOWS, "labels": WINDOWS[:, :2]}, PAIR,
         r"decoder_input_ids are \(3, 4\) and labels \(3, 2\)"),
        ({"input_ids": WINDOWS, "decoder_input_ids": WINDOWS + 0.5}, PAIR, "decoder_input_ids holds fractions"),
    ],
)  # fmt: skip
def test_odd_arrays_are_told(tmp_path: Path, arrays: dict[str, Any], options: dict[str, Any], reason: str) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError, match=reason):
        open_dataset(tmp_path / "a.npz", model(tokens=True, vocabulary=60, main="input_ids", **options))


def test_a_mask_of_sounds_is_taken_and_whole_numbers_are_points(tmp_path: Path) -> None:
    spec = {"tokens": False, "main": "input_values", "takes": ("input_values", "attention_mask")}
    np.savez(tmp_path / "a.npz", input_values=SOUND.astype(np.int16), attention_mask=np.ones((3, 50)))
    tensors = open_dataset(tmp_path / "a.npz", model(**spec)).tensors
    assert (tensors["inputs"].dtype, tensors["attention_mask"].dtype) == (torch.float32, torch.int64)
    np.savez(tmp_path / "a.npz", input_values=SOUND, attention_mask=np.zeros((3, 50)))
    with pytest.raises(DataError, match="the attention mask is 0 all through in 3 of 3 samples"):
        open_dataset(tmp_path / "a.npz", model(**spec))


def test_a_file_that_is_no_sound_is_told_without_addresses(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    with pytest.raises(DataError, match=r"a\.wav cannot be read as a sound: ") as raised:
        open_dataset(tmp_path, model(tokens=False, rate=16000))
    assert "0x" not in str(raised.value)


@pytest.mark.parametrize("name", ["x.npy", "x.jsonl", "x.csv", "x.txt", "x.npz"])
def test_what_is_larger_than_the_free_memory_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name.endswith(("npy", "npz")):
        (np.save if name.endswith("npy") else np.savez)(tmp_path / name, np.zeros((4, 1 << 18), np.float32))
    else:
        (tmp_path / name).write_bytes(b'{"text": "a"}\n' * (1 << 18))
    monkeypatch.setattr("workbench.plain_file.available_memory", lambda: 1 << 20)
    monkeypatch.setattr("workbench.models.readers.npz_file.available_memory", lambda: 1 << 20)
    monkeypatch.setattr("workbench.plain_file.LARGEST_TEXT", 1 << 30)
    with pytest.raises(MemoryLimitError, match=f"{name} holds [34].* MB"):
        open_dataset(tmp_path / name, model(tokens=name[2:] not in ("npy", "npz"), vocabulary=9))


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.npz", "named.npz"])
def test_masks_of_0_and_255_are_read_as_0_and_1_and_said(tmp_path: Path, folder: Path, name: str) -> None:
    ids, mask = np.arange(24).reshape(4, 6), np.array([[255] * 4 + [0] * 2] * 4)
    file, spec = tmp_path / name, spec_of(folder)
    if name == "named.npz":
        spec = spec_of(folder, takes=("input_ids", "attention_mask", "position_ids"), main="input_ids")
        np.savez(file, input_ids=ids, attention_mask=mask.astype(np.uint8), position_ids=np.tile(np.arange(6), (4, 1)))
    elif name == "rows.npz":
        np.savez(file, input_ids=ids, attention_mask=mask.astype(np.uint8))
    else:
        lines(
            file,
            [{"input_ids": own, "attention_mask": row} for own, row in zip(ids.tolist(), mask.tolist(), strict=True)],
        )
    data = open_dataset(file, spec)
    assert data.tensors["attention_mask"].tolist() == [[1, 1, 1, 1, 0, 0]] * 4
    assert data.notes == (f"{name}: the attention mask holds 255, which is taken for 1",)


@pytest.mark.parametrize("row", [[1, 1, 2, 2, 0, 0], [1.0, 1.0, 0.5, 0, 0, 0], [1, 1, -1, 0, 0, 0]])
def test_masks_of_other_numbers_are_refused(tmp_path: Path, folder: Path, row: list[float]) -> None:
    np.savez(tmp_path / "a.npz", input_ids=np.full((3, 6), 5), attention_mask=np.array([row] * 3))
    with pytest.raises(DataError, match="the attention mask holds numbers from .* give 1 for what is real"):
        open_dataset(tmp_path / "a.npz", spec_of(folder))


@pytest.mark.parametrize(("high", "told"), [(255, True), (1, False)])
def test_masks_of_pixels_in_black_and_white_are_told(tmp_path: Path, high: int, told: bool) -> None:
    labels = np.zeros((3, 8, 8), np.uint8)
    labels[:, :4] = high
    np.savez(tmp_path / "a.npz", pixel_values=np.ones((3, 3, 8, 8), np.float32), labels=labels)
    notes = open_dataset(tmp_path / "a.npz", model(tokens=False, main="pixel_values")).notes
    assert ("a.npz: labels are 0 and 255 alone, and 255 counts for nothing" in "".join(notes)) == told


def test_truth_values_and_spaced_names_are_labels(tmp_path: Path, folder: Path) -> None:
    path = lines(tmp_path / "a.jsonl", [TEXT | {"label": True}, TEXT | {"label": False}])
    assert open_dataset(path, spec_of(folder, sentences=True)).tensors["labels"].tolist() == [1, 0]
    (tmp_path / "b.csv").write_text("text, label\nw1 w2,1\nw3,0\n")
    assert open_dataset(tmp_path / "b.csv", spec_of(folder, sentences=True)).tensors["labels"].tolist() == [1, 0]
    np.savez(tmp_path / "c.npz", input_ids=np.ones((2, 4), int), labels=np.array([True, False]))
    labels = open_dataset(tmp_path / "c.npz", spec_of(folder)).tensors["labels"]
    assert labels.tolist() == [1, 0] and labels.dtype == torch.int64


def test_lists_beside_tensors_are_kept(tmp_path: Path) -> None:
    torch.save({"pixel_values": torch.zeros(3, 3, 4, 4), "labels": [0, 1, 2]}, tmp_path / "a.pt")
    assert open_dataset(tmp_path / "a.pt", model(tokens=False, channels=3)).tensors["labels"].tolist() == [0, 1, 2]


def test_arrays_of_texts_and_of_complex_numbers_are_named(tmp_path: Path) -> None:
    for values, what in ((np.array(["a", "b"]), "texts"), (np.zeros(2, np.complex64), "complex numbers")):
        np.savez(tmp_path / "a.npz", pixel_values=np.zeros((2, 3, 4, 4), np.float32), labels=values)
        with pytest.raises(DataError, match=f"cannot be read as arrays: labels holds {what}; give numbers"):
            open_dataset(tmp_path / "a.npz", model(tokens=False, channels=3))


def test_labels_of_windows_are_cut_with_them(tmp_path: Path, folder: Path) -> None:
    ids = np.arange(16).reshape(2, 8)
    np.savez(tmp_path / "a.npz", input_ids=ids, labels=np.where(ids % 8 < 2, -100, ids))
    data = open_dataset(tmp_path / "a.npz", spec_of(folder), sequence_length=4)
    assert data.tensors["labels"].tolist() == [[-100, -100, 2, 3], [-100, -100, 10, 11]]


def test_shares_of_classes_are_named_and_no_labels_of_classes(tmp_path: Path) -> None:
    shares = np.random.default_rng(0).dirichlet(np.ones(3), 40).astype(np.float32)
    np.savez(tmp_path / "soft.npz", x=np.zeros((40, 4), np.float32), y=shares)
    dataset = open_dataset(tmp_path / "soft.npz", model(tokens=False))
    assert any("soft.npz: labels are rows of 3 shares that sum to 1" in note for note in dataset.notes)
    np.testing.assert_array_equal(next(dataset.batches(40))["labels"], shares)


def test_arrays_that_are_not_read_are_named(tmp_path: Path) -> None:
    spec = {"main": "input_ids", "takes": ("input_ids", "attention_mask")}
    note = "a.npz: {} left out, as the model takes no such array"
    for more, told in (
        ({}, ()), ({"attention_mask": np.ones_like(WINDOWS), "labels": WINDOWS}, ()),
        ({"attention_maks": WINDOWS}, (note.format("attention_maks is"),)),
        ({"weights": WINDOWS, "of": SOUND}, (note.format("weights, of are"),)),
    ):  # fmt: skip
        np.savez(tmp_path / "a.npz", input_ids=WINDOWS, **more)
        assert open_dataset(tmp_path / "a.npz", model(tokens=True, vocabulary=60, **spec)).notes == told
    named = {"requires": ("x", "y"), "takes": ("x", "y"), "main": "x"}
    np.savez(tmp_path / "a.npz", x=SOUND, y=SOUND, z=SOUND, labels=np.arange(3))
    assert open_dataset(tmp_path / "a.npz", model(tokens=False, **named)).notes == (note.format("z is"),)
