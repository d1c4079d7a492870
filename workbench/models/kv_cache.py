"""Which layers make the keys and values of a KV cache, and which schemes a cache can be stored in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from workbench.errors import PlanError
from workbench.models.layer import Layer, LayerKind
from workbench.numerics.formats import parse_scheme, takes_range
from workbench.numerics.scheme import Scheme

KEYS_AND_VALUES = re.compile(r"(.*[._])?(k|v|key|value)(_proj|_lin|_linear)?", re.IGNORECASE)
"""Names of the layers that make keys and values, in the models of transformers."""

FUSED = re.compile(
    r"(.*\.)?(qkv|qkv_proj|wqkv|w_pack|c_attn|query_key_value|in_proj_qkv|q_attn|kv_proj|kv_a_proj_with_mqa|kv_b_proj)",
    re.IGNORECASE,
)
"""Names of layers whose output also holds other things than the cached keys and values: queries (Falcon, GPT-NeoX,
BLOOM, Phi-3, GPT-2, MPT), or what the cache keeps compressed (multi-head latent attention)."""

ENCODERS = frozenset({"encoder", "vision_tower", "vision_model", "visual", "audio_tower", "audio_encoder", "vit"})
"""Parts of a layer's name that say that no token follows, so that there is no cache."""


def makes_keys_or_values(layer: Layer) -> bool:
    """Recognize it by its name whether a linear layer makes keys or values for a cache, and nothing else."""
    return layer.kind is LayerKind.LINEAR and _named_so(layer.name)


def fused_keys_and_values(layers: Iterable[Layer]) -> tuple[str, ...]:
    """Return the layers that make keys and values together with something else: no cache scheme is for them."""
    return tuple(layer.name for layer in layers if FUSED.fullmatch(layer.name) and not _encodes(layer.name))


def no_cache(layers: Iterable[Layer]) -> str:
    """Return, as a clause that follows others, why none of ``layers`` gives a KV cache what a scheme can be for."""
    linear = [layer for layer in layers if layer.kind is LayerKind.LINEAR]
    encoding = [layer.name for layer in linear if KEYS_AND_VALUES.fullmatch(layer.name) and _encodes(layer.name)]
    fused = fused_keys_and_values(linear)
    if encoding:
        return f"; {encoding[0]} is part of an encoder, which reads all its tokens at once and keeps none of them"
    return f"; {fused[0]} makes more than keys and values, which a scheme cannot take apart" if fused else ""


@lru_cache(maxsize=65536)
def _named_so(name: str) -> bool:
    return KEYS_AND_VALUES.fullmatch(name) is not None and FUSED.fullmatch(name) is None and not _encodes(name)


def _encodes(name: str) -> bool:
    return not ENCODERS.isdisjoint(name.split("."))


def cache_scheme(name: str) -> Scheme:
    """Return the scheme ``name`` if keys and values can be stored in it one token after another.

    Raises PlanError for one with a scale for the whole tensor, or for whole channels: a cache grows, and no range is
    calibrated for it.
    """
    scheme = parse_scheme(name)
    if takes_range(scheme):
        raise PlanError(
            f"a KV cache cannot be stored in {scheme.name}: its tokens come one by one, and one scale for all of them "
            "is not calibrated; choose a scheme with scales for each token, such as int8-token"
        )
    if "channel" in scheme.name.split("-"):
        raise PlanError(
            f"a KV cache cannot be stored in {scheme.name}: its tokens come one by one; choose scales for each token "
            "(int8-token), or for each channel of so many tokens (int4-b32x1-asym: of 32)"
        )
    return scheme
