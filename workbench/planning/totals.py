"""What a plan costs: exact bytes, bits per weight, predicted loss; quick enough for every edit."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from workbench.models.dtypes import DTYPES
from workbench.models.kv_cache import makes_keys_or_values
from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSummary, quantizable
from workbench.numerics.formats import parse_scheme
from workbench.numerics.scheme import Scheme
from workbench.planning.latest import Latest
from workbench.planning.plan import KEEP, Assignment, Plan, resolve
from workbench.planning.transform_names import planned_summary
from workbench.sensitivity.interaction import interaction, interaction_error
from workbench.sensitivity.table import Sensitivity


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """``nbytes`` of every tensor of the model under the plan; ``bits_per_weight`` over the quantizable layers and
    whatever else the plan quantizes; ``predicted`` the sum of the metric's scores (None where a cell is missing) and
    of ``interaction``, what the layers' errors cost together beyond that sum: where the table knows their slopes (see
    :func:`workbench.sensitivity.interaction.interaction`), and whole plans that were measured (see
    :class:`workbench.sensitivity.checks.plan_checks.PlanChecks`).  ``second_order`` is without the latter.  ``error``
    is the standard error of ``predicted`` by how the table's ``samples`` scatter, taking all layers to err alike; None
    where that is not known.  ``doubt`` is what the form of the prediction may be wrong by (see
    :meth:`workbench.sensitivity.table.Sensitivity.doubt`)."""

    nbytes: int
    bits_per_weight: float
    predicted: float | None
    missing: int = 0
    interaction: float = 0.0
    error: float | None = None
    samples: int = 0
    second_order: float | None = None
    doubt: float = 0.0


@lru_cache(maxsize=65536)
def scheme_bits(scheme: str, matrix: tuple[int, int]) -> int:
    """Return the exact bits of a matrix of that shape under the scheme of that name."""
    return _parsed(scheme).bits(matrix)


@lru_cache(maxsize=1024)
def _parsed(scheme: str) -> Scheme:
    return parse_scheme(scheme)


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


def quantized_inputs(summary: ModelSummary, assignments: Mapping[str, Assignment]) -> dict[str, str]:
    """Return the activation scheme of every layer whose input is rounded, in model order.

    Embeddings are left out: their inputs are token ids, which no plan rounds.
    """
    rounded = [name for name, assignment in assignments.items() if assignment.inputs is not None]
    return {
        name: scheme for name in sorted(rounded, key=summary.position.__getitem__)
        if summary.by_name[name].kind is not LayerKind.EMBEDDING and (scheme := assignments[name].inputs) is not None
    }  # fmt: skip


def cached_layers(layers: Iterable[Layer], assignments: Mapping[str, Assignment]) -> dict[str, str]:
    """Return the scheme of every layer whose keys or values are rounded, in model order."""
    return {layer.name: scheme for layer in layers if (scheme := assignments[layer.name].cache) is not None}


def cache_bits(layers: Iterable[Layer], assignments: Mapping[str, Assignment]) -> tuple[int, int]:
    """Return the bits that one token takes in the KV cache under ``assignments``, and in the model's own dtype."""
    planned = plain = 0
    for layer in filter(makes_keys_or_values, layers):
        features, scheme = layer.matrix[0], assignments[layer.name].cache
        stored = features * DTYPES[layer.dtype].bits
        plain += stored
        planned += stored if scheme is None else scheme_bits(scheme, (1, features))
    return planned, plain


def totals(
    summary: ModelSummary, assignments: Mapping[str, Assignment], table: Sensitivity | None = None,
    inputs: Sensitivity | None = None, cache: Sensitivity | None = None,
) -> Totals:  # fmt: skip
    """Add up bytes, bits and predicted loss of resolved assignments.

    ``inputs`` and ``cache`` are tables of activation schemes and of KV caches in the unit of ``table``; without
    them only weights are predicted.
    """
    return Ledger.of(summary, assignments, table, inputs, cache).totals


