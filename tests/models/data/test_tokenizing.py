"""Tokenizers of strangers at work: one that never ends, panics or asks for too much is one sentence."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from workbench.errors import DataError
from workbench.models.data import tokenizing
from workbench.models.data.inputs import InputSpec, fast_tokenizer
from workbench.models.data.samples import decoder
from workbench.models.data.text import (
    NO_LIMIT,
    Transcriber,
    answer_ids,
    encode,
    first_tokens,
    sentences,
    tokenizer_of,
)
from workbench.models.readers.tokenizer import holds_tokenizer
from workbench.models.sources.bundled import bundled_folder

LOOPS = pytest.mark.parametrize(
    ("pattern", "text"), [(r"(a+)+$", "a" * 40 + "!"), (r"(x+x+)+y", "x" * 5000)], ids=["nested", "pairs"]
)


def spec(folder: Path, pattern: str = r"\s", **settings: Any) -> InputSpec:
    """Return what a model takes whose tokenizer splits by ``pattern``."""
    folder.mkdir(exist_ok=True)
    tokenizer = Tokenizer(models.WordLevel({"?": 0, "one": 1, "two": 2, "three": 3}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "removed")
    tokenizer.save(str(folder / "tokenizer.json"))
    own = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "?", "pad_token": "?", **settings}
    (folder / "tokenizer_config.json").write_text(json.dumps(own))
    return InputSpec(tokens=True, vocabulary=4, positions=64, tokenizer=folder, takes=("input_ids", "attention_mask"))


def tables(text: str, spec: InputSpec) -> dict[str, Callable[[], object]]:
    file = Path("texts.jsonl")
    return {
        "window": lambda: encode(text, spec, file),
        "sentences": lambda: sentences([text], None, spec, file, [0], None)[0]["input_ids"].tolist(),
        "answers": lambda: answer_ids([text], spec, file, None)[0],
    }


@pytest.mark.parametrize(("name", "kind"), [
    ("tokenizer.model", "LlamaTokenizer"), ("spiece.model", "T5Tokenizer"),
    ("sentencepiece.bpe.model", "CamembertTokenizer"),
])  # fmt: skip
def test_a_folder_with_sentencepiece_alone_has_a_tokenizer(tmp_path: Path, name: str, kind: str) -> None:
    """As T5 1.1's: its pieces are those of the library that made them."""
    import sentencepiece

    texts = [f"the quick fox number {number} jumps over {7 * number} lazy dogs" for number in range(300)]
    (tmp_path / "texts").write_text("\n".join(texts))
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "texts"), model_prefix=str(tmp_path / "made"), vocab_size=90, minloglevel=2,
        model_type="bpe" if kind == "LlamaTokenizer" else "unigram",
    )  # fmt: skip
    (tmp_path / "made.model").rename(tmp_path / name)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind, "add_bos_token": False}))
    assert holds_tokenizer(tmp_path)
    made = InputSpec(tokens=True, vocabulary=200, positions=64, tokenizer=tmp_path, takes=("input_ids",))
    whole = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / name))
    own = tokenizer_of(made, tmp_path)
    ids = own(texts[5], add_special_tokens=False)["input_ids"]
    assert own.convert_ids_to_tokens(ids) == whole.encode(texts[5], out_type=str)


@pytest.mark.parametrize(
    ("kind", "holds"), [("ByT5Tokenizer", True), ("CanineTokenizer", True), ("BertTokenizer", False), ([1], False)]
)
def test_a_tokenizer_of_bytes_needs_no_file_of_its_own(tmp_path: Path, kind: object, holds: bool) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind}))
    assert holds_tokenizer(tmp_path) is holds
    if kind == "ByT5Tokenizer":
        made = InputSpec(tokens=True, vocabulary=384, positions=64, tokenizer=tmp_path, takes=("input_ids",))
        assert tokenizer_of(made, tmp_path)("ab")["input_ids"] == [ord("a") + 3, ord("b") + 3, 1]


def test_ids_are_the_tokenizers_own(tmp_path: Path) -> None:
    made = tables("one three two", spec(tmp_path))
    assert {name: work() for name, work in made.items()} == {
        "window": [1, 3, 2], "sentences": [[1, 3, 2]], "answers": [[1, 3, 2]]
    }  # fmt: skip
    assert first_tokens(spec(tmp_path), tmp_path) == []


