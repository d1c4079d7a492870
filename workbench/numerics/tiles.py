"""Cutting a matrix into bands of rows that fit a core's cache.

Rounding a 4096 x 4096 matrix band by band is several times as fast as whole-matrix operations, and a half-precision
weight is never copied whole to float32.
"""

from __future__ import annotations

from collections.abc import Iterator

TILE_ELEMENTS = 1 << 18


def row_tiles(rows: int, columns: int, multiple: int = 1, elements: int = TILE_ELEMENTS) -> Iterator[slice]:
    """Yield slices that cover ``range(rows)`` in bands of about ``elements`` elements.

    Every band but the last holds a multiple of ``multiple`` rows, so that no block of rows is cut.  An empty matrix
    has no bands.
    """
    if not columns:
        return
    band = max(elements // columns, 1)
    band = -(-band // multiple) * multiple
    for start in range(0, rows, band):
        yield slice(start, min(start + band, rows))
