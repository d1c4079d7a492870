"""How much an error costs at each value of a layer's input: squared gradients in the bins of its histogram.

The loss of activation noise (:mod:`workbench.sensitivity.activations`) is a sum over positions of a squared gradient
times a squared rounding error.  A static quantizer's error depends on the value alone, so the squared gradients of
equal values can be added up beforehand: one run forward and backward then serves every range and every format.
"""

from __future__ import annotations

import numpy as np
import torch

from workbench.models.data.batches import Data, numbered_batches, require_data, units_of
from workbench.models.model import Model
from workbench.numerics.statistics.layer_statistics import BINS
from workbench.progress import Progress, silent
from workbench.sensitivity.activations import ActivationGradients


def input_weights(
    model: Model, layer: str, dataset: Data, edge: float, *, batch_size: int = 8, seed: int = 0,
    progress: Progress = silent,
) -> np.ndarray | None:  # fmt: skip
    """Return half the sums of squared gradients at the values of ``layer``'s input, float64 ``[BINS]``.

    Bins are equal over ``[-edge, edge]``; values beyond count in the outer ones.  In nats per squared unit of the
    input, a mean over units (tokens or samples), so that weights times squared errors add up to the loss that
    ``predicted_kl_inputs`` predicts with the same data and seed.  None where no number that can be rounded enters the
    layer.  A batch whose output is not finite is left out.  Raises DataError, CannotRunError.
    """
    require_data(model, dataset, "the loss of an input range")
    units, sums = 0, np.zeros(BINS)
    parts: list[np.ndarray] = []

    def weigh(_: str, values: torch.Tensor, gradient: torch.Tensor) -> None:
        place = ((values.double() + edge) * (BINS / (2 * edge))).floor().clamp(0, BINS - 1).long()
        squares = 0.5 * gradient.double().square()
        parts.append(torch.bincount(place.reshape(-1), squares.reshape(-1), BINS).cpu().numpy())

    gradients = ActivationGradients(model=model, layers=(layer,), part="inputs", weigh=weigh)
    for number, batch in numbered_batches(model, dataset, batch_size, progress, "gradients"):
        parts.clear()
        output = gradients.forward(batch)
        if bool(output.detach().isfinite().all()) and gradients.backward(output, batch, number * batch_size, seed):
            units += units_of(batch, model.summary)
            sums += np.sum(parts, axis=0)
    return sums / units if units else None
