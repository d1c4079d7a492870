"""What it costs that rounding sends tokens to other experts: a step that no second order of the loss knows.

    loss of D = sum over routers of (share of tokens that change sides) * (cost of a token that does)

A router ranks scores; a token changes sides where the noise of the margin between the last chosen and the first other
score is larger than the margin.  For each layer and router

    sigma(D)**2 = mean over tokens near the border of < gradient of the margin at W, D > ** 2

is half of what :func:`workbench.numerics.curvature.predicted_loss` computes, with the margins in the place of the
log-likelihood: one backward pass with random signs serves all layers before a router.  The share is the mean of
``Phi(-margin / sigma)`` over all tokens, and the cost is measured: some tokens near the border are sent to the other
expert.  Noise of several layers adds up before it is compared with a margin, so that these losses add up in squares.
Where few tokens have all of the noise (those of one expert before the next router) only these can change sides: their
share ``p`` is the squared mean of the noise's size over its mean square, and ``p * Phi(-margin * sqrt(p) / sigma)`` do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from workbench.measurement.divergence import sample_divergence
from workbench.measurement.expert_sums import by_expert
from workbench.measurement.gradients import GradientPass, batch_generator
from workbench.measurement.weight_gradients import row_and_column_squares
from workbench.models.data.batches import Data, numbered_batches, samples_of, units_of
from workbench.models.layer import LayerKind
from workbench.models.model import Batch, Model, Routed
from workbench.numerics.curvature import Curvature, predicted_loss
from workbench.progress import Progress, silent
from workbench.sensitivity.scoring import Ticker

RUNS = 64
"""Backward passes through margins, at least one batch."""

NEAR = 0.25
"""The share of tokens with the smallest margins: those that rounding can send elsewhere."""

APART = 32
"""One token in so many of a sample is sent to another expert at once, so that their costs do not mix."""


class Rankings(TorchFunctionMode):
    """Notes the margins of every ranking; in ranking ``number`` the tokens ``rows`` get the next best choice."""

    def __init__(self, number: int = -1, rows: torch.Tensor | None = None) -> None:
        super().__init__()
        self.margins: list[torch.Tensor] = []
        self._number, self._rows = number, rows
        self._scores: torch.Tensor | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name == "max" and args and args[0] is self._scores:  # the score of the single best, asked for on its own
            return self._next_best(result)
        if name not in ("topk", "argmax", "argmin") or not args or not args[0].is_floating_point():
            return result
        scores, single = args[0], name != "topk"
        chosen = 1 if single else result.indices.shape[-1]
        place = 1 if single else 2
        axis = kwargs.get("dim", args[place] if len(args) > place else None if single else -1)
        if axis not in (-1, scores.ndim - 1) or chosen >= scores.shape[-1]:
            return result
        least = name == "argmin" or not kwargs.get("largest", args[3] if name == "topk" and len(args) > 3 else True)
        best = torch.topk(-scores.float() if least else _comparable(scores), chosen + 1, dim=-1)
        self.margins.append((best.values[..., -2] - best.values[..., -1]).reshape(-1))
        if self._rows is None or len(self.margins) - 1 != self._number:
            return result
        if single:
            numbers = result.reshape(-1).clone()
            numbers[self._rows] = best.indices[..., -1].reshape(-1)[self._rows]
            self._scores = scores
            return numbers.reshape(result.shape)
        values, indices = (each.clone().reshape(-1, chosen) for each in (result.values, result.indices))
        last, other = (best.indices[..., place].reshape(-1)[self._rows] for place in (-2, -1))
        place = (indices[self._rows] == last[:, None]).int().argmax(dim=1)
        values[self._rows, place] = scores.reshape(-1, scores.shape[-1])[self._rows, other]
        indices[self._rows, place] = other
        shape = result.indices.shape
        return torch.return_types.topk((values.reshape(shape), indices.reshape(shape)))

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


def _comparable(scores: torch.Tensor) -> torch.Tensor:
    """Return scores whose margins have one scale: logarithms of probabilities."""
    scores = scores.float()
    shares = bool((scores > 0).all()) and bool(((scores.sum(dim=-1) - 1).abs() < 1e-3).all())
    return scores.log() if shares else scores


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerouting:
    """``noise`` by layer and router: the curvature of the margin; ``margins`` float32 ``[tokens]`` and ``costs`` by
    router: the loss, in units of the model's, if every token changed sides; ``shares`` by layer and router of the
    tokens near the border whose margin the layer moves; ``one_token`` is the cost of one that changes sides."""

    model: Model
    margins: list[torch.Tensor]
    costs: list[float]
    noise: Mapping[tuple[str, int], Curvature]
    shares: Mapping[tuple[str, int], float]
    one_token: float

    def loss(self, layer: str, difference: torch.Tensor) -> float:
        """Return what sending tokens elsewhere costs where the weight of ``layer`` changes by ``difference``."""
        members = [each.name for each in self.model.summary.layers if layer in (each.name, each.tied_to)]
        known = [
            [self.noise[name, router] for name in members if (name, router) in self.noise]
            for router in range(len(self.margins))
        ]
        sigmas = [math.sqrt(2 * sum(predicted_loss(difference, each) for each in own)) for own in known]
        shares = [max(self.shares.get((name, router), 0.0) for name in members) for router in range(len(self.margins))]
        return self.loss_of(sigmas, shares)

    def loss_of(self, sigmas: Sequence[float], shares: Sequence[float]) -> float:
        """Return what it costs that of ``shares`` of the tokens the margins of each router move, by ``sigmas`` in the
        mean square of all."""
        total = 0.0
        for router, (margins, sigma, share) in enumerate(zip(self.margins, sigmas, shares, strict=True)):
            if sigma > 0:
                moved = torch.special.ndtr(-margins.double() * math.sqrt(share) / sigma).mean()
                total += share * float(moved) * self.costs[router]
        return total


def measure_rerouting(
    model: Model, data: Data, curvature: Mapping[str, Curvature], *, batch_size: int, seed: int,
    progress: Progress = silent,
) -> Rerouting | None:  # fmt: skip
    """Run up to RUNS backward passes and as many forward ones; None where nothing is ranked, or no margin is finite.

    ``curvature`` gives the second moments of the layers' inputs.
    """
    with torch.no_grad(), Rankings() as rankings:
        model.run(next(data.batches(1)) if model.inputs.batch is None else next(data.batches(model.inputs.batch)))
    routers = len(rankings.margins)
    if not routers:
        return None
    most = min(max(RUNS // routers, 1), -(-len(data) // batch_size))
    tick = Ticker(progress=progress, total=2 * routers * most)
    sums = _Sums(model=model, passes=GradientPass(model), curvature=curvature, tick=tick)
    for number, batch in numbered_batches(model, data, batch_size):
        if number < most:
            sums.add(batch, number, number * batch_size, seed)
    return sums.result()


@dataclass(slots=True, kw_only=True)
class _Sums:
    """``squares`` of the margins' gradients by layer and router, row and column, ``sizes`` the sums of the sizes of its
    rows' noise and of their squares; ``near`` counts their tokens, ``cost`` is the loss of ``sent`` tokens, by router.
    """

    model: Model
    passes: GradientPass
    curvature: Mapping[str, Curvature]
    tick: Ticker
    squares: dict[tuple[str, int], tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    sizes: dict[tuple[str, int], torch.Tensor] = field(default_factory=dict)
    margins: dict[int, list[torch.Tensor]] = field(default_factory=dict)
    near: Counter[int] = field(default_factory=Counter)
    cost: dict[int, float] = field(default_factory=dict)
    sent: Counter[int] = field(default_factory=Counter)
    units: int = 0
    _samples: int = 0
    _router: int = 0

    def add(self, batch: Batch, number: int, first: int, seed: int) -> None:
        """Run a batch, whose first sample is ``first``.

        Once back through the margins of each router, and once more with tokens sent elsewhere.
        """
        generator, self._samples = batch_generator(seed, number), samples_of(batch)
        rankings, close = Rankings(), list[torch.Tensor]()

        def targets(output: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
            for router, margins in enumerate(rankings.margins):
                self.tick(f"margins of router {router + 1} of {len(rankings.margins)}, batch {number + 1}")
                own = margins.detach()
                close.append(near_border(own))
                if margins.requires_grad and bool(close[-1].any()):
                    self._router = router
                    self.near[router] += int(close[-1].sum())
                    self.margins.setdefault(router, []).append(own.nan_to_num(math.inf, math.inf).cpu())
                    signs = torch.randint(0, 2, own.shape, generator=generator).to(own) * 2 - 1
                    yield margins, signs * close[-1]

        with rankings:
            output = self.passes.run(batch, first, seed, None, self._linear, experts=self, targets=targets)
        if not bool(output.isfinite().all()):
            return
        self.units += units_of(batch, self.model.summary)
        for router, mask in enumerate(close):
            self.tick(f"tokens of router {router + 1} of {len(close)} sent elsewhere, batch {number + 1}")
            rows = some_of_each(mask, self._samples, generator)
            with torch.no_grad(), Rankings(router, rows):
                moved = self.model.run(batch)
            cost = sample_divergence(output, moved, batch, self.model.summary.output).sum()
            if bool(cost.isfinite()):
                self.cost[router] = self.cost.get(router, 0.0) + float(cost)
                self.sent[router] += len(rows)

    def _linear(self, name: str, x: torch.Tensor, gradient: torch.Tensor) -> None:
        squares = row_and_column_squares(self.model.summary.by_name[name], x, gradient, self._samples, None)
        if squares is not None:
            self._add(name, squares[0], squares[1])
            lengths = x.flatten(0, -2).double().norm(dim=1) if x.is_floating_point() else 1.0
            self._add_sizes(name, gradient.flatten(0, -2).double().norm(dim=1) * lengths)

    def forward(self, name: str, routed: Routed, x: torch.Tensor, output: torch.Tensor) -> None:
        """Experts are seen on the way back."""

    def backward(self, name: str, routed: Routed, x: torch.Tensor, gradient: torch.Tensor) -> None:
        """Add the squared gradients of the rows of experts."""
        lengths = routed.rows(x).double().square().sum(dim=1, keepdim=True)
        own = routed.rows(gradient).double().square() * lengths
        rows = by_expert(own, routed.numbers, routed.count)
        self._add(name, rows, rows.new_zeros(0))
        self._add_sizes(name, own.sum(dim=1).sqrt())

    def _add_sizes(self, name: str, sizes: torch.Tensor) -> None:
        own = torch.stack([sizes.sum(), sizes.square().sum()]).cpu()
        self.sizes[name, self._router] = self.sizes.get((name, self._router), 0.0) + own

    def _add(self, name: str, rows: torch.Tensor, columns: torch.Tensor) -> None:
        before = self.squares.get((name, self._router))
        self.squares[name, self._router] = (
            (rows, columns) if before is None else (before[0] + rows, before[1] + columns)
        )

    def result(self) -> Rerouting | None:
        """Return the means; None where no token could be sent elsewhere."""
        if not self.units or not any(self.sent.values()):
            return None
        order = sorted(self.margins)
        margins = [torch.cat(self.margins[router]) for router in order]
        costs = [
            self.cost.get(router, 0.0) / max(self.sent[router], 1) * len(own) / self.units
            for router, own in zip(order, margins, strict=True)
        ]
        noise = {
            (name, order.index(router)): curvature for (name, router), squares in self.squares.items()
            if (curvature := self._noise(name, squares, self.near[router])) is not None
        }  # fmt: skip
        shares = {
            (name, order.index(router)): min(float(total**2 / squares) / max(self.near[router], 1), 1.0)
            for (name, router), (total, squares) in self.sizes.items() if squares > 0
        }  # fmt: skip
        one = max(cost / len(own) for cost, own in zip(costs, margins, strict=True))
        return Rerouting(model=self.model, margins=margins, costs=costs, noise=noise, shares=shares, one_token=one)

    def _noise(self, name: str, squares: tuple[torch.Tensor, torch.Tensor], near: int) -> Curvature | None:
        rows, columns = (each.cpu().numpy() / max(near, 1) for each in squares)
        kind, known = self.model.summary.by_name[name].kind, self.curvature.get(name)
        if kind is LayerKind.EMBEDDING:
            return Curvature(rows=rows / max(rows.sum(), 1e-300), columns=columns, full=None, count=near)
        if kind not in (LayerKind.LINEAR, LayerKind.EXPERTS) or known is None:
            return None
        lengths = known.by_run.sum(axis=1, keepdims=True)
        own = rows.reshape(len(lengths), -1) / np.maximum(lengths, np.finfo(np.float64).tiny)
        return Curvature(rows=own.reshape(-1), columns=known.columns, full=None, count=near)


def near_border(margins: torch.Tensor) -> torch.Tensor:
    """Return which of ``margins`` are among the smallest (bool): of those that are finite, as masked scores are not."""
    finite = margins.isfinite()
    return finite & (margins <= margins[finite].quantile(NEAR)) if bool(finite.any()) else finite


def some_of_each(mask: torch.Tensor, samples: int, generator: torch.Generator) -> torch.Tensor:
    """Return rows (int64) where ``mask`` (bool ``[rows]``) holds: of each sample one in APART, at least one if any."""
    order = torch.rand(len(mask), generator=generator).to(mask.device) * mask
    rows = order.reshape(samples, -1) if len(mask) % max(samples, 1) == 0 else order[None]
    best = rows.topk(min(max(rows.shape[1] // APART, 1), rows.shape[1]), dim=1)
    chosen = best.indices + torch.arange(len(rows), device=rows.device)[:, None] * rows.shape[1]
    return chosen[best.values > 0]
