"""What a plan turns into what: layers, weights and bytes for each pair of stored type and scheme."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.insight import schemes
from workbench.models.summary import ModelSummary
from workbench.planning.plan import KEEP, Assignment
from workbench.planning.totals import layer_bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """``layers`` layers stored as ``before`` become ``after``; bytes of all of them, before and after."""

    before: str
    after: str
    layers: int
    weights: int
    nbytes: tuple[float, float]


def transitions(summary: ModelSummary, assignments: Mapping[str, Assignment]) -> tuple[Transition, ...]:
    """Return every pair that occurs, fewest bits after first; tied tensors count once."""
    sums: dict[tuple[str, str], list[float]] = {}
    for layer in summary.stored:
        scheme = assignments[layer.name].weights if layer.name in assignments else KEEP
        held = sums.setdefault((layer.dtype, layer.dtype if scheme == KEEP else scheme), [0, 0, 0.0, 0.0])
        more = (1, layer.parameters, layer_bits(layer, KEEP) / 8, layer_bits(layer, scheme) / 8)
        for place, value in enumerate(more):
            held[place] += value
    order = sorted(sums, key=lambda pair: (pair[0], _bits(pair)))
    return tuple(
        Transition(
            before=pair[0], after=pair[1], layers=int(sums[pair][0]), weights=int(sums[pair][1]),
            nbytes=(sums[pair][2], sums[pair][3]),
        )
        for pair in order
    )  # fmt: skip


def _bits(pair: tuple[str, str]) -> float:
    return float("inf") if pair[0] == pair[1] else schemes.reference_bits(pair[1])
