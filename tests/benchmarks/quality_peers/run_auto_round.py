"""auto-round: SignRound on one scheme for all layers, and AutoScheme's mixed plans with SignRound after it.

Layers whose width is not a multiple of the group stay in 16 bits there without a word, so the model is padded.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("AR_DISABLE_DATASET_SUBPROCESS", "1")

import torch
from auto_round import AutoRound, AutoScheme
from auto_round.calib_dataset import register_dataset
from auto_round.schemes import QuantizationScheme
from datasets import Dataset
from measure import Quantized, Task, Work, affine_bits, linear, load, main, mean_bits
from torch import nn
from transformers import AutoTokenizer, PreTrainedTokenizerFast

GROUP, STEPS, NAME = 64, 200, "windows"


def scheme(bits: int) -> QuantizationScheme:
    """Return asymmetric integers in groups."""
    return QuantizationScheme(bits=bits, group_size=GROUP, sym=False, data_type="int")


def registered(windows: torch.Tensor) -> str:
    """Register the calibration windows as a data set of auto-round's, which wants a name; return it."""
    rows = windows.tolist()

    @register_dataset(NAME)  # type: ignore[untyped-decorator]
    def _windows(**_: Any) -> Dataset:
        return Dataset.from_dict({"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]})

    return NAME


def tokenizer_of(task: Task) -> Any:
    """Return the model's tokenizer, or a bare one: the data are tokens already."""
    try:
        return AutoTokenizer.from_pretrained(task.folder)
    except (OSError, ValueError):
        from tokenizers import Tokenizer
        from tokenizers.models import WordLevel

        bare: Any = PreTrainedTokenizerFast
        return bare(tokenizer_object=Tokenizer(WordLevel({"?": 0}, unk_token="?")))


def rounded(task: Task, model: nn.Module, chosen: Any, steps: int) -> nn.Module:
    """Quantize and return the model with dequantized weights.

    It goes through a folder: auto-round loads a model anew from where it came, and would lose the padding.
    """
    windows, folder = task.calibration, tempfile.mkdtemp()
    saving: Any = model
    saving.save_pretrained(folder)
    padded = load(Path(folder))
    work = AutoRound(
        padded, tokenizer_of(task), scheme=chosen, dataset=registered(windows), iters=steps, nsamples=len(windows),
        seqlen=windows.shape[1], batch_size=8, device_map="cpu", enable_torch_compile=False, low_cpu_mem_usage=False,
        seed=0,
    )  # fmt: skip
    actual, _ = work.quantize()
    result: nn.Module = actual.float()
    return result


def spent(model: nn.Module) -> float:
    """Return bits per weight from what each layer was given."""
    each = {}
    for name, module in linear(model):
        bits = int(getattr(module, "bits", 16))
        each[name] = float(bits) if bits >= 16 else affine_bits(bits, int(module.group_size), bits)
    result: float = mean_bits(model, each)
    return result


def uniform(bits: int) -> Work:
    """Return SignRound of all layers."""

    def quantized(task: Task) -> Quantized:
        model = rounded(task, task.padded(GROUP), scheme(bits), STEPS)
        return Quantized(model=model, bits=spent(model))

    return quantized


def mixed(bits: float, steps: int = STEPS) -> Work:
    """Return AutoScheme's choice among 2, 3, 4 and 8 bits."""

    def quantized(task: Task) -> Quantized:
        options = tuple(scheme(width) for width in (2, 3, 4, 8))
        model = rounded(task, task.padded(GROUP), AutoScheme(avg_bits=bits, options=options), steps)
        return Quantized(model=model, bits=spent(model))

    return quantized


if __name__ == "__main__":
    main({
        "int2-g64": uniform(2), "int3-g64": uniform(3), "int4-g64": uniform(4), "scheme-3.0": mixed(3.0),
        "scheme-4.0": mixed(4.0), "scheme-5.0": mixed(5.0), "scheme-4.0-rounding": mixed(4.0, 0),
    })  # fmt: skip
