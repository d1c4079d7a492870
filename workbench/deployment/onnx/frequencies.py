"""Rotary embeddings that choose their frequencies by the length of the text (longrope, as in Phi-3), while traced.

transformers writes the chosen ones over a buffer, and keeps those of long texts as an attribute from the first call on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import nn

LONG = "long_inv_freq"


def chosen_frequencies(network: nn.Module) -> dict[str, torch.Tensor]:
    """Return the buffers that are written over, by name; a graph takes copies of them."""
    return {
        f"{name}.{prefix}inv_freq".lstrip("."): getattr(module, f"{prefix}inv_freq")
        for name, module in network.named_modules() for prefix, _ in _long(module)
    }  # fmt: skip


@contextlib.contextmanager
def kept_frequencies(network: nn.Module) -> Iterator[None]:
    """Have the frequencies of long texts in place, and put them back: tracing leaves tensors without values there."""
    kept = []
    for module in network.modules():
        for prefix, kind in _long(module):
            if not hasattr(module, f"{prefix}{LONG}"):
                module(torch.zeros(1, 1, 1), torch.zeros(1, 1, dtype=torch.int64), *kind)
            kept.append((module, f"{prefix}{LONG}", getattr(module, f"{prefix}{LONG}")))
    try:
        yield
    finally:
        for module, name, frequencies in kept:
            setattr(module, name, frequencies)


def _long(module: nn.Module) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield how the names of a longrope module's tensors begin, and what its ``forward`` is told beside positions."""
    kinds = getattr(module, "rope_type", None)
    if isinstance(kinds, dict):
        yield from ((f"{layer}_", (layer,)) for layer, kind in kinds.items() if kind == "longrope")
    elif kinds == "longrope":
        yield "", ()
