"""Between torch matrices and the compiled kernels of learned codebooks; see ``scaled_compiled``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.numerics.bands import in_parallel
from workbench.numerics.formats.compiled import kmeans_kernels, output_memory
from workbench.numerics.formats.compiled.scaled_compiled import plain
from workbench.numerics.packing import packed_width
from workbench.numerics.tiles import row_tiles

if TYPE_CHECKING:
    import torch

Array = Any


def limits(book: torch.Tensor) -> torch.Tensor:
    """Return the middles between neighbouring levels, float32 ``[rows, groups, levels - 1]``."""
    return book[..., :-1] / 2 + book[..., 1:] / 2


def encode(weight: torch.Tensor, book: torch.Tensor, width: int, bits: int) -> tuple[Array, int]:
    """Return packed codes, uint8 ``[rows, packed width]``, and how many weights are NaN."""
    rows, columns = weight.shape
    edges = limits(book).contiguous().numpy()
    packed, bad = np.empty((rows, packed_width(columns, bits)), np.uint8), []

    def task(part: slice) -> None:
        band = edges[part] if len(edges) > 1 else edges
        bad.append(kmeans_kernels.encode(plain(weight[part]), min(width, columns), band, bits, packed[part]))

    in_parallel(task, row_tiles(rows, columns))
    return packed, sum(bad)


def decode(packed: Array, shape: tuple[int, int], book: torch.Tensor, width: int, bits: int) -> torch.Tensor:
    """Return the float32 matrix of ``shape`` that packed codes stand for."""
    import torch

    levels = (book + 0.0).contiguous().numpy()  # -0 becomes +0
    out = output_memory.uninitialised(*shape)

    def task(part: slice) -> None:
        band = levels[part] if len(levels) > 1 else levels
        kmeans_kernels.decode(packed[part], min(width, shape[1]), band, bits, out[part])

    in_parallel(task, row_tiles(*shape))
    return torch.from_numpy(out)


def rounded(weight: torch.Tensor, book: torch.Tensor, width: int) -> torch.Tensor:
    """Return what decoding the encoded matrix would give, float32; NaN stays."""
    import torch

    rows, columns = weight.shape
    edges, levels = limits(book).contiguous().numpy(), (book + 0.0).contiguous().numpy()
    out = output_memory.uninitialised(rows, columns)

    def task(part: slice) -> None:
        band = part if len(levels) > 1 else slice(None)
        kmeans_kernels.round_to(plain(weight[part]), min(width, columns), edges[band], levels[band], out[part])

    in_parallel(task, row_tiles(rows, columns))
    return torch.from_numpy(out)
