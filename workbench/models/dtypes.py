"""The dtypes that a stored tensor may have: their names in torch, in safetensors and in numpy, and their sizes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dtype:
    """``name`` is torch's, ``code`` the safetensors format's; ``numpy`` holds the bits where numpy lacks the type."""

    name: str
    code: str
    bits: int
    numpy: str
    floating: bool = False


_ALL = (
    Dtype("float64", "F64", 64, "<f8", floating=True),
    Dtype("float32", "F32", 32, "<f4", floating=True),
    Dtype("float16", "F16", 16, "<f2", floating=True),
    Dtype("bfloat16", "BF16", 16, "<u2", floating=True),
    Dtype("float8_e4m3fn", "F8_E4M3", 8, "u1", floating=True),
    Dtype("float8_e5m2", "F8_E5M2", 8, "u1", floating=True),
    Dtype("int64", "I64", 64, "<i8"),
    Dtype("int32", "I32", 32, "<i4"),
    Dtype("int16", "I16", 16, "<i2"),
    Dtype("int8", "I8", 8, "i1"),
    Dtype("uint64", "U64", 64, "<u8"),
    Dtype("uint32", "U32", 32, "<u4"),
    Dtype("uint16", "U16", 16, "<u2"),
    Dtype("uint8", "U8", 8, "u1"),
    Dtype("bool", "BOOL", 8, "?"),
)

DTYPES = {dtype.name: dtype for dtype in _ALL}
BY_CODE = {dtype.code: dtype for dtype in _ALL}
FLOATING = frozenset(dtype.name for dtype in _ALL if dtype.floating)
