"""Half-precision matrices are fitted, encoded and decoded without a float32 copy of the whole."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.compiled import output_memory

SIDE = 4096
COPY = 4 * SIDE * SIDE
RESET = Path("/proc/self/clear_refs")  # writing 5 resets the peak of the resident memory (Linux)
NAMES = (
    "bf16",
    "fp16", "int4-g32", "int3-g64-asym", "int4-g64-asym-zfp16", "int4-b128x128", "int8-channel", "int8-tensor",
    "fp8-e4m3-channel", "fp8-e4m3-b128x128", "fp6-e3m2-g32", "mxfp4", "mxint8", "nvfp4", "nf4-b64", "nf4-b64-dq",
    "q4_0", "q5_1", "q8_0", "q3_k", "q4_k", "mxfp4-gguf", "tq1_0",
)  # fmt: skip


def resident(entry: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(entry)).split()[1])


def grown(action: Callable[[], Any], allowed: float = 0.0) -> tuple[Any, int]:
    """Return what ``action`` returns and how far the resident memory rose above its start meanwhile, in bytes.

    The least of up to three tries, none after one within ``allowed``: the rest of the process (freed memory that goes
    back late, other threads) only adds.
    """
    rises: list[int] = []
    while len(rises) < 3 and (not rises or rises[-1] > allowed):
        output_memory._waiting.clear()
        gc.collect()
        RESET.write_text("5")
        before = resident("VmRSS")
        result = action()
        rises.append(resident("VmHWM") - before)
    return result, min(rises)


@pytest.fixture(scope="module", autouse=True)
def nothing_old_is_searched() -> Iterator[None]:
    """Keep the objects of the tests before out of the garbage collections here: each would take a third of a second."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="module")
def weight() -> torch.Tensor:
    values = torch.randn(64, SIDE, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    return values.repeat(SIDE // 64, 1)


@pytest.mark.skipif(not RESET.exists(), reason="the peak of the resident memory is read from Linux's /proc")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_the_peak_stays_below_a_float32_copy(name: str, dtype: torch.dtype, weight: torch.Tensor) -> None:
    """Encoding may hold a byte for each code, a quarter of the copy, before it packs them; the rest is slack."""
    scheme, exact = parse_scheme(name), weight.to(dtype)
    scheme.encode(exact[:256], scheme.fit(exact[:256]))  # compile
    parameters, while_fitting = grown(lambda: scheme.fit(exact), 0.35 * COPY)
    assert while_fitting < 0.35 * COPY
    allowed = scheme.bits((SIDE, SIDE)) / 8 + 0.3 * COPY
    stored, while_encoding = grown(lambda: scheme.encode(exact, parameters), allowed)
    assert while_encoding < stored.nbytes + 0.3 * COPY
    _, while_decoding = grown(lambda: scheme.decode(stored), 1.25 * COPY)
    assert while_decoding < 1.25 * COPY


@pytest.mark.skipif(not RESET.exists(), reason="the peak of the resident memory is read from Linux's /proc")
def test_the_measure_sees_a_copy(weight: torch.Tensor) -> None:
    _, peak = grown(lambda: weight.to(torch.float32).sum())
    assert 0.9 * COPY < peak < 1.5 * COPY
