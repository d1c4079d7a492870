"""One quantized matrix as plain arrays, ready to be stored or exported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuantizedTensor:
    """The stored form of a ``rows x columns`` matrix.

    The equation that holds for scaled schemes: ``value[r, c] = scales[r, g] * (code[r, c] - zero_points[r, g])`` with
    ``g = c // group width``; a family with another equation states it in its own file.  ``arrays`` maps a name
    (``codes``, ``scales``, ``zero_points``, ...) to a contiguous numpy array in its stored dtype (bfloat16 and float8
    values are kept as their bit patterns in uint16 and uint8).
    """

    scheme: str
    shape: tuple[int, int]
    arrays: Mapping[str, np.ndarray]

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays together: what a file of raw tensors takes."""
        return sum(array.nbytes for array in self.arrays.values())
