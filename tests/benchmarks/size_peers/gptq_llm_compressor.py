"""llm-compressor's GPTQ: INT4 in groups of 64, asymmetric, every linear layer but the head."""

from __future__ import annotations

from pathlib import Path

import torch
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from cost import BATCH, main
from datasets import Dataset
from llmcompressor import oneshot
from llmcompressor.modifiers.gptq import GPTQModifier
from torch import nn

SCHEME = QuantizationScheme(
    targets=["Linear"], weights=QuantizationArgs(num_bits=4, strategy="group", group_size=64, symmetric=False)
)


def gptq(model: nn.Module, windows: torch.Tensor, folder: Path, iterations: int) -> nn.Module:
    """Quantize block by block, as is its default for a decoder."""
    rows = windows.tolist()
    data = Dataset.from_dict({"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]})
    oneshot(
        model=model, dataset=data, recipe=GPTQModifier(config_groups={"all": SCHEME}, ignore=["lm_head"]),
        num_calibration_samples=len(rows), max_seq_length=windows.shape[1], batch_size=BATCH,
        shuffle_calibration_samples=False,
    )  # fmt: skip
    return model


if __name__ == "__main__":
    main(gptq)
