"""What rounding would cost a draft, predicted from the curvature: how transforms compare their candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from workbench.numerics.curvature import Curvature, predicted_loss, predicted_loss_full
from workbench.numerics.formats import parse_scheme
from workbench.planning.plan import KEEP, Assignment
from workbench.planning.transforms.rewrite import Draft

if TYPE_CHECKING:
    import torch


def difference_cost(curvature: Curvature, difference: torch.Tensor) -> float:
    """Return the predicted loss of a weight's change, by the full second moment where it was collected."""
    return (predicted_loss if curvature.full is None else predicted_loss_full)(difference, curvature)


def rounding_cost(draft: Draft, assignments: Mapping[str, Assignment], layers: Iterable[str]) -> float:
    """Return the predicted loss of rounding ``layers`` to nearest by the plan; a layer without curvature counts 0."""
    total = 0.0
    for name in layers:
        curvature, scheme = draft.curvature.get(name), assignments[name].weights
        if curvature is not None and scheme != KEEP:
            weight = draft.weight(name)
            rounded = parse_scheme(scheme).quantize(weight, clip_search=True)
            total += difference_cost(curvature, rounded - weight)
    return total
