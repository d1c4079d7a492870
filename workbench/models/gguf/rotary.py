"""Rotary embeddings as GGUF metadata and tensors, and back.

Formulas: transformers, ``modeling_rope_utils.py``; what llama.cpp reads: ggml-org/llama.cpp, ``src/llama-model.cpp``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from workbench.errors import NotAModelError

FREQUENCIES, LONG, SHORT = "rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"
"""Tensors of divisors of the frequencies: always, beyond and up to the original context."""

TENSORS = (FREQUENCIES, LONG, SHORT)
_BORDERS = {"beta_fast": 32, "beta_slow": 1, "truncate": True}
"""Where YaRN's ramp begins and ends in llama.cpp."""


def rope_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration's rotary parameters, those of full attention where layers differ."""
    rope = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    rope = dict(rope.get("full_attention") or rope)
    rope.setdefault("rope_theta", config.get("rope_theta"))
    if rope.get("rope_type") == "dynamic" and (alpha := rope.get("alpha")):  # Hunyuan's, whatever the length
        size = head_size(config)
        rope |= {"rope_type": "default", "rope_theta": rope["rope_theta"] * alpha ** (size / (size - 2))}
    return rope


def sliding_rope(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rotary parameters of the blocks with a window; none where all blocks have the same."""
    return dict(dict(config.get("rope_parameters") or {}).get("sliding_attention") or {})


def head_size(config: Mapping[str, Any]) -> int:
    """Return the width of an attention head."""
    size = config.get("head_dim")
    return int(size) if size else int(config["hidden_size"]) // int(config["num_attention_heads"])


def not_computed(config: Mapping[str, Any]) -> dict[str, object]:
    """Return the rotary parameters of a configuration that llama.cpp computes otherwise."""
    rope = rope_of(config)
    if rope.get("rope_type") != "yarn":
        return {}
    return {name: rope[name] for name, usual in _BORDERS.items() if rope.get(name) not in (None, usual)}


def rotary_metadata(config: Mapping[str, Any], turned: int) -> dict[str, Any]:
    """Return the keys of rotary embeddings of ``turned`` numbers of each head; the factors of frequencies that are
    tensors are :func:`rotary_factors`."""
    rope = rope_of(config)
    kind = rope.get("rope_type", "default")
    values: dict[str, Any] = {"rope.dimension_count": turned}
    if rope.get("rope_theta") is not None:
        values["rope.freq_base"] = float(rope["rope_theta"])
    original = _original(config, rope)
    if kind in ("linear", "yarn"):
        values |= {"rope.scaling.type": kind, "rope.scaling.factor": float(rope["factor"])}
    if kind in ("linear", "yarn", "longrope") and original:
        values["rope.scaling.original_context_length"] = original
    if kind == "yarn" and (scale := _yarn_scale(rope) / _yarn_usual(rope["factor"])) != 1:
        values["rope.scaling.attn_factor"] = scale
    if kind == "longrope":
        values["rope.scaling.attn_factor"] = _long_scale(config, rope)
    return values


def rotary_factors(config: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return the divisors of the frequencies by the tensor that stores them; none for most kinds."""
    rope = rope_of(config)
    if rope.get("rope_type") == "llama3":
        return {FREQUENCIES: _llama3(config, rope)}
    if rope.get("rope_type") == "longrope":
        return {LONG: list(map(float, rope["long_factor"])), SHORT: list(map(float, rope["short_factor"]))}
    return {}


def rotary_of(metadata: Mapping[str, Any], factors: Mapping[str, list[float]]) -> dict[str, Any]:
    """Return transformers' rotary parameters for metadata without the architecture's name, and the tensors' factors.

    Those of :data:`FREQUENCIES` have no counterpart there.  Raises NotAModelError for a scale that has none either.
    """
    theta, kind = metadata.get("rope.freq_base"), metadata.get("rope.scaling.type")
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": 10000.0 if theta is None else theta}
    original, scale = metadata.get("rope.scaling.original_context_length"), metadata.get("rope.scaling.attn_factor")
    if LONG in factors and SHORT in factors:
        return rope | {
            "rope_type": "longrope", "long_factor": factors[LONG], "short_factor": factors[SHORT],
            "original_max_position_embeddings": original or metadata["context_length"],
            "attention_factor": 1.0 if scale is None else scale,
        }  # fmt: skip
    if kind in ("linear", "yarn"):
        rope |= {"rope_type": kind, "factor": metadata["rope.scaling.factor"]}
        rope |= {"original_max_position_embeddings": original} if original else {}
    if scale not in (None, 1):
        if kind != "yarn":
            raise NotAModelError("it scales rotary embeddings (rope.scaling.attn_factor), which this network does not")
        rope["attention_factor"] = scale * _yarn_usual(rope["factor"])
    return rope


def _original(config: Mapping[str, Any], rope: Mapping[str, Any]) -> int | None:
    stated = rope.get("original_max_position_embeddings") or config.get("original_max_position_embeddings")
    return int(stated) if stated else None


def _yarn_usual(factor: float) -> float:
    """Return by what llama.cpp multiplies sines and cosines of YaRN by itself."""
    return 0.1 * math.log(float(factor)) + 1


def _yarn_scale(rope: Mapping[str, Any]) -> float:
    """Return by what transformers multiplies them."""
    factor, stated, parts = float(rope["factor"]), rope.get("attention_factor"), ("mscale", "mscale_all_dim")
    if stated is not None:
        return float(stated)

    def scale(share: float) -> float:
        return 0.1 * share * math.log(factor) + 1 if factor > 1 else 1.0

    above, below = (rope.get(name) for name in parts)
    return scale(above) / scale(below) if above and below else scale(1)


def _long_scale(config: Mapping[str, Any], rope: Mapping[str, Any]) -> float:
    """Return by what sines and cosines are multiplied where factors depend on the length of the context."""
    original = _original(config, rope) or int(config["max_position_embeddings"])
    if (stated := rope.get("attention_factor")) is not None:
        return float(stated)
    factor = rope.get("factor") or config["max_position_embeddings"] / original
    return math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0


def _llama3(config: Mapping[str, Any], rope: Mapping[str, Any]) -> list[float]:
    size, factor = head_size(config), float(rope["factor"])
    low, high = float(rope["low_freq_factor"]), float(rope["high_freq_factor"])
    original = float(rope["original_max_position_embeddings"])
    factors = []
    for index in range(0, size, 2):
        length = 2 * math.pi * float(rope["rope_theta"]) ** (index / size)
        if length < original / high:
            factors.append(1.0)
        elif length > original / low:
            factors.append(factor)
        else:
            smooth = (original / length - low) / (high - low)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return factors
