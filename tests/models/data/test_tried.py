"""Settings of strangers: what a library makes of them is made in a limited process before it is made here."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.deployment.exporters.llamas import ROWS, folder_of
from tests.models.data.test_datasets import model
from workbench.errors import UNFORESEEN, DataError
from workbench.models.data import text
from workbench.models.data.datasets import open_dataset
from workbench.models.data.text import tokenizer_of
from workbench.models.data.tried import tried

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks")
WAVES = {
    "feature_extractor_type": "Wav2Vec2FeatureExtractor", "feature_size": 1, "sampling_rate": 16000,
    "padding_value": 0.0, "return_attention_mask": True,
}  # fmt: skip
SPECTRA = {
    "feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 80, "sampling_rate": 16000, "hop_length": 160,
    "chunk_length": 30, "n_fft": 400, "padding_value": 0.0,
}  # fmt: skip


class Panic(BaseException):
    """As Rust's."""


Panic.__name__ = "PanicException"


def test_what_is_made_comes_from_here_and_reads_in_between(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("7")
    here = os.getpid()
    assert tried(lambda: ((tmp_path / "x").read_text(), os.getpid()), "it", tmp_path) == ("7", here)


def test_a_trial_writes_and_connects_nowhere(tmp_path: Path) -> None:
    def write() -> None:
        (tmp_path / "y").write_text("left")

    with pytest.raises(DataError, match="^it cannot be used: .*Permission denied"):
        tried(write, "it", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_trial_reads_what_lies_in_the_folder_and_what_a_link_there_leads_to(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    for name in ("secret", "linked"):
        (tmp_path / name).write_text(name)
    (inner / "link").symlink_to("../linked")
    assert tried((inner / "link").read_text, "it", inner) == "linked"
    for way in (tmp_path / "secret", inner / ".." / "secret"):
        with pytest.raises(DataError, match="^it cannot be used: .*Permission denied"):
            tried(way.read_text, "it", inner)


def vocabulary(folder: Path, settings: dict[str, Any]) -> dict[str, int]:
    """Return the tokens of a BERT's tokenizer in ``folder``, beside which lies somebody else's file."""
    own = folder / "own"
    own.mkdir()
    special = "[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\n"
    (folder / "secret.txt").write_text(f"secret\n{special}")
    (own / "vocab.txt").write_text(f"own\n{special}")
    (own / "config.json").write_text(json.dumps({"model_type": "bert"}))
    (own / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"} | settings))
    tokens: dict[str, int] = tokenizer_of(model(tokens=True, tokenizer=own).inputs, own).get_vocab()
    return tokens


@pytest.mark.parametrize("aside", [True, False])
@pytest.mark.parametrize("setting", ["vocab", "gguf_file", "vocab_file", "tokenizer_file", "special_tokens_map_file"])
def test_a_tokenizer_reads_no_file_but_its_folder_s(
    tmp_path: Path, setting: str, aside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused by the name of the setting and, were that unknown, by the limited process."""
    if aside:
        monkeypatch.setattr(text, "OTHER_FILES", ())
    try:
        tokens = vocabulary(tmp_path, {setting: str(tmp_path / "secret.txt")})
    except DataError as error:
        assert setting in ("vocab", "gguf_file") and "\n" not in str(error)
    else:
        assert "own" in tokens and "secret" not in tokens


def fills() -> object:
    return np.ones(1 << 29)


def crashes() -> object:
    os.abort()


def panics() -> object:
    raise Panic("range end index 3 out of range")


def hangs() -> object:
    while True:
        pass


@pytest.mark.parametrize(("make", "words"), [
    (fills, "memory"), (crashes, "crash"), (panics, "range end index"), (hangs, "takes more than 4 s"),
    (lambda: [][0], "cannot be used: list index out of range"),
])  # fmt: skip
def test_what_fails_in_the_trial_is_one_error(tmp_path: Path, make: Any, words: str) -> None:
    with pytest.raises(DataError, match=f"^it .*{words}"):
        tried(make, "it", tmp_path)


def read(folder: Path, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Read two sounds of a second with the processor of a model's folder."""
    soundfile = pytest.importorskip("soundfile")
    for name in ("model", "sounds"):
        (folder / name).mkdir()
    (folder / "model" / "preprocessor_config.json").write_text(json.dumps(settings))
    for name in "ab":
        soundfile.write(folder / "sounds" / f"{name}.wav", np.sin(np.arange(8000) / 9).astype(np.float32), 8000)
    main = "input_values" if settings["feature_size"] == 1 else "input_features"
    spec = model(tokens=False, folder=folder / "model", main=main, takes=(main, "attention_mask"))
    return list(open_dataset(folder / "sounds", spec).batches(2))


def test_sounds_become_what_the_processor_says(tmp_path: Path) -> None:
    (batch,) = read(tmp_path, WAVES)
    assert batch["inputs"].shape == (2, 16000) and batch["attention_mask"].tolist() == [[1] * 16000] * 2
    assert abs(float(batch["inputs"].mean())) < 1e-3 and abs(float(batch["inputs"].std()) - 1) < 1e-2  # it normalises


@pytest.mark.parametrize(("changes", "words"), [
    (WAVES | {"sampling_rate": 10**9}, "has the sampling_rate 1000000000; expected 100 to 1,000,000 Hz"),
    (WAVES | {"sampling_rate": "x"}, "has the sampling_rate x"),
    (WAVES | {"sampling_rate": -16000}, "has the sampling_rate -16000"),
    (WAVES | {"sampling_rate": 440.5}, "has the sampling_rate 440.5"),
    (WAVES | {"sampling_rate": float("nan")}, "has the sampling_rate nan"),
    (SPECTRA | {"feature_size": 30_000, "n_fft": 60_000}, "too much memory"),
    (SPECTRA | {"hop_length": 0}, "cannot be used: "),
    (SPECTRA | {"feature_size": [], "n_fft": {}}, "cannot be used: "),
])  # fmt: skip
def test_processors_that_are_made_to_do_harm(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        read(tmp_path, changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("content", [b"\xff\xfe{\0}\0", b"{", b"\xff{}", b"[" * 100_000, b""], ids=len)
def test_settings_that_are_no_json_are_named(tmp_path: Path, name: str, content: bytes) -> None:
    """For a tokenizer in UTF-16 the text was named, as damaged."""
    file = folder_of("llama", tmp_path / "m", hidden_size=32, intermediate_size=32, num_hidden_layers=1) / name
    (tmp_path / "text.txt").write_text("Some text. " * 200)
    file.write_bytes(content)
    reader = model(vocabulary=ROWS, positions=64, tokenizer=file.parent)
    with pytest.raises(DataError) as refused:
        open_dataset(tmp_path / "text.txt", reader)  # which needs no settings
        tokenizer_of(reader.inputs, tmp_path / "text.txt")
    assert "tokenizer" in str(refused.value) and "text.txt" not in str(refused.value)
    assert UNFORESEEN not in str(refused.value)
