"""Why a layer has the scheme that it has: bytes saved, loss added, the price of a byte, and what the next would buy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from workbench.errors import PlanError, nearest
from workbench.measurement.units import short_unit
from workbench.memory import in_units
from workbench.planning.candidates import Group
from workbench.planning.plan import KEEP, Assignment
from workbench.planning.search.hull import padded, walk
from workbench.planning.search.search import Front
from workbench.planning.totals import layer_bits, totals
from workbench.sensitivity.table import Sensitivity


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Another choice for the same layers: ``nbytes`` more (less if negative) and ``loss`` avoided (added if negative).

    ``price`` is the loss for each byte of the exchange.
    """

    scheme: str
    nbytes: float
    loss: float

    @property
    def price(self) -> float:
        """Loss for each byte."""
        return self.loss / self.nbytes if self.nbytes else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What one choice does, in bytes and in the unit of the loss.

    ``layers`` share the choice; ``saved`` bytes and ``added`` loss against keeping them as stored; ``price`` what a
    byte is worth at the plan's size (0.0 if nothing is left to buy); ``bigger`` and ``smaller`` are the neighbours on
    the hull, None at its ends.  ``fixed`` says why the layer is not part of the search, or is empty.  ``unit`` is the
    loss's, empty where it is a sum of relative errors.
    """

    layer: str
    layers: tuple[str, ...]
    scheme: str
    saved: float
    added: float
    price: float
    bigger: Step | None = None
    smaller: Step | None = None
    fixed: str = ""
    unit: str = ""

    @property
    def sentence(self) -> str:
        """The whole in words."""
        shared = f", shared by {len(self.layers)} layers," if len(self.layers) > 1 else ""
        loss = "a loss that was not scored" if math.isnan(self.added) else f"a loss of {self._lost(self.added)}"
        parts = [f"{self.scheme}{shared} saves {_size(self.saved)} and adds {loss}"]
        if self.fixed:
            return f"{parts[0]}; {self.fixed}"
        if math.isnan(self.added):
            return parts[0]
        if self.bigger and self.bigger.loss > 0:
            parts.append(
                f"{self.bigger.scheme} would take {_size(self.bigger.nbytes)} more and avoid "
                f"{self._lost(self.bigger.loss)}: {_per_kilobyte(self.bigger.price)}, {self._verdict(self.bigger)}"
            )
        if self.smaller:
            saves = f"{self.smaller.scheme} would save {_size(-self.smaller.nbytes)} more and"
            added = f"add {self._lost(-self.smaller.loss)}: {_per_kilobyte(self.smaller.price)}"
            parts.append(f"{saves} {f'avoid {self._lost(self.smaller.loss)}, too' if self.smaller.loss > 0 else added}")
        return "; ".join(parts)

    def _verdict(self, step: Step) -> str:
        offered, usual = _per_kilobyte(step.price), _per_kilobyte(self.price)
        if offered == usual:
            return "as much as one buys elsewhere"
        verdict = "less" if step.price <= self.price else "more"
        return f"{verdict} than the {_digits(1000 * self.price)} that one buys elsewhere"

    def _lost(self, loss: float) -> str:
        return f"{_digits(loss)} {self.unit}".rstrip()


def _per_kilobyte(price: float) -> str:
    return f"{_digits(1000 * price)} for each kB"


def _digits(value: float) -> str:
    """Return three significant digits, in one style below 1: 1.15e-3, 3.44e-5."""
    text = f"{value:{'.2e' if 0 < abs(value) < 0.995 else '#.3g'}}" if value else "0"
    return text.rstrip(".").replace("e-0", "e-").replace("e+0", "e")


def _size(nbytes: float) -> str:
    """Return bytes with three significant digits: 10.4 kB."""
    size, unit = in_units(nbytes)
    return f"{size:.0f} B" if unit == "B" else f"{_digits(size)} {unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """What the next bytes buy: these layers go from one scheme to another."""

    layers: tuple[str, ...]
    before: str
    after: str
    nbytes: float
    loss: float


def explain(
    front: Front, assignments: Mapping[str, Assignment], layer: str, table: Sensitivity | None = None,
    nbytes: int | None = None,
) -> Explanation:  # fmt: skip
    """Explain what ``assignments`` give ``layer`` among the choices of ``front``; ``nbytes`` of the whole, if known.

    ``table`` says what a layer that is not part of the search costs, and in which unit.  A scheme that is not
    a candidate (worse than another in every respect, or not scored) is explained by its own bytes, with an added loss
    of NaN where it was not scored.  Raises PlanError for an unknown layer.
    """
    summary = front.space.summary
    if layer not in summary.by_name:
        raise PlanError(f"{layer!r} is not a layer of the model{nearest(layer, summary.by_name)}")
    weights = assignments[layer].weights
    group = next((group for group in front.space.groups if layer in group.layers), None)
    nbytes = totals(summary, assignments).nbytes if nbytes is None else nbytes
    names = (layer,) if group is None else group.layers
    stored = [summary.by_name[name] for name in names if summary.by_name[name].tied_to is None]
    bits = sum(layer_bits(each, weights) for each in stored)
    saved = (sum(layer_bits(each, KEEP) for each in stored) - bits) / 8
    unit = short_unit(table.unit) if table is not None else ""
    smaller = bigger = None
    if group is None:
        scored = math.nan if table is None else table.of(layer, weights)
        added = 0.0 if weights == KEEP else scored
    else:
        of_scheme = [scheme == weights for scheme in group.schemes]
        scored = math.nan if table is None else sum(table.of(each.name, weights) for each in stored)
        added = float(min(group.loss[of_scheme], default=scored))
        smaller, bigger = _neighbours(group, bits, added)
    fixed = "" if group is not None else front.space.fixed.get(layer, "outside the search")
    return Explanation(
        layer=layer, layers=names, scheme=weights, saved=saved, added=added, price=front.price(nbytes),
        bigger=bigger, smaller=smaller, fixed=fixed, unit=unit,
    )  # fmt: skip


def next_purchase(front: Front, nbytes: int) -> Purchase | None:
    """Return the move that the next bytes pay for at that size of the whole model, None where nothing is left."""
    step, moves = front.step_within(nbytes), front.moves
    if step is None:
        return None
    group = front.space.groups[int(moves.group[step])]
    return Purchase(
        layers=group.layers, before=str(group.candidates[int(moves.origin[step])]),
        after=str(group.candidates[int(moves.choice[step])]), nbytes=float(moves.more[step]) / 8,
        loss=float(moves.less[step]),
    )  # fmt: skip


def _neighbours(group: Group, bits: int, loss: float) -> tuple[Step | None, Step | None]:
    """Return the next smaller and the next larger choice on the hull of the group."""
    moves = walk(padded([group.bits]), padded([group.loss]))
    places = [int(moves.start[0]), *moves.choice.tolist()]
    sizes = np.array([group.bits[place] for place in places])
    below, above = int(np.searchsorted(sizes, bits, "left")) - 1, int(np.searchsorted(sizes, bits, "right"))

    def step(at: int) -> Step | None:
        if not 0 <= at < len(places):
            return None
        place = places[at]
        return Step(
            scheme=str(group.candidates[place]), nbytes=float(group.bits[place] - bits) / 8,
            loss=loss - float(group.loss[place]),
        )  # fmt: skip

    return step(below), step(above)
