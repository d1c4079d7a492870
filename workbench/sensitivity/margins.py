"""How much rounding moves the margins of rankings, from slopes of single samples: where no Kronecker form holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import torch

from workbench.measurement.gradients import GradientPass, batch_generator, fitting_batch
from workbench.models.data.batches import Data, numbered_batches, samples_of, tappable
from workbench.models.model import Model
from workbench.sensitivity.differences import Differences
from workbench.sensitivity.directional_losses import SampleProducts
from workbench.sensitivity.rerouting import RUNS, Rankings, near_border

Noise = dict[str, torch.Tensor]
"""By layer: standard deviations of the margins and the shares of the samples that have them, float64
``[2, rankings, schemes]``."""

GAUSSIAN = math.pi / 2
"""The mean square of normally distributed numbers in units of the square of their mean size."""


def margin_noise(
    model: Model, differences: Mapping[str, Differences], data: Data, rankings: int, *, batch_size: int, seed: int
) -> Noise:
    """Return what every difference moves the margins near the border by, for each layer that a tap sees.

    Up to RUNS backward passes.  A layer that no margin depends on has zeros.
    """
    products = SampleProducts(model=model, differences=differences)
    seen = {layer.name for layer in tappable(model)}
    gradients, batch_size = GradientPass(model), fitting_batch(batch_size, data, model, gradients=True)
    squares = {name: torch.zeros(rankings, len(each.scale)).double() for name, each in differences.items()}
    sizes = {name: torch.zeros_like(each) for name, each in squares.items()}
    near, samples = torch.zeros(rankings).double(), torch.zeros(rankings).double()
    for number, batch in numbered_batches(model, data, batch_size):
        if number * rankings >= RUNS:
            break
        products.begin(batch)
        ranked, generator = Rankings(), batch_generator(seed, number)

        def targets(
            output: torch.Tensor, ranked: Rankings = ranked, generator: torch.Generator = generator,
            count: int = samples_of(batch),
        ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:  # fmt: skip
            for ranking, margins in enumerate(ranked.margins[:rankings]):
                own = margins.detach()
                close = near_border(own)
                if not margins.requires_grad or not bool(close.any()):
                    continue
                signs = torch.randint(0, 2, own.shape, generator=generator).to(own) * 2 - 1
                yield margins, signs * close
                near[ranking] += int(close.sum())
                samples[ranking] += len(torch.unique(close.nonzero() * count // len(close)))  # that have such a token
                for name, dots in products.taken().items():
                    squares[name][ranking] += dots.double().square().sum(dim=0).cpu()
                    sizes[name][ranking] += dots.double().abs().sum(dim=0).cpu()

        with ranked:
            gradients.run(
                batch, number * batch_size, seed, products.forward, products.backward, layers=products.watched(seen),
                targets=targets,
            )  # fmt: skip
    counts = samples.clamp_min(1).unsqueeze(1)
    return {
        name: torch.stack([
            (each / near.clamp_min(1).unsqueeze(1)).sqrt(),
            (GAUSSIAN * (sizes[name] / counts).square() / (each / counts)).nan_to_num(0.0).clamp_max(1.0),
        ])
        for name, each in squares.items()
    }  # fmt: skip
