"""Frames of recordings: no recording is in both halves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.models.data.test_datasets import model
from workbench.errors import DataError
from workbench.models.data.datasets import open_dataset
from workbench.models.data.files import half_of

soundfile = pytest.importorskip("soundfile")


def test_frames_of_one_recording_stay_on_one_side(tmp_path: Path) -> None:
    for number in range(5):  # every point of a recording is the recording's number
        soundfile.write(tmp_path / f"{number}.wav", np.full(70, number / 8, np.float32), 8000, subtype="FLOAT")
    opened = [open_dataset(f"{tmp_path}?window=10", model(tokens=False), split=split)
              for split in ("calibration", "evaluation")]  # fmt: skip
    first, second = ({float(row[0]) for row in data.tensors["inputs"]} for data in opened)
    assert len(first) == 3 and len(second) == 2 and not first & second
    assert [len(data) for data in opened] == [21, 14]


def test_a_single_recording_is_cut_in_the_middle(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "only.wav", np.linspace(0, 0.9, 90, dtype=np.float32), 8000, subtype="FLOAT")
    first, second = (open_dataset(f"{tmp_path / 'only.wav'}?window=10", model(tokens=False), split=split)
                     for split in ("calibration", "evaluation"))  # fmt: skip
    assert float(first.tensors["inputs"].max()) < float(second.tensors["inputs"].min())
    assert (len(first), len(second)) == (5, 4)


def test_groups_are_halved_whole() -> None:
    groups = np.repeat(np.arange(7), 3)
    halves = [half_of(21, half, groups) for half in (0, 1)]
    assert sorted(np.concatenate(halves)) == list(range(21))
    assert not {*groups[halves[0]]} & {*groups[halves[1]]}


def test_a_rate_that_no_sound_has_is_refused(tmp_path: Path) -> None:
    """The filter from a prime sampling rate to a usual one would take gigabytes."""
    soundfile.write(tmp_path / "x.wav", np.zeros(100, np.float32), 4_194_429)
    with pytest.raises(DataError, match="has the sampling rate 4194429 Hz"):
        open_dataset(tmp_path, model(tokens=False, rate=16000))


def spoken(folder: Path, **extractor: object) -> None:
    """Lay out a tokenizer that knows the capitals A to D, and a processor."""
    import transformers

    folder.mkdir()
    words = {name: number for number, name in enumerate(("<pad>", "<s>", "</s>", "<unk>", "|", *"ABCD"))}
    (folder / "vocab.json").write_text(json.dumps(words))
    transformers.Wav2Vec2CTCTokenizer(str(folder / "vocab.json")).save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(extractor))


def test_a_folder_that_metadata_describe_is_read_with_its_transcripts(tmp_path: Path) -> None:
    spoken(tmp_path / "model", feature_extractor_type="Wav2Vec2FeatureExtractor")
    (tmp_path / "sounds").mkdir()
    for number, text in enumerate(("ab, c", "d ab")):
        soundfile.write(tmp_path / "sounds" / f"{number}.wav", np.full(70, number / 8, np.float32), 16000)
        (tmp_path / "sounds" / f"{number}.txt").write_text(text)
    (tmp_path / "sounds" / "metadata.csv").write_text('file_name,transcription\n0.wav,"ab, c"\n1.wav,d ab\n')
    own = tmp_path / "model"
    data = open_dataset(tmp_path / "sounds", model(tokens=False, folder=own, tokenizer=own, main="input_values"))
    assert data.tensors["labels"].tolist() == [[5, 6, 3, 4, 7], [8, 4, 5, 6, -100]]  # capitals; the comma is unknown
    assert ["capitals" in note for note in data.notes] == [True, False]
    assert "does not know 1 letters or words" in data.notes[1]
    (tmp_path / "sounds" / "metadata.csv").unlink()
    assert len(open_dataset(tmp_path / "sounds", model(tokens=False, folder=own, main="input_values"))) == 2


def test_a_processor_that_fills_up_to_its_window_does(tmp_path: Path) -> None:
    spoken(tmp_path / "model", feature_extractor_type="WhisperFeatureExtractor", chunk_length=2)
    soundfile.write(tmp_path / "x.wav", np.zeros(9000, np.float32), 16000)
    data = open_dataset(tmp_path / "x.wav", model(tokens=False, folder=tmp_path / "model", main="input_features"))
    assert data.tensors["inputs"].shape == (1, 80, 200)


def test_pictures_for_a_model_of_sounds_and_a_readme_beside_pictures(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("what this is")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.new("L", (4, 4)).save(tmp_path / name / "x.png")
    assert len(open_dataset(tmp_path, model(tokens=False, channels=1))) == 2
    with pytest.raises(DataError, match="holds images, the model takes sounds"):
        open_dataset(tmp_path, model(tokens=False, rate=16000))


def test_decoded_sounds_come_with_their_rate_and_channels_are_mixed_with_a_note(tmp_path: Path) -> None:
    """What the Audio feature of ``datasets`` gives, as an object of array and sampling_rate, or of bytes and path."""
    left, right = np.linspace(-0.5, 0.5, 20, dtype=np.float32), np.zeros(20, np.float32)
    soundfile.write(tmp_path / "x.wav", np.stack([left, right], axis=1), 8000, subtype="FLOAT")
    content = (tmp_path / "x.wav").read_bytes()
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = {
        "array": [{"array": left.tolist(), "sampling_rate": 8000, "path": None}] * 4,
        "bytes": [{"bytes": content, "path": "x.wav"}] * 4,
        "plain": [content] * 4,
    }
    for name, audio in rows.items():
        parquet.write_table(pyarrow.table({"audio": audio, "label": [0, 1, 0, 1]}), tmp_path / f"{name}.parquet")
        data = open_dataset(f"{tmp_path / name}.parquet?window=10", model(tokens=False, rate=8000), split="all")
        expected = left if name == "array" else left / 2
        assert data.tensors["inputs"][:2].flatten().tolist() == pytest.approx(expected.tolist(), abs=1e-6)
        mixed = f"{name}.parquet: the channels of 4 of 4 sounds are mixed to one, their mean"
        assert (mixed in data.notes) == (name != "array")
    parquet.write_table(pyarrow.table({"audio": [left.tolist()] * 4}), tmp_path / "bare.parquet")
    with pytest.raises(DataError, match="an image or a sound is list; .* of a sound the array and the sampling_rate"):
        open_dataset(f"{tmp_path / 'bare.parquet'}?window=10", model(tokens=False, rate=8000))
