"""llama.cpp's own decoders of blocks, called in the shared library that the wheel ``xllamacpp`` brings.

They are what a runtime will read the file with, and ten times as fast as the package gguf's.  The functions are those
of ``ggml-quants.h``: ``void dequantize_row_TYPE(const block_TYPE * x, float * y, int64_t k)``.
"""

from __future__ import annotations

import ctypes
import importlib.util
from functools import cache
from pathlib import Path

import numpy as np


def decoded(ggml_type: str, blocks: np.ndarray, columns: int) -> np.ndarray | None:
    """Return rows of whole blocks, uint8 ``[rows, bytes]``, as float32 ``[rows, columns]``; None without a decoder.

    Raises ValueError for rows of another length than the type needs.
    """
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    library = _library()
    name = ggml_type.lower()
    decode = getattr(library, f"dequantize_row_{name[:-1] + 'K' if name.endswith('_k') else name}", None)
    if decode is None:
        return None
    width, size = GGML_QUANT_SIZES[GGMLQuantizationType[ggml_type]]
    if columns % width or blocks.shape[1:] != (columns // width * size,):
        raise ValueError(f"rows of {blocks.shape[1:]} bytes are not {columns} numbers of {ggml_type}")
    decode.argtypes, decode.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64), None
    blocks, values = np.ascontiguousarray(blocks), np.empty((len(blocks), columns), np.float32)
    decode(blocks.ctypes.data, values.ctypes.data, values.size)
    return values


@cache
def _library() -> ctypes.CDLL | None:
    found = importlib.util.find_spec("xllamacpp")
    folders = (found.submodule_search_locations or ()) if found else ()
    for file in (file for folder in folders for file in sorted(Path(folder).glob("xllamacpp*.so"))):
        try:
            return ctypes.CDLL(str(file))
        except OSError:  # built for another system
            continue
    return None
