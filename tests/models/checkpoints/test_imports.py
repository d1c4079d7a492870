"""AWQ, GPTQ, MLX and MXFP4 checkpoints, made by naive loops, open with the very values and the plan of their makers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.deployment.exporters.llamas import folder_of
from workbench.errors import NotAModelError
from workbench.models.sources import open_model
from workbench.numerics.formats import parse_scheme
from workbench.numerics.packing import pack
from workbench.planning.plan import Plan, resolve
from workbench.quantization.quantize import quantize
from workbench.steps.files.first_session import as_stored

Q = "model.layers.0.self_attn.q_proj"


def rewritten(folder: Path, settings: dict[str, Any], *without: str, **tensors: torch.Tensor) -> Path:
    """Put ``tensors`` in the place of those in ``without``, and say what they are."""
    state = {name: tensor for name, tensor in load_file(folder / "model.safetensors").items() if name not in without}
    save_file({**state, **tensors}, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text()) | {"quantization_config": settings}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def awq_words(codes: np.ndarray) -> torch.Tensor:
    """Return codes ``[rows, outputs]`` as AutoAWQ packs them, eight to a word."""
    out = np.zeros((codes.shape[0], codes.shape[1] // 8), np.uint32)
    for word in range(out.shape[1]):
        for place, output in enumerate((0, 2, 4, 6, 1, 3, 5, 7)):
            out[:, word] |= codes[:, 8 * word + output].astype(np.uint32) << np.uint32(4 * place)
    return torch.from_numpy(out.view(np.int32))


def awq_layer() -> tuple[np.ndarray, dict[str, torch.Tensor]]:
    """Return a matrix (inputs x outputs, groups of 32 inputs) and the tensors in which AWQ stores it."""
    generator = np.random.default_rng(0)
    codes, zeros = generator.integers(0, 16, (64, 64)), generator.integers(0, 16, (2, 64))
    scales = generator.uniform(0.01, 0.1, (2, 64)).astype(np.float16)
    values = (codes - zeros.repeat(32, 0)).astype(np.float32) * scales.astype(np.float32).repeat(32, 0)
    tensors = {f"{Q}.qweight": awq_words(codes), f"{Q}.qzeros": awq_words(zeros),
               f"{Q}.scales": torch.from_numpy(scales)}  # fmt: skip
    return values, tensors


def test_awq(tmp_path: Path) -> None:
    folder = folder_of("llama", tmp_path / "llama")
    values, tensors = awq_layer()
    settings = {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "gemm"}
    model = open_model(rewritten(folder, settings, f"{Q}.weight", **tensors))
    assert model.summary.cannot_run is None
    assert np.array_equal(model.weight(Q).numpy(), values.T)
    plan = as_stored(model, Plan())
    assigned = resolve(plan, model.summary.layers)
    assert {name for name, each in assigned.items() if each.weights != "keep"} == {Q}
    assert assigned[Q].weights == "int4-g32-asym"
    assert torch.equal(quantize(model, plan).bind(model).weight(Q), model.weight(Q))


def test_awq_of_another_layout_is_refused(tmp_path: Path) -> None:
    folder = folder_of("llama", tmp_path / "llama")
    settings = {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "marlin"}
    with pytest.raises(NotAModelError, match="version marlin"):
        open_model(rewritten(folder, settings))


def test_mxfp4_experts(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GptOssConfig(
        vocab_size=64, hidden_size=64, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, head_dim=32, num_local_experts=4, num_experts_per_tok=2, sliding_window=8,
        pad_token_id=0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    folder = tmp_path / "oss"
    transformers.GptOssForCausalLM(config).save_pretrained(folder)
    name = "model.layers.0.mlp.experts.gate_up_proj"
    generator = torch.Generator().manual_seed(0)
    blocks = torch.randint(0, 256, (4, 64, 2, 16), dtype=torch.uint8, generator=generator)
    scales = torch.randint(110, 130, (4, 64, 2), dtype=torch.uint8, generator=generator)
    tensors = {f"{name}_blocks": blocks, f"{name}_scales": scales}
    model = open_model(rewritten(folder, {"quant_method": "mxfp4"}, name, **tensors))
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    expected = convert_moe_packed_tensors(blocks.clone(), scales.clone(), dtype=torch.float32)
    layer = next(layer for layer in model.summary.layers if layer.parameter == name)
    assert torch.equal(layer.tensor_of(model.weight(layer.name)), expected)
    plan = as_stored(model, Plan())
    assert plan.of(layer.name).weights == "mxfp4"
    stored = quantize(model, plan).tensors[layer.name]
    assert np.array_equal(stored.arrays["codes"].reshape(-1), blocks.reshape(-1).numpy())
    assert torch.equal(parse_scheme("mxfp4").decode(stored), model.weight(layer.name))


def gptq_layer(index: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, dict[str, torch.Tensor]]:
    """Return a matrix (inputs x outputs) whose inputs name their group, and the tensors in which GPTQ stores it."""
    codes = generator.integers(0, 16, (64, 64)).astype(np.uint32)
    words = np.zeros((8, 64), np.uint32)
    for column in range(64):
        words[column // 8] |= codes[column] << np.uint32(4 * (column % 8))
    zeros, scales = np.full((2, 8), 0x77777777, np.uint32), generator.uniform(0.01, 0.1, (2, 64)).astype(np.float16)
    tensors = {f"{Q}.qweight": torch.from_numpy(words.view(np.int32)), f"{Q}.scales": torch.from_numpy(scales),
               f"{Q}.qzeros": torch.from_numpy(zeros.view(np.int32)),
               f"{Q}.g_idx": torch.from_numpy(index).int()}  # fmt: skip
    return (codes.astype(np.float32) - 8) * scales[index].astype(np.float32), tensors


def test_columns_in_the_order_of_activations_open_with_their_values_and_no_scheme(tmp_path: Path) -> None:
    folder = folder_of("llama", tmp_path / "llama")
    generator = np.random.default_rng(1)
    values, tensors = gptq_layer(generator.permutation(64) // 32, generator)
    settings = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": True, "sym": True}
    model = open_model(rewritten(folder, settings, f"{Q}.weight", **tensors))
    assert np.array_equal(model.weight(Q).numpy(), values.T)
    assert as_stored(model, Plan()).of(Q).weights == "keep"


@pytest.mark.parametrize("said", [True, False])
def test_gptq_groups_of_which_the_last_is_shorter(said: bool, tmp_path: Path) -> None:
    """Rows of 576 in groups of 128 have four and a half of them."""
    folder = folder_of("llama", tmp_path / "llama")
    values, tensors = gptq_layer(np.arange(64) // 48, np.random.default_rng(2))
    if not said:
        del tensors[f"{Q}.g_idx"]
    settings = {"quant_method": "gptq", "bits": 4, "group_size": 48, "desc_act": False, "sym": True}
    model = open_model(rewritten(folder, settings, f"{Q}.weight", **tensors))
    assert np.array_equal(model.weight(Q).numpy(), values.T)
    assert as_stored(model, Plan()).of(Q).weights == "int4-g48"


def test_mlx_groups_that_the_settings_leave_open(tmp_path: Path) -> None:
    """Those of mlx-lm's recipes of mixed widths: ``null``."""
    folder = folder_of("llama", tmp_path / "llama")
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(0, 16, (64, 64), generator=generator, dtype=torch.uint8)
    scales, biases = torch.rand(64, 2, generator=generator), torch.rand(64, 2, generator=generator)
    tensors = {f"{Q}.weight": words_of(codes, 4).view(torch.uint32), f"{Q}.scales": scales, f"{Q}.biases": biases}
    path = rewritten(folder, {}, **tensors)
    config = json.loads((path / "config.json").read_text())
    own = {"group_size": None, "bits": 4, "mode": "affine"}
    (path / "config.json").write_text(json.dumps(config | {"quantization": {"group_size": 64, "bits": 8, Q: own}}))
    model = open_model(path)
    spread = [each.repeat_interleave(32, 1) for each in (scales, biases)]
    assert torch.allclose(model.weight(Q), codes.float() * spread[0] + spread[1])
    assert as_stored(model, Plan()).of(Q).weights == "int4-g32-asym-zfp32-sfp32"


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    folder = folder_of("llama", tmp_path / "llama")
    tensors = {f"{Q}.qweight": torch.zeros(8, 64, dtype=torch.int32), f"{Q}.scales": torch.ones(2, 64).half()}
    with pytest.raises(NotAModelError, match=f"{Q} has a qweight and no qzeros"):
        open_model(rewritten(folder, {"quant_method": "gptq", "bits": 4}, f"{Q}.weight", **tensors))


