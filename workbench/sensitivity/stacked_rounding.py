"""Many small layers rounded in one call: their matrices one below the other, where every row is rounded for itself.

The clip search of a small matrix is mostly overhead: stacked, the 35 layers of a small Llama take a quarter of the
time, with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from workbench.measurement.shared_weights import curvature_of
from workbench.models.model import Model
from workbench.models.summary import ModelSummary
from workbench.numerics.curvature import Curvature
from workbench.numerics.formats import parse_scheme
from workbench.numerics.granularity import PerChannel, PerGroup
from workbench.numerics.rounding.round_weight import round_weight
from workbench.numerics.scheme import Parameters

if TYPE_CHECKING:
    import torch

STACKED = 1 << 19
"""The most weights that are rounded together; a larger layer is rounded alone."""

BY_ROWS = ("rtn", "rtn-clip")
"""Algorithms that look at nothing but the group of weights that they round."""


def in_groups(
    summary: ModelSummary, cells: Mapping[str, Sequence[str]], nbytes: int,
    fits: Callable[[str, str], bool] = lambda first, other: True, rows: Mapping[str, int] | None = None,
    cell_bytes: Callable[[int], int] = lambda cells: 4,
) -> Iterator[list[str]]:  # fmt: skip
    """Yield runs of layers whose rounded weights, of ``cell_bytes(cells)`` each, take at most ``nbytes`` together.

    ``fits(first, other)`` tells whether a layer may stand in the group of another; of one in ``rows`` only so many rows
    are rounded.  A larger layer stands alone.
    """
    group: list[str] = []
    size = 0
    for name, schemes in cells.items():
        layer = summary.by_name[name]
        cells_of = layer.parameters if rows is None or name not in rows else rows[name] * layer.matrix[1]
        more = cell_bytes(cells_of) * cells_of * len(schemes)
        if group and (size + more > nbytes or not fits(group[0], name)):
            yield group
            group, size = [], 0
        group.append(name)
        size += more
    if group:
        yield group


Matrices = dict[str, "torch.Tensor"]
"""Float32 matrices by layer."""


def rounded_cells(
    model: Model, cells: Mapping[str, Sequence[str]], algorithm: str, curvature: Mapping[str, Curvature],
    rows: Mapping[str, torch.Tensor] | None = None,
) -> Iterator[tuple[Matrices, Iterator[tuple[str, Matrices]]]]:  # fmt: skip
    """Yield layers that are rounded together, with an iterator over their schemes and what each makes of them.

    A layer alone comes in its own dtype: rounded band by band, it is never copied whole. Every layer of ``cells`` comes
    once; layers of one width come together. One scheme's weights are held at a time, however many there are. Of a layer
    in ``rows`` (int64) only those rows come, as they are in the whole matrix.
    Raises what :func:`workbench.numerics.rounding.round_weight.round_weight` raises.
    """
    some, known = rows or {}, partial(curvature_of, model.summary, curvature)
    for name in some.keys() & cells.keys():
        yield _some_rows(name, model.held_weight(name).float(), some[name], cells[name], algorithm, known(name))
    for names in _stacks(model, {name: schemes for name, schemes in cells.items() if name not in some}, algorithm):
        weights = {name: model.held_weight(name) for name in names}
        if len(names) > 1:
            weights = {name: weight.float() for name, weight in weights.items()}
        yield weights, ((scheme, _rounded(weights, scheme, algorithm, known)) for scheme in cells[names[0]])


def rounded_layers(
    model: Model, cells: Mapping[str, Sequence[str]], algorithm: str, curvature: Mapping[str, Curvature]
) -> Iterator[tuple[str, Matrices]]:
    """Yield each layer of ``cells`` once, with its weight rounded to each of its schemes, all of them at once."""
    for weights, by_scheme in rounded_cells(model, cells, algorithm, curvature):
        rounded: dict[str, Matrices] = {name: {} for name in weights}
        for scheme, matrices in by_scheme:
            for name, values in matrices.items():
                rounded[name][scheme] = values
        for name in weights:
            yield name, rounded.pop(name)


def _stacks(model: Model, cells: Mapping[str, Sequence[str]], algorithm: str) -> Iterator[list[str]]:
    """Put layers of as many columns and the same schemes together, up to STACKED weights."""
    if algorithm not in BY_ROWS:
        yield from ([name] for name in cells)  # in model order, in which second moments are collected
        return
    open_stacks: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for name, schemes in cells.items():
        layer = model.summary.by_name[name]
        key = (layer.matrix[1], tuple(schemes))
        weights = sum(model.summary.by_name[member].parameters for member in open_stacks.get(key, ()))
        if weights and weights + layer.parameters > STACKED:
            yield open_stacks.pop(key)
        open_stacks.setdefault(key, []).append(name)
    yield from open_stacks.values()


def _rounded(
    weights: Mapping[str, torch.Tensor], scheme: str, algorithm: str, known: Callable[[str], Curvature | None]
) -> dict[str, torch.Tensor]:
    import torch

    names = list(weights)
    if len(names) == 1 or not rounds_by_rows(scheme):
        return {n: round_weight(n, w, scheme, algorithm, known(n)).values for n, w in weights.items()}
    whole = round_weight(names[0], torch.cat(list(weights.values())), scheme, algorithm).values
    parts = torch.split(whole, [len(weight) for weight in weights.values()])
    return dict(zip(names, parts, strict=True))


def _some_rows(
    name: str, weight: torch.Tensor, rows: torch.Tensor, schemes: Sequence[str], algorithm: str, known: Curvature | None
) -> tuple[Matrices, Iterator[tuple[str, Matrices]]]:
    """Return those rows of a weight, with an iterator over the schemes and what each makes of them."""
    rows = rows.to(weight.device)
    part = weight[rows]

    def values(scheme: str) -> torch.Tensor:
        if algorithm in BY_ROWS and rounds_by_rows(scheme):
            return round_weight(name, part, scheme, algorithm).values
        return round_weight(name, weight, scheme, algorithm, known).values[rows]

    return {name: part}, ((scheme, {name: values(scheme)}) for scheme in schemes)


@cache
def rounds_by_rows(scheme: str) -> bool:
    """Return whether no row of a matrix has anything to do with another one under the scheme."""
    import torch

    parsed = parse_scheme(scheme)
    if not isinstance(parsed.granularity, (PerChannel, PerGroup)):
        return False
    fitted = parsed.fit(torch.ones(2, 32))
    return type(fitted) is Parameters and fitted.shared is None and len(fitted.scale) == 2
