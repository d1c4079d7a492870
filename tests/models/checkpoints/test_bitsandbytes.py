"""bitsandbytes checkpoints open with the values that its own rule gives, value by value, and with their plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.deployment.exporters.llamas import folder_of
from tests.models.checkpoints.test_imports import Q, rewritten
from workbench.errors import NotAModelError
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.steps.files.first_session import as_stored

W, BLOCK = f"{Q}.weight", 32
FP4 = np.array([0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4], np.float32)
TABLES = {
    "nf4": np.array([
        -1.0, -0.69619280, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0.0, 0.07958030,
        0.16093020, 0.24611230, 0.33791524, 0.44070983, 0.56261700, 0.72295684, 1.0,
    ], np.float32),
    "fp4": np.concatenate([FP4, -FP4]),
}  # fmt: skip


def dynamic_map() -> np.ndarray:
    """Return the 8-bit map of arXiv 1511.04561 as its figure says: exponents of ten, between them even steps."""
    levels = [0.0, 1.0]
    for exponent in range(7):
        bounds = np.linspace(0.1, 1, 2**exponent + 1)
        levels += [sign * 10.0 ** (exponent - 6) * each for each in (bounds[:-1] + bounds[1:]) / 2 for sign in (1, -1)]
    return np.sort(np.array(levels, np.float32))


def description(kind: str, **other: Any) -> torch.Tensor:
    said = {"quant_type": kind, "blocksize": BLOCK, "dtype": "bfloat16", "shape": [64, 64], **other}
    return torch.frombuffer(bytearray(json.dumps(said).encode()), dtype=torch.uint8)


def four_bits(kind: str, nested: bool) -> tuple[np.ndarray, dict[str, torch.Tensor]]:
    """Return a matrix and the tensors in which bitsandbytes stores it: high bits first, blocks in one line."""
    generator = np.random.default_rng(3)
    codes, count = generator.integers(0, 16, 64 * 64), 64 * 64 // BLOCK
    tensors = {W: torch.from_numpy((codes[::2] << 4 | codes[1::2]).astype(np.uint8)[:, None]),
               f"{W}.quant_map": torch.from_numpy(TABLES[kind])}  # fmt: skip
    scales = generator.uniform(0.01, 0.1, count).astype(np.float32)
    state, own = f"{W}.quant_state.bitsandbytes__{kind}", scales
    said: dict[str, Any] = {}
    if nested:
        own, levels = generator.integers(0, 256, count), dynamic_map()
        largest, mean = np.array([0.0213], np.float32)[: -(-count // 256)], 0.0547
        scales = np.array([levels[code] * largest[place // 256] for place, code in enumerate(own)]) + np.float32(mean)
        tensors |= {f"{W}.nested_absmax": torch.from_numpy(largest), f"{W}.nested_quant_map": torch.from_numpy(levels)}
        said = {"nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": mean}
    tensors |= {f"{W}.absmax": torch.from_numpy(own.astype(np.uint8) if nested else own),
                state: description(kind, **said)}  # fmt: skip
    values = [TABLES[kind][code] * scales[place // BLOCK] for place, code in enumerate(codes)]
    return np.array(values, np.float32).reshape(64, 64), tensors


def opened(folder: Path, settings: dict[str, Any], tensors: dict[str, torch.Tensor]) -> Model:
    return open_model(rewritten(folder_of("llama", folder), settings, W, **tensors))


@pytest.mark.parametrize("kind, nested, scheme", [
    ("nf4", False, "nf4-b32"), ("nf4", True, "nf4-b32-dq"), ("fp4", False, "fp4-bnb-b32"),
    ("fp4", True, "fp4-bnb-b32-dq"),
])  # fmt: skip
@pytest.mark.parametrize("storage", [torch.uint8, torch.bfloat16])
def test_four_bits(kind: str, nested: bool, scheme: str, storage: torch.dtype, tmp_path: Path) -> None:
    values, tensors = four_bits(kind, nested)
    tensors[W] = tensors[W].reshape(-1).view(storage)[:, None]
    settings = {"load_in_4bit": True, "bnb_4bit_quant_type": kind}
    named = settings if nested else {**settings, "quant_method": "bitsandbytes"}
    model = opened(tmp_path / "llama", named, tensors)
    assert np.allclose(model.weight(Q).numpy(), values, rtol=2e-6, atol=1e-9)
    assert as_stored(model, Plan()).of(Q).weights == scheme
    assert model.summary.cannot_run is None


@pytest.mark.parametrize("settings, inputs", [({}, None), ({"llm_int8_threshold": 0.0}, "int8-token")])
def test_eight_bits(settings: dict[str, Any], inputs: str | None, tmp_path: Path) -> None:
    generator = np.random.default_rng(4)
    codes, scales = generator.integers(-127, 128, (64, 64)), generator.uniform(0.1, 2, 64).astype(np.float32)
    tensors = {W: torch.from_numpy(codes.astype(np.int8)), f"{Q}.SCB": torch.from_numpy(scales),
               f"{Q}.weight_format": torch.tensor(0, dtype=torch.uint8)}  # fmt: skip
    model = opened(tmp_path / "llama", {"quant_method": "bitsandbytes", "load_in_8bit": True, **settings}, tensors)
    assert np.allclose(model.weight(Q).numpy(), codes * scales[:, None] / 127, rtol=1e-6, atol=0)
    assigned = as_stored(model, Plan()).of(Q)
    assert (assigned.weights, assigned.inputs) == ("int8-channel-sfp32", inputs)
    assert any("those of 6 and more in 16 bits" in note for note in model.notes) == (inputs is None)


@pytest.mark.parametrize("change, message", [
    ({f"{W}.quant_map": torch.linspace(-1, 1, 16)}, "has a table of its own"),
    ({f"{W}.quant_map": torch.zeros(8)}, "does not say what bitsandbytes needs|broadcast"),
    ({f"{W}.nested_quant_map": torch.linspace(-1, 1, 256)}, "has a table of its own"),
    ({f"{W}.quant_state.bitsandbytes__nf4": description("nf4", blocksize=48, nested_blocksize=256)}, "blocks of 48"),
    ({f"{W}.quant_state.bitsandbytes__nf4": description("nf4", shape=[64])}, "does not say what bitsandbytes needs"),
    ({f"{W}.quant_state.bitsandbytes__nf4": torch.full((9999,), ord("["), dtype=torch.uint8)}, "does not say what"),
    ({f"{W}.quant_state.bitsandbytes__nf4": torch.zeros(1 << 17, dtype=torch.uint8)}, "no quant_state of nf4 or fp4"),
    ({f"{W}.absmax": torch.zeros(3, dtype=torch.uint8)}, "cannot be read as nf4-b32-dq"),
    ({f"{W}.nested_absmax": torch.zeros(3)}, "take"),
    ({W: torch.zeros(7, 1, dtype=torch.uint8)}, "cannot be read as nf4-b32-dq"),
    ({f"{Q}.SCB": torch.ones(64)}, "in an order of bytes of one kind of GPU"),
])  # fmt: skip
def test_what_does_not_fit_is_one_line(change: dict[str, torch.Tensor], message: str, tmp_path: Path) -> None:
    tensors = four_bits("nf4", True)[1]
    with pytest.raises(NotAModelError, match=message) as refused:
        opened(tmp_path / "llama", {"quant_method": "bitsandbytes"}, {**tensors, **change})
    assert "\n" not in str(refused.value)