@LOOPS
@pytest.mark.parametrize("kind", ["window", "sentences", "answers"])
def test_an_expression_that_never_ends_on_some_text_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, text: str, kind: str
) -> None:
    """Reading such a tokenizer takes no time, and so it passes as whole."""
    monkeypatch.setattr(tokenizing, "SECONDS", 1.0)
    monkeypatch.setattr(tokenizing, "CHARACTERS_PER_SECOND", 10**9)
    work = tables(text, spec(tmp_path, pattern))[kind]
    with pytest.raises(DataError, match=r"^the tokenizer in .*") as caught:
        work()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "replacements",
    [[("(one|one|.)*\\z(?<!.)", "")], [(".", "a" * 300)] * 4, [("(o|n|e|on|ne| )+!", "")]],
    ids=["panics", "fills", "loops"],
)  # fmt: skip
def test_a_decoder_that_harms_leaves_the_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replacements: list[tuple[str, str]]
) -> None:
    """Texts of samples and of the most changed tokens are read off ids; word errors need them."""
    monkeypatch.setattr(tokenizing, "SECONDS", 1.0)
    monkeypatch.setattr(tokenizing, "MEMORY", 1 << 28)
    made, honest = spec(tmp_path), [[1, 3, 2], []]
    assert decoder(made)(honest) == ["one three two", ""]
    assert Transcriber(tokenizer_of(made, tmp_path), tmp_path).written(honest) == ["one three two", ""]
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    tokenizer.decoder = decoders.Sequence([decoders.Fuse(), *(decoders.Replace(Regex(a), b) for a, b in replacements)])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    os.utime(tmp_path / "tokenizer.json", (0, 0))
    many = [[1] * 5000]
    assert decoder(made)(many)[0].startswith("1 1 1")
    with pytest.raises(DataError, match=r"^the tokenizer in .*") as caught:
        Transcriber(tokenizer_of(made, tmp_path), tmp_path).written(many)
    assert "\n" not in str(caught.value)


def test_what_the_library_raises_and_its_panics_are_told(tmp_path: Path) -> None:
    class Panic(BaseException):
        pass

    def panics() -> Any:
        raise Panic("called `Option::unwrap()` on a `None` value")

    def raises() -> Any:
        raise RuntimeError("no such token\nin the vocabulary")

    for work, reason in ((panics, "makes the library that reads it"), (raises, "cannot be used: no such token$")):
        with pytest.raises(DataError, match=reason):
            tokenizing.tokenized(work, tmp_path, ["a"])


def test_without_forks_panics_are_told_and_the_environment_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr("workbench.limited.FORKS", False)
    monkeypatch.delenv(tokenizing.PARALLEL, raising=False)

    def panics() -> Any:
        raise type("PanicException", (BaseException,), {})("called `Option::unwrap()` on a `None` value")

    with pytest.raises(DataError, match="cannot be used: called `Option"):
        tokenizing.tokenized(panics, tmp_path, ["a"])
    assert tokenizing.PARALLEL not in os.environ


def test_tables_of_every_size_come_back(tmp_path: Path) -> None:
    rows = [[[1, 2], [], [3]], [], [[]]]
    assert tokenizing.tokenized(lambda: rows, tmp_path, ["a"]) == rows


@pytest.mark.parametrize("longest", ["x", None, -1, 0, [1], True, float("nan"), {"a": 1}])
def test_a_longest_text_that_is_no_number_is_left_out(tmp_path: Path, longest: object) -> None:
    made = spec(tmp_path, model_max_length=longest)
    assert tokenizer_of(made, tmp_path).model_max_length == NO_LIMIT
    assert sentences(["one two"], None, made, tmp_path, [0], None)[0]["input_ids"].tolist() == [[1, 2]]


@pytest.mark.parametrize("kind", ["RagTokenizer", "EvilTokenizer"])
def test_what_is_no_tokenizer_of_texts_is_told(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """In one line: transformers said twice that the model is of another kind."""
    logging.getLogger("transformers").addHandler(caplog.handler)
    made = spec(tmp_path, tokenizer_class=kind, auto_map={"AutoTokenizer": ["evil.Evil", None]})
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'marker')!r}, 'w').close()")
    with pytest.raises(DataError, match="cannot be used") as caught:
        tokenizer_of(made, tmp_path)
    logging.getLogger("transformers").removeHandler(caplog.handler)
    assert "\n" not in str(caught.value) and not (tmp_path / "marker").exists() and not caplog.records


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_folder_whose_name_is_not_utf8_has_its_tokenizer(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"mod\xff\xfeel")
    shutil.copytree(bundled_folder("language-model"), folder)
    assert fast_tokenizer(folder).encode("Hello").ids
