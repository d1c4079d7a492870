"""Bad arguments: a named error that says what came and what was expected, before anything is launched."""

from __future__ import annotations

import pytest
import torch
from workbench_kernels.errors import ArgumentError
from workbench_kernels.gpu.attention import cache_append, decode_attention
from workbench_kernels.gpu.gemm import gemm8, w4a16
from workbench_kernels.gpu.quantize import (
    fp4_blocks,
    gate_quantize,
    gguf_blocks,
    group_quantize,
    k_quants,
    norm_quantize,
    statistics,
)


class Nowhere:
    """An executor that must not be reached."""

    device = torch.device("cpu")
    processors = 4

    def empty(self, shape, dtype):
        return torch.empty(*shape, dtype=dtype)

    def run(self, source, launch):
        raise AssertionError(f"{launch.entry} was launched")


ON = Nowhere()
X = torch.zeros(4, 64)
MISALIGNED = torch.zeros(4 * 64 + 1)[1:].view(4, 64)
HUGE = torch.empty(2**31, dtype=torch.int8, device="meta")


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (X.double(), "x is float64; expected float32 or float16 or bfloat16"),
        (X.flatten(), r"x has shape \(256,\); expected \(any, any\)"),
        (X.to("meta"), "x is on meta; the kernel runs on cpu"),
        (torch.zeros(0, 64), r"x is empty \(shape \(0, 64\)\)"),
        (X.T, "x is not contiguous"),
        (MISALIGNED, "not a multiple of 16 bytes"),
        ([1.0, 2.0], "x is a list; expected a tensor"),
    ],
)
def test_a_tensor_that_does_not_fit_is_named(x, message):
    with pytest.raises(ArgumentError, match=message):
        statistics.statistics(x, on=ON)
    with pytest.raises(ArgumentError, match=message):
        group_quantize.quantize(x, "int8", 64, on=ON)


def test_more_than_two_to_the_thirty_first_elements_are_refused():
    class Meta(Nowhere):
        device = torch.device("meta")

    with pytest.raises(ArgumentError, match="2147483648 elements; at most 2147483647"):
        gguf_blocks.dequantize(HUGE.view(torch.uint8).view(-1, 2**11), "q4_0", torch.float32, on=Meta())


@pytest.mark.parametrize(
    ("code", "group", "message"),
    [("int5", 64, "code is 'int5'; expected one of 'int8'"),
     ("int8", 0, "group is 0; expected a positive multiple of 8"),
     ("int8", 12, "group is 12; expected a positive multiple of 8"),
     ("int4", 24, "group is 24, which does not divide the 64 columns")],
)  # fmt: skip
def test_groups_that_do_not_fit(code, group, message):
    for action in (group_quantize.quantize, group_quantize.fake_quantize):
        with pytest.raises(ArgumentError, match=message):
            action(X, code, group, on=ON)


def test_codes_scales_and_zeros_must_fit_each_other():
    good = group_quantize.reference_quantize(X, "int4_asym", 32)
    bad = [
        ({"scales": good.scales[:, :1].contiguous()}, r"scales has shape \(4, 1\); expected \(4, 2\)"),
        ({"zeros": None}, "int4_asym needs zeros"),
        ({"codes": good.codes.view(torch.int8)}, "codes is int8; expected uint8"),
        ({"group": 48}, "group is 48, which does not divide the 64 columns"),
        ({"code": "int3"}, "code is 'int3'"),
    ]
    for change, message in bad:
        fields = {name: getattr(good, name) for name in ("codes", "scales", "zeros", "code", "group")} | change
        with pytest.raises(ArgumentError, match=message):
            group_quantize.dequantize(group_quantize.Quantized(**fields), torch.float32, on=ON)
    with pytest.raises(ArgumentError, match="dtype is torch.int32"):
        group_quantize.dequantize(good, torch.int32, on=ON)


def test_a_static_scale_is_one_float_on_the_device():
    for scale, message in ((torch.ones(2), r"scale has shape \(2,\)"), (torch.ones(1).half(), "scale is float16")):
        with pytest.raises(ArgumentError, match=message):
            group_quantize.quantize_static(X, "e4m3", scale, on=ON)
    with pytest.raises(ArgumentError, match="code is 'int4'"):
        group_quantize.quantize_static(X, "int4", torch.ones(1), on=ON)


