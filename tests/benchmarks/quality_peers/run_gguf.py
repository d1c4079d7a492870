"""gguf: llama.cpp's blocks of 32 as its Python package writes them (it has no encoder of the K-quants)."""

from __future__ import annotations

import numpy as np
import torch
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize
from measure import Quantized, Task, Work, main, replace_weights

BITS = {"Q4_0": 4.5, "Q4_1": 5.0, "Q5_0": 5.5, "Q5_1": 6.0, "Q8_0": 8.5}


def blocks(name: str) -> Work:
    """Return the work of one row."""
    kind = GGMLQuantizationType[name]

    def rounded(weight: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.array(dequantize(quantize(weight.numpy(), kind), kind)))

    def quantized(task: Task) -> Quantized:
        return Quantized(model=replace_weights(task.padded(32), rounded), bits=BITS[name])

    return quantized


if __name__ == "__main__":
    main({name: blocks(name) for name in BITS})