Planned = Sequence[tuple[Layer, Assignment]]
EMBEDDING = LayerKind.EMBEDDING

SMALLEST = 1074
"""Every finite float is a whole multiple of ``2 ** -SMALLEST``."""


class Amounts(NamedTuple):
    """What layers add to the totals, in whole numbers: ``loss`` in units of ``2 ** -SMALLEST`` over finite cells, and
    the number of ``missing`` and ``infinite`` ones; ``error`` their standard errors in the same units, where they are
    known, and ``unsure`` how many are not.  ``rerouted`` are the squares of what rerouting costs, which ``loss`` has
    not."""

    bits: int = 0
    counted_bits: int = 0
    counted_weights: int = 0
    loss: int = 0
    missing: int = 0
    infinite: int = 0
    error: int = 0
    unsure: int = 0
    rerouted: int = 0

    @property
    def known_loss(self) -> float:
        """The sum of all cells that are not missing, rounded once."""
        rerouted = math.sqrt(self.rerouted / (1 << SMALLEST))
        return math.inf if self.infinite else self.loss / (1 << SMALLEST) + rerouted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ledger:
    """The sums behind :class:`Totals`, exact, so that an edit adds and takes away what changed and nothing else.

    ``slopes`` (int64 ``[2, draws]``) are the sums of the layers' slopes and of their squares.  ``inputs`` and ``cache``
    are tables of activation losses in the unit of ``table``.
    """

    summary: ModelSummary
    table: Sensitivity | None
    inputs: Sensitivity | None
    cache: Sensitivity | None
    counted: frozenset[str]
    amounts: Amounts = Amounts()
    slopes: np.ndarray = field(default_factory=lambda: np.zeros((2, 1), np.int64))

    @staticmethod
    def of(
        summary: ModelSummary, assignments: Mapping[str, Assignment], table: Sensitivity | None,
        inputs: Sensitivity | None = None, cache: Sensitivity | None = None,
    ) -> Ledger:  # fmt: skip
        """Add up the layers of ``assignments``."""
        empty = Ledger(summary=summary, table=table, inputs=inputs, cache=cache, counted=_counted(summary))
        return empty._plus([(layer, assignments[layer.name]) for layer in summary.layers if layer.name in assignments])

    def moved(self, old: Mapping[str, Assignment], new: Mapping[str, Assignment]) -> Ledger:
        """Return the ledger after the layers of ``new`` went from what ``old`` gives them to what ``new`` does."""
        changed = [(self.summary.by_name[name], name) for name in new if new[name] != old[name]]
        added, removed = ([(layer, of[name]) for layer, name in changed] for of in (new, old))
        return self._plus(added, removed)

    def _plus(self, added: Planned, removed: Planned = ()) -> Ledger:
        """Return the ledger with layers under their assignments added and taken away."""
        slopes, amounts = self.slopes, zip(self.amounts, self._amounts(added), self._amounts(removed), strict=True)
        if self.table is not None and self.table.directions is not None:
            for sign, layers in ((1, added), (-1, removed)):
                for name, scheme in ((layer.name, each.weights) for layer, each in layers if layer.tied_to is None):
                    if (slope := self.table.slopes(name, scheme)) is not None:
                        slopes = slopes + sign * np.stack([slope, slope * slope])
        return replace(self, amounts=Amounts(*(now + more - less for now, more, less in amounts)), slopes=slopes)

    def _amounts(self, layers: Planned) -> Amounts:
        """Return what layers add; a tied one has no bits and no loss of its weight."""
        if not layers:
            return Amounts()
        owned = [(layer, each.weights) for layer, each in layers if layer.tied_to is None]
        amounts = self._sizes(owned)
        if self.table is None:
            return amounts
        score, scatter, rerouted = self.table.gathered((layer.name, name) for layer, name in owned if name != KEEP)
        with np.errstate(invalid="ignore", over="ignore"):
            cells, scatters, squares = [score - rerouted], [scatter], rerouted**2
        chosen = (
            (self.inputs, ((layer.name, each.inputs) for layer, each in layers if layer.kind is not EMBEDDING)),
            (self.cache, ((layer.name, each.cache) for layer, each in layers)),
        )
        for table, schemes in chosen:
            if table is not None:
                known = table.gathered((name, scheme) for name, scheme in schemes if scheme is not None)
                cells.append(known[0])
                scatters.append(np.hypot(known[1], np.sqrt(known[2] * table.one_token)))
        loss, error = np.concatenate(cells), np.concatenate(scatters)
        return amounts._replace(
            loss=_units(loss), missing=int(np.isnan(loss).sum()), infinite=int(np.isinf(loss).sum()),
            error=_units(error), unsure=int((~np.isfinite(error)).sum()), rerouted=_units(squares),
        )  # fmt: skip

    def _sizes(self, owned: Sequence[tuple[Layer, str]]) -> Amounts:
        """Return the bits of weights under their schemes: those of one shape and scheme are worked out once."""
        alike = _alike(self.summary)
        kinds = [(scheme, alike[layer.name], scheme != KEEP or layer.name in self.counted) for layer, scheme in owned]
        sums, like = np.zeros(3, object), dict(zip(kinds, owned, strict=True))
        for kind, count in Counter(kinds).items():
            bits, (*_, counts) = layer_bits(*like[kind]), kind
            sums += [bits * count, bits * count * counts, like[kind][0].parameters * count * counts]
        return Amounts(*sums)

    @property
    def totals(self) -> Totals:
        """The sums as the user reads them; losses together cannot be below zero."""
        sums, together, doubt = self.amounts, interaction(*self.slopes), 0.0
        error = second_order = predicted = None
        if self.table is not None and not sums.missing:
            second_order = max(sums.known_loss + together, 0.0) if together else sums.known_loss
            predicted, doubt = self.table.whole(second_order), self.table.doubt(second_order)
            together += predicted - second_order if math.isfinite(second_order) else 0.0
            if not sums.unsure and sums.error:
                error = self._error * (predicted / second_order if second_order > 0 else 1.0)
        return Totals(
            nbytes=sums.bits // 8 + self.summary.other_nbytes,
            bits_per_weight=sums.counted_bits / sums.counted_weights if sums.counted_weights else 0.0,
            predicted=predicted, missing=sums.missing, interaction=together, error=error, second_order=second_order,
            doubt=doubt,
            samples=self.table.samples if self.table is not None else 0,
        )  # fmt: skip

    @property
    def _error(self) -> float:
        rerouted = math.sqrt(self.amounts.rerouted / (1 << SMALLEST))
        chance = 0.0 if self.table is None else self.table.chance(rerouted)
        return math.hypot(self.amounts.error / (1 << SMALLEST), interaction_error(*self.slopes), chance)


@Latest
def _counted(summary: ModelSummary) -> frozenset[str]:
    return frozenset(layer.name for layer in quantizable(summary.layers))


@Latest
def _alike(summary: ModelSummary) -> dict[str, int]:
    """Return a number for every layer; those of one number take the same bits under a scheme."""
    numbers: dict[object, int] = {}
    facts = (
        (layer.name, (layer.dtype, layer.shape, layer.view, layer.axes, layer.row_axes)) for layer in summary.layers
    )
    return {name: numbers.setdefault(each, len(numbers)) for name, each in facts}


def _units(values: np.ndarray) -> int:
    """Return the sum of those of ``values`` (float64) that are finite in units of ``2 ** -SMALLEST``, exactly."""
    fractions, exponents = np.frexp(values[np.isfinite(values)])
    wholes, total = np.ldexp(fractions, 53).astype(np.int64), 0
    for exponent in np.unique(exponents).tolist():
        high, low = np.divmod(wholes[exponents == exponent], 1 << 27)  # neither sum leaves 64 bits
        total += ((int(high.sum()) << 27) + int(low.sum())) << (SMALLEST + exponent) >> 53
    return total
