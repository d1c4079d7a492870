"""A tiny Llama on disk with token windows, and the same made weights-only; built once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


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
