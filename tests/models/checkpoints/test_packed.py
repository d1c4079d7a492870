"""Packed weights of strangers' checkpoints: each array fits before anything compiled reads it."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.errors import NotAModelError
from workbench.models.checkpoints.packed import PackedWeight
from workbench.numerics.formats import parse_scheme
from workbench.numerics.quantized_tensor import QuantizedTensor

SIZE = 256
"""Rows and columns: enough for the compiled decoders."""


def weight(codes: tuple[int, ...], scales: tuple[int, ...], zeros: int) -> PackedWeight:
    arrays = {
        "codes": np.zeros(codes, np.uint8), "scales": np.ones(scales, np.float16),
        "zero_points": np.zeros(zeros, np.uint8),
    }  # fmt: skip
    stored = QuantizedTensor(scheme="int4-g32-asym-sfp16", shape=(SIZE, SIZE), arrays=arrays)
    return PackedWeight(parts=("w",), shape=stored.shape, scheme=stored.scheme, load=lambda: stored)


@pytest.mark.parametrize(("codes", "scales", "zeros", "words"), [
    ((1, 128), (256, 8 + 63), 1024 + 384, "codes of"), ((256, 100), (256, 8 + 14), 1024, "codes of"),
    ((256, 129), (240, 8), 1024, "codes of"), ((256, 128), (1, 8), 1024 + 4080, "scales of"),
    ((256, 128), (8, 256), 1024, "scales of"), ((256, 128), (256, 8 + 1), 512, "scales of"),
    ((256, 128), (256, 8), 1023, "zero_points of"),
])  # fmt: skip
def test_arrays_that_together_have_the_size_do_not_pass_for_each_other(
    codes: tuple[int, ...], scales: tuple[int, ...], zeros: int, words: str
) -> None:
    """The decoders would read the memory behind them: another model's weights, or nothing at all."""
    packed = weight(codes, scales, zeros)
    with pytest.raises(NotAModelError, match=words):
        packed.stored()
    with pytest.raises(NotAModelError, match=words):
        packed.tensor()
    stored = packed.load() if packed.load is not None else None
    assert stored is not None
    with pytest.raises(ValueError, match=words):
        parse_scheme(stored.scheme).decode(stored)


def test_arrays_that_fit_are_read() -> None:
    assert weight((256, 128), (256, 8), 1024).tensor().shape == (SIZE, SIZE)
