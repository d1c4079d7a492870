"""Calibration, GPTQ and exports of a model of 55 million weights under a limit that the system enforces."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA is Linux's")]

LIMIT = 520_000_000
"""torch and transformers take 290 MB; the weights would take 220 MB in float32, and quantized ones as much again."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    place = tmp_path_factory.mktemp("limited")
    config = transformers.LlamaConfig(
        hidden_size=512, intermediate_size=1408, num_hidden_layers=12, num_attention_heads=8, vocab_size=16_000
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        transformers.LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(place / "model")
    np.save(place / "tokens.npy", np.random.default_rng(0).integers(0, 16_000, (4, 64)))
    ended = child(place, "calibrate")
    assert not ended.returncode, ended.stderr[-2000:]
    return place


def child(folder: Path, step: str, *words: str) -> subprocess.CompletedProcess[str]:
    script = str(Path(__file__).with_name("hard_limit.py"))
    words = (sys.executable, script, str(folder), step, str(LIMIT), *words)
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.parametrize("step", ["gptq", "safetensors", "gguf"])
def test_a_step_ends_within_its_limit(step: str, folder: Path) -> None:
    ended = child(folder, step)
    assert not ended.returncode, ended.stderr[-2000:]
    assert step == "gptq" or (folder / f"written.{step}").stat().st_size > 20_000_000


def test_without_being_told_of_the_limit_a_step_runs_into_it(folder: Path) -> None:
    """Else the other tests would show nothing."""
    ended = child(folder, "gptq", "untold")
    assert ended.returncode and ("alloc" in ended.stderr or "memory" in ended.stderr), ended.stderr[-2000:]
