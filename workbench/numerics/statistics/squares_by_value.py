"""Squared gradients added up in the bins of the histogram of the values that they lie at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.numerics.bands import in_parallel
from workbench.numerics.jit import compiled
from workbench.numerics.statistics.layer_statistics import BINS

if TYPE_CHECKING:
    import torch

BAND = 1 << 16
"""Elements that are added up together: the bands' sums are added in order, however many threads there are."""


TILE = 4096
"""Elements whose bins are found at once, as many as the nearest cache holds."""


@compiled
def _add(values: np.ndarray, gradients: np.ndarray, scale: Any, total: np.ndarray) -> None:
    places, squares = np.empty(TILE, np.uint16), np.empty(TILE)
    half, last = np.float32(total.size // 2), np.float32(total.size - 1)
    for start in range(0, values.size, TILE):
        size = min(TILE, values.size - start)
        x, g = values[start : start + size], gradients[start : start + size]
        for k in range(size):
            place = np.floor(x[k] * scale) + half
            place = place if place > 0 else np.float32(0)
            places[k] = np.uint16(np.int32(place if place < last else last))
            squares[k] = np.float64(g[k]) * np.float64(g[k])
        for k in range(size):
            total[places[k]] += squares[k]


def squares_by_value(values: torch.Tensor, gradients: torch.Tensor, exponent: int) -> np.ndarray:
    """Return the sums of squared gradients, float64 ``[BINS]``, by the bins of their values.

    Both tensors have one shape, and all values are finite.  The bins are equal over ``[-2**exponent, 2**exponent)``;
    values beyond count in the outer ones.
    """
    import torch

    if values.device.type != "cpu":
        place = (values.double() * 2.0 ** (BINS.bit_length() - 2 - exponent)).floor_().add_(BINS // 2)
        squares = gradients.double().square().reshape(-1)
        return torch.bincount(place.clamp_(0, BINS - 1).long().reshape(-1), squares, BINS).cpu().numpy()
    flat, weights = (each.detach().reshape(-1).float().contiguous().numpy() for each in (values, gradients))
    parts = [slice(start, start + BAND) for start in range(0, flat.size, BAND)]
    sums = np.zeros((len(parts), BINS))
    scale = np.float32(2.0 ** (BINS.bit_length() - 2 - exponent))
    in_parallel(
        lambda part: _add(flat[part], weights[part], scale, sums[part.start // BAND]), parts, alone=len(parts) < 5
    )  # fmt: skip
    total: np.ndarray = sums.sum(axis=0)
    return total