def test_gguf_rows_are_whole_blocks():
    with pytest.raises(ArgumentError, match="bytes of a row of q4_k is 145; expected a positive multiple of 144"):
        gguf_blocks.dequantize(torch.zeros(2, 145, dtype=torch.uint8), "q4_k", torch.float32, on=ON)
    with pytest.raises(ArgumentError, match="columns is 48; expected a positive multiple of 32"):
        gguf_blocks.quantize(torch.zeros(2, 48), "q8_0", on=ON)
    with pytest.raises(ArgumentError, match="format is 'q4_k'; expected one of 'q4_0', 'q8_0'"):
        gguf_blocks.quantize(torch.zeros(2, 256), "q4_k", on=ON)


def test_k_quants_are_of_whole_blocks_of_float32():
    bad = [
        (torch.zeros(2, 128), "q4_k", "columns is 128; expected a positive multiple of 256"),
        (torch.zeros(2, 256).half(), "q6_k", "x is float16; expected float32"),
        (torch.zeros(2, 256), "q5_k", "format is 'q5_k'; expected one of 'q4_k', 'q3_k', 'q6_k'"),
    ]
    for x, name, message in bad:
        with pytest.raises(ArgumentError, match=message):
            k_quants.quantize(x, name, on=ON)


def test_fp4_blocks_have_the_scales_of_their_format():
    tensor = torch.ones(1)
    bad = [
        ((X, "fp4", None), "name is 'fp4'; expected one of 'mxfp4', 'nvfp4'"),
        ((torch.zeros(2, 48), "mxfp4", None), "columns is 48; expected a positive multiple of 32"),
        ((X, "mxfp4", tensor), "mxfp4 takes no tensor_scale"),
        ((X, "nvfp4", None), "nvfp4 takes a tensor_scale"),
        ((X, "nvfp4", torch.ones(2)), r"tensor_scale has shape \(2,\)"),
    ]
    for arguments, message in bad:
        with pytest.raises(ArgumentError, match=message):
            fp4_blocks.quantize(*arguments, on=ON)
    q = fp4_blocks.reference_quantize(X, "mxfp4", None)
    short = fp4_blocks.Fp4(name="mxfp4", codes=q.codes, scales=q.scales[:, :1].contiguous(), tensor_scale=None)
    with pytest.raises(ArgumentError, match=r"scales has shape \(4, 1\); expected \(4, 2\)"):
        fp4_blocks.dequantize(short, torch.float32, on=ON)


def test_tokens_and_their_weight_must_fit():
    x, weight = X.half(), torch.ones(64).half()
    bad = [
        ((X, weight, torch.int8), "x is float32; expected float16 or bfloat16"),
        ((x, weight.bfloat16(), torch.int8), "weight is bfloat16; expected float16"),
        ((x, weight[:8].clone(), torch.int8), r"weight has shape \(8,\); expected \(64\)"),
        ((x, weight, torch.uint8), "codes is torch.uint8; expected one of torch.int8"),
        ((x[:, :12].contiguous(), weight, torch.int8), "columns is 12; expected a positive multiple of 8"),
        ((x, weight, torch.int8, 0.0), "epsilon is 0.0; expected a positive number"),
    ]
    for arguments, message in bad:
        with pytest.raises(ArgumentError, match=message):
            norm_quantize.norm_quantize(*arguments, on=ON)


CODES = torch.zeros(128, 128, dtype=torch.uint8)
SCALES = torch.ones(128, 1).half()


@pytest.mark.parametrize(
    ("codes", "scales", "message"),
    [
        (CODES[:, :32], SCALES, "columns is 32; expected a positive multiple of 64"),
        (CODES[:0], SCALES[:0], r"codes are empty \(shape \(0, 128\)\)"),
        (CODES.int(), SCALES, "codes are torch.int32"),
        (CODES, torch.ones(128, 3).half(), "group is 42; expected one of 16, 32, 64, 128, 256"),
        (CODES + 16, SCALES, "codes go to 16; 4 bits hold 0 to 15"),
        (CODES, SCALES.float(), "scales torch.float32"),
        (CODES, SCALES[:1], r"scales \(1, 1\) do not fit 128 x 128 codes"),
    ],
)
def test_weights_that_cannot_be_packed(codes, scales, message):
    with pytest.raises(ArgumentError, match=message):
        w4a16.pack(codes, scales, None)


