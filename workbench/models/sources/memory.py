"""Does the model fit?  Estimated from file headers, before anything is loaded."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import psutil

from workbench.errors import ModelTooLargeError
from workbench.models.dtypes import DTYPES, FLOATING
from workbench.models.sources.stored import StoredTensor

WORKING_SHARE = 1.2
"""A model in use takes its weights and about a fifth more: activations of a small batch, one layer's copies."""

CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
CGROUP_USED = Path("/sys/fs/cgroup/memory.current")


def available_memory() -> int:
    """Bytes that this process can still use: the machine's free memory, or what its container is still allowed."""
    free = int(psutil.virtual_memory().available)
    try:
        return min(free, max(int(CGROUP_LIMIT.read_text()) - int(CGROUP_USED.read_text()), 0))
    except (OSError, ValueError):
        return free


def memory_to_run(tensors: Iterable[StoredTensor]) -> int:
    """Bytes needed to load ``tensors`` in float32 (float64 as it is) and to run them on a small batch."""
    total = 0
    for tensor in tensors:
        size = max(4, DTYPES[tensor.dtype].bits // 8) if tensor.dtype in FLOATING else 8
        total += size * math.prod(tensor.shape)
    return int(total * WORKING_SHARE)


def require_memory(needed: int, what: str, limit: int | None = None) -> None:
    """Raise ModelTooLargeError, with both numbers, if ``needed`` bytes are more than ``limit`` (default: available)."""
    available = available_memory() if limit is None else limit
    if needed > available:
        raise ModelTooLargeError(
            f"{what} needs about {_gigabytes(needed)} of memory to run in float32, {_gigabytes(available)} available; "
            "close other programs, use a machine with more memory, or open a .safetensors file of it for its weights"
        )


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e9:.4f} GB"
