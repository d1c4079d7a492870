"""AutoRound's SignRound: INT4 in groups of 64, asymmetric, every linear layer but the head."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("AR_DISABLE_DATASET_SUBPROCESS", "1")

import torch
from auto_round import AutoRound
from auto_round.calib_dataset import register_dataset
from auto_round.schemes import QuantizationScheme
from cost import BATCH, main
from datasets import Dataset
from torch import nn
from transformers import AutoTokenizer

NAME = "windows"


def sign_round(model: nn.Module, windows: torch.Tensor, folder: Path, iterations: int) -> nn.Module:
    """Learn the rounding block by block with its defaults, but for the data and the iterations."""
    rows = windows.tolist()

    @register_dataset(NAME)  # type: ignore[untyped-decorator]
    def _windows(**_: Any) -> Dataset:
        return Dataset.from_dict({"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]})

    work = AutoRound(
        model, AutoTokenizer.from_pretrained(folder),
        scheme=QuantizationScheme(bits=4, group_size=64, sym=False, data_type="int"), dataset=NAME, iters=iterations,
        nsamples=len(rows), seqlen=windows.shape[1], batch_size=BATCH, device_map="cpu", enable_torch_compile=False,
        low_cpu_mem_usage=False, seed=0,
    )  # fmt: skip
    result: nn.Module
    result, _ = work.quantize()
    return result


if __name__ == "__main__":
    main(sign_round)
