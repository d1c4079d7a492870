"""Rotary embeddings that choose their frequencies by the length of the text, while traced.

longrope (Phi-3) has two sets: transformers writes the chosen one over a buffer, and keeps that of long texts as an
attribute from the first call on.  Dynamic NTK computes new ones for each length beyond the trained one in Python code
that a graph cannot hold: a graph has those of the trained lengths.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

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
    kept: list[tuple[Any, str, Any]] = []
    for module in network.modules():
        for prefix, kind in _long(module):
            if not hasattr(module, f"{prefix}{LONG}"):
                module(torch.zeros(1, 1, 1), torch.zeros(1, 1, dtype=torch.int64), *kind)
            kept.append((module, f"{prefix}{LONG}", getattr(module, f"{prefix}{LONG}")))
    for module in _dynamic(network):
        kept += [(module, name, getattr(module, name)) for name in ("rope_type", "inv_freq")]
        module.rope_type, module.inv_freq = "default", module.original_inv_freq
    try:
        yield
    finally:
        for module, name, value in kept:
            setattr(module, name, value)


def trained_length(network: nn.Module) -> int | None:
    """Return the tokens of the longest text whose frequencies are in a graph; None where that is any."""
    return min((int(module.original_max_seq_len) for module in _dynamic(network)), default=None)


def _dynamic(network: nn.Module) -> list[Any]:
    return [each for each in network.modules() if getattr(each, "rope_type", None) == "dynamic"]


def _long(module: nn.Module) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield how the names of a longrope module's tensors begin, and what its ``forward`` is told beside positions."""
    kinds = getattr(module, "rope_type", None)
    if isinstance(kinds, dict):
        yield from ((f"{layer}_", (layer,)) for layer, kind in kinds.items() if kind == "longrope")
    elif kinds == "longrope":
        yield "", ()