def test_activations_must_fit_the_packed_weights():
    packed = w4a16.pack(CODES, SCALES, None)
    x = torch.zeros(2, 128).half()
    short = x[:, :64].contiguous()
    for wrong, message in ((x.float(), "x is float32; expected float16"), (short, r"expected \(any, 128\)")):
        with pytest.raises(ArgumentError, match=message):
            w4a16.linear(wrong, packed, on=ON)
    with pytest.raises(ArgumentError, match=r"bias has shape \(3,\); expected \(128\)"):
        w4a16.linear(x, packed, torch.zeros(3).half(), on=ON)
    with pytest.raises(ArgumentError, match="kernel is 'few8'; expected one of 'tile16'"):
        w4a16.linear(torch.zeros(9, 128).half(), packed, on=ON, variant=w4a16.Variant("few8"))
    with pytest.raises(ArgumentError, match="splits is 3; expected one of 1"):
        w4a16.linear(x, packed, on=ON, variant=w4a16.Variant("few8", 3))
    with pytest.raises(ArgumentError, match=r"zeros \(1, 1\) do not fit scales \(128, 1\)"):
        w4a16.pack(CODES, SCALES, CODES[:1, :1])


def test_operands_of_a_product_must_fit():
    a, b = torch.zeros(4, 32, dtype=torch.int8), torch.zeros(6, 32, dtype=torch.int8)
    left, right = torch.ones(4), torch.ones(6)
    bad = [
        ((a.float(), b, left, right), "a is float32; expected int8 or float8_e4m3fn"),
        ((a, b.to(torch.float8_e4m3fn), left, right), "b is float8_e4m3fn; expected int8"),
        ((a[:, :24].contiguous(), b, left, right), "K, the columns of a, is 24; expected a positive multiple of 16"),
        ((a, b[:, :16].contiguous(), left, right), r"b has shape \(6, 16\); expected \(any, 32\)"),
        ((a, b, right, right), r"left has shape \(6,\); expected \(4\)"),
        ((a, b, left, right, right.half()), "bias is float16; expected float32"),
    ]
    for arguments, message in bad:
        with pytest.raises(ArgumentError, match=message):
            gemm8.gemm(*arguments, on=ON)
    with pytest.raises(ArgumentError, match="kernel is 'tile96'; expected one of 'few', 'tile64', 'tile128'"):
        gemm8.gemm(a, b, left, right, kernel="tile96", on=ON)
    many = torch.zeros(9, 32, dtype=torch.int8)
    with pytest.raises(ArgumentError, match="kernel is 'few'; expected one of 'tile64'"):
        gemm8.gemm(many, b, torch.ones(9), right, kernel="few", on=ON)
    with pytest.raises(ArgumentError, match="out is torch.float32"):
        gemm8.gemm(a, b, left, right, out=torch.float32, on=ON)
    with pytest.raises(ArgumentError, match="K, the columns of a, is 32; expected a positive multiple of 128"):
        gemm8.gemm_wgmma(a, b, left, right, on=ON)


def test_query_and_cache_must_fit():
    keys, scales = torch.zeros(5, 2, 64, dtype=torch.int8), torch.ones(5, 2)
    query = torch.zeros(4, 64).half()
    good = decode_attention.Cache(keys=keys, values=keys, key_scales=scales, value_scales=scales)
    for wrong, message in (
        (torch.zeros(3, 64).half(), "the heads of query is 3; expected a positive multiple of 2"),
        (torch.zeros(4, 80).half(), "D, the columns of query, is 80; expected one of 64, 128"),
        (query.float(), "query is float32"),
    ):
        with pytest.raises(ArgumentError, match=message):
            decode_attention.attend(wrong, good, on=ON)
    mixed = decode_attention.Cache(
        keys=keys, values=keys.to(torch.float8_e4m3fn), key_scales=scales, value_scales=scales[:4]
    )
    with pytest.raises(ArgumentError, match="values is float8_e4m3fn; expected int8"):
        decode_attention.attend(query, mixed, on=ON)


