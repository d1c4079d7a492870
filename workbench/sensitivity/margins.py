"""How much rounding moves the margins of rankings, from slopes of single samples: where no Kronecker form holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from workbench.measurement.gradients import GradientPass, batch_generator, fitting_batch
from workbench.models.data.batches import Data, numbered_batches, samples_of, tappable
from workbench.models.execution.gradient_flow import Flow, flow_of
from workbench.models.model import Batch, Model
from workbench.sensitivity.choices import Choices
from workbench.sensitivity.differences import Differences
from workbench.sensitivity.directional_losses import SampleProducts
from workbench.sensitivity.rerouting import RUNS, near_border

Noise = dict[str, torch.Tensor]
"""By layer: standard deviations of the margins and the shares of the samples that have them, float64
``[2, rankings, schemes]``."""

GAUSSIAN = math.pi / 2
"""The mean square of normally distributed numbers in units of the square of their mean size."""


def margin_noise(
    model: Model, differences: Mapping[str, Differences], data: Data, routers: Sequence[int], *, batch_size: int,
    seed: int,
) -> Noise:  # fmt: skip
    """Return what every difference moves the margins near the border by, for each layer: zeros where it moves none.

    Up to RUNS backward passes, and as many of single samples for layers that no tap sees so (experts as modules).
    """
    products = SampleProducts(model=model, differences=differences)
    seen = {layer.name for layer in tappable(model)}
    gradients, batch_size = GradientPass(model), fitting_batch(batch_size, data, model, gradients=True)
    rankings = len(routers)
    sums, alone = _Sums.of(differences, rankings), _Sums.of(differences, rankings)
    for number, batch in numbered_batches(model, data, batch_size):
        if number * rankings >= RUNS:
            break
        products.begin(batch)
        ranked, generator = Choices(), batch_generator(seed, number)

        def targets(
            output: torch.Tensor, ranked: Choices = ranked, generator: torch.Generator = generator,
            count: int = samples_of(batch),
        ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:  # fmt: skip
            for ranking, margins in _of_routers(ranked, routers):
                close = near_border(margins.detach())
                if margins.requires_grad and bool(close.any()):
                    yield margins, _signs(close, generator)
                    sums.add(ranking, close, count, products.taken())

        with ranked:
            gradients.run(
                batch, number * batch_size, seed, products.forward, products.backward, layers=products.watched(seen),
                targets=targets,
            )  # fmt: skip
        hidden = products.unseen(seen)
        some = RUNS // rankings - number * batch_size if hidden and flow_of(model) is not Flow.NONE else 0
        for index in range(min(samples_of(batch), some)):
            sample = {key: tensor[index : index + 1] for key, tensor in batch.items()}
            _add_alone(alone, model, {name: differences[name] for name in hidden}, sample, ranked, routers, generator)
    return {name: (alone if name in products.unseen(seen) else sums).noise(name) for name in differences}


def _add_alone(
    sums: _Sums, model: Model, differences: Mapping[str, Differences], sample: Batch, ranked: Choices,
    routers: Sequence[int], generator: torch.Generator,
) -> None:  # fmt: skip
    """Differentiate the margins of one sample, those near the border of its batch, which ``ranked`` has."""
    leaves = {name: model.held_weight(name).detach().float().clone().requires_grad_() for name in differences}
    with torch.enable_grad(), Choices() as own, flow_of(model).mode():
        model.with_weights(leaves).run(sample)
    of_batches = dict(_of_routers(ranked, routers))
    for ranking, margins in _of_routers(own, routers):
        of_batch = of_batches[ranking].detach() if ranking in of_batches else margins.detach()
        border = of_batch[near_border(of_batch)].max() if bool(of_batch.isfinite().any()) else -math.inf
        close = margins.detach() <= border
        if not margins.requires_grad or not bool(close.any()):
            continue
        gradients = torch.autograd.grad(
            margins, list(leaves.values()), _signs(close, generator), allow_unused=True, retain_graph=True
        )
        known = {name: each[None] for name, each in zip(differences, gradients, strict=True) if each is not None}
        sums.add(ranking, close, 1, {name: differences[name].products(each) for name, each in known.items()})


def _of_routers(choices: Choices, routers: Sequence[int]) -> Iterator[tuple[int, torch.Tensor]]:
    """Yield the place of each of ``routers`` and its margins, as far as the run came to it."""
    every = choices.close()
    yield from ((place, every[router]) for place, router in enumerate(routers) if router < len(every))


def _signs(close: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return random signs where ``close`` (bool) holds, 0 elsewhere; float32."""
    return (torch.randint(0, 2, close.shape, generator=generator).to(close.device).float() * 2 - 1) * close


@dataclass(frozen=True, slots=True)
class _Sums:
    """``near`` margins and ``samples`` with such, float64 ``[rankings]``; ``squares`` and ``sizes`` of what every
    difference moves them by, float64 ``[rankings, schemes]`` by layer."""

    near: torch.Tensor
    samples: torch.Tensor
    squares: dict[str, torch.Tensor]
    sizes: dict[str, torch.Tensor]

    @staticmethod
    def of(differences: Mapping[str, Differences], rankings: int) -> _Sums:
        squares = {name: torch.zeros(rankings, len(each.values)).double() for name, each in differences.items()}
        sizes = {name: torch.zeros_like(each) for name, each in squares.items()}
        return _Sums(torch.zeros(rankings).double(), torch.zeros(rankings).double(), squares, sizes)

    def add(self, ranking: int, close: torch.Tensor, count: int, products: Mapping[str, torch.Tensor]) -> None:
        """Add ``products`` (``[samples, schemes]`` by layer) of the margins of ``count`` samples that are ``close``."""
        self.near[ranking] += int(close.sum())
        self.samples[ranking] += len(torch.unique(close.nonzero() * count // len(close)))  # that have such a token
        for name, dots in products.items():
            self.squares[name][ranking] += dots.double().square().sum(dim=0).cpu()
            self.sizes[name][ranking] += dots.double().abs().sum(dim=0).cpu()

    def noise(self, name: str) -> torch.Tensor:
        """Return the noise of a layer, float64 ``[2, rankings, schemes]``."""
        counts = self.samples.clamp_min(1).unsqueeze(1)
        shares = GAUSSIAN * (self.sizes[name] / counts).square() / (self.squares[name] / counts)
        sigmas = (self.squares[name] / self.near.clamp_min(1).unsqueeze(1)).sqrt()
        return torch.stack([sigmas, shares.nan_to_num(0.0).clamp_max(1.0)])
