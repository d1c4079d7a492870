"""optimum-quanto: its integer types for weights, frozen; 4 bits go in groups of 128 or fewer."""

from __future__ import annotations

import torch
from measure import Quantized, Task, Work, main, replace_weights
from optimum.quanto import MaxOptimizer, qint2, qint4, quantize_weight


def integers(bits: int, group: int) -> Work:
    """Return the work of one row: FP16 scale and FP16 shift for each group."""
    kind = {2: qint2, 4: qint4}[bits]

    def rounded(weight: torch.Tensor) -> torch.Tensor:
        scale, shift = MaxOptimizer()(weight, kind, 0, group)
        result: torch.Tensor = quantize_weight(weight, kind, 0, scale, shift, group).dequantize()
        return result

    def quantized(task: Task) -> Quantized:
        return Quantized(model=replace_weights(task.padded(group), rounded), bits=bits + 32 / group)

    return quantized


if __name__ == "__main__":
    main({"int4-g64": integers(4, 64), "int4-g32": integers(4, 32), "int2-g32": integers(2, 32)})
