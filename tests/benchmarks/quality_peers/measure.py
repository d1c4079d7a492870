"""What every peer's script shares: the model, its padding, the windows and the divergence from floating point.

Runs in the peers' own environment, by hand as well:

    python run_torchao.py --model FOLDER --calibration C.npy --evaluation E.npy --row int4-g64-asym

The last line of the output is JSON: bits per weight, KL in nats per token, perplexity, seconds.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

BATCH = 16

Work = Callable[["Task"], "Quantized"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A copy of the model in FP32 to quantize (``multiple``: its MLP padded to a multiple), its folder, the windows
    (int64 ``[windows, tokens]``) of the calibration split."""

    model: nn.Module
    folder: Path
    calibration: torch.Tensor

    def padded(self, multiple: int) -> nn.Module:
        """Return the model with its MLP's width filled up with zeros to a multiple: an equivalent model."""
        return pad(self.model, multiple)


@dataclass(frozen=True, kw_only=True, eq=False)
class Quantized:
    """A quantized model and its bits per weight, scales and zero points counted, padding not."""

    model: nn.Module
    bits: float


def linear(model: nn.Module) -> Iterator[tuple[str, nn.Linear]]:
    """Yield the linear layers but the head, which is tied to the embedding."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and name != "lm_head":
            yield name, module


def affine_bits(bits: int, group: int, zero_bits: int) -> float:
    """Return bits per weight of integers with an FP16 scale and a zero point of so many bits for each group."""
    return bits + (16 + zero_bits) / group


def mean_bits(model: nn.Module, bits: Mapping[str, float]) -> float:
    """Return bits per weight of the whole model, each layer's weights counting."""
    counts = {name: module.weight.numel() for name, module in linear(model)}
    return sum(counts[name] * each for name, each in bits.items()) / sum(counts.values())


def replace_weights(model: nn.Module, rounded: Callable[[torch.Tensor], torch.Tensor]) -> nn.Module:
    """Give every linear layer the weight that ``rounded`` makes of it ``[rows, columns]``."""
    with torch.no_grad():
        for _, module in linear(model):
            module.weight.copy_(rounded(module.weight.detach().clone()))
    return model


def pad(model: nn.Module, multiple: int) -> nn.Module:
    """Fill gate, up (rows) and down (columns) up with zeros."""
    config: Any = model.config
    width = int(config.intermediate_size)
    expected = math.ceil(width / multiple) * multiple
    if expected == width:
        return model
    for name, module in list(linear(model)):
        rows, columns = module.weight.shape
        if width not in (rows, columns):
            continue
        wide = nn.Linear(expected if columns == width else columns, expected if rows == width else rows, bias=False)
        with torch.no_grad():
            wide.weight.zero_()
            wide.weight[:rows, :columns] = module.weight
        model.set_submodule(name, wide)
    config.intermediate_size = expected
    return model


def load(folder: Path) -> nn.Module:
    """Return the model in FP32."""
    from transformers import AutoModelForCausalLM

    model: nn.Module = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model.eval()


@torch.no_grad()
def divergence(reference: nn.Module, model: nn.Module, windows: torch.Tensor) -> tuple[float, float]:
    """Return KL(reference || model), the mean over all positions, and the model's perplexity over all but the first."""
    kl = nll = tokens = targets = 0.0
    for batch in torch.split(windows, BATCH):
        p = reference(input_ids=batch, use_cache=False).logits.double().log_softmax(-1)
        q = model(input_ids=batch, use_cache=False).logits.double().log_softmax(-1)
        kl += float((p.exp() * (p - q)).sum())
        nll -= float(q[:, :-1].gather(-1, batch[:, 1:, None]).sum())
        tokens += batch.numel()
        targets += batch[:, 1:].numel()
    return kl / tokens, math.exp(nll / targets)


def main(rows: Mapping[str, Work]) -> None:
    """Quantize by one of ``rows``, measure, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--calibration", type=Path, required=True)
    parser.add_argument("--evaluation", type=Path, required=True)
    parser.add_argument("--row", required=True, choices=sorted(rows))
    options = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    torch.manual_seed(0)
    reference = load(options.model)
    calibration, evaluation = (
        torch.from_numpy(np.load(file).astype(np.int64)) for file in (options.calibration, options.evaluation)
    )
    start = time.perf_counter()
    task = Task(model=copy.deepcopy(reference), folder=options.model, calibration=calibration)
    quantized = rows[options.row](task)
    seconds = time.perf_counter() - start
    kl, perplexity = divergence(reference, quantized.model, evaluation)
    result: dict[str, Any] = {"bits": quantized.bits, "kl": kl, "perplexity": perplexity, "seconds": seconds}
    print("\n" + json.dumps(result))
