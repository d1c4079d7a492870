"""The accelerator of these tests, and small models to run on it.

It is the pretend one, or the device that the environment names: ``WORKBENCH_TEST_DEVICE=cuda:0 pytest tests/devices``.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from tests.devices import pretend

NAMED = os.environ.get("WORKBENCH_TEST_DEVICE", "")
DEVICE = NAMED or f"{pretend.NAME}:0"

NETWORK = """
from torch import nn

def build():
    return nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU(),
        nn.Conv2d(6, 8, 3, padding=1, groups=2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 5),
    )
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run these tests first: torch counts the devices at its first backward pass and knows none that come later."""
    here = Path(__file__).parent
    items.sort(key=lambda item: not item.path.is_relative_to(here))


@pytest.fixture(scope="session")
def accelerator(pytestconfig: pytest.Config) -> str:
    """The name of the device: the pretend accelerator is built where there is a compiler."""
    if NAMED:
        return NAMED
    if pretend.compiler() is None:
        pytest.skip("the pretend accelerator needs a C++ compiler (c++, g++ or clang++)")
    cache: pytest.Cache | None = getattr(pytestconfig, "cache", None)
    folder = Path(tempfile.gettempdir()) / "workbench-tests-device" if cache is None else cache.mkdir("pretend-device")
    pretend.install(Path(folder))
    return DEVICE


@pytest.fixture(autouse=True)
def one_attention() -> Iterator[None]:
    """The CPU's fused attention rounds in another order than the products that the accelerator runs one by one."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH):
        yield


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model with data; ``opened(device)`` and ``calibrated(device)`` are made once."""

    name: str
    path: Path
    data: Path
    dtype: str
    schemes: tuple[str, ...]
    opened: Callable[[str], wb.Model]
    calibrated: Callable[[str], wb.Session]


def _case(name: str, path: Path, data: Path, dtype: str, schemes: tuple[str, ...]) -> Case:
    @cache
    def opened(device: str) -> wb.Model:
        return wb.open(path, trust=True, device=device, dtype=dtype)

    @cache
    def calibrated(device: str) -> wb.Session:
        return wb.calibrate(opened(device), data, samples=8, batch_size=4)

    return Case(
        name=name, path=path, data=data, dtype=dtype, schemes=schemes, opened=opened, calibrated=calibrated
    )  # fmt: skip


@pytest.fixture(scope="session")
def cases(llama: Path, tokens: Path, tmp_path_factory: pytest.TempPathFactory, accelerator: str) -> dict[str, Case]:
    """A small Llama in float32, the same in bfloat16, and a convolutional network."""
    import torch
    from transformers import LlamaForCausalLM

    folder = tmp_path_factory.mktemp("devices")
    half = folder / "half"
    LlamaForCausalLM.from_pretrained(llama, dtype=torch.bfloat16).save_pretrained(half)
    network, images = folder / "images.py", folder / "images.npz"
    network.write_text(NETWORK)
    draw = np.random.default_rng(0)
    np.savez(images, inputs=draw.normal(size=(40, 1, 8, 8)).astype("float32"), labels=draw.integers(0, 5, 40))
    schemes = ("int8-channel", "int4-g16-asym")
    made = (
        _case("llama", llama, tokens, "float32", schemes),
        _case("half", half, tokens, "stored", schemes),
        _case("convolutional", network, images, "float32", ("int8-channel", "int4-channel")),
    )
    return {case.name: case for case in made}
