"""The kernels' codes are, byte for byte, those that the workbench's own number formats write."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from workbench_kernels import fp4_blocks, gguf_blocks

from workbench.numerics.formats import parse_scheme

from .shim.emulator import Emulator, missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def weights(columns: int = 512) -> torch.Tensor:
    """Rows of very different size; the first block is zero."""
    generator = torch.Generator().manual_seed(21)
    sizes = torch.logspace(-6, 2, 24)[:, None]
    drawn = torch.randn(24, columns, generator=generator) * sizes
    drawn[0, :32] = 0
    return drawn


@pytest.mark.parametrize("name", gguf_blocks.ENCODED)
def test_gguf_blocks_are_written_alike(name):
    x = weights()
    scheme = parse_scheme(name)
    stored = scheme.encode(x, scheme.fit(x))
    (octets,) = (array for array in stored.arrays.values() if array.dtype == np.uint8)
    ours = gguf_blocks.quantize(x, name, on=Emulator())
    assert np.array_equal(ours.numpy(), octets.reshape(ours.shape))


@pytest.mark.parametrize("name", gguf_blocks.FORMATS)
def test_gguf_blocks_are_read_alike(name):
    x = weights()
    scheme = parse_scheme(name)
    stored = scheme.encode(x, scheme.fit(x))
    (octets,) = (array for array in stored.arrays.values() if array.dtype == np.uint8)
    blocks = torch.from_numpy(octets.reshape(x.shape[0], -1).copy())
    ours = gguf_blocks.dequantize(blocks, name, torch.float32, on=Emulator())
    assert torch.equal(ours, scheme.decode(stored))


@pytest.mark.parametrize("name", fp4_blocks.SIZES)
def test_fp4_blocks_are_written_and_read_alike(name):
    x = weights()
    scheme = parse_scheme(name)
    stored = scheme.encode(x, scheme.fit(x))
    tensor = torch.from_numpy(stored.arrays["tensor_scale"].copy()) if name == "nvfp4" else None
    ours = fp4_blocks.quantize(x, name, tensor, on=Emulator())
    assert np.array_equal(ours.codes.numpy(), stored.arrays["codes"])
    assert np.array_equal(ours.scales.numpy(), stored.arrays["scales"])
    assert torch.equal(fp4_blocks.dequantize(ours, torch.float32, on=Emulator()), scheme.decode(stored))
