"""Data sets from every kind of file, split, drawn and recorded; and what is said of bad ones."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from workbench.errors import UNFORESEEN, DataError
from workbench.models.data import datasets
from workbench.models.data.datasets import Dataset, open_dataset
from workbench.models.data.files import half_of
from workbench.models.data.inputs import InputSpec


def model(**spec: Any) -> Any:
    """What a data set asks of a model: its inputs."""
    return SimpleNamespace(inputs=InputSpec(**spec))


TOKENS = model(tokens=True, vocabulary=600, positions=16)
IMAGES = model(tokens=False, channels=3)


@pytest.fixture
def reader(tmp_path: Path) -> Any:
    """A model with a tokenizer that has one token for each word ``w0`` ... ``w599``."""
    folder = tmp_path / "model"
    folder.mkdir()
    vocabulary = {f"w{number}": number for number in range(600)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return model(tokens=True, vocabulary=600, positions=16, tokenizer=folder)


def words(path: Path, count: int) -> Path:
    path.write_text(" ".join(f"w{number}" for number in range(count)))
    return path


def ids(dataset: Dataset) -> torch.Tensor:
    return torch.cat([batch["input_ids"] for batch in dataset.batches(3)])


def test_text_becomes_windows(tmp_path: Path, reader: Any) -> None:
    data = open_dataset(words(tmp_path / "a.txt", 100), reader, sequence_length=8)
    assert torch.equal(ids(data), torch.arange(96).reshape(12, 8))
    assert len(data) == data.record.samples == 12
    assert [len(batch["input_ids"]) for batch in data.batches(5)] == [5, 5, 2]


def test_the_default_window_is_what_the_model_takes(tmp_path: Path, reader: Any) -> None:
    assert ids(open_dataset(words(tmp_path / "a.txt", 100), reader)).shape == (6, 16)


@pytest.mark.parametrize(("first", "second"), [(8, 8), (8, 6), (5, 16)])
def test_halves_of_a_text_share_no_token(tmp_path: Path, reader: Any, first: int, second: int) -> None:
    file = words(tmp_path / "a.txt", 400)
    first_part = open_dataset(file, reader, split="calibration", sequence_length=first, seed=1, samples=9)
    other = open_dataset(file, reader, split="evaluation", sequence_length=second, seed=2)
    assert not set(ids(first_part).flatten().tolist()) & set(ids(other).flatten().tolist())
    assert first_part.record.content_hash != other.record.content_hash


@pytest.mark.parametrize("count", [2, 3, 10, 101])
def test_halves_are_disjoint_and_cover_everything(count: int) -> None:
    first_half, other = half_of(count, 0), half_of(count, 1)
    assert sorted([*first_half, *other]) == list(range(count))


def test_token_windows_are_taken_as_they_are(tmp_path: Path) -> None:
    windows = np.arange(60, dtype=np.int16).reshape(5, 12)
    np.save(tmp_path / "windows.npy", windows)
    data = open_dataset(tmp_path / "windows.npy", TOKENS)
    assert ids(data).dtype == torch.int64
    assert np.array_equal(ids(data).numpy(), windows)
    cut = open_dataset(tmp_path / "windows.npy", TOKENS, sequence_length=4)
    assert np.array_equal(ids(cut).numpy(), windows[:, :4])
    parts = [open_dataset(tmp_path / "windows.npy", TOKENS, split=split) for split in ("calibration", "evaluation")]
    assert sorted(torch.cat([ids(part)[:, 0] for part in parts]).tolist()) == [0, 12, 24, 36, 48]


def test_token_streams_are_cut(tmp_path: Path) -> None:
    np.save(tmp_path / "stream.npy", np.arange(100, dtype=np.uint16))
    assert torch.equal(ids(open_dataset(tmp_path / "stream.npy", TOKENS)), torch.arange(96).reshape(6, 16))
    half = open_dataset(tmp_path / "stream.npy", TOKENS, split="evaluation")
    assert torch.equal(ids(half), torch.arange(50, 98).reshape(3, 16))


def test_samples_are_drawn_with_the_seed(tmp_path: Path) -> None:
    np.save(tmp_path / "windows.npy", np.arange(400, dtype=np.int32).reshape(100, 4))
    draws = [open_dataset(tmp_path / "windows.npy", TOKENS, samples=10, seed=seed) for seed in (0, 0, 1)]
    assert draws[0].record == draws[1].record
    assert draws[0].record.content_hash != draws[2].record.content_hash
    assert len(set(ids(draws[0])[:, 0].tolist())) == 10
    more = open_dataset(tmp_path / "windows.npy", TOKENS, samples=500)
    assert more.record.samples == 100
    assert more.notes == ("windows.npy holds 100 samples, 500 were asked for: all 100 are used",)


PIXELS = np.random.default_rng(0).integers(0, 256, (6, 4, 5, 3), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2], dtype=np.uint8)


def write(path: Path) -> Path:
    """Write PIXELS and LABELS as the suffix says."""
    if path.suffix == ".npz":
        np.savez(path, images=PIXELS, labels=LABELS)
    elif path.suffix == ".pt":
        torch.save({"x": torch.from_numpy(PIXELS), "y": torch.from_numpy(LABELS)}, path)
    else:
        save_file({"inputs": torch.from_numpy(PIXELS), "labels": torch.from_numpy(LABELS)}, path)
    return path


def test_samples_that_repeat_others_are_counted(tmp_path: Path) -> None:
    rows = np.arange(40, dtype=np.float32).reshape(10, 4)
    np.savez(tmp_path / "some.npz", inputs=np.concatenate([rows, rows[:2]]), labels=np.arange(12) % 10)
    (note,) = open_dataset(tmp_path / "some.npz", model(tokens=False)).notes
    assert "2 of 12 samples repeat others" in note and "as sure as 10 samples" in note
    np.savez(tmp_path / "other.npz", inputs=np.concatenate([rows, rows[:2]]), labels=np.arange(12))
    assert not open_dataset(tmp_path / "other.npz", model(tokens=False)).notes  # the same pictures under other labels


@pytest.mark.parametrize("suffix", [".npz", ".pt", ".safetensors"])
def test_pixels_become_floats(tmp_path: Path, suffix: str) -> None:
    normalized = model(tokens=False, channels=3, mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4))
    data = open_dataset(write(tmp_path / f"a{suffix}"), normalized)
    (batch,) = data.batches(10)
    expected = (PIXELS.astype(np.float64) / 255 - [0.5, 0.4, 0.3]) / [0.2, 0.3, 0.4]
    np.testing.assert_allclose(batch["inputs"].numpy(), expected.transpose(0, 3, 1, 2), rtol=1e-5, atol=1e-6)
    assert batch["labels"].tolist() == LABELS.tolist()
    assert batch["labels"].dtype == torch.int64


def test_the_model_prepares_its_own_inputs(tmp_path: Path) -> None:
    own = model(tokens=False, preprocess=lambda images: images.sum(axis=(1, 2, 3), dtype=np.int64)[:, None])
    (batch,) = open_dataset(write(tmp_path / "a.npz"), own).batches(10)
    assert batch["inputs"].tolist() == [[float(image.sum())] for image in PIXELS]


def test_floats_are_taken_as_they_are(tmp_path: Path) -> None:
    values = np.linspace(-1, 1, 12).reshape(4, 3)
    np.save(tmp_path / "a.npy", values)
    (batch,) = open_dataset(tmp_path / "a.npy", model(tokens=False)).batches(4)
    assert torch.equal(batch["inputs"], torch.from_numpy(values).float())


def test_class_folders(tmp_path: Path) -> None:
    for index, label in enumerate(["cat", "ant", "cat"]):
        (tmp_path / "pets" / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(PIXELS[index]).save(tmp_path / "pets" / label / f"{index}.png")
    (batch,) = open_dataset(tmp_path / "pets", IMAGES).batches(10)
    assert batch["labels"].tolist() == [0, 1, 1]
    expected = torch.from_numpy(PIXELS[[1, 0, 2]]).permute(0, 3, 1, 2).float() / 255
    torch.testing.assert_close(batch["inputs"], expected)
    resized = open_dataset(tmp_path / "pets", model(tokens=False, channels=1, size=(8, 10)))
    assert next(resized.batches(3))["inputs"].shape == (3, 1, 8, 10)


def test_files_named_after_splits_are_taken_whole(tmp_path: Path) -> None:
    for start, split in enumerate(("calibration", "evaluation")):
        np.save(tmp_path / f"{split}_tokens.npy", np.full((4, 3), start))
    for path in (tmp_path, tmp_path / "calibration_tokens.npy", tmp_path / "evaluation_tokens.npy"):
        for start, split in enumerate(("calibration", "evaluation")):
            data = open_dataset(path, TOKENS, split=split)
            assert len(data) == 4
            assert set(ids(data).flatten().tolist()) == {start}
    (tmp_path / "evaluation_tokens.npy").unlink()
    with pytest.raises(DataError, match="no evaluation_tokens.npy beside it"):
        open_dataset(tmp_path / "calibration_tokens.npy", TOKENS, split="evaluation")


def test_the_bundled_digits() -> None:
    data = open_dataset("demo:digits-classifier", model(tokens=False), split="evaluation", samples=20)
    assert data.record.path == "demo:digits-classifier"
    assert "labels" in data.tensors
    with pytest.raises(DataError, match="ask for one of them"):
        open_dataset("demo:digits-classifier", model(tokens=False))
    with pytest.raises(DataError, match="no bundled data 'digits'; the closest are digits-classifier"):
        open_dataset("demo:digits", model(tokens=False))


def bad(path: Path, array: np.ndarray) -> Path:
    np.save(path, array)
    return path


def test_bad_arrays_are_told(tmp_path: Path) -> None:
    file = tmp_path / "a.npy"
    with pytest.raises(DataError, match="token ids from 0 to 999, the model knows 0 to 599"):
        open_dataset(bad(file, np.array([[0, 999]])), TOKENS)
    with pytest.raises(DataError, match="token ids from -1"):
        open_dataset(bad(file, np.array([[0, -1]])), TOKENS)
    with pytest.raises(DataError, match=r"is empty: inputs has the shape \(0, 4\)"):
        open_dataset(bad(file, np.zeros((0, 4), np.int64)), TOKENS)
    with pytest.raises(DataError, match="windows of 20 tokens, the model takes 16"):
        open_dataset(bad(file, np.zeros((2, 20), np.int64)), TOKENS)
    with pytest.raises(DataError, match="the model takes token ids"):
        open_dataset(bad(file, np.zeros((2, 20))), TOKENS)
    with pytest.raises(DataError, match="NaN"):
        open_dataset(bad(file, np.array([[np.nan]])), IMAGES)
    with pytest.raises(DataError, match="1 channels, the model takes 3"):
        open_dataset(bad(file, np.zeros((2, 4, 4, 1), np.uint8)), IMAGES)
    with pytest.raises(DataError, match="4 x 4 pixels, the model takes 8 x 8"):
        open_dataset(bad(file, np.zeros((2, 4, 4, 3), np.uint8)), model(tokens=False, channels=3, size=(8, 8)))
    with pytest.raises(DataError, match="evaluation half"):
        open_dataset(bad(file, np.zeros((1, 4), np.int64)), TOKENS, split="evaluation")


def test_pickled_and_damaged_arrays_are_never_opened(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    torch.save({"x": torch.nn.Linear(2, 2)}, tmp_path / "a.pt")
    for name in ("b.npz", "b.npy", "b.pt", "b.safetensors"):
        (tmp_path / name).write_bytes(b"hello, these are no arrays")
    for name in ("a.npy", "a.pt", "b.npz", "b.npy", "b.pt", "b.safetensors"):
        with pytest.raises(DataError, match=name):
            open_dataset(tmp_path / name, TOKENS)


def test_arrays_without_inputs_or_with_too_few_labels_are_told(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", one=np.zeros(3), two=np.zeros(3))
    with pytest.raises(DataError, match="holds one, two; expected"):
        open_dataset(tmp_path / "a.npz", IMAGES)
    np.savez(tmp_path / "b.npz", x=np.zeros((3, 2)), y=np.zeros(2))
    with pytest.raises(DataError, match="3 samples but 2 labels"):
        open_dataset(tmp_path / "b.npz", IMAGES)


def test_bad_text_is_told(tmp_path: Path, reader: Any) -> None:
    (tmp_path / "empty.txt").write_text("  \n")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\xfd")
    for name, why in (("empty.txt", "is empty"), ("binary.txt", "UTF-8"), ("short.txt", "holds no sample")):
        if name == "short.txt":
            words(tmp_path / name, 3)
        with pytest.raises(DataError, match=why):
            open_dataset(tmp_path / name, reader)
    with pytest.raises(DataError, match="no tokenizer"):
        open_dataset(words(tmp_path / "a.txt", 50), TOKENS)
    with pytest.raises(DataError, match="does not take token ids"):
        open_dataset(tmp_path / "a.txt", IMAGES)
    with pytest.raises(DataError, match="sequence length is 40 tokens, the model takes 2 to 16"):
        open_dataset(tmp_path / "a.txt", reader, sequence_length=40)


def test_bad_paths_and_requests_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.xyz").write_text("?")
    (tmp_path / "a.tar.gz").write_text("?")
    (tmp_path / "a.png").write_text("?")
    (tmp_path / "empty").mkdir()
    for name, why in (
        ("a.xyz", "unknown kind"),
        ("a.tar.gz", r"is packed \(.gz\); unpack it"),
        ("a.png", "single image"),
        ("empty", "holds nothing that is read"),
        ("no", "not exist"),
    ):
        with pytest.raises(DataError, match=why):
            open_dataset(tmp_path / name, IMAGES)
    (tmp_path / "empty" / "cat").mkdir()
    (tmp_path / "empty" / "cat" / "0.png").write_text("no image")
    with pytest.raises(DataError, match="cannot be read as an image"):
        open_dataset(tmp_path / "empty", IMAGES)
    with pytest.raises(DataError, match="images, the model takes token ids"):
        open_dataset(tmp_path / "empty", TOKENS)
    with pytest.raises(DataError, match="no split 'calib'; the closest are calibration"):
        open_dataset(tmp_path, TOKENS, split="calib")
    np.save(tmp_path / "a.npy", np.zeros((2, 2)))
    with pytest.raises(DataError, match="at least 1 is needed"):
        open_dataset(tmp_path / "a.npy", IMAGES, samples=0)
    with pytest.raises(DataError, match="at least 2"):
        open_dataset(tmp_path / "a.npy", IMAGES, sequence_length=1)


def test_images_of_different_sizes_are_told(tmp_path: Path) -> None:
    for index, size in enumerate([(4, 4), (5, 4)]):
        Image.new("RGB", size).save(tmp_path / f"{index}.png")
    with pytest.raises(DataError, match="different sizes"):
        open_dataset(tmp_path, IMAGES)


def test_an_attention_mask_beside_token_windows_is_part_of_every_batch(tmp_path: Path) -> None:
    file = tmp_path / "padded.npz"
    ids_, mask = np.arange(8).reshape(2, 4), np.array([[1, 1, 1, 0], [True, True, False, False]])
    np.savez(file, input_ids=ids_, attention_mask=mask)
    dataset = open_dataset(str(file), model(tokens=True, vocabulary=9))
    (batch,) = dataset.batches(2)
    assert batch["input_ids"].tolist() == ids_.tolist()
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 0], [1, 1, 0, 0]]


@pytest.mark.parametrize(
    ("mask", "reason"),
    [(np.ones((2, 3)), r"shape \(2, 4\) and an attention mask of shape \(2, 3\)"),
     (np.array([[1, 1, 1, 1], [0, 0, 0, 0]]), "is 0 all through in 1 of 2 samples, the first is 1")],
)  # fmt: skip
def test_bad_attention_masks_are_told(tmp_path: Path, mask: np.ndarray, reason: str) -> None:
    np.savez(tmp_path / "padded.npz", input_ids=np.arange(8).reshape(2, 4), attention_mask=mask)
    with pytest.raises(DataError, match=reason):
        open_dataset(str(tmp_path / "padded.npz"), model(tokens=True, vocabulary=9))


def test_what_no_reader_foresaw_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object) -> object:
        raise KeyError("of\nours")

    (tmp_path / "a.npz").write_bytes(b"x")
    monkeypatch.setattr(datasets, "read_arrays", read)
    with pytest.raises(DataError, match=f"a.npz {UNFORESEEN}") as caught:
        open_dataset(tmp_path / "a.npz", model(tokens=False))
    assert "\n" not in str(caught.value) and isinstance(caught.value.__cause__, KeyError)
