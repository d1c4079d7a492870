"""Sizes and counts in config.json that the weights cannot fill are refused: building such a network would never end."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.errors import NotAModelError
from workbench.models.sources.stored import TensorStore

LAYERS = re.compile(r"(^|_)(layers?|blocks?)$")
SIZES = re.compile(r"(^|_)(layers?|blocks?|size|dim|embd|model|heads?|experts?|ff|channels|inner|groups?|labels)$")
"""What networks are built by, among the names of config.json."""

DEPTHS = re.compile(
    r"^(layers|blocks)$|(^|_)(depths?|n(umb?)?_(\w+_)?(layers|blocks)|repeats|blocks_per_stage|block_sizes)$"
)
LISTS = re.compile(r"(^|_)(depths?|layers?|blocks?|dims?|sizes|channels|kernels?|strides?|dilations?)$")
"""Names of lists with a number for each stage: how many blocks it has, or what these are built by.

Other lists of layers (``moe_layers``, ``cross_attention_layers``) number some of them.
"""

LEAST = 10**6
"""Sizes up to this one are possible whatever the weights: they may be windows or pictures."""

LEAST_LAYERS = 1000
"""So many layers are possible whatever the weights: layers may share them, and a setting may count past the last one
(Qwen2's max_window_layers)."""


def require_possible(config: Mapping[str, Any], store: TensorStore, file: Path) -> None:
    """Raise NotAModelError for counts that the tensors cannot fill: building such a network would never end."""
    elements = max(sum(math.prod(tensor.shape) for tensor in store.tensors.values()), LEAST)
    for key, value in config.items():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, Mapping):
                require_possible(part, store, file)
        counts = DEPTHS.search(key) is not None
        if isinstance(value, list) and (counts or LISTS.search(key)):
            count = max(len(value), sum(part for part in value if isinstance(part, int)) if counts else 0)
            if count > max(len(store.tensors), LEAST_LAYERS):
                raise NotAModelError(
                    f"{file} counts {_few_digits(count)} blocks in {key}, but the weights are {len(store.tensors):,} "
                    "tensors; the file is damaged, or belongs to other weights"
                )
        if not isinstance(value, int) or not SIZES.search(key):
            continue
        layers = LAYERS.search(key) is not None
        most, what = (len(store.tensors), "tensors") if layers else (elements, "weights")
        if value > max(most, LEAST_LAYERS):
            raise NotAModelError(
                f"{file} says {key} is {_few_digits(value)}, but the weights are {most:,} {what}; the file is "
                "damaged, or belongs to other weights"
            )


def _few_digits(value: int) -> str:
    return f"{value:,}" if value < 10**15 else "a number of more than 15 digits"
