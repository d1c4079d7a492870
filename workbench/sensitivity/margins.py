"""How much rounding moves the margins of rankings, from slopes of single samples: where no Kronecker form holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from workbench.measurement.gradients import GradientPass, batch_generator, fitting_batch
from workbench.models.data.batches import Data, numbered_batches, tappable
from workbench.models.model import Model
from workbench.sensitivity.differences import Differences
from workbench.sensitivity.directional_losses import SampleProducts
from workbench.sensitivity.rerouting import NEAR, RUNS, Rankings

Noise = dict[str, torch.Tensor]
"""By layer: standard deviations of the margins, float64 ``[rankings, schemes]``."""


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
    near = torch.zeros(rankings).double()
    for number, batch in numbered_batches(model, data, batch_size):
        if number * rankings >= RUNS:
            break
        products.begin(batch)
        ranked, generator = Rankings(), batch_generator(seed, number)

        def targets(
            output: torch.Tensor, ranked: Rankings = ranked, generator: torch.Generator = generator
        ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
            for ranking, margins in enumerate(ranked.margins[:rankings]):
                own = margins.detach()
                if not margins.requires_grad or not bool(own.isfinite().all()):
                    continue
                signs = torch.randint(0, 2, own.shape, generator=generator).to(own) * 2 - 1
                close = own <= own.quantile(NEAR)
                yield margins, signs * close
                near[ranking] += int(close.sum())
                for name, dots in products.taken().items():
                    squares[name][ranking] += dots.double().square().sum(dim=0).cpu()

        with ranked:
            gradients.run(
                batch, number * batch_size, seed, products.forward, products.backward, layers=products.watched(seen),
                targets=targets,
            )  # fmt: skip
    return {name: (each / near.clamp_min(1).unsqueeze(1)).sqrt() for name, each in squares.items()}
