"""Where a network chooses: rankings, thresholds, rounding.  How near each choice is, and its outcome the other way.

Torch knows no derivative there, so that what rounding weights costs by them is missing from any second order.  The
code of a network is followed function by function; what a single function does inside is smooth enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode


class Step(NamedTuple):
    """A hard step: ``margins`` (float ``[choices]``, samples first) are what its scores lack to the other outcome,
    ``turned(rows)`` is the result of its function where the choices ``rows`` (int64) have that one."""

    margins: torch.Tensor
    turned: Callable[[torch.Tensor], Any]


class Choices(TorchFunctionMode):
    """Notes the margins of every hard step until it is closed; step ``number`` has the other outcome in ``rows``.

    ``read`` are tensors whose numbers went to Python: what it does with them, nobody knows.
    """

    def __init__(self, number: int = -1, rows: torch.Tensor | None = None) -> None:
        super().__init__()
        self.margins: list[torch.Tensor] = []
        self.read: list[torch.Tensor] = []
        self.closed = False
        self._number, self._rows = number, rows
        self._scores: torch.Tensor | None = None

    def close(self) -> list[torch.Tensor]:
        """Return the margins of the network's steps; what runs later is not the network."""
        self.closed = True
        return self.margins

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if self.closed or not args or not isinstance(args[0], torch.Tensor):
            return result
        if name == "max" and args[0] is self._scores:  # the score of the single best, asked for on its own
            return self._next_best(result)
        if name in READS and args[0].requires_grad:
            self.read.append(args[0])
        make = STEPS.get(name)
        step = make(name, result, args, kwargs) if make is not None else None
        if step is None:
            return result
        self.margins.append(step.margins.reshape(-1))
        if self._rows is None or len(self.margins) - 1 != self._number:
            return result
        if name in ("argmax", "argmin"):
            self._scores = args[0]
        return step.turned(self._rows)

    def _next_best(self, result: Any) -> Any:
        """Return the answer of ``max`` with the second best scores and their places in ``rows``."""
        if self._scores is None or self._rows is None or not isinstance(result, torch.return_types.max):
            return result
        second = torch.topk(self._scores, 2, dim=-1)
        values, indices = (each.clone().reshape(-1) for each in result)
        for part, other in ((values, second.values), (indices, second.indices)):
            part[self._rows] = other[..., 1].reshape(-1)[self._rows]
        shape = result.indices.shape
        return torch.return_types.max((values.reshape(shape), indices.reshape(shape)))


def _argument(args: Any, kwargs: Mapping[str, Any], place: int, name: str, default: Any) -> Any:
    return kwargs.get(name, args[place] if len(args) > place else default)


def _ranking(name: str, result: Any, args: Any, kwargs: Mapping[str, Any]) -> Step | None:
    """The last chosen score and the first other one, of the last axis."""
    scores, single = args[0], name != "topk"
    chosen = 1 if single else result.indices.shape[-1]
    axis = _argument(args, kwargs, 1 if single else 2, "dim", None if single else -1)
    if not scores.is_floating_point() or axis not in (-1, scores.ndim - 1) or chosen >= scores.shape[-1]:
        return None
    least = name == "argmin" or not (single or _argument(args, kwargs, 3, "largest", True))
    best = torch.topk(-scores.float() if least else _comparable(scores), chosen + 1, dim=-1)

    def turned(rows: torch.Tensor) -> Any:
        if single:
            numbers = result.reshape(-1).clone()
            numbers[rows] = best.indices[..., -1].reshape(-1)[rows]
            return numbers.reshape(result.shape)
        values, indices = (each.clone().reshape(-1, chosen) for each in (result.values, result.indices))
        last, other = (best.indices[..., place].reshape(-1)[rows] for place in (-2, -1))
        place = (indices[rows] == last[:, None]).int().argmax(dim=1)
        values[rows, place] = scores.reshape(-1, scores.shape[-1])[rows, other]
        indices[rows, place] = other
        shape = result.indices.shape
        return torch.return_types.topk((values.reshape(shape), indices.reshape(shape)))

    return Step(_nonzero(best.values[..., -2] - best.values[..., -1]), turned)


