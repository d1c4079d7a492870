"""The choice among sixteen values: what a search through the sorted limits gives, at every limit and beside it."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.compiled.clip_compiled import kernel_element
from workbench.numerics.formats.compiled.clip_kernels import of_sixteen


@pytest.mark.parametrize("scheme", ["nf4-b64", "fp4-bnb-b64"])
def test_sixteen_values_are_chosen_by_their_limits(scheme):
    element = parse_scheme(scheme).element
    *_, limits, values = kernel_element(element)
    known = np.array(limits)
    beside = [np.nextafter(known, np.float32(end)) for end in (-np.inf, np.inf)]
    ends = np.array([-np.inf, -2, -1, 0, 1, 2, np.inf], np.float32)
    tried = np.concatenate([known, *beside, np.array(values), ends]).astype(np.float32)
    expected = np.array(values)[(tried[:, None] > known).sum(axis=1)]
    assert [of_sixteen(t, limits, values) for t in tried] == expected.tolist()
    assert np.isin(element.values(), expected).all()
    assert of_sixteen(np.float32(np.nan), limits, values) == values[0]
