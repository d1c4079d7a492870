"""Tokenizers of every kind split a text in llama.cpp, and from the file again, as the folder's does."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from tests.deployment.exporters.llamas import ROWS, folder_of, word_pieces
from workbench.deployment.exporters import exporter
from workbench.deployment.proof import llama_cpp
from workbench.errors import ExportError
from workbench.models.data.inputs import fast_tokenizer
from workbench.models.gguf.pre_tokenizers import EXPRESSIONS, MERGES_IGNORED, pre_tokenizer_steps
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize

TEXT = "Hello world, it's 12345  NaïveCafé — tokens!\n\n\tdef f(x): return x+1  # the   end 漢字 🙂 I'LL"
CORPUS = [TEXT, "the end of the world is not the end of tokens", "def main(): return 12 + 345", "Hello NAÏVE café"]
BYTES = [f"<0x{octet:02X}>" for octet in range(256)]


def byte_level(name: str) -> dict[str, Any]:
    steps = {"type": "Sequence", "pretokenizers": pre_tokenizer_steps(name)}
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<|end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.decoder = decoders.ByteLevel()
    document: dict[str, Any] = json.loads(tokenizer.to_str())
    document["pre_tokenizer"] = steps
    document["model"]["ignore_merges"] = name in MERGES_IGNORED
    return document


def sentence_piece(space: bool) -> dict[str, Any]:
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    first = [normalizers.Prepend("▁")] if space else []
    tokenizer.normalizer = normalizers.Sequence([*first, normalizers.Replace(" ", "▁")])
    words = [word for line in CORPUS for word in line.replace(" ", " \x00").split("\x00") if word]
    special = ["<unk>", "<s>", "</s>", *BYTES]
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(words, trainer)
    document: dict[str, Any] = json.loads(tokenizer.to_str())
    document["added_tokens"] = document["added_tokens"][:3]
    return document


KINDS: dict[str, Any] = {name: lambda name=name: byte_level(name) for name in ("gpt-2", "smollm", *EXPRESSIONS, "dbrx")}
KINDS |= {"spm": lambda: sentence_piece(True), "spm without a space": lambda: sentence_piece(False)}


def written(document: dict[str, Any] | None, place: Path) -> Path:
    folder = folder_of("llama" if document else "bert", place)
    if document:
        (folder / "tokenizer.json").write_text(json.dumps(document), encoding="utf-8")
        names = {"bos_token": "<s>", "eos_token": "</s>"} if document["model"].get("byte_fallback") else {}
        (folder / "tokenizer_config.json").write_text(json.dumps(names), encoding="utf-8")
    else:
        word_pieces(folder)
    model = open_model(folder)
    exporter("gguf").export(quantize(model, Plan()), model, folder / "model.gguf", silent)
    return folder


@pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp is not installed")
@pytest.mark.parametrize("kind", KINDS)
def test_llama_cpp_splits_text_as_the_folder_does(kind: str, tmp_path: Path) -> None:
    folder = written(KINDS[kind](), tmp_path)
    ours = fast_tokenizer(folder).encode(TEXT, add_special_tokens=False).ids
    again = fast_tokenizer(folder / "model.gguf")
    assert again.encode(TEXT, add_special_tokens=False).ids == ours
    theirs = llama_cpp.run(folder / "model.gguf", [[1, 2, 3]], [1], ROWS, text=TEXT, threads=1).tokens
    assert list(theirs) == ours


@pytest.mark.parametrize("removes", [True, False])
def test_spaces_that_a_folder_leaves_out_are_left_out_everywhere(removes: bool, tmp_path: Path) -> None:
    """XLM-RoBERTa's tokenizer splits at spaces before it marks words; others of its kind keep each."""
    tokenizer = Tokenizer(models.Unigram())
    space = pre_tokenizers.Metaspace()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), space]) if removes else space
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=300, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    folder, text = written(json.loads(tokenizer.to_str()), tmp_path), "  " * removes + "Two  words,   and more "
    ours = fast_tokenizer(folder).encode(text, add_special_tokens=False).ids
    assert fast_tokenizer(folder / "model.gguf").encode(text, add_special_tokens=False).ids == ours
    if importlib.util.find_spec("xllamacpp") is not None:
        theirs = llama_cpp.run(folder / "model.gguf", [[1, 2, 3]], [1], ROWS, text=text, threads=1).tokens
        assert list(theirs) == ours


def test_word_pieces_come_back(tmp_path: Path) -> None:
    folder = written(None, tmp_path)
    text = "Hello worlding, abc"
    places = (folder, folder / "model.gguf")
    ours, again = (fast_tokenizer(each).encode(text, add_special_tokens=False) for each in places)
    assert again.ids == ours.ids and again.tokens == ours.tokens


def test_a_splitting_that_llama_cpp_does_not_know_is_refused_unless_it_is_named(tmp_path: Path) -> None:
    document = byte_level("qwen2")
    document["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = r"\d+|\w+|\W+"
    with pytest.raises(
        ExportError, match="no name for how the tokenizer splits.*export with it .--set pre_tokenizer=NAME"
    ):
        written(document, tmp_path / "one")
    model = open_model(tmp_path / "one")
    exporter("gguf", ("pre_tokenizer=qwen2",)).export(quantize(model, Plan()), model, tmp_path / "m.gguf", silent)
    assert (tmp_path / "m.gguf").exists()
