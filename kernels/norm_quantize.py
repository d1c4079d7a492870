"""RMS normalization fused with quantization per token: what feeds a W8A8 or FP8 projection of a transformer block.

``x * weight / sqrt(mean(x^2) + epsilon) ~ scale[token] * code``, codes INT8 or E4M3.
"""

from __future__ import annotations

import torch

from .errors import ArgumentError
from .launch import (
    FLOATS,
    CudaOp,
    Executor,
    Float,
    Int,
    Launch,
    Problem,
    check_choice,
    check_multiple,
    check_tensor,
    drawn,
    nbytes,
)
from .source import CudaSource

DTYPES = (torch.float16, torch.bfloat16)
CODES = {torch.int8: ("int8", 127.0), torch.float8_e4m3fn: ("e4m3", 448.0)}
SOURCE = CudaSource(
    file="norm_quantize.cu",
    entries=tuple(f"norm_quantize_{code}_{FLOATS[dtype]}" for code, _ in CODES.values() for dtype in DTYPES),
)


def norm_quantize(
    x: torch.Tensor, weight: torch.Tensor, codes: torch.dtype, epsilon: float = 1e-5, *, on: Executor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return codes ``[tokens, columns]`` and float32 scales ``[tokens]`` of ``x`` ``[tokens, columns]`` and ``weight``
    ``[columns]``, both float16 or both bfloat16; columns a multiple of 8.  Raises ArgumentError."""
    check_choice("codes", codes, tuple(CODES))
    check_tensor("x", x, on, DTYPES, (None, None))
    tokens, columns = x.shape
    check_multiple("columns", columns, 8)
    check_tensor("weight", weight, on, (x.dtype,), (columns,))
    if not epsilon > 0:
        raise ArgumentError(f"epsilon is {epsilon}; expected a positive number")
    made, scales = on.empty((tokens, columns), torch.uint8), on.empty((tokens,), torch.float32)
    on.run(SOURCE, Launch(
        entry=f"norm_quantize_{CODES[codes][0]}_{FLOATS[x.dtype]}", grid=(tokens, 1, 1), block=256,
        arguments=(x, weight, made, scales, Int(columns), Float(epsilon)),
    ))  # fmt: skip
    return made.view(codes), scales


def reference(
    x: torch.Tensor, weight: torch.Tensor, codes: torch.dtype, epsilon: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute the same with torch; the norm in float64, the codes in float32 as the kernel does."""
    largest_code = CODES[codes][1]
    product = x.float() * weight.float()
    step = product.abs().amax(1) / largest_code
    step = torch.where(step >= torch.finfo(torch.float32).tiny, step, 0)
    scaled = product * torch.where(step > 0, 1 / step, 0)[:, None]
    made = scaled.round().clamp(-127, 127) if codes == torch.int8 else scaled.clamp(-largest_code, largest_code)
    norm = (x.double().square().mean(1) + epsilon).sqrt()
    return made.to(codes), step.double() / norm


def prepare(
    on: Executor, seed: int, *, tokens: int, columns: int, codes: torch.dtype, dtype: torch.dtype = torch.float16
) -> Problem:
    """Draw activations with one large value, as real ones have; the first token is zero if there are several."""
    x, weight = drawn(on, seed, tokens, columns, dtype=dtype), drawn(on, seed + 1, columns, dtype=dtype)
    x[-1, columns // 2] = 40
    if tokens > 1:
        x[0] = 0

    def launch() -> tuple[torch.Tensor, ...]:
        made, scales = norm_quantize(x, weight, codes, on=on)
        return made.view(torch.uint8), scales

    def expected() -> tuple[torch.Tensor, ...]:
        made, scales = reference(x, weight, codes, 1e-5)
        return made.view(torch.uint8), scales

    return Problem(
        launch=launch, reference=expected, read=nbytes(x, weight), written=tokens * (columns + 4),
        operations=6 * x.numel(),
    )  # fmt: skip


OP = CudaOp(
    name="norm quantize", source=SOURCE, tolerance=1e-5, prepare=prepare,
    note="RMS normalization and quantization per token, INT8 or E4M3",
    variants=(
        {"tokens": 1, "columns": 8, "codes": torch.int8}, {"tokens": 3, "columns": 2088, "codes": torch.float8_e4m3fn},
        {"tokens": 5, "columns": 520, "codes": torch.int8, "dtype": torch.bfloat16},
        {"tokens": 2, "columns": 4096, "codes": torch.float8_e4m3fn, "dtype": torch.bfloat16},
    ),
    sizes=tuple({"tokens": t, "columns": 8192, "codes": torch.int8, "dtype": torch.bfloat16} for t in (1, 128, 8192)),
)  # fmt: skip
