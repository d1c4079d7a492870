"""What a plan costs: exact bytes, bits per weight, predicted loss; quick enough for every edit."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from workbench.models.dtypes import DTYPES
from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSummary, quantizable
from workbench.numerics.formats import parse_scheme
from workbench.planning.kv_cache import cached_layers
from workbench.planning.plan import KEEP, Assignment, Plan, resolve
from workbench.planning.transform_names import planned_summary
from workbench.sensitivity.interaction import interaction, interaction_of
from workbench.sensitivity.table import Sensitivity


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """``nbytes`` of every tensor of the model under the plan; ``bits_per_weight`` over the quantizable layers and
    whatever else the plan quantizes; ``predicted`` the sum of the metric's scores (None where a cell is missing) and
    of ``interaction``, what the layers' errors cost together beyond that sum where the table knows their slopes (see
    :func:`workbench.sensitivity.interaction.interaction`)."""

    nbytes: int
    bits_per_weight: float
    predicted: float | None
    missing: int = 0
    interaction: float = 0.0


@lru_cache(maxsize=65536)
def scheme_bits(scheme: str, matrix: tuple[int, int]) -> int:
    """Return the exact bits of a matrix of that shape under the scheme of that name."""
    return parse_scheme(scheme).bits(matrix)


def layer_bits(layer: Layer, weights: str) -> int:
    """Return the exact bits that the layer's weight takes under the scheme name ``weights`` (or ``keep``)."""
    if weights == KEEP:
        return layer.parameters * DTYPES[layer.dtype].bits
    return scheme_bits(weights, layer.matrix)


def plan_totals(
    summary: ModelSummary, plan: Plan, table: Sensitivity | None = None, inputs: Sensitivity | None = None,
    cache: Sensitivity | None = None,
) -> Totals:  # fmt: skip
    """Resolve the plan and add up; raises what :func:`workbench.planning.plan.resolve` raises.

    Scores are of the model as it is, so a plan with transforms has no prediction.  A head that a rotation unties counts
    in the bytes; ``bits_per_weight`` is over the same layers with and without.
    """
    whole = planned_summary(summary, plan.transforms)
    sums = totals(whole, resolve(plan, whole.layers), None if plan.transforms else table, inputs, cache)
    if whole is summary:
        return sums
    return replace(sums, bits_per_weight=totals(summary, resolve(plan, summary.layers)).bits_per_weight)


def untied_bits(summary: ModelSummary, transforms: Iterable[str]) -> int:
    """Return the bits of the weights of their own that ``transforms`` give tied layers, stored as they are."""
    known = {layer.name for layer in summary.stored}
    more = [layer for layer in planned_summary(summary, transforms).stored if layer.name not in known]
    return sum(layer_bits(layer, KEEP) for layer in more)


def input_losses(
    summary: ModelSummary, assignments: Mapping[str, Assignment], inputs: Sensitivity | None, but: Collection[str] = ()
) -> list[float]:
    """Return what the quantized inputs of all layers except ``but`` cost; NaN for a cell that ``inputs`` lacks.

    Embeddings are left out: what enters them are numbers of tokens, which no plan rounds.
    """
    if inputs is None:
        return []
    return [
        inputs.of(name, scheme) for name, scheme in quantized_inputs(summary, assignments).items() if name not in but
    ]


def quantized_inputs(summary: ModelSummary, assignments: Mapping[str, Assignment]) -> dict[str, str]:
    """Return the activation scheme of every layer whose input is rounded, in model order."""
    return {
        layer.name: scheme for layer in summary.layers
        if layer.kind is not LayerKind.EMBEDDING and (scheme := assignments[layer.name].inputs) is not None
    }  # fmt: skip


def totals(
    summary: ModelSummary, assignments: Mapping[str, Assignment], table: Sensitivity | None = None,
    inputs: Sensitivity | None = None, cache: Sensitivity | None = None,
) -> Totals:  # fmt: skip
    """Add up bytes, bits and predicted loss of resolved assignments.

    ``inputs`` and ``cache`` are tables of activation schemes and of KV caches in the unit of ``table``; without
    them only weights are predicted.
    """
    counted = {layer.name for layer in quantizable(summary.layers)}
    all_bits = counted_bits = counted_weights = missing = 0
    scores, slopes = [], []
    for layer in summary.stored:
        weights = assignments[layer.name].weights
        bits = layer_bits(layer, weights)
        all_bits += bits
        if layer.name in counted or weights != KEEP:
            counted_bits += bits
            counted_weights += layer.parameters
        if weights != KEEP and table is not None:
            scores.append(table.of(layer.name, weights))
            slopes.append(table.slopes(layer.name, weights))
    if table is not None:
        scores += input_losses(summary, assignments, inputs)
        if cache is not None:
            scores += [cache.of(name, scheme) for name, scheme in cached_layers(summary.layers, assignments).items()]
    missing = sum(math.isnan(score) for score in scores)
    together = interaction_of(slopes)
    return Totals(
        nbytes=all_bits // 8 + summary.kept_nbytes,
        bits_per_weight=counted_bits / counted_weights if counted_weights else 0.0,
        predicted=None if table is None or missing else _whole(math.fsum(scores), together),
        missing=missing,
        interaction=together,
    )


