"""What the scripts of both peers share: passes, peak memory and divergence of one quantization.

Runs in the peer's own environment:

    python gptq_llm_compressor.py --model FOLDER --calibration C.npy --evaluation E.npy

The last line of the output is JSON: CPU seconds in bare passes over the calibration windows, the peak of resident
memory in bytes, KL in nats per token.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

BATCH = 8

Work = Callable[[nn.Module, torch.Tensor, Path, int], nn.Module]
"""Quantizes the linear layers of a model by the calibration windows; takes the model's folder and the iterations."""


def load(folder: Path) -> nn.Module:
    """Return the model in float32."""
    from transformers import AutoModelForCausalLM

    model: nn.Module = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model.eval()


@torch.no_grad()
def bare_pass(model: nn.Module, windows: torch.Tensor) -> float:
    """Return the CPU seconds of one forward pass over the windows."""
    start = time.process_time()
    for batch in torch.split(windows, BATCH):
        model(input_ids=batch, use_cache=False)
    return time.process_time() - start


@torch.no_grad()
def divergence(reference: nn.Module, model: nn.Module, windows: torch.Tensor) -> float:
    """Return KL(reference || model), the mean over all positions."""
    total = 0.0
    for batch in torch.split(windows, 1):
        p, q = (each(input_ids=batch, use_cache=False).logits.float().log_softmax(-1) for each in (reference, model))
        total += float((p.exp() * (p - q)).sum(dtype=torch.float64))
    return total / windows.numel()


def main(work: Work) -> None:
    """Quantize, measure, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--calibration", type=Path, required=True)
    parser.add_argument("--evaluation", type=Path, required=True)
    parser.add_argument("--iterations", type=int, default=200)
    options = parser.parse_args()
    torch.manual_seed(0)
    calibration, evaluation = (
        torch.from_numpy(np.load(file).astype(np.int64)) for file in (options.calibration, options.evaluation)
    )
    model = load(options.model)
    bare = bare_pass(model, calibration)
    start = time.process_time()
    model = work(model, calibration, options.model, options.iterations)
    passes = (time.process_time() - start) / bare
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    kl = divergence(load(options.model), model.float().eval(), evaluation)
    print("\n" + json.dumps({"passes": passes, "peak": peak, "kl": kl}))
