"""torchao: integers with a scale and a zero point for each group, to nearest."""

from __future__ import annotations

import torch
from measure import Quantized, Task, Work, affine_bits, main
from torch import nn
from torchao.quantization import IntxWeightOnlyConfig, quantize_
from torchao.quantization.granularity import PerGroup
from torchao.quantization.quant_primitives import MappingType


def integers(bits: int, group: int, symmetric: bool) -> Work:
    """Return the work of one row."""

    def quantized(task: Task) -> Quantized:
        model = task.padded(group)
        mapping = MappingType.SYMMETRIC if symmetric else MappingType.ASYMMETRIC
        config = IntxWeightOnlyConfig(
            weight_dtype=getattr(torch, f"int{bits}"), granularity=PerGroup(group), mapping_type=mapping
        )
        quantize_(model, config, lambda module, name: isinstance(module, nn.Linear) and name != "lm_head")
        return Quantized(model=model, bits=affine_bits(bits, group, 0 if symmetric else bits))

    return quantized


if __name__ == "__main__":
    main({
        "int3-g64-asym": integers(3, 64, False), "int3-g32-asym": integers(3, 32, False),
        "int4-g64-asym": integers(4, 64, False), "int4-g32-sym": integers(4, 32, True),
        "int4-g32-asym": integers(4, 32, False), "int5-g64-asym": integers(5, 64, False),
    })  # fmt: skip
