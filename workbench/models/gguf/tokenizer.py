"""The tokenizer that a GGUF file carries, as one of the tokenizers library."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from workbench.errors import DataError, WorkbenchError, first_line
from workbench.models.gguf.container import read_gguf
from workbench.models.gguf.pre_tokenizers import MERGES_IGNORED, pre_tokenizer_steps
from workbench.models.gguf.vocabulary import BYTE, CONTROL, UNKNOWN, USER_DEFINED
from workbench.models.readers.tokenizer import require_document

_PREFIX = "▁"
_GGML = "tokenizer.ggml."


def tokenizer_in(path: Path) -> Any:
    """Return the tokenizer of the file at ``path``, None where it has none; DataError for one that cannot be used."""
    try:
        return _tokenizer(path, path.stat().st_mtime_ns)
    except WorkbenchError as error:
        raise DataError(str(error)) from error
    except OSError as error:
        raise DataError(f"the tokenizer in {path} cannot be read: {error}") from error


@lru_cache(maxsize=2)
def _tokenizer(path: Path, changed: int) -> Any:
    document = tokenizer_document(read_gguf(path).plain, str(path))
    if document is None:
        return None
    from tokenizers import Tokenizer

    text = json.dumps(document)
    require_document(text, f"the tokenizer in {path}")
    try:
        return Tokenizer.from_str(text)
    except Exception as error:  # the tokenizers' own errors have no common type
        raise DataError(f"the tokenizer in {path} cannot be used: {first_line(error)}") from error


def has_tokenizer(metadata: Mapping[str, Any]) -> bool:
    """Return whether a file's metadata hold a tokenizer that is understood."""
    return str(metadata.get(_GGML + "model")) in _MODELS


def tokenizer_document(metadata: Mapping[str, Any], where: str) -> dict[str, Any] | None:
    """Return the tokenizer.json of a file's metadata, None where it holds none; DataError for a damaged one."""
    if not has_tokenizer(metadata):
        return None
    tokens = metadata.get(_GGML + "tokens")
    types = metadata.get(_GGML + "token_type") or []
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise DataError(f"{where} has a tokenizer without a list of tokens")
    types = [*types, *[1] * (len(tokens) - len(types))]
    parts = _MODELS[metadata[_GGML + "model"]](metadata, tokens, types, where)
    added = [
        {"id": place, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
         "special": types[place] in (CONTROL, UNKNOWN)}
        for place, token in enumerate(tokens) if types[place] in (CONTROL, USER_DEFINED, UNKNOWN)
    ]  # fmt: skip
    post = {"post_processor": _around(metadata, tokens)}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, **post, **parts}


