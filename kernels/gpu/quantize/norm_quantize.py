"""RMS normalization fused with quantization per token: what feeds a projection of a transformer block.

``x * weight / sqrt(mean(x^2) + epsilon) ~ scale[token] * code``, codes INT8 or E4M3; or the values themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...build.source import CudaSource
from ...errors import ArgumentError
from ..contract import check_choice, check_matrix, check_tensor
from ..exact import divided
from ..launch import FLOATS, CudaOp, Executor, Float, Int, Launch, Problem, drawn, nbytes

DTYPES = (torch.float16, torch.bfloat16)
CODES = {torch.int8: ("int8", 127.0), torch.float8_e4m3fn: ("e4m3", 448.0)}
SOURCE = CudaSource(
    file="norm_quantize.cu",
    entries=(
        *(f"norm_quantize_{code}_{FLOATS[dtype]}" for code, _ in CODES.values() for dtype in DTYPES),
        *(f"norm_{FLOATS[dtype]}" for dtype in DTYPES),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Activations ``[tokens, columns]``: codes with float32 ``scales`` ``[tokens]``, or plain values without."""

    values: torch.Tensor
    scales: torch.Tensor | None

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Return the tensors there are, codes as bytes."""
        return (self.values,) if self.scales is None else (self.values.view(torch.uint8), self.scales)

    def decoded(self) -> torch.Tensor:
        """Return the values in float64."""
        exact = self.values.double()
        return exact if self.scales is None else exact * self.scales.double()[:, None]


def norm_quantize(
    x: torch.Tensor, weight: torch.Tensor, codes: torch.dtype | None, epsilon: float = 1e-5, *,
    delta: torch.Tensor | None = None, on: Executor,
) -> tuple[Rows, torch.Tensor]:  # fmt: skip
    """Return the normalized rows of ``x`` ``[tokens, columns]`` and what was normalized.

    ``x`` and ``weight`` ``[columns]`` are both float16 or both bfloat16; columns a multiple of 8; ``codes`` int8,
    float8_e4m3fn or None for plain values.  With ``delta``, of the shape of ``x``, the sum of both takes the place of
    ``x`` and is the second result, rounded to the dtype; without, ``x`` is.  Raises ArgumentError.
    """
    check_choice("codes", codes, (*CODES, None))
    tokens, columns = check_matrix("x", x, on, DTYPES, 8)
    check_tensor("weight", weight, on, (x.dtype,), (columns,))
    if delta is not None:
        check_tensor("delta", delta, on, (x.dtype,), (tokens, columns))
    if not epsilon > 0:
        raise ArgumentError(f"epsilon is {epsilon}; expected a positive number")
    total = x if delta is None else on.empty((tokens, columns), x.dtype)
    rows = empty_rows(tokens, columns, x.dtype, codes, on)
    entry = f"norm_{FLOATS[x.dtype]}" if codes is None else f"norm_quantize_{CODES[codes][0]}_{FLOATS[x.dtype]}"
    outputs = (rows.values,) if rows.scales is None else (rows.values, rows.scales)
    on.run(SOURCE, Launch(
        entry=entry, grid=(tokens, 1, 1), block=256,
        arguments=(x, delta, total, weight, *outputs, Int(columns), Float(epsilon)),
    ))  # fmt: skip
    return rows, total


def empty_rows(tokens: int, columns: int, dtype: torch.dtype, codes: torch.dtype | None, on: Executor) -> Rows:
    """Return memory for rows: of ``codes``, or of ``dtype`` if that is None."""
    if codes is None:
        return Rows(values=on.empty((tokens, columns), dtype), scales=None)
    values = on.empty((tokens, columns), torch.uint8).view(codes)
    return Rows(values=values, scales=on.empty((tokens,), torch.float32))


def reference(
    x: torch.Tensor, weight: torch.Tensor, codes: torch.dtype | None, epsilon: float
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Compute the same with torch; the norm in float64, the codes in float32 as the kernel does."""
    if codes is None:
        return exact_norm(x, weight, epsilon).to(x.dtype), None
    norm = (x.double().square().mean(1) + epsilon).sqrt()
    product = x.float() * weight.float()
    made, step = quantized_rows(product, codes)
    return made, step.double() / norm


def exact_norm(x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
    """Return the normalized rows in float64."""
    return x.double() * weight.double() / (x.double().square().mean(1, keepdim=True) + epsilon).sqrt()


def quantized_rows(x: torch.Tensor, codes: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return codes and scales ``[tokens]`` of float32 ``x`` as the kernels make them."""
    largest_code = CODES[codes][1]
    step = divided(x.abs().amax(1), largest_code)
    step = torch.where(step >= torch.finfo(torch.float32).tiny, step, 0)
    scaled = x * torch.where(step > 0, 1 / step, 0)[:, None]
    made = scaled.round().clamp(-127, 127) if codes == torch.int8 else scaled.clamp(-largest_code, largest_code)
    return made.to(codes), step


def prepare(
    on: Executor, seed: int, *, tokens: int, columns: int, codes: torch.dtype | None,
    dtype: torch.dtype = torch.float16, delta: bool = False,
) -> Problem:  # fmt: skip
    """Draw activations with one large value, as real ones have; the first token is zero if there are several."""
    x, weight = drawn(on, seed, tokens, columns, dtype=dtype), drawn(on, seed + 1, columns, dtype=dtype)
    added = drawn(on, seed + 2, tokens, columns, dtype=dtype) if delta else None
    x[-1, columns // 2] = 40
    if tokens > 1:
        x[0] = 0

    def launch() -> tuple[torch.Tensor, ...]:
        rows, total = norm_quantize(x, weight, codes, delta=added, on=on)
        return (*rows.tensors(), total)

    def expected() -> tuple[torch.Tensor, ...]:
        total = x if added is None else (x.float() + added.float()).to(dtype)
        made, scales = reference(total, weight, codes, 1e-5)
        return (made, total) if scales is None else (made.view(torch.uint8), scales, total)

    written = tokens * (columns + 4) if codes is not None else nbytes(x)
    return Problem(
        launch=launch, reference=expected, read=nbytes(x, weight, added), operations=6 * x.numel(),
        written=written + nbytes(added),
    )  # fmt: skip


OP = CudaOp(
    name="norm quantize", source=SOURCE, tolerance=1e-5, prepare=prepare,
    note="RMS normalization and quantization per token, INT8 or E4M3",
    variants=(
        {"tokens": 1, "columns": 8, "codes": torch.int8}, {"tokens": 3, "columns": 2088, "codes": torch.float8_e4m3fn},
        {"tokens": 5, "columns": 520, "codes": torch.int8, "dtype": torch.bfloat16},
        {"tokens": 2, "columns": 4096, "codes": torch.float8_e4m3fn, "dtype": torch.bfloat16},
        {"tokens": 2, "columns": 2080, "codes": torch.int8, "delta": True},
    ),
    sizes=tuple({"tokens": t, "columns": 8192, "codes": torch.int8, "dtype": torch.bfloat16} for t in (1, 128, 8192)),
)  # fmt: skip
PLAIN_OP = CudaOp(
    name="norm", source=SOURCE, tolerance=2e-3, prepare=prepare, note="RMS normalization with the residual added",
    variants=(
        {"tokens": 1, "columns": 8, "codes": None}, {"tokens": 3, "columns": 2088, "codes": None, "delta": True},
    ),
    sizes=tuple({"tokens": t, "columns": 8192, "codes": None, "delta": True} for t in (1, 128, 8192)),
)  # fmt: skip
