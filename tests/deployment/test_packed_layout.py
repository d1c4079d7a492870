"""The decoder that a packed file describes, in numpy, against every scheme's own decoder, bit for bit."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from workbench.deployment.packed_layout import decode, layout
from workbench.numerics.formats import all_schemes, parse_scheme
from workbench.numerics.scheme import Scheme

MORE = ("int3-b5x7-asym-zbf16", "int4-g96-asym-zfp16-sbf16", "kmeans2-g33-sbf16", "fp4-bnb-b7-dq", "int5-tensor-asym")
SCHEMES = (*all_schemes(), *map(parse_scheme, MORE))


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
@pytest.mark.parametrize("shape", [(5, 300), (70, 64), (0, 9)], ids=str)
def test_the_description_decodes_to_the_same_bits(scheme: Scheme, shape: tuple[int, int]) -> None:
    weight = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    stored = scheme.encode(weight, scheme.fit(weight))
    how = json.loads(json.dumps(layout(scheme), allow_nan=False))
    decoded = decode(how, stored.shape, stored.arrays)
    assert decoded.dtype == np.float32
    assert decoded.tobytes() == scheme.decode(stored).numpy().tobytes()
