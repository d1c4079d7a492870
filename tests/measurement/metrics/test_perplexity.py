"""Perplexity with a stride, against the sliding window of transformers' documentation."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.zoo.architectures import save
from workbench.measurement.evaluate import evaluate
from workbench.models.data.datasets import open_dataset
from workbench.models.sources import open_model

CONTEXT = 16


def sliding(folder: Path, stream: np.ndarray, stride: int) -> float:
    """Return the perplexity by windows of CONTEXT tokens, ``stride`` apart, each scoring what none before has.

    https://huggingface.co/docs/transformers/perplexity; each window's mean loss counts by its labels, of which the
    model drops the first of all.
    """
    from transformers import AutoModelForCausalLM

    network = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32).eval()
    ids, total, count, before = torch.from_numpy(stream)[None], 0.0, 0, 0
    for begin in range(0, len(stream), stride):
        end = min(begin + CONTEXT, len(stream))
        window = ids[:, begin:end]
        labels = window.clone()
        labels[:, : -(end - before)] = -100
        with torch.no_grad():
            loss = network(window, labels=labels).loss
        scored = int((labels[:, 1:] != -100).sum())
        total, count, before = total + float(loss) * scored, count + scored, end
        if end == len(stream):
            break
    return math.exp(total / count)


@pytest.mark.parametrize("stride", [3, 8, 16])
def test_a_stride_gives_the_sliding_windows_perplexity(tmp_path: Path, stride: int) -> None:
    save(tmp_path / "model", "LlamaForCausalLM")
    stream = np.random.default_rng(0).integers(4, 96, CONTEXT + 9 * stride)
    np.save(tmp_path / "ids.npy", stream)
    model = open_model(tmp_path / "model")
    data = open_dataset(f"{tmp_path}/ids.npy?window={CONTEXT}&stride={stride}", model)
    metric = evaluate(model, model.with_weights({}), data, batch_size=3)["perplexity"]
    assert metric.value == metric.baseline == pytest.approx(sliding(tmp_path / "model", stream, stride), rel=1e-5)
