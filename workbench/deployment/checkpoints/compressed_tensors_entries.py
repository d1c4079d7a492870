"""The tensors in which compressed-tensors stores a weight and a static input: codes, scales, zero points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from workbench.deployment.tensors import DTYPES, Entry
from workbench.numerics.formats import takes_range
from workbench.numerics.formats.microscaling import NvScheme
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.granularity import PerBlock, PerTensor, grid
from workbench.numerics.scheme import Scheme

if TYPE_CHECKING:
    import torch

    from workbench.numerics.quantized_tensor import QuantizedTensor
    from workbench.numerics.ranges.calibrated import Range


def packed_entries(scheme: ScaledScheme, stored: QuantizedTensor) -> Iterator[Entry]:
    """Yield codes as rows of int32: the same stream of bits as ours, each row filled up to four bytes."""
    rows, columns = stored.shape
    words = -(-columns * scheme.element.bits // 32)

    def pack() -> np.ndarray:
        codes = stored.arrays["codes"]
        missing = 4 * words - codes.shape[1]
        return np.ascontiguousarray(np.pad(codes, ((0, 0), (0, missing))) if missing else codes).view(np.int32)

    yield Entry(name="weight_packed", dtype="int32", shape=(rows, words), load=pack)
    yield Entry(name="weight_shape", dtype="int64", shape=(2,), load=lambda: np.array(stored.shape, np.int64))


def scale_entries(scheme: ScaledScheme, stored: QuantizedTensor, how: str) -> Iterator[Entry]:
    """Yield scales ``[bands, groups]`` and signed zero points: in INT8, or packed along the rows (``how``)."""
    cut = grid(scheme.granularity, stored.shape)
    shape = (1,) if isinstance(scheme.granularity, PerTensor) else (cut.bands, cut.groups)
    scales = lambda: stored.arrays["scales"].reshape(shape)  # noqa: E731
    yield Entry(name="weight_scale", dtype=DTYPES[scheme.scale_format.name], shape=shape, load=scales)
    if scheme.symmetric:
        return
    bits = scheme.element.bits
    whole = how != "pack-quantized" or len(shape) == 1 or isinstance(scheme.granularity, PerBlock)

    def zero_points() -> torch.Tensor:
        import torch

        shifts = scheme.zero_points(stored)
        assert shifts is not None
        signed: torch.Tensor = shifts.sub(2 ** (bits - 1)).to(torch.int8).reshape(shape)
        if whole:
            return signed
        from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32

        packed: torch.Tensor = pack_to_int32(signed, bits, packed_dim=0)
        return packed

    packed_shape = shape if whole else (-(-cut.bands * bits // 32), cut.groups)
    yield Entry(name="weight_zero_point", dtype="int8" if whole else "int32", shape=packed_shape, load=zero_points)


def micro_entries(stored: QuantizedTensor) -> Iterator[Entry]:
    """Yield codes and shared scales of MXFP4, MXFP8 and NVFP4, and the inverse of NVFP4's scale for the tensor."""
    rows, columns = stored.shape
    codes = lambda: stored.arrays["codes"]  # noqa: E731
    if stored.scheme == "mxfp8-e4m3":
        yield Entry(name="weight", dtype="float8_e4m3fn", shape=stored.shape, load=codes)
    else:
        yield Entry(name="weight_packed", dtype="uint8", shape=(rows, columns // 2), load=codes)
    nv = stored.scheme == "nvfp4"
    groups = columns // (16 if nv else 32)
    scales = lambda: stored.arrays["scales"].reshape(rows, groups)  # noqa: E731
    dtype = "float8_e4m3fn" if nv else "uint8"
    yield Entry(name="weight_scale", dtype=dtype, shape=(rows, groups), load=scales)
    if nv:
        inverse = lambda: (np.float32(1) / stored.arrays["tensor_scale"]).astype(np.float32)  # noqa: E731
        yield Entry(name="weight_global_scale", dtype="float32", shape=(1,), load=inverse)


def input_entries(scheme: Scheme, calibrated: Range | None) -> Iterator[Entry]:
    """Yield the scale (and zero point) of a static input; NVFP4's is the inverse of the scale for the tensor.

    ``calibrated`` is asked for when the values are.
    """

    def of_range(what: str) -> np.ndarray:
        assert calibrated is not None and isinstance(scheme, ScaledScheme)
        if isinstance(scheme, NvScheme):
            return np.array([scheme.inverse_tensor_scale(max(-calibrated.low, calibrated.high))])
        fitted = scheme.fit_range(calibrated.low, calibrated.high)
        if what == "scale":
            return np.asarray(fitted.scale.reshape(1))
        assert fitted.zero_point is not None
        return np.asarray((fitted.zero_point.reshape(1) - 2 ** (scheme.element.bits - 1)).numpy(), np.int8)

    if scheme.name == "nvfp4":
        yield Entry(name="input_global_scale", dtype="float32", shape=(1,), load=lambda: of_range("scale"))
    elif takes_range(scheme):
        yield Entry(name="input_scale", dtype="float32", shape=(1,), load=lambda: of_range("scale"))
        if not getattr(scheme, "symmetric", True):
            yield Entry(name="input_zero_point", dtype="int8", shape=(1,), load=lambda: of_range("zero point"))
