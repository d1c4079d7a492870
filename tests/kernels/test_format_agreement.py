"""The kernels' codes are, byte for byte, those that the workbench's own number formats write."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from workbench_kernels.gpu.quantize import fp4_blocks, gguf_blocks, k_quants

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


def odd_weights() -> torch.Tensor:
    """Rows of 512 from 1e-9 to 1e13: zeros, constants, one sign only, integers with many ties, values out of reach."""
    generator = torch.Generator().manual_seed(22)
    x = torch.randn(24, 512, generator=generator) * torch.logspace(-9, 9, 24)[:, None]
    x[0, :32], x[3, :40], x[5, :256], x[6, :256], x[22, ::3] = 0, 0, 1.5, -2, 0
    x[7], x[8], x[9] = x[7].abs(), -x[8].abs(), x[9].round()
    x[23] *= 1e4
    return x


@pytest.mark.parametrize("name", k_quants.LANES)
def test_k_quants_are_written_alike(name):
    x = odd_weights()
    scheme = parse_scheme(name)
    octets = scheme.encode(x, scheme.fit(x)).arrays["blocks"]
    assert np.array_equal(k_quants.quantize(x, name, on=Emulator(order="random")).numpy(), octets)
    assert np.array_equal(k_quants.reference(x, name).numpy(), octets)


def test_a_code_that_stays_leaves_the_sums_of_q3_k():
    """Sums formed again for the same code round otherwise, and one row in a million seemed to gain."""
    x = torch.randn(9, 4096, generator=torch.Generator().manual_seed(3))[8:] * 10 ** (-6 * 8 / 255)
    scheme = parse_scheme("q3_k")
    octets = scheme.encode(x, scheme.fit(x)).arrays["blocks"]
    assert np.array_equal(k_quants.reference(x, "q3_k").numpy(), octets)


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
