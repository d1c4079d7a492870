"""The rows and columns of a heatmap: layers by depth or loss, or summed by block or kind; families side by side."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from workbench.insight import schemes
from workbench.insight.decisions import bits_of_schemes
from workbench.models.summary import ModelSummary
from workbench.sensitivity.metrics import BY_NAME
from workbench.sensitivity.table import Sensitivity


class Order(StrEnum):
    """What the rows are."""

    DEPTH = "By depth"
    LOSS = "By loss"
    BLOCK = "By block"
    KIND = "By kind"
    SAVING = "By loss per byte saved"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arrangement:
    """``table`` as it is shown; ``members`` are the layers of rows that stand for several, by the row's name."""

    table: Sensitivity
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def layers(self, row: int) -> tuple[str, ...]:
        """Return the layers of a row."""
        name = self.table.layers[row]
        return self.members.get(name, (name,))

    def rows(self, layers: Collection[str], *, whole: bool = False) -> frozenset[int]:
        """Return the rows of which one layer, or with ``whole`` every layer, is among ``layers``."""
        if not self.members:
            return frozenset(self.table.row[name] for name in layers if name in self.table.row)
        is_member = all if whole else any
        names = frozenset(layers)
        rows = range(len(self.table.layers)) if names else ()
        return frozenset(row for row in rows if is_member(name in names for name in self.layers(row)))

    def common(self, columns: np.ndarray) -> np.ndarray:
        """Return each row's column from the columns of its layers in the order of ``members``; -1 where they differ."""
        if not self.members:
            return columns
        ends = np.cumsum([len(self.members[name]) for name in self.table.layers])
        parts = np.split(columns, ends[:-1])
        return np.array([part[0] if part.size and (part == part[0]).all() else -1 for part in parts], np.int64)


def arranged(table: Sensitivity, order: Order, model: ModelSummary | None) -> Arrangement:
    """Return the table with families side by side and its rows in an order; groups need the model's blocks."""
    table = by_family(table)
    if order is Order.LOSS:
        return Arrangement(table=by_loss(table))
    if order is Order.SAVING:
        weights = model is not None and BY_NAME[table.metric].part == "weights"
        return Arrangement(table=by_loss(table, _saved_bytes(table, model) if model and weights else None))
    if order is Order.DEPTH or model is None:
        return Arrangement(table=table)
    members: dict[str, list[str]] = {}
    for name in table.layers:
        layer = model.by_name.get(name)
        block = layer.block if layer else ""
        kind = re.sub(r"\d+", "*", name.removeprefix(f"{block}."))
        members.setdefault(block or name if order is Order.BLOCK else kind, []).append(name)
    sums = [table.score[[table.row[name] for name in names]].sum(axis=0) for names in members.values()]
    score = np.array(sums).reshape(len(members), len(table.schemes))
    summed = replace(table, layers=tuple(members), score=score, directions=None, error=None, unused=(), measured=())
    return Arrangement(table=summed, members={name: tuple(names) for name, names in members.items()})


def by_family(table: Sensitivity) -> Sensitivity:
    """Return the table with the schemes of one family side by side, and those of fewest bits first in both."""
    families, bits = list(map(schemes.family_of, table.schemes)), list(map(schemes.reference_bits, table.schemes))
    least = {family: min(each for each, of in zip(bits, families, strict=True) if of == family) for family in families}
    order = sorted(range(len(bits)), key=lambda column: (least[families[column]], families[column], bits[column]))
    if order == list(range(len(bits))):
        return table
    return replace(table, schemes=tuple(table.schemes[column] for column in order), score=table.score[:, order])


def _saved_bytes(table: Sensitivity, model: ModelSummary) -> np.ndarray:
    """Return float64 ``[layers, schemes]``: the bytes that each scheme saves of what is stored, NaN where none."""
    sizes = bits_of_schemes(table.schemes, [model.by_name[name] for name in table.layers])
    saved = (sizes[:, -1:] - sizes[:, :-1]) / 8
    return np.where(saved > 0, saved, np.nan)


def by_loss(table: Sensitivity, per: np.ndarray | None = None) -> Sensitivity:
    """Return the table with the layers of the greatest scores (over ``per``) first: by the mean exponent."""
    score = table.score if per is None else table.score / per
    known = np.isfinite(score) & (score > 0)
    exponents = np.log10(np.where(known, score, 1.0))
    mean = np.where(known.any(axis=1), exponents.sum(axis=1) / np.maximum(known.sum(axis=1), 1), -np.inf)
    order = np.argsort(-mean, kind="stable")
    return replace(table, layers=tuple(table.layers[row] for row in order), score=table.score[order])
