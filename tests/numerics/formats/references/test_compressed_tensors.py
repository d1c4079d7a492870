"""Against compressed-tensors: packed integers, and its decoding of integers, FP8 and NVFP4."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.models.networks import decoder
from tests.numerics.formats.references.weights import weights
from workbench.deployment.checkpoints.compressed_tensors import input_args
from workbench.deployment.checkpoints.compressed_tensors_entries import input_entries
from workbench.models.execution.activation_quantizers import input_quantizer
from workbench.numerics.formats import parse_scheme, within
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.packing import pack
from workbench.numerics.ranges import Range

pytest.importorskip("compressed_tensors", reason="compressed-tensors is not installed")

by_kind = pytest.mark.parametrize("kind", list(weights()))


def scaled(name: str) -> ScaledScheme:
    scheme = parse_scheme(name)
    assert isinstance(scheme, ScaledScheme)
    return scheme


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("columns", [64, 37])
def test_packed_integers_are_the_same_bytes(bits: int, columns: int) -> None:
    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32

    half = 2 ** (bits - 1)
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(-half, half, (6, columns), generator=generator).to(torch.int8)
    theirs = pack_to_int32(codes, bits)
    ours = pack((codes.to(torch.int16) + half).to(torch.uint8), bits)
    stream = theirs.contiguous().view(torch.uint8)[:, : ours.shape[1]]
    full = columns * bits // 8
    assert torch.equal(stream[:, :full], ours[:, :full])
    assert torch.equal(stream[:, full:] & 0x0F, ours[:, full:])


@by_kind
@pytest.mark.parametrize(
    ("name", "bits", "group"), [("int4-g32-asym", 4, 32), ("int8-g128-asym", 8, 128), ("int8-channel", 8, None)]
)
def test_integers_are_decoded_to_the_same_values(name: str, bits: int, group: int | None, kind: str) -> None:
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle.forward import dequantize

    weight = weights()[kind]
    scheme = scaled(name)
    stored = scheme.encode(weight, scheme.fit(weight))
    codes, scales, shifts = scheme.unpacked(stored)
    half = 2 ** (bits - 1)
    signed = (codes.to(torch.int16) - half).to(torch.int8)
    zero = None if shifts is None else (shifts - half).to(torch.int8)
    strategy = "group" if group else "channel"
    args = QuantizationArgs(num_bits=bits, type="int", symmetric=shifts is None, strategy=strategy, group_size=group)
    assert torch.equal(dequantize(signed, scales, zero, args), scheme.decode(stored))


@by_kind
def test_fp8_is_decoded_to_the_same_values(kind: str) -> None:
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle.forward import dequantize

    weight = weights()[kind]
    scheme = scaled("fp8-e4m3-channel")
    stored = scheme.encode(weight, scheme.fit(weight))
    codes = torch.from_numpy(stored.arrays["codes"]).view(torch.float8_e4m3fn)
    args = QuantizationArgs(num_bits=8, type="float", symmetric=True, strategy="channel")
    assert torch.equal(dequantize(codes, torch.from_numpy(stored.arrays["scales"]), None, args), scheme.decode(stored))


@by_kind
def test_nvfp4_is_decoded_to_the_same_values(kind: str) -> None:
    """It divides by the inverse of our tensor scale, which costs it two roundings."""
    from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle.forward import dequantize

    weight = weights()[kind]
    scheme = scaled("nvfp4")
    stored = scheme.encode(weight, scheme.fit(weight))
    values = unpack_fp4_from_uint8(torch.from_numpy(stored.arrays["codes"]), *weight.shape, dtype=torch.float32)
    blocks = torch.from_numpy(stored.arrays["scales"]).view(torch.float8_e4m3fn).float()
    args = QuantizationArgs(num_bits=4, type="float", symmetric=True, strategy="tensor_group", group_size=16)
    inverse = 1 / torch.from_numpy(stored.arrays["tensor_scale"])
    theirs = dequantize(values, blocks, None, args, global_scale=inverse)
    assert torch.allclose(theirs, scheme.decode(stored), rtol=3e-7, atol=0)


@pytest.mark.parametrize("largest", [3.0, 100.0])
def test_nvfp4_inputs_have_the_calibrated_scale_for_the_tensor_and_scales_of_blocks_as_they_come(
    largest: float,
) -> None:
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle.forward import fake_quantize
    from compressed_tensors.quantization.utils import compute_dynamic_scales_and_zp

    values = 4 * torch.randn(2, 9, 64, generator=torch.Generator().manual_seed(0))  # some outside the lesser range
    arguments = input_args(parse_scheme("nvfp4"))
    assert isinstance(arguments, dict)
    args, inverse = QuantizationArgs(**arguments), torch.tensor([448 * 6 / largest])
    scale, zero = compute_dynamic_scales_and_zp(values, args, torch.nn.Module(), global_scale=inverse)
    theirs = fake_quantize(values, scale, zero, args, global_scale=inverse)
    layer = decoder(0).summary.by_name["value"]
    calibrated = Range(low=-largest / 2, high=largest, method="min-max", clipped=0.0)
    ours = input_quantizer(layer, "nvfp4", {("value", "input"): calibrated})
    torch.testing.assert_close(ours(values), theirs, rtol=1e-6, atol=0)
    torch.testing.assert_close(ours(values[:1]), theirs[:1], rtol=1e-6, atol=0)


def test_the_stored_scale_of_nvfp4_inputs_is_the_inverse_of_the_evaluated_one() -> None:
    scheme = parse_scheme("nvfp4")
    for largest in torch.logspace(-6, 6, 301).tolist():
        calibrated = Range(low=-largest, high=largest / 2, method="min-max", clipped=0.0)
        (entry,) = input_entries(scheme, calibrated)
        rows = torch.full((1, 16), largest)
        rounder, _ = within(scheme, calibrated.low, calibrated.high)
        evaluated = rounder.fit(rows)
        assert evaluated.shared is not None and np.float32(1) / entry.load()[0] == evaluated.shared.item()


@pytest.mark.parametrize("name", ["mxfp4", "mxfp8-e4m3", "fp8-e4m3-token", "fp8-e4m3-g32-sfp32", "int8-token-asym"])
def test_dynamic_inputs_are_rounded_as_the_library_rounds_them(name: str) -> None:
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle.forward import fake_quantize
    from compressed_tensors.quantization.utils import compute_dynamic_scales_and_zp

    spread = torch.logspace(-3, 3, 9)[None, :, None]
    values = spread * torch.randn(4, 9, 128, generator=torch.Generator().manual_seed(0))
    values[0, 0, 0], values[1, 1, 32] = 1.75 * 2**3, torch.nextafter(torch.tensor(14.0), torch.tensor(0.0))
    arguments = input_args(parse_scheme(name))
    assert isinstance(arguments, dict)
    args = QuantizationArgs(**arguments)
    theirs = fake_quantize(values, *compute_dynamic_scales_and_zp(values, args, torch.nn.Module()), args)
    ours = input_quantizer(decoder(0).summary.by_name["value"], name, {})(values)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6 * float(values.abs().max()))
