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
Every other hard step of a network (:mod:`workbench.sensitivity.choices`) is a router in this sense, and what it decides
on is a token.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from workbench.errors import DataError
from workbench.measurement.divergence import sample_divergence
from workbench.measurement.expert_sums import by_expert
from workbench.measurement.gradients import GradientPass, batch_generator
from workbench.measurement.weight_gradients import row_and_column_squares
from workbench.memory import give_back
from workbench.models.data.batches import Data, numbered_batches, samples_of, tappable, units_of
from workbench.models.layer import LayerKind
from workbench.models.model import Batch, Model, Routed
from workbench.numerics.curvature import Curvature, predicted_loss
from workbench.progress import Progress, silent
from workbench.sensitivity.choices import Choices
from workbench.sensitivity.scoring import Ticker

RUNS = 64
"""Backward passes through margins, at least one batch."""

NEAR = 0.25
"""The share of tokens with the smallest margins: those that rounding can send elsewhere."""

KEPT = 1 << 16
"""About so many margins of a batch are kept."""

APART = 32
"""One token in so many of a sample is sent to another expert at once, so that their costs do not mix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerouting:
    """``routers`` are the numbers of the hard steps, in the order of all else; ``noise`` by layer and router: the
    curvature of the margin; ``margins`` float32 ``[tokens]`` and ``costs`` by router: the loss, in units of the
    model's, if every token changed sides; ``shares`` by layer and router of the tokens near the border whose margin the
    layer moves; ``one_token`` is the cost of one that changes sides."""

    model: Model
    routers: tuple[int, ...]
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
    model: Model, numbers: tuple[int, ...], data: Data, curvature: Mapping[str, Curvature], *, batch_size: int,
    seed: int, progress: Progress = silent,
) -> Rerouting | None:  # fmt: skip
    """Run up to RUNS backward passes and as many forward ones for the hard steps ``numbers``.

    ``curvature`` gives the second moments of the layers' inputs.  None where there are no steps, no margin is finite.
    """
    if not numbers:
        return None
    most = min(max(RUNS // len(numbers), 1), -(-len(data) // batch_size))
    tick = Ticker(progress=progress, total=2 * len(numbers) * most)
    sums = _Sums(model=model, passes=GradientPass(model), curvature=curvature, tick=tick, numbers=numbers)
    for number, batch in numbered_batches(model, data, batch_size):
        if number < most:
            sums.add(batch, number, number * batch_size, seed)
    return sums.result()


class HardSteps(NamedTuple):
    """``numbers`` of the steps whose margins depend on weights; ``decisive`` are layers on which numbers depend that
    went to Python, or may depend: those that no tap sees."""

    numbers: tuple[int, ...] = ()
    decisive: frozenset[str] = frozenset()


def hard_steps(model: Model, data: Data) -> HardSteps:
    """Return the hard steps that the first sample shows."""
    batch, passes = next(data.batches(model.inputs.batch or 1)), GradientPass(model)
    passes.tried(batch)  # whose own hard steps do not count
    choices, decisive = Choices(), set[str]()

    def reading(output: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        choices.close()
        yield from ((each, torch.ones_like(each)) for each in choices.read)

    def reached(name: str, gradient: torch.Tensor) -> None:
        decisive.update([name] if bool(gradient.any()) else ())

    def watch(name: str, x: torch.Tensor, output: torch.Tensor) -> None:
        if output.requires_grad:
            output.register_hook(partial(reached, name))  # type: ignore[no-untyped-call]

    with choices:
        passes.run(batch, 0, 0, watch, None, targets=reading)
    give_back()  # what the passes kept for the way back
    if choices.read:
        seen = {layer.name for layer in tappable(model)}
        decisive.update(layer.name for layer in model.summary.layers if layer.name not in seen)
    numbers = tuple(number for number, each in enumerate(choices.margins) if each.requires_grad)
    return HardSteps(numbers, frozenset(model.summary.by_name[name].tied_to or name for name in decisive))


@dataclass(slots=True, kw_only=True)
class _Sums:
    """``squares`` of the margins' gradients by layer and router, row and column, ``sizes`` the sums of the sizes of its
    rows' noise and of their squares; ``near`` counts their tokens, ``cost`` is the loss of ``sent`` tokens, by router.
    """

    model: Model
    passes: GradientPass
    curvature: Mapping[str, Curvature]
    tick: Ticker
    numbers: tuple[int, ...]
    squares: dict[tuple[str, int], tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    sizes: dict[tuple[str, int], torch.Tensor] = field(default_factory=dict)
    margins: dict[int, list[torch.Tensor]] = field(default_factory=dict)
    near: Counter[int] = field(default_factory=Counter)
    count: Counter[int] = field(default_factory=Counter)
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
        choices, close = Choices(), dict[int, torch.Tensor]()

        def targets(output: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
            every = choices.close()
            for place, router in enumerate(self.numbers):
                self.tick(f"margins of router {place + 1} of {len(self.numbers)}, batch {number + 1}")
                own = every[router].detach() if router < len(every) else output.new_zeros(0)
                near = near_border(own)
                if bool(near.any()) and every[router].requires_grad:
                    self._router, close[router] = router, closeness(own) * near
                    self.near[router] += int(near.sum())
                    self.count[router] += len(own)
                    self.margins.setdefault(router, []).append(some(own).nan_to_num(math.inf, math.inf).cpu())
                    signs = torch.randint(0, 2, own.shape, generator=generator).to(own) * 2 - 1
                    yield every[router], signs * near

        with choices:
            output = self.passes.run(batch, first, seed, None, self._linear, experts=self, targets=targets)
        if not bool(output.isfinite().all()):
            return
        self.units += units_of(batch, self.model.summary)
        for place, (router, order) in enumerate(close.items()):
            self.tick(f"tokens of router {place + 1} of {len(close)} sent elsewhere, batch {number + 1}")
            self._turn(router, closest_of_each(order, self._samples), batch, output)

    def _turn(self, router: int, rows: torch.Tensor, batch: Batch, output: torch.Tensor) -> None:
        """Measure what it costs that the choices ``rows`` of a router have the other outcome.

        Nothing where the network does not run so: a check of its own numbers, say, that they pass by far.
        """
        try:
            with torch.no_grad(), Choices(router, rows):
                moved = self.model.run(batch)
        except DataError:
            return
        if moved.shape != output.shape:
            return
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
            self.cost.get(router, 0.0) / max(self.sent[router], 1) * self.count[router] / self.units for router in order
        ]
        noise = {
            (name, order.index(router)): curvature for (name, router), squares in self.squares.items()
            if (curvature := self._noise(name, squares, self.near[router])) is not None
        }  # fmt: skip
        shares = {
            (name, order.index(router)): min(float(total**2 / squares) / max(self.near[router], 1), 1.0)
            for (name, router), (total, squares) in self.sizes.items() if squares > 0
        }  # fmt: skip
        one = max(cost / self.count[router] for cost, router in zip(costs, order, strict=True))
        return Rerouting(
            model=self.model, routers=tuple(order), margins=margins, costs=costs, noise=noise, shares=shares,
            one_token=one,
        )  # fmt: skip

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
    return finite & (margins <= some(margins[finite]).quantile(NEAR)) if bool(finite.any()) else finite


def some(margins: torch.Tensor) -> torch.Tensor:
    """Return evenly some of many margins."""
    return margins[:: max(len(margins) // KEPT, 1)]


def closeness(margins: torch.Tensor) -> torch.Tensor:
    """Return float32, the larger the nearer to the border, 0 where a margin is not finite."""
    return 1 / (1 + margins.float().nan_to_num(math.inf, math.inf))


def closest_of_each(order: torch.Tensor, samples: int) -> torch.Tensor:
    """Return the rows (int64) with the largest of ``order`` (``[rows]``): of each sample one in APART, at least one,
    where it is above 0.

    What falls out otherwise is near the border; a step of a continuous function costs nothing there.
    """
    rows = order.reshape(samples, -1) if len(order) % max(samples, 1) == 0 else order[None]
    best = rows.topk(min(max(rows.shape[1] // APART, 1), rows.shape[1]), dim=1)
    chosen = best.indices + torch.arange(len(rows), device=rows.device)[:, None] * rows.shape[1]
    return chosen[best.values > 0]
