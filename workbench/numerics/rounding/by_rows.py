"""Rounding to nearest in bands of rows: from a file's numbers to packed codes, with no copy of a layer between.

What :mod:`workbench.numerics.rounding.rtn` makes of the whole matrix is the specification; a test holds every value to
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from workbench.memory import in_pieces, let_go, put_away_again
from workbench.numerics.bands import in_parallel, row_tiles
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.scheme import Scheme

if TYPE_CHECKING:
    import torch

Empty = Callable[[tuple[int, ...], np.dtype], np.ndarray]
"""Makes an array without values, of a shape and dtype."""

BAND = 1 << 19
"""Elements of a band: 2 MB in float32, which several passes of a kernel find in a core's cache."""

ALIGNED = 8
"""Rows whose packed zero points fill whole bytes, whatever their bits and number."""


def encode_by_rows(
    weight: torch.Tensor, scheme: Scheme, *, clip_search: bool = False, empty: Empty = np.empty
) -> QuantizedTensor:
    """Return ``weight`` (``[rows, columns]``, on the CPU) rounded to nearest, for a scheme whose ``rows_apart``.

    ``empty`` makes the arrays of the result.  Raises NonFiniteError.
    """
    rows, columns = scheme.matrix_shape(weight)
    first, *others = row_tiles(rows, columns, multiple=ALIGNED, elements=BAND)

    def encoded(part: slice) -> QuantizedTensor:
        band = weight[part].detach().float().contiguous()
        let_go(weight[part])
        return scheme.encode(band, scheme.fit(band, clip_search=clip_search))

    arrays: dict[str, np.ndarray] = {}

    def place(part: slice, band: QuantizedTensor) -> None:
        for name, values in band.arrays.items():
            start = part.start * each[name] // first.stop
            arrays[name].reshape(-1)[start : start + values.size] = values.reshape(-1)

    start = encoded(first)
    each = {name: values.size for name, values in start.arrays.items()}
    for name, values in start.arrays.items():
        flat = (-(-values.size * rows // first.stop),)
        arrays[name] = empty((rows, *values.shape[1:]) if values.ndim > 1 else flat, values.dtype)
    place(first, start)
    with in_pieces():
        in_parallel(lambda part: place(part, encoded(part)), others)
    put_away_again()  # arrays that lie in files are resident where they were written
    return QuantizedTensor(scheme=start.scheme, shape=(rows, columns), arrays=arrays)
