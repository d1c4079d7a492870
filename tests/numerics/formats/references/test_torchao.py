"""Against torchao: microscaling (scales and values bit for bit), NVFP4, integers with either kind of zero points."""

from __future__ import annotations

import pytest
import torch

from tests.numerics.formats.references.weights import weights
from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.scaled import ScaledScheme

pytest.importorskip("torchao", reason="torchao is not installed")

by_kind = pytest.mark.parametrize("kind", list(weights()))


@by_kind
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("mxfp8-e4m3", torch.float8_e4m3fn),
        ("mxfp8-e5m2", torch.float8_e5m2),
        ("mxfp6-e2m3", "fp6_e2m3"),
        ("mxfp6-e3m2", "fp6_e3m2"),
        ("mxfp4", torch.float4_e2m1fn_x2),
    ],
)
def test_microscaling(name: str, dtype: torch.dtype | str, kind: str) -> None:
    from torchao.prototype.mx_formats.mx_tensor import to_dtype, to_mx

    weight = weights()[kind]
    scale, data = to_mx(weight, dtype, 32)
    theirs = to_dtype(data, scale, dtype, 32, torch.float32).reshape(weight.shape)
    scheme = parse_scheme(name)
    stored = scheme.encode(weight, scheme.fit(weight))
    assert torch.equal(torch.from_numpy(stored.arrays["scales"]), scale.view(torch.uint8).reshape(weight.shape[0], -1))
    assert torch.equal(scheme.decode(stored), theirs)
    if dtype == torch.float4_e2m1fn_x2:
        differ = torch.from_numpy(stored.arrays["codes"]) != data.view(torch.uint8).reshape(weight.shape[0], -1)
        assert not bool((differ & (theirs[:, ::2] != 0) & (theirs[:, 1::2] != 0)).any())


@by_kind
def test_nvfp4(kind: str) -> None:
    """Scales are equal where theirs is not raised to 2**-6; it multiplies by an inverse, so ties may differ."""
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale

    weight = weights()[kind]
    shared = per_tensor_amax_to_scale(weight.abs().amax())
    theirs = NVFP4Tensor.to_nvfp4(weight, per_tensor_scale=shared)
    scheme = parse_scheme("nvfp4")
    stored = scheme.encode(weight, scheme.fit(weight))
    assert stored.arrays["tensor_scale"].tolist() == [float(shared)]
    codes = torch.from_numpy(stored.arrays["scales"])
    expected = theirs.scale.view(torch.uint8).reshape(codes.shape)
    usual = codes.view(torch.float8_e4m3fn).float() > 2.0**-6
    assert torch.equal(codes[usual], expected[usual])
    ours, other = scheme.decode(stored), theirs.dequantize(torch.float32)
    fair = usual.repeat_interleave(16, dim=1)
    same = (ours == other) | ~fair
    assert float(same.float().mean()) > (0.999 if kind != "ties" else 0.9)
    wrong = ~same
    assert torch.allclose((ours - weight)[wrong].abs(), (other - weight)[wrong].abs(), rtol=1e-4, atol=0)


@by_kind
@pytest.mark.parametrize(("name", "top", "group"), [("int4-g32-asym-sfp32", 15, 32), ("int8-channel-asym", 255, None)])
def test_integers_with_integer_zero_points(name: str, top: int, group: int | None, kind: str) -> None:
    from torchao.quantization.quant_primitives import (
        MappingType,
        choose_qparams_affine,
        dequantize_affine,
        quantize_affine,
    )

    weight = weights()[kind]
    size = (1, group or weight.shape[1])
    scale, shift = choose_qparams_affine(
        weight, MappingType.ASYMMETRIC, size, torch.uint8, 0, top, eps=2.0**-126, scale_dtype=torch.float32
    )
    scheme = parse_scheme(name)
    assert isinstance(scheme, ScaledScheme)
    stored = scheme.encode(weight, scheme.fit(weight))
    codes, scales, shifts = scheme.unpacked(stored)
    assert shifts is not None
    assert torch.allclose(scales, scale.reshape(scales.shape), rtol=3e-7, atol=1e-37)
    theirs = quantize_affine(weight, size, scales, shifts.to(torch.int32), torch.uint8, 0, top)
    assert float((theirs == codes).float().mean()) > 0.999  # theirs multiplies by the inverse of the scale
    decoded = dequantize_affine(codes, size, scales, shifts.to(torch.int32), torch.uint8, 0, top)
    assert torch.equal(decoded, scheme.decode(stored))


@by_kind
def test_floating_zero_points_are_those_of_the_tiled_int4_layout(kind: str) -> None:
    from torchao.quantization.quant_primitives import MappingType, _choose_qparams_affine_tinygemm

    weight = weights()[kind]
    scale, middle = _choose_qparams_affine_tinygemm(
        weight, MappingType.ASYMMETRIC, (1, 64), torch.int32, 0, 15, eps=2.0**-126, scale_dtype=torch.float32,
        zero_point_dtype=torch.float32,
    )  # fmt: skip
    parameters = parse_scheme("int4-g64-asym-zfp32-sfp32").fit(weight)
    assert parameters.offset is not None
    assert torch.allclose(parameters.scale, scale.reshape(parameters.scale.shape), rtol=1e-6, atol=1e-37)
    reach = weight.reshape(weight.shape[0], -1, 64).abs().amax(-1)
    assert bool(
        ((parameters.offset - (middle - 8 * scale).reshape(parameters.offset.shape)).abs() <= reach * 1e-6).all()
    )