def _comparable(scores: torch.Tensor) -> torch.Tensor:
    """Return scores whose margins have one scale: logarithms of probabilities."""
    scores = scores.float()
    shares = bool((scores > 0).all()) and bool(((scores.sum(dim=-1) - 1).abs() < 1e-3).all())
    return scores.log() if shares else scores


def _order(name: str, result: Any, args: Any, kwargs: Mapping[str, Any]) -> Step | None:
    """Neighbours of the last axis in an order."""
    scores, indices = args[0], result if name == "argsort" else result.indices
    axis = _argument(args, kwargs, 1, "dim", -1)
    if not scores.is_floating_point() or axis not in (-1, scores.ndim - 1) or scores.ndim < 1 or scores.shape[-1] < 2:
        return None
    pairs = scores.shape[-1] - 1

    def turned(rows: torch.Tensor) -> Any:
        rows = rows[~torch.isin(rows - 1, rows)]  # each changes places with one neighbour
        first = torch.div(rows, pairs, rounding_mode="floor") * (pairs + 1) + rows % pairs
        places = torch.arange(scores.numel(), device=scores.device)
        places[first], places[first + 1] = first + 1, first
        other = indices.reshape(-1)[places].reshape(indices.shape)
        return other if name == "argsort" else torch.return_types.sort((scores.gather(-1, other), other))

    return Step(_nonzero(scores.gather(-1, indices).diff(dim=-1).abs()), turned)


def _threshold(name: str, result: torch.Tensor, args: Any, kwargs: Mapping[str, Any]) -> Step | None:
    """A comparison of two numbers."""
    other = _argument(args, kwargs, 1, "other", None)
    if not args[0].is_floating_point() and not (isinstance(other, torch.Tensor) and other.is_floating_point()):
        return None

    def turned(rows: torch.Tensor) -> torch.Tensor:
        flat = result.clone().reshape(-1)
        flat[rows] = ~flat[rows]
        return flat.reshape(result.shape)

    return Step(_nonzero((args[0] - other).abs()), turned)


def _rounding(name: str, result: torch.Tensor, args: Any, kwargs: Mapping[str, Any]) -> Step | None:
    """A number and the border between two whole ones, or two signs, that is the nearest to it."""
    x = args[0]
    if not x.is_floating_point() or result.is_floating_point() and kwargs.get("decimals"):
        return None
    nearest, below = x.detach().round(), x.detach().floor()
    border, both = {
        "round": lambda: (below + 0.5, 2 * below + 1), "floor": lambda: (nearest, 2 * nearest - 1),
        "ceil": lambda: (nearest, 2 * nearest + 1), "sign": lambda: (0 * below, 0 * below),
    }.get(name, lambda: (nearest.masked_fill(nearest == 0, torch.inf), 2 * nearest - nearest.sign()))()  # fmt: skip

    def turned(rows: torch.Tensor) -> torch.Tensor:
        flat = result.clone().reshape(-1)
        flat[rows] = both.reshape(-1)[rows].to(flat) - flat[rows]
        return flat.reshape(result.shape)

    return Step(_nonzero((x - border).abs()), turned)


def _nonzero(margins: torch.Tensor) -> torch.Tensor:
    """Return margins without those that are 0 (infinite): numbers that are compared with themselves, or made 0."""
    return margins.masked_fill(margins == 0, torch.inf)


READS = ("item", "tolist", "__bool__", "__float__", "__int__")
"""Methods that give numbers to Python."""

STEPS: dict[str, Callable[[str, Any, Any, Mapping[str, Any]], Step | None]] = {
    **dict.fromkeys(("topk", "argmax", "argmin"), _ranking), **dict.fromkeys(("sort", "argsort"), _order),
    **dict.fromkeys(("gt", "ge", "lt", "le", "greater", "greater_equal", "less", "less_equal"), _threshold),
    **dict.fromkeys(("round", "floor", "ceil", "trunc", "sign", "long", "int"), _rounding),
}  # fmt: skip
"""By the name of torch's function or method."""