def _around(metadata: Mapping[str, Any], tokens: Sequence[str]) -> dict[str, Any] | None:
    """Return the step that puts the first and the last token around a text, where the file asks for it."""
    spm = metadata[_GGML + "model"] == "llama"
    ends = []
    for kind, usual in (("bos", spm), ("eos", False)):
        place = metadata.get(f"{_GGML}{kind}_token_id", 1 if spm else None)
        added = metadata.get(f"{_GGML}add_{kind}_token", usual)
        ends.append(place if added and isinstance(place, int) and 0 <= place < len(tokens) else None)
    if ends == [None, None]:
        return None
    pieces = [{"SpecialToken": {"id": tokens[place], "type_id": 0}} for place in ends if place is not None]
    middle = [{"Sequence": {"id": "A", "type_id": 0}}]
    single = pieces[:1] + middle + pieces[1:] if ends[0] is not None else middle + pieces
    named = {tokens[place]: {"id": tokens[place], "ids": [place], "tokens": [tokens[place]]}
             for place in ends if place is not None}  # fmt: skip
    return {"type": "TemplateProcessing", "single": single, "pair": [*single, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": named}  # fmt: skip


def _byte_level(metadata: Mapping[str, Any], tokens: list[str], types: Sequence[int], where: str) -> dict[str, Any]:
    name = metadata.get(_GGML + "pre", "default")
    steps = pre_tokenizer_steps(str(name))
    if steps is None:
        raise DataError(f"{where} splits text as {name} does, which is not supported; give token windows (.npy)")
    merges = [merge.split(" ", 1) for merge in metadata.get(_GGML + "merges") or ()]
    vocab = {token: place for place, token in enumerate(tokens)}
    return {
        "normalizer": None, "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE", "vocab": vocab,
            "merges": [each for each in merges if len(each) == 2 and {*each, "".join(each)} <= vocab.keys()],
            "ignore_merges": name in MERGES_IGNORED,
        },
    }  # fmt: skip


def _sentence_piece(metadata: Mapping[str, Any], tokens: list[str], types: Sequence[int], where: str) -> dict[str, Any]:
    """SentencePiece's byte pairs: any two pieces that make a piece merge, those of the best piece first."""
    vocab = {token: place for place, token in enumerate(tokens)}
    scores = metadata.get(_GGML + "scores") or [0.0] * len(tokens)
    pieces = [place for place, token in enumerate(tokens) if len(token) > 1 and types[place] not in (CONTROL, BYTE)]
    merges = []
    for place in sorted(pieces, key=lambda place: -scores[place]):
        token = tokens[place]
        splits = [(token[:cut], token[cut:]) for cut in range(1, len(token))]
        known = [pair for pair in splits if pair[0] in vocab and pair[1] in vocab]
        merges += sorted(known, key=lambda pair: (vocab[pair[0]], vocab[pair[1]]))
    prefix = [{"type": "Prepend", "prepend": _PREFIX}] if metadata.get(_GGML + "add_space_prefix", True) else []
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefix else []
    unknown = metadata.get(_GGML + "unknown_token_id", 0)
    return {
        "normalizer": {"type": "Sequence", "normalizers": [
            *prefix, {"type": "Replace", "pattern": {"String": " "}, "content": _PREFIX},
        ]},
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": _PREFIX}, "content": " "}, {"type": "ByteFallback"},
            {"type": "Fuse"}, *strip,
        ]},
        "model": {
            "type": "BPE", "vocab": vocab, "merges": merges, "byte_fallback": True, "fuse_unk": True,
            "unk_token": tokens[unknown] if 0 <= unknown < len(tokens) else None,
        },
    }  # fmt: skip


def _word_piece(metadata: Mapping[str, Any], tokens: list[str], types: Sequence[int], where: str) -> dict[str, Any]:
    vocab: dict[str, int] = {}
    for place, token in enumerate(tokens):
        plain = types[place] != 1 or (token.startswith("[") and token.endswith("]"))
        vocab[token if plain else token[1:] if token.startswith(_PREFIX) else "##" + token] = place
    unknown = metadata.get(_GGML + "unknown_token_id", 100)
    return {
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "vocab": vocab, "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100,
                  "unk_token": tokens[unknown] if 0 <= unknown < len(tokens) else "[UNK]"},
    }  # fmt: skip


def _unigram(metadata: Mapping[str, Any], tokens: list[str], types: Sequence[int], where: str) -> dict[str, Any]:
    scores = metadata.get(_GGML + "scores") or [0.0] * len(tokens)
    charsmap = metadata.get(_GGML + "precompiled_charsmap")
    steps: list[dict[str, Any]] = []
    if charsmap:
        steps.append({"type": "Precompiled", "precompiled_charsmap": base64.b64encode(bytes(charsmap)).decode()})
    if metadata.get(_GGML + "remove_extra_whitespaces", False):
        steps.append({"type": "Strip", "strip_left": True, "strip_right": True})
        steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    scheme = "always" if metadata.get(_GGML + "add_space_prefix", True) else "never"
    space = {"type": "Metaspace", "replacement": _PREFIX, "prepend_scheme": scheme, "split": True}
    return {
        "normalizer": {"type": "Sequence", "normalizers": steps} if steps else None,
        "pre_tokenizer": space, "decoder": space,
        "model": {"type": "Unigram", "unk_id": metadata.get(_GGML + "unknown_token_id", 0), "byte_fallback": False,
                  "vocab": [[token, float(score)] for token, score in zip(tokens, scores, strict=False)]},
    }  # fmt: skip


_MODELS = {"gpt2": _byte_level, "llama": _sentence_piece, "bert": _word_piece, "t5": _unigram}
