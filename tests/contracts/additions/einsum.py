"""A made-up kernel: a linear layer in float64 through ``einsum``."""

from __future__ import annotations

import torch

from ..op import Case, Op


def _prepare(rows: int, columns: int, batch: int, seed: int) -> Case:
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    x = torch.randn(batch, columns, generator=generator, dtype=torch.float64)
    return Case(launch=lambda: torch.einsum("bc,rc->br", x, weight), reference=lambda: x @ weight.T)


FP64 = Op(
    name="einsum fp64 linear", note="torch.einsum in float64", tolerance=1e-12, prepare=_prepare,
    available=lambda: None, refuses=lambda rows, columns: None, variants=((16, 32, 2),),
)  # fmt: skip
