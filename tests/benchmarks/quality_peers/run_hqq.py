"""HQQ: half-quadratic optimisation of the zero points, which are FP16 like the scales."""

from __future__ import annotations

import torch
from hqq.core.quantize import Quantizer
from measure import Quantized, Task, Work, main, replace_weights


def half_quadratic(bits: int, group: int) -> Work:
    """Return the work of one row."""

    def rounded(weight: torch.Tensor) -> torch.Tensor:
        packed, meta = Quantizer.quantize(
            weight, nbits=bits, group_size=group, optimize=True, axis=1, device="cpu", compute_dtype=torch.float32
        )
        result: torch.Tensor = Quantizer.dequantize(packed, meta)
        return result

    def quantized(task: Task) -> Quantized:
        return Quantized(model=replace_weights(task.padded(group), rounded), bits=bits + 32 / group)

    return quantized


if __name__ == "__main__":
    main({
        "int3-g64": half_quadratic(3, 64), "int3-g32": half_quadratic(3, 32), "int4-g64": half_quadratic(4, 64),
        "int4-g32": half_quadratic(4, 32),
    })  # fmt: skip