SMALLEST = 1074
"""Every finite float is a whole multiple of ``2 ** -SMALLEST``."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ledger:
    """The sums behind :class:`Totals`, exact, so that an edit adds and takes away what changed and nothing else.

    ``all_bits``, ``counted_bits`` and ``counted_weights`` as :func:`totals` counts them; ``score`` in units of
    ``2 ** -SMALLEST`` over the finite cells, ``missing`` and ``infinite`` the number of other cells; ``slopes`` is the
    sum of the layers' slopes and ``squares`` that of their squares (None: no layer has any).
    ``inputs`` and ``cache`` are tables of activation losses in the unit of ``table``.
    """

    summary: ModelSummary
    table: Sensitivity | None
    inputs: Sensitivity | None
    cache: Sensitivity | None
    counted: frozenset[str]
    kept_nbytes: int
    all_bits: int = 0
    counted_bits: int = 0
    counted_weights: int = 0
    score: int = 0
    missing: int = 0
    infinite: int = 0
    slopes: np.ndarray | None = None
    squares: np.ndarray | None = None

    @staticmethod
    def of(
        summary: ModelSummary, assignments: Mapping[str, Assignment], table: Sensitivity | None,
        inputs: Sensitivity | None = None, cache: Sensitivity | None = None,
    ) -> Ledger:  # fmt: skip
        """Add up everything once."""
        empty = Ledger(
            summary=summary, table=table, inputs=inputs, cache=cache, kept_nbytes=summary.kept_nbytes,
            counted=frozenset(layer.name for layer in quantizable(summary.layers)),
        )  # fmt: skip
        return empty._plus((layer, assignments[layer.name], 1) for layer in summary.layers)

    def moved(self, old: Mapping[str, Assignment], new: Mapping[str, Assignment]) -> Ledger:
        """Return the ledger after the layers of ``new`` went from what ``old`` gives them to what ``new`` does."""
        steps = []
        for name, given in new.items():
            if _counted_of(old[name]) != _counted_of(given):
                layer = self.summary.by_name[name]
                steps += [(layer, old[name], -1), (layer, given, 1)]
        return self._plus(steps) if steps else self

    def _cells(self, layer: Layer, given: Assignment) -> list[float]:
        """Return what the layer's weight, its input and its keys or values add to the loss."""
        if self.table is None:
            return []
        cells = []
        if given.weights != KEEP and layer.tied_to is None:
            cells.append(self.table.of(layer.name, given.weights))
        if given.inputs is not None and self.inputs is not None and layer.kind is not LayerKind.EMBEDDING:
            cells.append(self.inputs.of(layer.name, given.inputs))
        if given.cache is not None and self.cache is not None:
            cells.append(self.cache.of(layer.name, given.cache))
        return cells

    def _plus(self, steps: Iterable[tuple[Layer, Assignment, int]]) -> Ledger:
        """Return the ledger with layers under their assignments added (1) or taken away (-1)."""
        all_bits, counted_bits, weights = self.all_bits, self.counted_bits, self.counted_weights
        score, missing, infinite = self.score, self.missing, self.infinite
        slopes, squares = self.slopes, self.squares
        for layer, given, sign in steps:
            for cell in self._cells(layer, given):
                missing += sign * math.isnan(cell)
                infinite += sign * math.isinf(cell)
                score += sign * _units(cell) if math.isfinite(cell) else 0
            if layer.tied_to is not None:
                continue
            more = None if self.table is None else self.table.slopes(layer.name, given.weights)
            if more is not None:
                slopes = sign * more if slopes is None else slopes + sign * more
                squares = sign * more * more if squares is None else squares + sign * more * more
            bits = layer_bits(layer, given.weights) * sign
            all_bits += bits
            if layer.name in self.counted or given.weights != KEEP:
                counted_bits += bits
                weights += layer.parameters * sign
        return replace(
            self, all_bits=all_bits, counted_bits=counted_bits, counted_weights=weights, score=score, missing=missing,
            infinite=infinite, slopes=slopes, squares=squares,
        )  # fmt: skip

    @property
    def totals(self) -> Totals:
        """The sums as the user reads them, equal to what :func:`totals` gives to the last bit."""
        predicted = None
        together = 0.0
        if self.slopes is not None and self.squares is not None:
            together = interaction(self.slopes, self.squares)
        if self.table is not None and not self.missing:
            predicted = math.inf if self.infinite else _whole(self.score / (1 << SMALLEST), together)
        return Totals(
            nbytes=self.all_bits // 8 + self.kept_nbytes,
            bits_per_weight=self.counted_bits / self.counted_weights if self.counted_weights else 0.0,
            predicted=predicted,
            missing=self.missing,
            interaction=together,
        )


def _whole(alone: float, together: float) -> float:
    """Return the sum of the layers' own losses with their interaction, which cannot be below zero together."""
    return max(alone + together, 0.0) if together else alone


def _counted_of(given: Assignment) -> tuple[str, str | None, str | None]:
    """Return what of an assignment the totals depend on."""
    return given.weights, given.inputs, given.cache


def _units(value: float) -> int:
    """Return a finite float in units of ``2 ** -SMALLEST``, exactly."""
    numerator, denominator = value.as_integer_ratio()
    return (numerator << SMALLEST) // denominator
