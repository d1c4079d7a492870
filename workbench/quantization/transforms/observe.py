"""What layers are given: some rows of their inputs, to measure what quantizing them does to the outputs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import torch

from workbench.models.data.batches import Data, token_mask
from workbench.models.model import Model
from workbench.numerics.formats import parse_scheme, takes_range

ROWS = 512
"""So many inputs of each layer are kept to measure the error on,"""
CELLS = 1 << 19
"""but no more than this number of values."""


@dataclass(slots=True, kw_only=True, eq=False)
class Inputs:
    """What a layer was given: each channel's smallest and largest value ``[columns]``, and some of the rows."""

    low: torch.Tensor
    high: torch.Tensor
    rows: list[torch.Tensor] = field(default_factory=list)

    @property
    def absmax(self) -> torch.Tensor:
        """The largest magnitude of each channel."""
        return torch.maximum(-self.low, self.high)


def observe(model: Model, data: Data, layers: Collection[str], batch_size: int) -> dict[str, Inputs]:
    """Return what ``layers`` are given over ``data``; inputs of a batch that hold NaN or infinity are left out."""
    inputs: dict[str, Inputs] = {}
    batches = -(-len(data) // batch_size)
    for batch in data.batches(batch_size):
        mask = token_mask(batch)

        def tap(name: str, tensor: torch.Tensor, _: torch.Tensor, mask: torch.Tensor | None = mask) -> None:
            real = tensor[mask] if mask is not None and tensor.shape[:2] == mask.shape else tensor
            rows = real.reshape(-1, real.shape[-1]).float()
            if rows.numel() and bool(rows.isfinite().all()):
                count = max(min(ROWS, CELLS // rows.shape[1]) // batches, 1)
                _add(inputs, name, rows, count)

        with torch.no_grad():
            model.run(batch, tap=tap, layers=tuple(layers))
    return inputs


def _add(inputs: dict[str, Inputs], name: str, rows: torch.Tensor, count: int) -> None:
    low, high = torch.aminmax(rows, dim=0)
    some = rows[torch.linspace(0, rows.shape[0] - 1, min(count, rows.shape[0])).round().long()].clone()
    old = inputs.get(name)
    if old is None:
        inputs[name] = Inputs(low=low, high=high, rows=[some])
    else:
        old.low, old.high = torch.minimum(old.low, low), torch.maximum(old.high, high)
        old.rows.append(some)


def quantized_inputs(
    scheme: str | None, seen: Inputs, rows: torch.Tensor, factor: torch.Tensor | float = 1.0
) -> torch.Tensor:
    """Return ``rows`` as the plan would quantize them; a static range spans what was seen, divided by ``factor``."""
    if scheme is None:
        return rows
    format_ = parse_scheme(scheme)
    if takes_range(format_):
        low, high = float((seen.low / factor).min()), float((seen.high / factor).max())
        return format_.round(rows, format_.fit_range(min(low, 0.0), max(high, 0.0)))
    return format_.quantize(rows)
