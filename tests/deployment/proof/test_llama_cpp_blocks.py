"""llama.cpp's own decoders of blocks give what the package gguf's give, to the last bit."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

from workbench.deployment.proof.llama_cpp_blocks import _library, decoded

TYPES = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ1_S", "IQ1_M", "IQ2_XXS",
         "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_NL", "IQ4_XS", "TQ1_0", "TQ2_0", "MXFP4", "NVFP4")  # fmt: skip


@pytest.mark.parametrize("ggml_type", TYPES)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:overflow:RuntimeWarning")
def test_any_blocks_decode_as_by_the_package_gguf(ggml_type: str) -> None:
    if _library() is None:
        pytest.skip("xllamacpp brings no shared library here")
    kind = gguf.GGMLQuantizationType[ggml_type]
    width, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = np.random.default_rng(3).integers(0, 256, (64, 1024 // width * size), dtype=np.uint8)
    values, expected = decoded(ggml_type, blocks[::2], 1024), gguf.quants.dequantize(blocks[::2], kind)
    assert values is not None
    same = (values.view(np.uint32) == expected.view(np.uint32)) | (np.isnan(values) & np.isnan(expected))
    assert same.all()


def test_types_of_numbers_have_no_decoder() -> None:
    assert decoded("F16", np.zeros((1, 64), np.uint8), 32) is None
    assert decoded("I32", np.zeros((1, 64), np.uint8), 16) is None


def test_rows_of_another_length_are_not_decoded() -> None:
    if _library() is None:
        pytest.skip("xllamacpp brings no shared library here")
    for columns in (1024, 33, 0):
        with pytest.raises(ValueError, match=r"rows of \(34,\) bytes are not"):
            decoded("Q8_0", np.zeros((1, 34), np.uint8), columns)
