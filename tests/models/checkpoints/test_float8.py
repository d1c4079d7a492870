"""FP8 checkpoints, made by naive loops, open with the values of their makers and the plan of what they round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.deployment.exporters.llamas import folder_of
from tests.models.checkpoints.test_imports import Q, rewritten
from workbench.errors import NotAModelError
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan, resolve
from workbench.steps.files.first_session import as_stored, start

BLOCKS = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic"}
POWERS = {**BLOCKS, "scale_fmt": "ue8m0"}
STATIC = {"quant_method": "fp8", "activation_scheme": "static", "weight_block_size": None}


def codes_of(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    numbers = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)) * 50
    return numbers.clamp(-448, 448).to(torch.float8_e4m3fn)


def schemes(model: Model, layer: str) -> tuple[str, str | None]:
    assigned = resolve(as_stored(model, Plan()), model.summary.layers)[layer]
    return assigned.weights, assigned.inputs


def test_blocks(tmp_path: Path) -> None:
    codes, scales = codes_of(64, 64), torch.rand(2, 3) * 0.01 + 1e-4
    values = codes.float() * scales.repeat_interleave(32, 0).repeat_interleave(24, 1)[:, :64]
    tensors = {f"{Q}.weight": codes, f"{Q}.weight_scale_inv": scales}
    folder = rewritten(folder_of("llama", tmp_path / "llama"), {**BLOCKS, "weight_block_size": [32, 24]}, **tensors)
    model = open_model(folder)
    assert torch.equal(model.weight(Q), values)
    assert schemes(model, Q) == ("fp8-e4m3-b32x24", "fp8-e4m3-g24-sfp32")


@pytest.mark.parametrize("dtype", [torch.float8_e8m0fnu, torch.uint8], ids=str)
@pytest.mark.parametrize("block, expected", [
    ([32, 24], ("fp8-e4m3-b32x24", "fp8-e4m3-g24-sfp32")), ([1, 32], ("mxfp8-e4m3", "mxfp8-e4m3")),
], ids=str)  # fmt: skip
def test_scales_that_are_powers_of_two(
    block: list[int], expected: tuple[str, str], dtype: torch.dtype, tmp_path: Path
) -> None:
    codes = codes_of(64, 64)
    exponents = torch.randint(112, 125, (64 // block[0], -(-64 // block[1])), dtype=torch.uint8)
    scales = 2.0 ** (exponents.float() - 127)
    values = codes.float() * scales.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[:, :64]
    tensors = {f"{Q}.weight": codes, f"{Q}.weight_scale_inv": exponents.view(dtype)}
    folder = folder_of("llama", tmp_path / "llama")
    model = open_model(rewritten(folder, {**POWERS, "weight_block_size": block}, **tensors))
    assert torch.equal(model.weight(Q), values)
    assert schemes(model, Q) == expected
    assert any("powers of two" in note for note in model.notes) == (block != [1, 32])


@pytest.mark.parametrize("part", ["input_scale", "activation_scale"])
def test_static_inputs(part: str, tmp_path: Path) -> None:
    codes = codes_of(64, 64)
    tensors = {f"{Q}.weight": codes, f"{Q}.weight_scale_inv": torch.tensor(0.25), f"{Q}.{part}": torch.tensor(0.5)}
    model = open_model(rewritten(folder_of("llama", tmp_path / "llama"), STATIC, **tensors))
    assert torch.equal(model.weight(Q), codes.float() * 0.25)
    assert schemes(model, Q) == ("fp8-e4m3-tensor", "fp8-e4m3-tensor")
    assert model.encoded_range(Q) == (-224.0, 224.0)
    assert not any(part in note for note in model.notes)


def mixture(folder: Path, settings: dict[str, Any], width: int = 64, *, own: bool = False) -> Model:
    """Return a mixture of four experts in FP8, blocks of 32 x 32 or one scale, with static inputs of their ``own``."""
    made = folder_of("qwen3moe", folder, moe_intermediate_size=width)
    tensors = dict[str, torch.Tensor]()
    for name, (rows, columns) in {"gate_proj": (width, 64), "up_proj": (width, 64), "down_proj": (64, width)}.items():
        for expert in range(4):
            module = f"model.layers.0.mlp.experts.{expert}.{name}"
            shape = (-(-rows // 32), -(-columns // 32)) if settings.get("weight_block_size") else ()
            tensors |= {f"{module}.weight": codes_of(rows, columns, expert),
                        f"{module}.weight_scale_inv": torch.full(shape, 0.5)}  # fmt: skip
            if settings["activation_scheme"] == "static":
                tensors[f"{module}.activation_scale"] = torch.tensor(0.5 * (1 + expert * own))
    return open_model(rewritten(made, settings, **tensors))


EXPERTS = "model.layers.0.mlp.experts.gate_up_proj"


def test_experts_have_the_scheme_of_their_inputs(tmp_path: Path) -> None:
    model = mixture(tmp_path / "moe", {**BLOCKS, "weight_block_size": [32, 32]})
    assert schemes(model, EXPERTS) == ("fp8-e4m3-b32x32", "fp8-e4m3-g32-sfp32")


@pytest.mark.parametrize("own", [False, True])
def test_experts_have_the_widest_of_their_ranges(own: bool, tmp_path: Path) -> None:
    model = mixture(tmp_path / "moe", STATIC, own=own)
    assert model.encoded_inputs(EXPERTS) == "fp8-e4m3-tensor"
    largest = 448.0 * 0.5 * (4 if own else 1)
    assert model.encoded_range(EXPERTS) == (-largest, largest)
    assert any("a range of its own" in note for note in model.notes) == own
    assert start(model).active_ranges[EXPERTS, "input"].high == largest


def test_experts_whose_blocks_end_with_each_keep_their_values_and_round_their_inputs(tmp_path: Path) -> None:
    model = mixture(tmp_path / "moe", {**BLOCKS, "weight_block_size": [32, 32]}, width=48)
    assert schemes(model, EXPERTS) == ("keep", "fp8-e4m3-g32-sfp32")


def test_stacked_experts_with_scales_are_refused_and_not_taken_without_them(tmp_path: Path) -> None:
    tensors = {f"{Q}.weight": codes_of(64, 64), f"{Q}.weight_scale_inv": torch.tensor(0.25)}
    stacked = {"model.stacked": codes_of(64, 64).reshape(2, 32, 64), "model.stacked_scale_inv": torch.ones(2, 1, 1)}
    folder = rewritten(folder_of("llama", tmp_path / "llama"), BLOCKS, **tensors, **stacked)
    with pytest.raises(NotAModelError, match="model.stacked in FP8 with scales beside it"):
        open_model(folder)
