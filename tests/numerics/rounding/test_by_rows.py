"""Weights that are encoded in bands of rows are those that are encoded as a whole, for every format that allows it."""

from __future__ import annotations

import sys

import numpy as np
import psutil
import pytest
import torch

from workbench.errors import NonFiniteError
from workbench.memory import Spill
from workbench.models.checkpoints.experts import rows_of
from workbench.numerics.formats import all_schemes, parse_scheme
from workbench.numerics.rounding import by_rows
from workbench.numerics.rounding.by_rows import encode_by_rows
from workbench.numerics.rounding.round_weight import round_weight

APART = [scheme.name for scheme in all_schemes() if scheme.rows_apart and scheme.is_quick]
OTHERS = ["int4-g40-asym", "int3-g48-asym", "int5-channel-asym", "int4-g32-asym-zfp16", "fp8-e4m3-channel"]


def weight_of(name: str) -> torch.Tensor:
    columns = 512 if parse_scheme(name).family == "gguf" else 505
    weight = torch.randn(301, columns, generator=torch.Generator().manual_seed(3)) * 0.05
    weight[3], weight[7] = 0.0, 0.5
    return weight.bfloat16()


@pytest.fixture(autouse=True)
def _small_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_rows, "BAND", 1 << 14)


def test_most_formats_are_encoded_by_rows() -> None:
    assert {"int4-g64-asym", "int8-channel", "mxfp4", "nf4-b64", "q4_0", "q4_k", "iq4_nl", "bf16"} <= set(APART)
    assert not {"nvfp4", "int8-tensor", "nf4-b64-dq"} & set(APART)


@pytest.mark.parametrize("name", APART + OTHERS)
def test_bands_of_rows_give_the_bytes_of_the_whole(name: str) -> None:
    scheme, weight = parse_scheme(name), weight_of(name)
    for algorithm, clip_search in (("rtn", False), ("rtn-clip", True)):
        rounded = round_weight("layer", weight, name, algorithm)
        whole, banded = (
            scheme.encode(rounded.values, rounded.parameters),
            encode_by_rows(weight, scheme, clip_search=clip_search),
        )
        assert banded.scheme == whole.scheme and banded.arrays.keys() == whole.arrays.keys()
        for part, array in whole.arrays.items():
            assert banded.arrays[part].dtype == array.dtype and banded.arrays[part].shape == array.shape
            np.testing.assert_array_equal(banded.arrays[part].view(np.uint8), array.view(np.uint8))


@pytest.mark.parametrize("name", APART + OTHERS)
def test_some_rows_decode_to_rows_of_the_whole(name: str) -> None:
    scheme = parse_scheme(name)
    stored = encode_by_rows(weight_of(name), scheme)
    for rows in (slice(0, 16), slice(24, 301), slice(296, 301)):
        torch.testing.assert_close(scheme.decode(rows_of(stored, rows)), scheme.decode(stored)[rows], rtol=0, atol=0)


def test_a_band_with_nan_is_refused() -> None:
    weight = weight_of("int4-g32")
    weight[250, 5] = torch.nan
    with pytest.raises(NonFiniteError):
        encode_by_rows(weight, parse_scheme("int4-g32"))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say what is resident")
def test_codes_that_lie_in_files_do_not_stay_resident() -> None:
    weight, scheme = torch.randn(4096, 4096).bfloat16(), parse_scheme("int8-channel")
    encode_by_rows(weight[:64], scheme)  # whatever that loads
    before = psutil.Process().memory_info().shared
    stored = encode_by_rows(weight, scheme, empty=Spill(room=0).empty)
    assert psutil.Process().memory_info().shared - before < stored.arrays["codes"].nbytes / 4
    torch.testing.assert_close(scheme.decode(stored), scheme.quantize(weight), rtol=0, atol=0)
