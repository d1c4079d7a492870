"""Which layers make the keys and values of a KV cache, and which schemes a cache can be stored in."""

from __future__ import annotations

import re
from functools import lru_cache

from workbench.errors import PlanError
from workbench.models.layer import Layer, LayerKind
from workbench.numerics.formats import parse_scheme, takes_range
from workbench.numerics.scheme import Scheme

KEYS_AND_VALUES = re.compile(r"(.*[._])?(k|v|key|value)(_proj|_lin|_linear)?", re.IGNORECASE)
"""Names of the layers that make keys and values, in the models of transformers."""


def makes_keys_or_values(layer: Layer) -> bool:
    """Tell by its name whether a linear layer makes an attention's keys or values."""
    return layer.kind is LayerKind.LINEAR and _named_so(layer.name)


@lru_cache(maxsize=65536)
def _named_so(name: str) -> bool:
    return KEYS_AND_VALUES.fullmatch(name) is not None


def cache_scheme(name: str) -> Scheme:
    """Return the scheme ``name`` if keys and values can be stored in it one token after another.

    Raises PlanError for one with a scale for the whole tensor: a cache grows, and no range is calibrated for it.
    """
    scheme = parse_scheme(name)
    if takes_range(scheme):
        raise PlanError(
            f"a KV cache cannot be stored in {scheme.name}: its tokens come one by one, and one scale for all of them "
            "is not calibrated; choose a scheme with scales for each token, such as int8-token"
        )
    return scheme
