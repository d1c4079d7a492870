"""What rounding would cost a draft, predicted from the curvature: how transforms compare their candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch

from workbench.numerics.curvature import Curvature, predicted_loss, predicted_loss_full
from workbench.numerics.formats import parse_scheme
from workbench.planning.plan import KEEP, Assignment
from workbench.quantization.transforms.observe import Inputs, quantized_inputs
from workbench.quantization.transforms.rewrite import Draft


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
