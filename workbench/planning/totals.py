"""What a plan costs in all: exact bytes, bits per weight, predicted loss; quick enough for every edit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from workbench.models.layer import DTYPE_BITS, Layer
from workbench.models.summary import ModelSummary, quantizable
from workbench.numerics.formats import parse_scheme
from workbench.planning.plan import KEEP, Assignment, Plan, resolve
from workbench.planning.sensitivity import Sensitivity
from workbench.planning.transforms.names import planned_summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """``nbytes`` of every tensor of the model under the plan; ``bits_per_weight`` over the quantizable layers and
    whatever else the plan quantizes; ``predicted`` the sum of the metric's scores (None where a cell is missing)."""

    nbytes: int
    bits_per_weight: float
    predicted: float | None
    missing: int = 0


@lru_cache(maxsize=65536)
def scheme_bits(scheme: str, matrix: tuple[int, int]) -> int:
    """Return the exact bits of a matrix of that shape under the scheme of that name."""
    return parse_scheme(scheme).bits(matrix)


def layer_bits(layer: Layer, weights: str) -> int:
    """Return the exact bits that the layer's weight takes under the scheme name ``weights`` (or ``keep``)."""
    if weights == KEEP:
        return layer.parameters * DTYPE_BITS[layer.dtype]
    return scheme_bits(weights, layer.matrix)


def plan_totals(summary: ModelSummary, plan: Plan, table: Sensitivity | None = None) -> Totals:
    """Resolve the plan and add up; raises what :func:`workbench.planning.plan.resolve` raises.

    Scores are of the model as it is, so a plan with transforms has no prediction.
    """
    summary = planned_summary(summary, plan.transforms)
    return totals(summary, resolve(plan, summary.layers), None if plan.transforms else table)


def totals(summary: ModelSummary, assignments: dict[str, Assignment], table: Sensitivity | None = None) -> Totals:
    """Add up bytes, bits and predicted loss of resolved assignments."""
    counted = {layer.name for layer in quantizable(summary.layers)}
    all_bits = counted_bits = counted_weights = missing = 0
    scores = []
    for layer in summary.stored:
        weights = assignments[layer.name].weights
        bits = layer_bits(layer, weights)
        all_bits += bits
        if layer.name in counted or weights != KEEP:
            counted_bits += bits
            counted_weights += layer.parameters
        if weights != KEEP and table is not None:
            scores.append(table.of(layer.name, weights))
    missing = sum(math.isnan(score) for score in scores)
    return Totals(
        nbytes=all_bits // 8 + summary.kept_nbytes,
        bits_per_weight=counted_bits / counted_weights if counted_weights else 0.0,
        predicted=None if table is None or missing else math.fsum(scores),
        missing=missing,
    )
