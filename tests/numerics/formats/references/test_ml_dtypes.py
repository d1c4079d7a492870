"""Whole matrices of every float and microscaling format, cast by ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from tests.numerics.formats.references.weights import weights
from workbench.numerics.formats import parse_scheme
from workbench.numerics.scale_format import E8M0

ELEMENTS = {
    "fp8-e4m3": ml_dtypes.float8_e4m3fn,
    "fp8-e5m2": ml_dtypes.float8_e5m2,
    "fp8-e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "fp8-e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "fp6-e2m3": ml_dtypes.float6_e2m3fn,
    "fp6-e3m2": ml_dtypes.float6_e3m2fn,
    "fp4-e2m1": ml_dtypes.float4_e2m1fn,
}
MICROSCALING = {
    "mxfp8-e4m3": ml_dtypes.float8_e4m3fn,
    "mxfp8-e5m2": ml_dtypes.float8_e5m2,
    "mxfp6-e2m3": ml_dtypes.float6_e2m3fn,
    "mxfp6-e3m2": ml_dtypes.float6_e3m2fn,
    "mxfp4": ml_dtypes.float4_e2m1fn,
}
by_kind = pytest.mark.parametrize("kind", list(weights()))


@by_kind
@pytest.mark.parametrize("name", list(ELEMENTS))
def test_scaled_floats(name: str, kind: str) -> None:
    weight = weights()[kind].numpy()
    dtype = ELEMENTS[name]
    largest = float(ml_dtypes.finfo(dtype).max)
    scale = (np.abs(weight).max(axis=1, keepdims=True) / np.float32(largest)).astype(np.float32)
    scaled = np.clip(weight / np.where(scale == 0, 1, scale), -largest, largest)
    theirs = scaled.astype(dtype).astype(np.float32) * scale
    assert np.array_equal(parse_scheme(f"{name}-channel").quantize(torch.from_numpy(weight)).numpy(), theirs)


@by_kind
@pytest.mark.parametrize("name", list(MICROSCALING))
def test_microscaling(name: str, kind: str) -> None:
    """The scale by the specification's formula in float64, codes and scale bytes by ml_dtypes."""
    weight = weights()[kind].numpy()
    dtype = MICROSCALING[name]
    largest = float(ml_dtypes.finfo(dtype).max)
    blocks = weight.reshape(weight.shape[0], -1, 32)
    amax = np.abs(blocks).max(axis=-1, keepdims=True).astype(np.float64)
    exponent = np.floor(np.log2(np.where(amax == 0, 2.0**-140, amax))) - np.floor(np.log2(largest))
    scale = np.float32(2.0) ** np.clip(exponent, -127, 127).astype(np.float32)
    codes = np.clip(blocks / scale, -largest, largest).astype(dtype)
    theirs = (codes.astype(np.float32) * scale).reshape(weight.shape)
    scheme = parse_scheme(name)
    matrix = torch.from_numpy(weight)
    stored = scheme.encode(matrix, scheme.fit(matrix))
    assert np.array_equal(scheme.decode(stored).numpy(), theirs)
    assert np.array_equal(stored.arrays["scales"].view(ml_dtypes.float8_e8m0fnu).astype(np.float32), scale[..., 0])
    if ml_dtypes.finfo(dtype).bits == 8:
        ours, reference = stored.arrays["codes"], codes.view(np.uint8).reshape(weight.shape)
        assert np.array_equal(ours, np.where(reference == 0x80, 0, reference))


def test_every_e8m0_byte() -> None:
    octets = np.arange(256, dtype=np.uint8)
    theirs = octets.view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    ours = E8M0.load(octets)
    assert np.array_equal(ours, theirs, equal_nan=True)
    assert np.array_equal(E8M0.store(torch.from_numpy(ours[:255])), octets[:255])


def test_e8m0_takes_the_floor() -> None:
    reference = np.array([1.0, 1.9999, 2.0, 3.0, 2.0**-127, 1e-45, 0.0, 3e38], np.float32)
    expected = [1.0, 1.0, 2.0, 2.0, 2.0**-127, 2.0**-127, 2.0**-127, 2.0**127]
    assert E8M0.storable(reference, 1.0).tolist() == expected
    assert E8M0.storable(torch.from_numpy(reference), 1.0).tolist() == expected


def test_mxint8_is_the_specifications_fixed_point() -> None:
    """Two's complement with six fraction bits over the block's power of two."""
    weight = torch.randn(8, 64, generator=torch.Generator().manual_seed(3)).numpy()
    blocks = weight.reshape(8, 2, 32).astype(np.float64)
    scale = 2.0 ** np.floor(np.log2(np.abs(blocks).max(axis=-1, keepdims=True)))
    codes = np.clip(np.round(blocks / scale * 64), -128, 127)
    scheme = parse_scheme("mxint8")
    stored = scheme.encode(torch.from_numpy(weight), scheme.fit(torch.from_numpy(weight)))
    assert np.array_equal(stored.arrays["codes"].view(np.int8), codes.reshape(8, 64))
    assert np.array_equal(scheme.decode(stored).numpy(), (codes / 64 * scale).reshape(8, 64).astype(np.float32))
