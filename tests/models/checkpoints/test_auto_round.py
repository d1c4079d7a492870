"""AutoRound folders, packed by naive loops in each of its formats, open with the very values and a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.deployment.exporters.llamas import folder_of
from tests.models.checkpoints.test_imports import Q, awq_layer, rewritten
from workbench.errors import NotAModelError
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan, resolve
from workbench.quantization.quantize import quantize
from workbench.steps.files.first_session import as_stored

UP = "model.layers.0.mlp.up_proj"
INTEGERS = {"bits": 4, "group_size": 32, "sym": True, "data_type": "int", "iters": 200, "autoround_version": "0.5.1"}


def words_of(codes: np.ndarray, bits: int) -> torch.Tensor:
    """Return columns of codes as columns of int32 words, the first code in the lowest bits."""
    words = np.zeros((codes.shape[0] * bits // 32, codes.shape[1]), np.uint32)
    for row in range(codes.shape[0]):
        for bit in range(bits):
            word, place = divmod(bits * row + bit, 32)
            words[word] |= (codes[row].astype(np.uint32) >> np.uint32(bit) & np.uint32(1)) << np.uint32(place)
    return torch.from_numpy(words.view(np.int32))


def packed(module: str, bits: int, group: int, less: int, symmetric: bool) -> tuple[dict[str, Any], np.ndarray]:
    """Return tensors of a linear module of 64 inputs as AutoRound writes them, and the values (outputs x inputs)."""
    outputs = 96 if module == UP else 64
    generator = np.random.default_rng(bits)
    codes = generator.integers(0, 2**bits, (64, outputs))
    shape = (64 // group, outputs)
    zeros = np.full(shape, 2 ** (bits - 1)) if symmetric else generator.integers(1, 2**bits, shape)
    scales = generator.uniform(0.01, 0.1, shape).astype(np.float16)
    values = (codes - zeros.repeat(group, 0)).astype(np.float32) * scales.astype(np.float32).repeat(group, 0)
    tensors = {f"{module}.qweight": words_of(codes, bits), f"{module}.scales": torch.from_numpy(scales),
               f"{module}.qzeros": words_of((zeros - less).T, bits).T.contiguous()}  # fmt: skip
    return tensors, values.T


def opened(folder: Path, settings: dict[str, Any], tensors: dict[str, torch.Tensor], *without: str) -> Model:
    model = open_model(rewritten(folder_of("llama", folder), settings, *without, **tensors))
    assert model.summary.cannot_run is None
    plan = as_stored(model, Plan()).assign([Q, UP], inputs=None)  # static ones need a range
    bound = quantize(model, plan).bind(model)
    assert all(torch.equal(bound.weight(layer), model.weight(layer)) for layer in (Q, UP))
    return model


@pytest.mark.parametrize(("method", "form", "less", "symmetric"), [
    ("auto-round", {"packing_format": "auto_round:auto_gptq"}, 1, True),
    ("auto-round", {}, 1, True),
    ("auto-round", {"packing_format": "auto_round"}, 0, False),
    ("auto-round", {"packing_format": "auto_round:gptqmodel"}, 0, True),
    ("intel/auto-round", {"backend": "auto_round:gptq:exllamav2"}, 1, False),
    ("intel/auto-round", {"backend": "auto_round:exllamav2"}, 0, False),
])  # fmt: skip
def test_integers_of_several_widths(
    method: str, form: dict[str, str], less: int, symmetric: bool, tmp_path: Path
) -> None:  # fmt: skip
    narrow, values = packed(Q, 4, 32, less, symmetric)
    wide, other = packed(UP, 8, 64, less, symmetric)
    extra = {UP: {"bits": 8, "group_size": -1}}
    settings = {**INTEGERS, **form, "quant_method": method, "sym": symmetric, "extra_config": extra}
    model = opened(tmp_path / "llama", settings, {**narrow, **wide}, f"{Q}.weight", f"{UP}.weight")
    assert np.array_equal(model.weight(Q).numpy(), values) and np.array_equal(model.weight(UP).numpy(), other)
    planned = resolve(as_stored(model, Plan()), model.summary.layers)
    ending = "" if symmetric else "-asym"
    assert (planned[Q].weights, planned[UP].weights) == (f"int4-g32{ending}", f"int8-channel{ending}-sfp16")


@pytest.mark.parametrize("bits", [2, 3])
def test_narrow_integers(bits: int, tmp_path: Path) -> None:
    tensors, values = packed(Q, bits, 32, 1, True)
    settings = {**INTEGERS, "bits": bits, "quant_method": "auto-round", "packing_format": "auto_round:auto_gptq"}
    model = opened(tmp_path / "llama", settings, tensors, f"{Q}.weight")
    assert np.array_equal(model.weight(Q).numpy(), values)
    assert as_stored(model, Plan()).of(Q).weights == f"int{bits}-g32"


def test_words_along_the_outputs(tmp_path: Path) -> None:
    values, tensors = awq_layer()
    settings = {**INTEGERS, "quant_method": "auto-round", "sym": False, "packing_format": "auto_round:auto_awq"}
    model = opened(tmp_path / "llama", settings, tensors, f"{Q}.weight")
    assert np.array_equal(model.weight(Q).numpy(), values.T)


FP4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def four_bits(codes: np.ndarray) -> np.ndarray:
    return np.array([*FP4, *(-value for value in FP4)], np.float32)[codes]


def test_microscaling_of_two_widths(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    codes, powers = generator.integers(0, 16, (64, 64)), generator.integers(118, 124, (64, 2))
    values = four_bits(codes) * np.exp2(powers.repeat(32, 1) - 127.0).astype(np.float32)
    bytes_ = torch.from_numpy(generator.normal(0, 50, (96, 64)).astype(np.float32)).to(torch.float8_e4m3fn)
    larger = generator.integers(110, 120, (96, 2))
    other = bytes_.float().numpy() * np.exp2(larger.repeat(32, 1) - 127.0).astype(np.float32)
    tensors = {
        f"{Q}.weight_packed": torch.from_numpy((codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)),
        f"{Q}.weight_scale": torch.from_numpy(powers.astype(np.uint8)),
        f"{UP}.weight": bytes_, f"{UP}.weight_scale": torch.from_numpy(larger.astype(np.uint8)),
    }  # fmt: skip
    settings = {"quant_method": "auto-round", "packing_format": "auto_round:llm_compressor", "bits": 4, "act_bits": 4,
                "group_size": 32, "data_type": "mx_fp", "act_data_type": "mx_fp_rceil", "act_dynamic": True,
                "extra_config": {UP: {"bits": 8, "act_bits": 8}}}  # fmt: skip
    model = opened(tmp_path / "llama", settings, tensors, f"{Q}.weight")
    assert np.array_equal(model.weight(Q).numpy(), values) and np.array_equal(model.weight(UP).numpy(), other)
    planned = resolve(as_stored(model, Plan()), model.summary.layers)
    assert (planned[Q].weights, planned[Q].inputs) == ("mxfp4", "mxfp4")
    assert (planned[UP].weights, planned[UP].inputs) == ("mxfp8-e4m3", "mxfp8-e4m3")


def test_nvidia_s_four_bits(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 16, (64, 64))
    scales = torch.from_numpy(generator.uniform(1, 400, (64, 4)).astype(np.float32)).to(torch.float8_e4m3fn)
    tensors = {
        f"{Q}.weight_packed": torch.from_numpy((codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)),
        f"{Q}.weight_scale": scales, f"{Q}.weight_global_scale": torch.tensor([2048.0]),
        f"{Q}.input_global_scale": torch.tensor([512.0]),
    }  # fmt: skip
    settings = {"quant_method": "auto-round", "packing_format": "auto_round:llm_compressor", "bits": 4, "act_bits": 4,
                "group_size": 16, "data_type": "nv_fp", "act_data_type": "nv_fp4_with_static_gs"}  # fmt: skip
    model = opened(tmp_path / "llama", settings, tensors, f"{Q}.weight")
    values = four_bits(codes) * (scales.float().numpy() / np.float32(2048)).repeat(16, 1)
    assert np.array_equal(model.weight(Q).numpy(), values)
    assigned = as_stored(model, Plan()).of(Q)
    assert (assigned.weights, assigned.inputs) == ("nvfp4", "nvfp4")
    assert model.encoded_range(Q) == pytest.approx((-448 * 6 / 512, 448 * 6 / 512))


@pytest.mark.parametrize("form, inputs", [
    ({"act_bits": 8, "activation_scheme": "static"}, "fp8-e4m3-tensor"),
    ({"act_bits": 16, "activation_scheme": "dynamic"}, None),
])  # fmt: skip
def test_floats_of_eight_bits(form: dict[str, Any], inputs: str | None, tmp_path: Path) -> None:
    codes = (torch.randn(64, 64) * 50).clamp(-448, 448).to(torch.float8_e4m3fn)
    scales = torch.rand(64).bfloat16() * 0.01 + 1e-4
    tensors = {f"{Q}.weight": codes, f"{Q}.weight_scale": scales, f"{Q}.input_scale": torch.tensor([0.5]).bfloat16()}
    settings = {"quant_method": "auto-round", "packing_format": "auto_round:fp8_static", "bits": 8, "data_type": "fp",
                "group_size": -1, "fmt": "e4m3", **form}  # fmt: skip
    model = opened(tmp_path / "llama", settings, tensors)
    assert torch.equal(model.weight(Q), codes.float() * scales.float()[:, None])
    assigned = as_stored(model, Plan()).of(Q)
    assert (assigned.weights, assigned.inputs) == ("fp8-e4m3-channel-sbf16", inputs)


@pytest.mark.parametrize("form, inputs, told", [
    ({"act_sym": True}, "int8-token", False), ({"act_sym": False}, "int8-token-asym", False),
    ({"act_dynamic": False}, None, True), ({"act_group_size": 32}, None, True), ({"act_bits": 4}, None, True),
    ({"act_bits": 16}, None, False), ({"extra_config": {Q: {"act_bits": 16}}}, None, False),
    ({"extra_config": {r"self_attn\.[qk]_proj$": {"act_bits": 16}}}, None, False),
    ({"extra_config": {"^self_attn": {"act_bits": 16}, "q_proj": {"act_sym": False}, "attn": {}}}, "int8-token-asym",
     False),
    ({"extra_config": {".*": {"act_bits": 16}, Q: {"act_sym": True}}}, "int8-token", False),
    ({"extra_config": {UP: {"act_bits": 16}, UP.replace("mlp", "."): {"act_bits": 16}}}, "int8-token", False),
])  # fmt: skip
def test_integers_whose_inputs_are_rounded_too(
    form: dict[str, Any], inputs: str | None, told: bool, tmp_path: Path
) -> None:
    tensors, values = packed(Q, 4, 32, 1, True)
    settings = {**INTEGERS, "quant_method": "auto-round", "packing_format": "auto_round:auto_gptq", "act_bits": 8,
                "act_data_type": "int", "act_dynamic": True, "act_group_size": -1, **form}  # fmt: skip
    model = opened(tmp_path / "llama", settings, tensors, f"{Q}.weight")
    assert np.array_equal(model.weight(Q).numpy(), values)
    assigned = as_stored(model, Plan()).of(Q)
    assert (assigned.weights, assigned.inputs) == ("int4-g32", inputs)
    assert told == any("no plan can say" in note for note in model.notes)


@pytest.mark.parametrize("settings, message", [
    ({"packing_format": "auto_round:auto_awq", "bits": 8}, "AWQ checkpoints of version gemm with 8 bits"),
    ({"packing_format": ["auto"], "act_bits": "many"}, "does not say what auto-round needs"),
    ({"extra_config": ["q_proj"], "data_type": "mx_fp"}, "does not say what auto-round needs"),
    ({"extra_config": {"(?<=mlp).up": {"bits": 8}}, "data_type": "mx_fp"}, "is not a regular expression that is read"),
    ({}, "none of its tensors is in a form that is read"),
])  # fmt: skip
def test_what_is_not_read_is_one_line(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder = folder_of("llama", tmp_path / "llama")
    tensors = {f"{UP}.weight_scale": torch.ones(96, 2, dtype=torch.uint8)} if settings.get("data_type") else {}
    with pytest.raises(NotAModelError, match=message) as refused:
        open_model(rewritten(folder, {**INTEGERS, "quant_method": "auto-round", **settings}, **tensors))
    assert "\n" not in str(refused.value)