PACKED = w4a16.pack(CODES, SCALES, None)
KEYS = torch.zeros(5, 2, 64, dtype=torch.int8)
CACHE = decode_attention.Cache(keys=KEYS, values=KEYS, key_scales=torch.ones(5, 2), value_scales=torch.ones(5, 2))
EIGHT = torch.zeros(6, 64, dtype=torch.int8)
TURNS = torch.ones(5, 32), torch.zeros(5, 32)
KEY = torch.zeros(2, 64).half()
LENGTH = torch.ones(1, dtype=torch.int32)
TAKERS = {  # name of op -> a tensor that fits, and what takes it
    "statistics": (X, lambda x: statistics.statistics(x, on=ON)),
    "quantize": (X, lambda x: group_quantize.quantize(x, "e4m3", 64, on=ON)),
    "quantize static": (X, lambda x: group_quantize.quantize_static(x, "int8", torch.ones(1), on=ON)),
    "fake-quantize": (X, lambda x: group_quantize.fake_quantize(x, "int4", 32, on=ON)),
    "fp4": (X, lambda x: fp4_blocks.quantize(x, "mxfp4", on=ON)),
    "q8_0": (X, lambda x: gguf_blocks.quantize(x, "q8_0", on=ON)),
    "dequantize q4_0": (torch.zeros(2, 36, dtype=torch.uint8),
                        lambda x: gguf_blocks.dequantize(x, "q4_0", torch.float32, on=ON)),
    "q4_k": (torch.zeros(2, 512), lambda x: k_quants.quantize(x, "q4_k", on=ON)),
    "w4a16": (torch.zeros(3, 128).half(), lambda x: w4a16.linear(x, PACKED, on=ON)),
    "gemm": (torch.zeros(12, 64, dtype=torch.int8),
             lambda x: gemm8.gemm(x, EIGHT, torch.ones(12), torch.ones(6), on=ON)),
    "norm": (X.half(), lambda x: norm_quantize.norm_quantize(x, torch.ones(64).half(), None, on=ON)),
    "gate": (X.half(), lambda x: gate_quantize.gate_quantize(x, X.half(), torch.int8, on=ON)),
    "attention": (torch.zeros(4, 64).half(), lambda x: decode_attention.attend(x, CACHE, on=ON)),
    "append": (torch.zeros(4, 64).half(), lambda x: cache_append.append(x, KEY, KEY, TURNS, LENGTH, CACHE, on=ON)),
}  # fmt: skip


def misaligned(x: torch.Tensor) -> torch.Tensor:
    memory = torch.zeros(x.numel() * x.element_size() + 64, dtype=torch.uint8)
    start = -memory.data_ptr() % 16 + 8
    return memory[start : start + x.numel() * x.element_size()].view(x.dtype).view(x.shape)


WRONG = {
    "dtype": (lambda x: x.to(torch.complex64), "is complex64; expected "),
    "shape": (lambda x: x[0], r"has shape \(\d+,\); expected "),
    "device": (lambda x: x.to("meta"), "is on meta; the kernel runs on cpu: move it there first"),
    "empty": (lambda x: x[:0], r"is empty \(shape \(0, \d+\)\); there is nothing to compute"),
    "strides": (lambda x: torch.cat([x, x], 1)[:, : x.shape[1]], r"is not contiguous .* call .contiguous\(\) first"),
    "address": (misaligned, "starts at an address that is not a multiple of 16 bytes; clone it first"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", TAKERS)
def test_no_launcher_takes_a_tensor_that_does_not_fit(name, wrong):
    good, take = TAKERS[name]
    with pytest.raises(AssertionError, match="was launched"):
        take(good)
    change, message = WRONG[wrong]
    with pytest.raises(ArgumentError, match=message):
        take(change(good))


@pytest.mark.parametrize("name", ["statistics", "quantize", "w4a16", "gemm", "norm", "gate"])
def test_no_launcher_takes_more_elements_than_it_counts(name):
    class Meta(Nowhere):
        device = torch.device("meta")

    def meta(*shape: int, dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(*shape, dtype=dtype, device="meta")

    half, many = torch.float16, 2**25
    w = w4a16.PackedWeights(
        words=meta(8, 4, 32, 2, dtype=torch.int32), scales=meta(1, 128, dtype=half), zeros=None, rows=128, columns=128,
        group=128,
    )  # fmt: skip
    takers = {
        "statistics": lambda: statistics.statistics(meta(many, 64, dtype=half), on=Meta()),
        "quantize": lambda: group_quantize.quantize(meta(many, 64, dtype=half), "int8", 64, on=Meta()),
        "w4a16": lambda: w4a16.linear(meta(many, 128, dtype=half), w, on=Meta()),
        "gemm": lambda: gemm8.gemm(
            meta(2**20, 16, dtype=torch.int8), meta(2**12, 16, dtype=torch.int8), meta(2**20, dtype=torch.float32),
            meta(2**12, dtype=torch.float32), on=Meta(),
        ),
        "norm": lambda: norm_quantize.norm_quantize(
            meta(many, 64, dtype=half), meta(64, dtype=half), torch.int8, on=Meta()
        ),
        "gate": lambda: gate_quantize.gate_quantize(
            meta(many, 64, dtype=half), meta(many, 64, dtype=half), None, on=Meta()
        ),
    }  # fmt: skip
    with pytest.raises(ArgumentError, match=r"has \d{10} elements; at most 2147483647: split it"):
        takers[name]()
