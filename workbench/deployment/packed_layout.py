"""How to decode a packed tensor, said in the file itself, and a decoder that needs nothing but numpy.

For every scheme a file's metadata holds an object of these members:

- ``bits``: a row of ``columns`` codes is a little-endian bit stream, code k in bits ``k * bits`` to ``(k + 1) * bits``,
  least significant first; every row starts on a whole byte.
- ``table``: the value of each code at scale 1, or null with zero points: then it is ``code - zero_point``.
- ``rows``, ``columns``: how many rows and columns of the matrix share one scale; null means all.  The entries of
  ``scales`` are ordered by bands of rows, then along the columns; so are ``zero_points``, packed as one row of codes.
- ``cast``: instead of all that, the codes are plain numbers: ``float32``, ``float16``, or ``bfloat16`` bit patterns.

    value[r, c] = scales[r // rows, c // columns] * table[code[r, c]]      in float32
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.errors import ExportError
from workbench.numerics.granularity import Granularity, PerBlock, PerGroup, PerTensor
from workbench.numerics.scheme import Scheme

_TILE = 1 << 22


def layout(scheme: Scheme) -> dict[str, Any]:
    """Return the description of ``scheme``; ExportError for a family whose equation it cannot say."""
    from workbench.numerics.formats.half import PassthroughScheme
    from workbench.numerics.formats.scaled import ScaledScheme

    if isinstance(scheme, PassthroughScheme):
        return {"cast": {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}[scheme.element.name]}
    if not isinstance(scheme, ScaledScheme):
        raise ExportError(f"a packed file cannot describe the scheme {scheme.name} yet; export to state-dict instead")
    rows, columns = _shared(scheme.granularity)
    table = [None if math.isnan(value) else value for value in scheme.element.table().tolist()]
    return {
        "bits": scheme.element.bits, "table": table if scheme.symmetric else None, "rows": rows, "columns": columns,
        "scales": {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}[scheme.scale_format.name],
    }  # fmt: skip


def _shared(granularity: Granularity) -> tuple[int | None, int | None]:
    match granularity:
        case PerTensor():
            return None, None
        case PerGroup(size):
            return 1, size
        case PerBlock(rows, columns):
            return rows, columns
    return 1, None


def decode(how: Mapping[str, Any], shape: tuple[int, int], arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the float32 matrix of ``shape`` that ``arrays`` stands for, as ``how`` (from :func:`layout`) says."""
    if "cast" in how:
        return widen(arrays["codes"], how["cast"]).reshape(shape)
    rows, columns = shape
    height, width = how["rows"] or max(rows, 1), how["columns"] or max(columns, 1)
    bands, groups = -(-rows // height), -(-columns // width)
    scales = widen(arrays["scales"], how["scales"]).reshape(bands, groups)
    shifts = None
    if how["table"] is None:
        shifts = unpack(arrays["zero_points"].reshape(1, -1), bands * groups, how["bits"]).reshape(bands, groups)
    table = None if shifts is not None else np.array([np.nan if v is None else v for v in how["table"]], np.float32)
    out = np.empty(shape, np.float32)
    step = max(_TILE // max(columns, 1), 1)
    for start in range(0, rows, step):
        codes = unpack(arrays["codes"][start : start + step], columns, how["bits"])
        band = np.arange(start, start + len(codes)) // height
        if table is not None:
            value = table[codes]
        else:
            assert shifts is not None
            value = codes.astype(np.float32) - _spread(shifts[band], width, columns).astype(np.float32)
        out[start : start + step] = value * _spread(scales[band], width, columns)
    return out


def _spread(entries: np.ndarray, width: int, columns: int) -> np.ndarray:
    """Return ``[rows, groups]`` as ``[rows, columns]``, or as ``[rows, 1]`` where all columns share one entry."""
    return entries if entries.shape[1] <= 1 else np.repeat(entries, width, axis=1)[:, :columns]


def unpack(packed: np.ndarray, columns: int, bits: int) -> np.ndarray:
    """Return the codes, uint8 ``[rows, columns]``, of ``packed``, uint8 ``[rows, bytes]``."""
    if bits in (2, 4, 8):
        shifts = np.arange(0, 8, bits, dtype=np.uint8)
        split: np.ndarray = (packed[:, :, None] >> shifts) & np.uint8((1 << bits) - 1)
        return split.reshape(len(packed), -1)[:, :columns]
    stream = np.unpackbits(packed, axis=1, bitorder="little")[:, : columns * bits]
    codes: np.ndarray = np.packbits(stream.reshape(len(packed), columns, bits), axis=2, bitorder="little")
    return codes.reshape(len(packed), columns)


def widen(array: np.ndarray, dtype: str) -> np.ndarray:
    """Return stored floating-point numbers as float32; ``bfloat16`` comes as bit patterns in uint16."""
    if dtype == "bfloat16":
        return (array.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return array.astype(np.float32)
