"""ModelOpt's and FBGEMM's folders, settings in files of their own: the values by plain arithmetic, or one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.deployment.exporters.llamas import folder_of
from tests.models.checkpoints.test_imports import Q, awq_layer, rewritten
from workbench.deployment.exporters import exporter
from workbench.errors import NotAModelError
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Assignment, Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.steps.files.first_session import as_stored

FP4 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
MODELOPT = {"quant_method": "modelopt", "quant_algo": "FP8", "producer": {"name": "modelopt"}, "ignore": ["lm_head"]}
CODES = (torch.randn(64, 64, generator=torch.Generator().manual_seed(0)) * 50).clamp(-448, 448).to(torch.float8_e4m3fn)


def planned(model: Model) -> Assignment:
    assert model.summary.cannot_run is None
    return as_stored(model, Plan()).of(Q)


def beside(folder: Path, settings: Any, name: str, **tensors: torch.Tensor) -> Path:
    """Write ``settings`` into a file of their own."""
    rewritten(folder, {}, f"{Q}.weight", **tensors)
    config = json.loads((folder / "config.json").read_text())
    del config["quantization_config"]
    (folder / "config.json").write_text(json.dumps(config))
    (folder / name).write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize("older", [False, True])
def test_float8_of_the_tensor_with_static_inputs(older: bool, tmp_path: Path) -> None:
    """In the older form, with no word in config.json, the codes passed for weights."""
    tensors = {f"{Q}.weight": CODES, f"{Q}.weight_scale": torch.tensor(0.003), f"{Q}.input_scale": torch.tensor(0.5)}
    folder = folder_of("llama", tmp_path / "m")
    if older:
        document = {"producer": {}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
        beside(folder, document, "hf_quant_config.json", **tensors)
    else:
        rewritten(folder, {**MODELOPT, "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, **tensors)
    model = open_model(folder)
    assert torch.equal(model.weight(Q), CODES.float() * torch.tensor(0.003))
    assert (planned(model).weights, planned(model).inputs) == ("fp8-e4m3-tensor", "fp8-e4m3-tensor")
    assert model.encoded_range(Q) == (-224.0, 224.0)
    assert any("keys and values as float of 8 bits" in note for note in model.notes)


@pytest.mark.parametrize("settings", [
    {**MODELOPT, "quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"},
    {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0},
])  # fmt: skip
def test_float8_of_outputs_with_inputs_by_token(settings: dict[str, Any], tmp_path: Path) -> None:
    scales = torch.rand(64, 1) * 0.01 + 1e-4
    tensors = {f"{Q}.weight": CODES, f"{Q}.weight_scale": scales}
    model = open_model(rewritten(folder_of("llama", tmp_path / "m"), settings, **tensors))
    assert torch.equal(model.weight(Q), CODES.float() * scales)
    assert (planned(model).weights, planned(model).inputs) == ("fp8-e4m3-channel", "fp8-e4m3-token")
    bounded = any("clipped at 1200, which no plan can say; the plan rounds them" in note for note in model.notes)
    assert bounded == ("activation_scale_ub" in settings)


def test_nvfp4_is_read_and_written_for_vllm(tmp_path: Path) -> None:
    pytest.importorskip("compressed_tensors")
    packed = torch.randint(0, 256, (64, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    scales = (torch.rand(64, 4) * 400 + 1).to(torch.float8_e4m3fn)
    tensors = {f"{Q}.weight": packed, f"{Q}.weight_scale": scales, f"{Q}.weight_scale_2": torch.tensor(0.0004),
               f"{Q}.input_scale": torch.tensor(0.002)}  # fmt: skip
    folder = rewritten(folder_of("llama", tmp_path / "m"), {**MODELOPT, "quant_algo": "NVFP4"}, **tensors)
    (folder / "hf_quant_config.json").write_text("{}")
    model = open_model(folder)
    codes = torch.stack([packed & 15, packed >> 4], dim=-1).reshape(64, 64).long()
    signs = 1.0 - 2.0 * (codes >> 3)
    values = signs * FP4[codes & 7] * scales.float().repeat_interleave(16, 1) * torch.tensor(0.0004)
    assert torch.allclose(model.weight(Q), values, rtol=2e-7, atol=0)
    assert (planned(model).weights, planned(model).inputs) == ("nvfp4", "nvfp4")
    low, high = model.encoded_range(Q) or (0.0, 0.0)
    assert -low == high == pytest.approx(448 * 6 * 0.002)
    plan = Plan().assign([Q], weights="nvfp4", algorithm="rtn")
    exporter("compressed-tensors").export(quantize(model, plan), model, tmp_path / "out", silent)
    assert torch.allclose(open_model(tmp_path / "out").weight(Q), values, rtol=1e-6, atol=0)
    assert not (tmp_path / "out" / "hf_quant_config.json").exists()


def test_autoawq_and_autogptq_wrote_a_file_beside(tmp_path: Path) -> None:
    values, tensors = awq_layer()
    settings = {"zero_point": True, "q_group_size": 32, "w_bit": 4, "version": "GEMM"}
    model = open_model(beside(folder_of("llama", tmp_path / "m"), settings, "quant_config.json", **tensors))
    assert (model.weight(Q).numpy() == values.T).all() and planned(model).weights == "int4-g32-asym"


@pytest.mark.parametrize("name, settings", [
    ("quantize_config.json", {"per_channel": False, "reduce_range": False}), ("quant_config.json", {"mode": 1}),
    ("hf_quant_config.json", {"quantization": None}), ("hf_quant_config.json", ["FP8"]), ("quantization_map.json", {}),
])  # fmt: skip
def test_files_of_others_by_the_same_names_say_nothing(name: str, settings: Any, tmp_path: Path) -> None:
    """Optimum writes quantize_config.json for ONNX files, which lie beside the floating-point weights."""
    folder = folder_of("llama", tmp_path / "m")
    (folder / name).write_text(json.dumps(settings))
    assert planned(open_model(folder)).weights == "keep"


@pytest.mark.parametrize("said, kept", [("INT8", "int of 8 bits"), ("NVFP4", "float of 4 bits")])
def test_keys_and_values_are_named_as_they_are_stored(said: str, kept: str, tmp_path: Path) -> None:
    tensors = {f"{Q}.weight": CODES, f"{Q}.weight_scale": torch.tensor(0.003)}
    settings = {**MODELOPT, "kv_cache_quant_algo": said}
    model = open_model(rewritten(folder_of("llama", tmp_path / "m"), settings, **tensors))
    assert any(f"keys and values as {kept}" in note for note in model.notes)


@pytest.mark.parametrize("settings, tensors, message", [
    ({**MODELOPT, "quant_algo": "W4A16_AWQ"}, {"weight_scale": torch.ones(64, 4), "pre_quant_scale": torch.ones(64)},
     "W4A16_AWQ scales the inputs of .* not read yet"),
    ({**MODELOPT, "quant_algo": "W4A8"}, {"weight": torch.zeros(64, 32).byte(), "weight_scale": torch.ones(64, 4)},
     "ModelOpt's W4A8; of its formats FP8 and NVFP4 are read"),
    (MODELOPT, {"weight": torch.zeros(64).byte(), "weight_scale": torch.ones(4), "weight_scale_2": torch.ones(1)},
     f"{Q} is in ModelOpt's FP8; of its formats"),
    (None, {"weight": CODES, "weight_scale": torch.tensor(0.5)}, "in FP8 with scales, and config.json does not say"),
])  # fmt: skip
def test_what_is_not_read_is_one_line(settings: Any, tensors: dict[str, Any], message: str, tmp_path: Path) -> None:
    named = {f"{Q}.{part}": tensor for part, tensor in tensors.items()}
    with pytest.raises(NotAModelError, match=message) as refused:
        open_model(rewritten(folder_of("llama", tmp_path / "m"), settings, **named))
    assert "\n" not in str(refused.value)
