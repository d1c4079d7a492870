"""Scale formats: numpy and torch give the same storable values, finite and never zero by accident."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from workbench.numerics.scale_format import SCALE_FORMATS, ScaleFormat, scale_format

DTYPES = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}
by_name = pytest.mark.parametrize("form", SCALE_FORMATS, ids=lambda form: form.name)


@by_name
def test_numpy_and_torch_agree_and_survive_storage(form: ScaleFormat) -> None:
    scales = np.random.default_rng(0).normal(size=4000).astype(np.float32) * np.float32(10.0) ** np.linspace(
        -44, 37, 4000, dtype=np.float32
    )
    scales[:3] = [0.0, -0.0, 1e-45]
    ours = form.storable(scales, 15.0)
    tensor = form.storable(torch.from_numpy(scales), 15.0)
    assert np.array_equal(ours, tensor.numpy())
    assert np.array_equal(form.load(form.store(tensor)), ours)
    assert np.array_equal(ours == 0, scales == 0)
    assert np.all(np.abs(ours.astype(np.float64) * 15.0) <= np.finfo(np.float32).max)
    usual = (np.abs(scales) > form.smallest * 4) & (np.abs(scales) < form.largest / 16)
    assert np.array_equal(ours[usual], scales[usual].astype(DTYPES[form.name]).astype(np.float32))


@by_name
def test_bounds_are_those_of_the_format(form: ScaleFormat) -> None:
    assert form.largest == float(ml_dtypes.finfo(DTYPES[form.name]).max)
    assert scale_format(form.name) is form
    assert scale_format("fp7") is None
