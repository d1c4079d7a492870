"""What rounding would cost a draft, predicted from the curvature and from inputs of its layers: how transforms compare
their candidates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import torch

from workbench.models.data.batches import Data, Padding, batches_of
from workbench.models.model import Model
from workbench.numerics.curvature import Curvature, predicted_loss, predicted_loss_full
from workbench.numerics.formats import parse_scheme, takes_range, within
from workbench.planning.plan import KEEP, Assignment
from workbench.quantization.transforms.rewrite import Draft

ROWS = 512
"""The most inputs of each layer on which its error is measured."""

CELLS = 1 << 19
"""The most values that these inputs hold together."""


@dataclass(slots=True, kw_only=True, eq=False)
class Inputs:
    """A layer's inputs: each channel's smallest and largest value ``[columns]``, and some of the rows."""

    low: torch.Tensor
    high: torch.Tensor
    rows: list[torch.Tensor] = field(default_factory=list)

    @property
    def absmax(self) -> torch.Tensor:
        """The largest magnitude of each channel."""
        return torch.maximum(-self.low, self.high)


def observe(model: Model, data: Data, layers: Collection[str], batch_size: int) -> dict[str, Inputs]:
    """Return the inputs of ``layers`` over ``data``; those of a batch that hold NaN or infinity are left out."""
    inputs: dict[str, Inputs] = {}
    batches = -(-len(data) // batch_size)

    def add(name: str, rows: torch.Tensor) -> None:
        if not rows.numel() or not bool(rows.isfinite().all()):
            return
        low, high = torch.aminmax(rows, dim=0)
        count = max(min(ROWS, CELLS // rows.shape[1]) // batches, 1)
        some = rows[torch.linspace(0, len(rows) - 1, min(count, len(rows))).round().long()].clone()
        known = inputs.setdefault(name, Inputs(low=low, high=high))
        known.low, known.high = torch.minimum(known.low, low), torch.maximum(known.high, high)
        known.rows.append(some)

    for batch in batches_of(model, data, batch_size):
        padding = Padding.of(batch)

        def tap(name: str, tensor: torch.Tensor, _: torch.Tensor, padding: Padding = padding) -> None:
            add(name, padding.real(tensor).reshape(-1, tensor.shape[-1]).float().cpu())

        with torch.no_grad():
            model.run(batch, tap=tap, layers=tuple(layers))
    return inputs


def quantized_inputs(
    scheme: str | None, seen: Inputs, rows: torch.Tensor, factor: torch.Tensor | float = 1.0
) -> torch.Tensor:
    """Return ``rows`` as the plan would quantize them; a static range spans what was seen, divided by ``factor``."""
    if scheme is None:
        return rows
    format_ = parse_scheme(scheme)
    if takes_range(format_):
        low, high = float((seen.low / factor).min()), float((seen.high / factor).max())
        format_, parameters = within(format_, min(low, 0.0), max(high, 0.0))
        return format_.quantize(rows) if parameters is None else format_.round(rows, parameters)
    return format_.quantize(rows)


def difference_cost(curvature: Curvature, difference: torch.Tensor) -> float:
    """Return the predicted loss of a weight's change, by the full second moment where it was collected."""
    return (predicted_loss if curvature.full is None else predicted_loss_full)(difference, curvature)


def rounding_cost(draft: Draft, assignments: Mapping[str, Assignment], layers: Iterable[str]) -> float:
    """Return the predicted loss of rounding ``layers`` to nearest by the plan; a layer without curvature counts 0.

    Plain ``rtn`` rounds over the whole range, every other algorithm is taken to search for clips.
    """
    total = 0.0
    for name in layers:
        curvature, scheme = draft.curvature.get(name), assignments[name].weights
        if curvature is not None and scheme != KEEP:
            weight = draft.weight(name)
            rounded = parse_scheme(scheme).quantize(weight, clip_search=assignments[name].algorithm != "rtn")
            total += difference_cost(curvature, rounded - weight)
    return total


def inputs_cost(draft: Draft, assignments: Mapping[str, Assignment], seen: Mapping[str, Inputs]) -> float:
    """Return the predicted loss of quantizing the inputs that were ``seen``, nats per token.

    The error ``d`` of each row costs ``1/2 (W d)^T G (W d)``, as it would at the layer's outputs; a layer without
    curvature counts 0.
    """
    total = 0.0
    for name, inputs in seen.items():
        scheme, curvature = assignments[name].inputs, draft.curvature.get(name)
        if scheme is not None and curvature is not None:
            rows = torch.cat(inputs.rows)
            total += 0.5 * _energy((quantized_inputs(scheme, inputs, rows) - rows) @ draft.weight(name).T, curvature)
    return total


def _energy(errors: torch.Tensor, curvature: Curvature) -> float:
    """Return the mean of ``e^T G e`` over the rows of ``errors``."""
    if curvature.outputs is None:
        return float(errors.square().mean(dim=0).double() @ torch.from_numpy(curvature.rows))
    return float(((errors @ torch.from_numpy(curvature.outputs)) * errors).sum(dim=1).mean(dtype=torch.float64))
