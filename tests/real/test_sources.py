"""Models and data that nobody of this project made: what was measured on them elsewhere comes out here too."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from workbench.models.data.datasets import open_dataset
from workbench.models.layer import LayerKind
from workbench.models.sources import open_model, reopen
from workbench.models.summary import OutputKind

ROOT = Path(__file__).parents[2]
CASES = Path(os.environ.get("WORKBENCH_CASES", ROOT / ".." / "shared" / "cases"))
LLAMA, RESNET = CASES / "llama-260k", CASES / "resnet20-cifar10"
needs_llama = pytest.mark.skipif(not LLAMA.is_dir(), reason=f"the case {LLAMA} is not on this machine")
needs_resnet = pytest.mark.skipif(not RESNET.is_dir(), reason=f"the case {RESNET} is not on this machine")


@needs_llama
def test_llama_layers() -> None:
    summary = open_model(LLAMA).summary
    linear = [layer for layer in summary.stored if layer.kind is LayerKind.LINEAR]
    assert len(linear) == 35
    assert summary.by_name["lm_head"].tied_to == "model.embed_tokens"
    assert summary.by_name["model.embed_tokens"].kind is LayerKind.EMBEDDING
    assert summary.output is OutputKind.TOKEN_LOGITS
    assert summary.parameters == 260_032
    assert not summary.non_finite


@needs_llama
def test_llama_folder_and_file_are_one_model() -> None:
    folder, file = open_model(LLAMA), open_model(LLAMA / "model.safetensors")
    assert folder.summary.fingerprint == file.summary.fingerprint == reopen(folder.summary).summary.fingerprint
    name = "model.layers.2.mlp.down_proj"
    assert torch.equal(folder.weight(name), file.weight(name))
    assert folder.summary.by_name[name] == file.summary.by_name[name] or file.summary.by_name[name].macs is None


@needs_llama
def test_llama_perplexity() -> None:
    model = open_model(LLAMA)
    data = open_dataset(LLAMA / "evaluation_tokens.npy", model, split="evaluation")
    assert len(data) == 256
    nats, count = 0.0, 0
    with torch.no_grad():
        for batch in data.batches(32):
            logits, target = model.run(batch)[:, :-1], batch["input_ids"][:, 1:]
            nats += functional.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="sum").item()
            count += target.numel()
    assert math.exp(nats / count) == pytest.approx(3.6188, abs=5e-5)


@needs_resnet
def test_resnet_top1() -> None:
    model = open_model(Path(__file__).with_name("resnet20.py"), weights=RESNET / "model.safetensors", trust=True)
    assert [layer.kind for layer in model.summary.layers].count(LayerKind.CONV2D) == 19
    assert model.summary.output is OutputKind.CLASS_LOGITS
    data = open_dataset(RESNET / "evaluation.npz", model, split="evaluation")
    with torch.no_grad():
        hits = sum(int((model.run(batch).argmax(1) == batch["labels"]).sum()) for batch in data.batches(200))
    assert 100 * hits / len(data) == pytest.approx(81.80)
