"""Settings for every test: no spinning threads (they stall a busy machine), no hub, no display; a tiny Llama."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("WORKBENCH_LOG_FOLDER", str(Path(tempfile.gettempdir()) / "workbench-tests-log"))
os.environ.setdefault("WORKBENCH_CACHE_FOLDER", "")


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Hugging Face folder with a Llama of two blocks, 32 wide, 96 tokens."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("llama")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=96, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=False,
    )  # fmt: skip
    network = LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() == 2:
                parameter.mul_(6.0)  # far enough from uniform that quantization shows
    network.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 windows of 16 tokens."""
    file = tmp_path_factory.mktemp("data") / "tokens.npy"
    np.save(file, np.random.default_rng(0).integers(0, 96, (24, 16)))
    return file


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory, llama: Path) -> Path:
    """The Llama's weights alone."""
    file = tmp_path_factory.mktemp("bare") / "weights.safetensors"
    file.write_bytes((llama / "model.safetensors").read_bytes())
    return file
