"""Bit packing against Python's integers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.numerics.packing import pack, packed_width, unpack


@settings(max_examples=80, deadline=None, derandomize=True)
@given(bits=st.integers(1, 8), rows=st.integers(0, 4), columns=st.integers(0, 40), seed=st.integers(0, 9))
def test_packing_is_a_little_endian_bit_stream(bits: int, rows: int, columns: int, seed: int) -> None:
    codes = torch.randint(0, 2**bits, (rows, columns), generator=torch.Generator().manual_seed(seed)).to(torch.uint8)
    packed = pack(codes, bits)
    assert packed.shape == (rows, packed_width(columns, bits))
    for row in range(rows):
        stream = sum(int(code) << (k * bits) for k, code in enumerate(codes[row]))
        assert bytes(packed[row].tolist()) == stream.to_bytes(packed_width(columns, bits), "little")
    assert torch.equal(unpack(packed.numpy(), columns, bits), codes)


def test_at_four_bits_the_even_column_is_the_low_nibble() -> None:
    assert pack(torch.tensor([[1, 2, 3]], dtype=torch.uint8), 4).tolist() == [[0x21, 0x03]]


@pytest.mark.parametrize("bits", [3, 4, 8])
def test_unpacking_reads_read_only_arrays(bits: int) -> None:
    packed = np.zeros((2, packed_width(5, bits)), np.uint8)
    packed.setflags(write=False)
    assert unpack(packed, 5, bits).tolist() == [[0] * 5] * 2
