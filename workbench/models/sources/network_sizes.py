"""Sizes and counts in config.json that the weights cannot fill are refused: building such a network would never end."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.errors import NotAModelError
from workbench.models.sources.stored import TensorStore

LAYERS = re.compile(r"(^|_)(layers?|blocks?|depth|levels|stages|branches|modules|repeats|vit)$")
ROWS = re.compile(r"(^|_)(heads?|groups?|labels|classes)$")
SIZES = re.compile(r"(^|_)(size|dims?|embd|model|experts?|ff|channels|chans|chs|widths?|features|planes|inner)$")
"""What networks are built by, among the names of config.json and of timm's ``model_args`` in it."""

DEPTHS = re.compile(
    r"^(layers|blocks|stages)$"
    r"|(^|_)(depths?|n(umb?)?_(\w+_)?(layers|blocks|blocks_list)|levels|repeats|blocks_per_stage|block_sizes)$"
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

LEAST_ROWS = 60_000
"""So many classes are possible whatever the weights, whose head may have been left out."""


def require_possible(config: Mapping[str, Any], store: TensorStore, file: Path) -> None:
    """Raise NotAModelError for counts that the tensors cannot fill: building such a network would never end."""
    shapes = [tensor.shape for tensor in store.tensors.values()]
    bounds = (
        (LAYERS, len(shapes), LEAST_LAYERS, "{} tensors"),
        (ROWS, max((max(shape, default=0) for shape in shapes), default=0), LEAST_ROWS, "of at most {} rows"),
        (SIZES, max(sum(map(math.prod, shapes)), LEAST), LEAST, "{} weights"),
    )
    for key, value in config.items():
        parts = list(_parts(value))
        for part in parts:
            if isinstance(part, Mapping):
                require_possible(part, store, file)
        numbers = [part for part in parts if isinstance(part, int)]
        counts = DEPTHS.search(key) is not None
        if isinstance(value, list) and (counts or LISTS.search(key)):
            count = max(len(parts), sum(numbers) if counts else 0)
            if count > max(len(shapes), LEAST_LAYERS):
                raise NotAModelError(
                    f"{file} counts {_few_digits(count)} blocks in {key}, but the weights are {len(shapes):,} "
                    "tensors; the file is damaged, or belongs to other weights"
                )
        for names, most, least, what in bounds:
            if numbers and max(numbers) > max(most, least) and names.search(key):
                raise NotAModelError(
                    f"{file} says {key} is {_few_digits(max(numbers))}, but the weights are {what.format(f'{most:,}')}"
                    "; the file is damaged, or belongs to other weights"
                )


def _parts(value: Any) -> Iterator[Any]:
    """Yield a setting, or what its list and the lists within hold."""
    for part in value if isinstance(value, list) else ():
        yield from _parts(part)
    if not isinstance(value, list):
        yield value


def _few_digits(value: int) -> str:
    return f"{value:,}" if value < 10**15 else "a number of more than 15 digits"
