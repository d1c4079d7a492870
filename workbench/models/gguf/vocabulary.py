"""A tokenizer of the tokenizers library (tokenizer.json) as GGUF metadata."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError, naming_damage
from workbench.models.gguf.pre_tokenizers import pre_tokenizer_name
from workbench.models.gguf.tensors import library
from workbench.plain_file import read_json

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""llama.cpp's types of tokens."""

_PREFIX = "▁"


def vocabulary(
    folder: Path, size: int, pre: str, error: type[WorkbenchError], *, kinds: int = 0,
    converted: Mapping[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the keys ``tokenizer.*`` for the tokenizer in ``folder``, of ``size`` tokens as the embedding has rows.

    ``pre`` names llama.cpp's pre-tokenizer; empty: the one that splits text as tokenizer.json says.  A folder without
    that file has ``converted`` in its place; one without a tokenizer gives the model "none", which llama.cpp runs on
    token ids.  ``kinds`` is the rows of the table of token types, 0 without one.  Raises ``error``
    for a tokenizer that llama.cpp does not have.
    """
    file = folder / "tokenizer.json"
    document = _read(file, error) or converted
    types = {"tokenizer.ggml.token_type_count": kinds} if kinds else {}
    if document is None:
        return {"tokenizer.ggml.model": "none", **types}
    with naming_damage(file, error):
        return _keys(document, folder, size, pre, error) | types


def _keys(
    document: Mapping[str, Any], folder: Path, size: int, pre: str, error: type[WorkbenchError]
) -> dict[str, Any]:
    model = document["model"]
    tokens, types = _tokens(document, size, error)
    kind = _kind(model)
    if kind == "gpt2":
        merges = [" ".join(part.replace(" ", "Ġ") for part in pair) for pair in _pairs(model.get("merges") or ())]
        keys: dict[str, Any] = {
            "tokenizer.ggml.pre": pre or pre_tokenizer_name(document, error), "tokenizer.ggml.merges": merges,
        }  # fmt: skip
    elif kind == "llama":
        keys = {"tokenizer.ggml.pre": pre or "default", "tokenizer.ggml.scores": _merge_scores(tokens, model)}
    elif kind == "t5":
        keys = _unigram(document, size)
    elif kind == "bert":
        tokens = [_word_piece(token, types[place]) for place, token in enumerate(tokens)]
        keys = {"tokenizer.ggml.pre": pre or "default"}
    else:
        raise error(
            f"the tokenizer is a {model.get('type')}, which llama.cpp does not have; BPE, Unigram and WordPiece can be "
            "written"
        )
    if kind in ("llama", "t5"):
        keys["tokenizer.ggml.add_space_prefix"] = _adds_space(document)
    if UNKNOWN in types:
        keys["tokenizer.ggml.unknown_token_id"] = types.index(UNKNOWN)
    return {
        "tokenizer.ggml.model": kind, "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types, **keys,
        **_special(document, folder, size),
    }  # fmt: skip


def _read(file: Path, error: type[WorkbenchError]) -> dict[str, Any] | None:
    if not file.is_file():
        return None
    try:
        document = read_json(file)
    except (OSError, ValueError) as failure:
        raise error(f"{file} cannot be read as JSON: {failure}") from None
    if not isinstance(document, dict) or not isinstance(document.get("model"), dict):
        raise error(f"{file} is not a tokenizer: an object with a model was expected")
    return document


def _kind(model: Mapping[str, Any]) -> str | None:
    """Return llama.cpp's name for a tokenizer's model."""
    kind = model.get("type") or ("BPE" if "merges" in model else None)
    if kind == "BPE":
        return "llama" if model.get("byte_fallback") else "gpt2"
    return {"Unigram": "t5", "WordPiece": "bert"}.get(str(kind))


def _tokens(document: Mapping[str, Any], size: int, error: type[WorkbenchError]) -> tuple[list[str], list[int]]:
    """Return every token's text and type by its id; ids that no token has are unused."""
    model = document["model"]
    vocab = model["vocab"]
    named = vocab.items() if isinstance(vocab, dict) else ((entry[0], place) for place, entry in enumerate(vocab))
    tokens, types = [f"[PAD{place}]" for place in range(size)], [UNUSED] * size
    unknown = model.get("unk_token")
    unknown_id = model.get("unk_id")
    for token, place in named:
        if place >= size:
            raise error(f"the token {token!r} has the id {place}, the embedding has {size} rows")
        byte = bool(model.get("byte_fallback")) and len(token) == 6 and token.startswith("<0x") and token.endswith(">")
        tokens[place], types[place] = token, BYTE if byte else NORMAL
        if token == unknown or place == unknown_id:
            types[place] = UNKNOWN
    for added in document.get("added_tokens") or ():
        place = added["id"]
        if place < size:
            tokens[place] = added["content"]
            known = CONTROL if added.get("special") else USER_DEFINED
            types[place] = types[place] if types[place] == UNKNOWN else known
    return tokens, types


def _pairs(merges: Sequence[Any]) -> list[tuple[str, str]]:
    pairs = []
    for merge in merges:
        first, second = merge.split(" ", 1) if isinstance(merge, str) else merge
        pairs.append((first, second))
    return pairs


def _merge_scores(tokens: Sequence[str], model: Mapping[str, Any]) -> list[float]:
    """Return the score of each token: minus the rank of the first merge that makes it, as llama.cpp merges by score."""
    ranks: dict[str, int] = {}
    for rank, (first, second) in enumerate(_pairs(model.get("merges") or ())):
        ranks.setdefault(first + second, rank)
    last = len(ranks)
    return [-float(ranks.get(token, last)) for token in tokens]


def _unigram(document: Mapping[str, Any], size: int) -> dict[str, Any]:
    scores = [0.0] * size
    for place, (_, score) in enumerate(document["model"]["vocab"]):
        scores[place] = float(score)
    keys: dict[str, Any] = {
        "tokenizer.ggml.scores": scores, "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.remove_extra_whitespaces": _removes_spaces(document),
    }  # fmt: skip
    for step in _steps(document.get("normalizer"), "normalizers"):
        if step.get("type") == "Precompiled" and step.get("precompiled_charsmap"):
            keys["tokenizer.ggml.precompiled_charsmap"] = base64.b64decode(step["precompiled_charsmap"])
    return keys


def _word_piece(token: str, kind: int) -> str:
    """Return a token as llama.cpp spells it: the start of a word is marked, not its continuation."""
    if kind != NORMAL or (token.startswith("[") and token.endswith("]")):
        return token
    return token[2:] if token.startswith("##") else _PREFIX + token


def _steps(part: Any, members: str) -> list[dict[str, Any]]:
    """Return the steps of a normalizer, pre-tokenizer or decoder, a sequence taken apart."""
    if not isinstance(part, dict):
        return []
    return [step for each in part[members] for step in _steps(each, members)] if members in part else [part]


def _adds_space(document: Mapping[str, Any]) -> bool:
    """Return whether text is tokenized with a space before it."""
    for step in _steps(document.get("normalizer"), "normalizers"):
        if step.get("type") == "Prepend" and step.get("prepend") == _PREFIX:
            return True
    for step in _steps(document.get("pre_tokenizer"), "pretokenizers"):
        if step.get("type") == "Metaspace":
            usual = "always" if step.get("add_prefix_space", True) else "never"
            return bool(step.get("prepend_scheme", usual) != "never")
    return False


def _removes_spaces(document: Mapping[str, Any]) -> bool:
    """Return whether spaces at the ends of a text, and all but one in a row, are left out."""
    splits = [step.get("type") for step in _steps(document.get("pre_tokenizer"), "pretokenizers")]
    patterns = [step.get("pattern") for step in _steps(document.get("normalizer"), "normalizers")]
    return "WhitespaceSplit" in splits or {"Regex": " {2,}"} in patterns


def _special(document: Mapping[str, Any], folder: Path, size: int) -> dict[str, Any]:
    """Return special tokens and the chat template, found by the package ``gguf``, and what is put around a text."""
    vocabulary = library().SpecialVocab(folder, n_vocab=size)
    keys: dict[str, Any] = {}
    names = {"unk": "unknown", "sep": "seperator", "pad": "padding"}
    for kind, place in vocabulary.special_token_ids.items():
        keys[f"tokenizer.ggml.{names.get(kind, kind)}_token_id"] = int(place)
    before, after = _around(document)
    keys |= {"tokenizer.ggml.add_bos_token": before, "tokenizer.ggml.add_eos_token": after}
    template = vocabulary.chat_template
    if isinstance(template, list):
        template = next((each["template"] for each in template if each.get("name") == "default"), None)
    if isinstance(template, str):
        keys["tokenizer.chat_template"] = template
    return keys


def _around(document: Mapping[str, Any]) -> tuple[bool, bool]:
    """Return whether the tokenizer puts a token before and one after a text."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(json.dumps(document))
    bare, whole = tokenizer.encode("a", add_special_tokens=False).ids, tokenizer.encode("a").ids
    if not bare:
        return False, False
    at = next((place for place in range(len(whole)) if whole[place : place + len(bare)] == bare), 0)
    return at > 0, len(whole) > at + len(bare)
