"""How text is split before byte-pair merges: llama.cpp's names for it, and the steps of the tokenizers library.

Expressions: ggml-org/llama.cpp, ``src/llama-vocab.cpp``, and the tokenizer.json files that each name stands for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.errors import WorkbenchError
from workbench.readable import few

_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_OTHERS = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_CASED = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
)
_CASED_OTHERS = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"

EXPRESSIONS: dict[str, tuple[str, ...]] = {
    "llama-bpe": (rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_OTHERS}",),
    "qwen2": (rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_OTHERS}",),
    "tekken": (rf"{_CASED[0]}|{_CASED[1]}|\p{{N}}|{_CASED_OTHERS}",),
    "gpt-4o": (rf"{_CASED[0]}{_CONTRACTIONS}?|{_CASED[1]}{_CONTRACTIONS}?|\p{{N}}{{1,3}}|{_CASED_OTHERS}",),
}
"""The names whose splitting is one expression, after which bytes are taken as they are."""

MERGES_IGNORED = frozenset({"llama-bpe", "tekken"})
"""The names for which llama.cpp takes a word that is a token whole, whatever its merges say."""

_GPT2 = ("gpt-2", "olmo", "phi-2", "jina-v2-code", "roberta-bpe", "mpt", "exaone", "default")
_DIGITS = ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone")


def pre_tokenizer_name(document: Mapping[str, Any], error: type[WorkbenchError]) -> str:
    """Return llama.cpp's name for how a byte-level tokenizer.json splits text; ``error`` where it has none."""
    steps = _steps(document.get("pre_tokenizer"))
    kinds = [step.get("type") for step in steps]
    ignores = bool(document["model"].get("ignore_merges"))
    if any(step.get("add_prefix_space") for step in steps if step.get("type") == "ByteLevel"):
        raise _unknown(error, "it puts a space before the text")
    if kinds == ["ByteLevel"] and steps[0].get("use_regex", True):
        return "gpt-2"
    if kinds == ["Digits", "ByteLevel"] and steps[0].get("individual_digits") and steps[1].get("use_regex", True):
        return "smollm"
    if kinds == ["Split", "ByteLevel"] and not steps[1].get("use_regex", True):
        pattern = steps[0].get("pattern", {}).get("Regex")
        for name, expressions in EXPRESSIONS.items():
            if (pattern,) == expressions and steps[0].get("behavior") == "Isolated":
                if ignores == (name in MERGES_IGNORED):
                    return name
                if name == "llama-bpe":
                    return "dbrx"  # the same expression, and merges count
    raise _unknown(error, f"its steps are {few(kinds, 8) or 'none'}")


def pre_tokenizer_steps(name: str) -> list[dict[str, Any]] | None:
    """Return the steps of the tokenizers library that split text as llama.cpp does under ``name``; None if unknown."""
    whole = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    if name in _GPT2:
        return [whole]
    if name in _DIGITS:
        return [{"type": "Digits", "individual_digits": True}, whole]
    expressions = EXPRESSIONS.get("llama-bpe" if name in ("dbrx", "smaug-bpe", "llama3") else name)
    if expressions is None:
        return None
    split = [
        {"type": "Split", "pattern": {"Regex": each}, "behavior": "Isolated", "invert": False} for each in expressions
    ]
    return [*split, {**whole, "use_regex": False}]


def _steps(part: Any) -> list[dict[str, Any]]:
    if not isinstance(part, dict):
        return []
    return [step for each in part["pretokenizers"] for step in _steps(each)] if "pretokenizers" in part else [part]


def _unknown(error: type[WorkbenchError], reason: str) -> WorkbenchError:
    return error(
        f"llama.cpp has no name for how the tokenizer splits text ({reason}); if you know the one it goes by there, "
        "export with it (--set pre_tokenizer=NAME)"
    )
