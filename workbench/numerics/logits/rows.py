"""Tensors of logits handed to the compiled rows, in bands on all threads; results do not depend on their number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workbench.numerics.bands import in_parallel, row_tiles

if TYPE_CHECKING:
    import torch

LEAST_ENTRIES = 1024
"""Rows of fewer entries cost little, and torch's float64 keeps more of their digits."""


def serves(*logits: torch.Tensor) -> bool:
    """Return whether the compiled rows take these tensors: on the CPU, of floats of four bytes at most, long rows."""
    return all(
        each.device.type == "cpu" and each.is_floating_point() and each.dtype.itemsize <= 4
        and each.ndim > 0 and each.shape[-1] >= LEAST_ENTRIES for each in logits
    )  # fmt: skip


def compare_rows(reference: torch.Tensor, candidate: torch.Tensor) -> np.ndarray:
    """Return the facts of :func:`workbench.numerics.logits.compiled.compare`, float64 ``[..., 5]``.

    Raises ValueError for logits of two shapes: the compiled rows trust them.
    """
    from workbench.numerics.logits.compiled import FACTS, compare

    if reference.shape != candidate.shape:
        raise ValueError(f"logits of {tuple(reference.shape)} and of {tuple(candidate.shape)} cannot be compared")
    own, other = (each.detach().reshape(-1, each.shape[-1]) for each in (reference, candidate))
    facts = np.empty((len(own), FACTS))

    def task(rows: slice) -> None:
        compare(own[rows].float().contiguous().numpy(), other[rows].float().contiguous().numpy(), facts[rows])

    in_parallel(task, row_tiles(*own.shape))
    return facts.reshape(*reference.shape[:-1], FACTS)


def gini_impurities(logits: torch.Tensor) -> torch.Tensor:
    """Return ``1 - sum p ** 2`` of the probabilities along the last axis, float64 ``[...]``."""
    import torch

    if not serves(logits):
        squares = torch.softmax(logits.detach().float(), dim=-1).square()
        return 1.0 - squares.sum(dim=-1).double()
    from workbench.numerics.logits.compiled import gini_impurity

    flat = logits.detach().reshape(-1, logits.shape[-1])
    impurities = np.empty(len(flat))

    def task(rows: slice) -> None:
        gini_impurity(flat[rows].float().contiguous().numpy(), impurities[rows])

    in_parallel(task, row_tiles(*flat.shape))
    return torch.from_numpy(impurities).reshape(logits.shape[:-1])


def encode_rows(logits: torch.Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return float16 distances ``[..., entries]`` and what :func:`encode` finds out of each row, float32 ``[...]``.

    That is the greatest entry and what to add to the distances below 0.
    """
    from workbench.numerics.logits.compiled import encode

    flat = logits.detach().reshape(-1, logits.shape[-1])
    codes, facts = np.empty(flat.shape, np.uint16), np.empty((len(flat), 2), np.float32)

    def task(rows: slice) -> None:
        encode(flat[rows].float().cpu().contiguous().numpy(), codes[rows], facts[rows])

    in_parallel(task, row_tiles(*flat.shape))
    top, shift = (np.ascontiguousarray(facts[:, place]).reshape(logits.shape[:-1]) for place in (0, 1))
    return codes.view(np.float16).reshape(logits.shape), top, shift


def decode_rows(distances: np.ndarray, top: np.ndarray, shift: np.ndarray) -> torch.Tensor:
    """Return the float32 logits ``[..., entries]`` that :func:`encode_rows` has coded."""
    import torch

    from workbench.numerics.logits.compiled import decode

    logits = torch.empty(distances.shape)
    out, codes = logits.numpy().reshape(-1, logits.shape[-1]), distances.view(np.uint16).reshape(-1, logits.shape[-1])
    most, more = top.reshape(-1), shift.reshape(-1)
    if not len(codes) == most.size == more.size:
        raise ValueError(f"{len(codes)} rows of distances come with {most.size} tops and {more.size} shifts")

    def task(rows: slice) -> None:
        decode(codes[rows], most[rows], more[rows], out[rows])

    in_parallel(task, row_tiles(*codes.shape))
    return logits
