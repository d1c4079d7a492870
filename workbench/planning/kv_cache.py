"""Which layers' keys and values a plan rounds, and the bits that the KV cache takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from workbench.models.dtypes import DTYPES
from workbench.models.kv_cache import makes_keys_or_values
from workbench.models.layer import Layer
from workbench.numerics.formats import parse_scheme

if TYPE_CHECKING:
    from workbench.planning.plan import Assignment


def cached_layers(layers: Iterable[Layer], assignments: Mapping[str, Assignment]) -> dict[str, str]:
    """Return the scheme of every layer whose keys or values are rounded, in model order."""
    return {layer.name: scheme for layer in layers if (scheme := assignments[layer.name].cache) is not None}


def cache_bits(layers: Iterable[Layer], assignments: Mapping[str, Assignment]) -> tuple[int, int]:
    """Return the bits that one token takes in the cache under ``assignments``, and in the model's own dtype."""
    now = plain = 0
    for layer in layers:
        if makes_keys_or_values(layer):
            features, scheme = layer.matrix[0], assignments[layer.name].cache
            stored = features * DTYPES[layer.dtype].bits
            plain += stored
            now += stored if scheme is None else parse_scheme(scheme).bits((1, features))
    return now, plain
