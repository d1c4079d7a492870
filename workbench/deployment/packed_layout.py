"""How to decode a packed tensor, as the file itself says, and a decoder in numpy.

For every scheme a file's metadata holds an object of these members:

- ``bits``: a row of ``columns`` codes is a little-endian bit stream, code k in bits ``k * bits`` to ``(k + 1) * bits``,
  least significant first; every row starts on a whole byte.
- ``table``: the value of each code at scale 1, or null with zero points: then it is ``code - zero_point``.
- ``rows``, ``columns``: how many rows and columns of the matrix share one scale; null means all.  The entries of
  ``scales`` are ordered by bands of rows, then along the columns; so are ``zero_points``, packed as one row of codes.
- ``scales``: how they are stored: ``float32``, ``float16``, ``bfloat16`` (bit patterns), ``e8m0`` (the byte ``b`` is
  ``2**(b - 127)``), ``e4m3`` (FP8 without infinities).
- ``tensor_scale``: where true, every scale is multiplied by the one float32 of ``tensor_scale``.
- ``scale_table``: where given, scale ``k`` is ``scale_table[scales[k]] * scales_largest[k // 256] + scales_mean``.
- ``offsets``: where given, how ``offsets`` (one for each scale) are stored; they are added at the end, and a code's
  value at scale 1 is the code.
- ``codebooks``: how ``codebooks[bands, groups, 2**bits]`` is stored: a code's value is its entry, there are no scales.
- ``ggml``: instead of all that, ``blocks[rows, bytes]`` are blocks of the type of that name, as in a GGUF file; the
  package gguf decodes them (``gguf.quants.dequantize``).
- ``scheme``: beside that, or alone where a scheme has no such equation, what the workbench decodes it by.
- ``cast``: instead of all that, the codes are plain numbers: ``float32``, ``float16``, or ``bfloat16`` bit patterns.

    value[r, c] = scales[r // rows, c // columns] * table[code[r, c]]      in float32
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.cast import CastScheme
from workbench.numerics.formats.codebook import DoubleScheme, dynamic_map
from workbench.numerics.formats.kmeans import KmeansScheme
from workbench.numerics.formats.microscaling import NvScheme
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.granularity import Granularity, PerBlock, PerGroup, PerTensor
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.scheme import Scheme

_TILE = 1 << 22


def layout(scheme: Scheme) -> dict[str, Any]:
    """Return the description of ``scheme``."""
    if isinstance(scheme, CastScheme):
        return {"cast": _STORED[scheme.element.name]}
    if isinstance(scheme, KmeansScheme):
        rows, columns = _shared(scheme.granularity)
        books = _STORED[scheme.value_format.name]
        return {"bits": scheme.width, "rows": rows, "columns": columns, "codebooks": books}
    if not isinstance(scheme, ScaledScheme):
        kind = getattr(scheme, "ggml_type", None)
        return {"scheme": scheme.name} | ({} if kind is None else {"ggml": kind})
    rows, columns = _shared(scheme.granularity)
    table = [None if math.isnan(value) else value for value in scheme.element.table().tolist()]
    how: dict[str, Any] = {
        "bits": scheme.element.bits, "table": table if scheme.symmetric else None, "rows": rows, "columns": columns,
        "scales": _STORED[scheme.scale_format.name],
    }  # fmt: skip
    if scheme.offset_format is not None:
        how["offsets"] = _STORED[scheme.offset_format.name]
    if isinstance(scheme, NvScheme):
        how["tensor_scale"] = True
    if isinstance(scheme, DoubleScheme):
        how["scale_table"] = dynamic_map().tolist()
    return how


_STORED = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "e8m0": "e8m0", "e4m3": "e4m3"}


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
    if "scheme" in how:
        stored = QuantizedTensor(scheme=how["scheme"], shape=shape, arrays=arrays)
        return np.asarray(parse_scheme(how["scheme"]).decode(stored).numpy())
    rows, columns = shape
    height, width = how["rows"] or max(rows, 1), how["columns"] or max(columns, 1)
    parts = _parameters(how, arrays, -(-rows // height), -(-columns // width))
    out = np.empty(shape, np.float32)
    step = max(_TILE // max(columns, 1), 1)
    group = np.arange(columns) // width
    for start in range(0, rows, step):
        codes = unpack(arrays["codes"][start : start + step], columns, how["bits"])
        band = (np.arange(start, start + len(codes)) // height)[:, None]
        out[start : start + step] = _values(codes, band, group, parts)
    return out


def _parameters(
    how: Mapping[str, Any], arrays: Mapping[str, np.ndarray], bands: int, groups: int
) -> dict[str, np.ndarray]:
    """Return what the file holds for each group, float32 ``[bands, groups]``; codebooks ``[bands, groups, levels]``."""
    if "codebooks" in how:
        return {"codebooks": widen(arrays["codebooks"], how["codebooks"]).reshape(bands, groups, 2 ** how["bits"])}
    parts = {"scales": _scales(how, arrays).reshape(bands, groups)}
    if how["table"] is not None:
        parts["table"] = np.array([np.nan if value is None else value for value in how["table"]], np.float32)
    if "offsets" in how:
        parts["offsets"] = widen(arrays["offsets"], how["offsets"]).reshape(bands, groups)
    elif how["table"] is None:
        packed = arrays["zero_points"].reshape(1, -1)
        parts["shifts"] = unpack(packed, bands * groups, how["bits"]).reshape(bands, groups).astype(np.float32)
    return parts


def _scales(how: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    if "scale_table" in how:
        table = np.array(how["scale_table"], np.float32)
        codes = arrays["scales"].reshape(-1)
        scales = table[codes] * arrays["scales_largest"].repeat(256)[: codes.size] + arrays["scales_mean"]
        most = np.finfo(np.float32).max
        return np.asarray(np.clip(scales, -most, most))
    scales = widen(arrays["scales"], how["scales"])
    return scales * arrays["tensor_scale"] if how.get("tensor_scale") else scales


def _values(codes: np.ndarray, band: np.ndarray, group: np.ndarray, parts: Mapping[str, np.ndarray]) -> np.ndarray:
    if "codebooks" in parts:
        return np.asarray(parts["codebooks"][band, group, codes] + np.float32(0))
    value: np.ndarray = parts["table"][codes] if "table" in parts else codes.astype(np.float32)
    if "shifts" in parts:
        value -= parts["shifts"][band, group]
    value *= parts["scales"][band, group]
    if "offsets" in parts:
        value += parts["offsets"][band, group]
    return value


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
    """Return stored numbers as float32: ``bfloat16`` is bit patterns in uint16, ``e8m0`` and ``e4m3`` in uint8."""
    if dtype == "e8m0":
        return np.asarray(np.ldexp(np.float32(1), array.astype(np.int32) - 127), np.float32)
    if dtype == "e4m3":
        exponent, mantissa = (array >> 3 & 15).astype(np.int32), (array & 7).astype(np.float32)
        magnitude = np.ldexp(mantissa / np.float32(8) + (exponent > 0), np.maximum(exponent, 1) - 7)
        return np.asarray(np.where(array & 128, -magnitude, magnitude), np.float32)
    if dtype == "bfloat16":
        return (array.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return array.astype(np.float32)