@pytest.mark.parametrize("damage, message", [
    ({f"{Q}.scales": torch.ones(3, 64).half()}, "do not fit together"),
    ({f"{Q}.scales": torch.ones(2, 48).half()}, "scales of"),
    ({f"{Q}.qzeros": torch.zeros(2, 3, dtype=torch.int32)}, "do not fit together"),
    ({f"{Q}.scales": torch.ones(2, 64, dtype=torch.int32)}, "does not say what gptq needs"),
])  # fmt: skip
def test_tensors_that_do_not_fit_together_are_refused_before_they_are_decoded(
    damage: dict[str, torch.Tensor], message: str, tmp_path: Path
) -> None:
    whole = {f"{Q}.qweight": torch.zeros(8, 64, dtype=torch.int32), f"{Q}.scales": torch.ones(2, 64).half(),
             f"{Q}.qzeros": torch.full((2, 8), 0x77777777, dtype=torch.int32)}  # fmt: skip
    folder = folder_of("llama", tmp_path / "llama")
    with pytest.raises(NotAModelError, match=message):
        open_model(rewritten(folder, {"quant_method": "gptq", "bits": 4}, f"{Q}.weight", **{**whole, **damage}))


@pytest.mark.parametrize("settings", [
    "gptq", {"quant_method": "compressed-tensors"}, {"quant_method": "compressed-tensors", "config_groups": {"g": {}}},
    {"quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["re:(("], "weights": {}}}},
    {"quant_method": "bitsandbytes"},
])  # fmt: skip
def test_a_configuration_that_makes_no_sense_is_one_line(settings: Any, tmp_path: Path) -> None:
    folder = folder_of("llama", tmp_path / "llama")
    tensors = {f"{Q}.weight": torch.zeros(64, 64, dtype=torch.int8), f"{Q}.weight_scale": torch.ones(64, 1)}
    with pytest.raises(NotAModelError) as refused:
        open_model(rewritten(folder, settings, **tensors))
    assert "\n" not in str(refused.value)


def words_of(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """Return rows of codes as rows of int32 words, one stream of bits."""
    return torch.from_numpy(pack(codes, bits).numpy().view(np.int32).copy())


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_gptq_zero_points_of_0_are_read_as_gptqmodel_wrote_them(tmp_path: Path, bits: int) -> None:
    folder = folder_of("llama", tmp_path / "llama")
    generator = torch.Generator().manual_seed(bits)
    codes = torch.randint(0, 2**bits, (64, 64), generator=generator, dtype=torch.uint8)
    zeros = torch.randint(0, 2**bits, (2, 64), generator=generator, dtype=torch.uint8)
    zeros[:, ::5] = 0
    scales = torch.rand(2, 64, generator=generator).half() + 0.01
    packed, stored = words_of(codes.T.contiguous(), bits).T.contiguous(), words_of(zeros, bits)
    ones = sum(1 << place for place in range(0, 32, bits))
    lessened = words_of((zeros.int() - 1).remainder(8).byte(), bits) if bits == 3 else stored - ones
    settings = {"quant_method": "gptq", "bits": bits, "group_size": 32, "sym": False, "checkpoint_format": "gptq"}
    tensors = {f"{Q}.qweight": packed, f"{Q}.qzeros": lessened, f"{Q}.scales": scales}
    model = open_model(rewritten(folder, settings, f"{Q}.weight", **tensors))
    values = (codes.float() - zeros.float().repeat_interleave(32, 0)) * scales.float().repeat_interleave(32, 0)
    assert torch.equal(model.weight(Q), values.T)
    assert as_stored(model, Plan()).of(Q).weights == f"int{bits}-g32-asym"


@pytest.mark.parametrize("changes, words, message", [
    ({"checkpoint_format": "marlin"}, 8, "format marlin"), ({}, 10, "codes of 5 bits"),
])  # fmt: skip
def test_gptq_of_another_layout_is_refused(tmp_path: Path, changes: dict[str, str], words: int, message: str) -> None:
    folder = folder_of("llama", tmp_path / "llama")
    settings = {"quant_method": "gptq", "bits": 4, "group_size": 32} | changes
    tensors = {f"{Q}.qweight": torch.zeros(words, 64, dtype=torch.int32), f"{Q}.scales": torch.ones(2, 64).half(),
               f"{Q}.qzeros": torch.zeros(2, words, dtype=torch.int32)}  # fmt: skip
    with pytest.raises(NotAModelError, match=message):
        open_model(rewritten(folder, settings, f"{Q}.weight", **tensors))


@pytest.mark.parametrize("symmetric", [True, False])
def test_packed_columns_that_name_their_group_have_the_values_of_the_library(tmp_path: Path, symmetric: bool) -> None:
    pytest.importorskip("compressed_tensors", reason="compressed-tensors is not installed")
    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32

    folder = folder_of("llama", tmp_path / "llama")
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(-8, 8, (64, 64), generator=generator, dtype=torch.int8)
    zeros = torch.randint(-8, 8, (64, 2), generator=generator, dtype=torch.int8) * (not symmetric)
    scales = torch.rand(64, 2, generator=generator) + 0.01
    index = (torch.randperm(64, generator=generator) // 32).int()
    weights = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": symmetric,
               "actorder": "group"}  # fmt: skip
    settings = {"quant_method": "compressed-tensors", "format": "pack-quantized",
                "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}  # fmt: skip
    tensors = {f"{Q}.weight_packed": pack_to_int32(codes, 4), f"{Q}.weight_scale": scales,
               f"{Q}.weight_shape": torch.tensor([64, 64]), f"{Q}.weight_g_idx": index}  # fmt: skip
    if not symmetric:
        tensors[f"{Q}.weight_zero_point"] = pack_to_int32(zeros, 4, packed_dim=0).contiguous()
    model = open_model(rewritten(folder, settings, f"{Q}.weight", **tensors))
    group = index.long()
    assert torch.equal(model.weight(Q), scales[:, group] * (codes.float() - zeros[:, group].float()))
    assert as_stored(model, Plan()).of(Q).weights == "keep"
    assert any("by their activations (desc_act)" in note for note in model.notes)
    tensors[f"{Q}.weight_g_idx"] = index + 1
    with pytest.raises(NotAModelError, match="q_proj.weight_packed cannot be read"):
        open_model(rewritten(folder, settings, **tensors)).weight(Q)
