"""How much an error costs at each value of a layer's input: squared gradients in the bins of its histogram.

The loss of activation noise (:mod:`workbench.sensitivity.activations`) is a sum over positions of a squared gradient
times a squared rounding error.  A static quantizer's error depends on the value alone, so the squared gradients of
equal values can be added up beforehand: one run forward and backward then serves every range and every format.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from workbench.models.data.batches import Data, numbered_batches, require_data, units_of
from workbench.models.model import Model
from workbench.numerics.statistics.layer_statistics import BINS
from workbench.progress import Progress, silent
from workbench.sensitivity.activations import ActivationGradients


def input_weights(
    model: Model, edges: Mapping[str, float], dataset: Data, *, batch_size: int = 8, seed: int = 0,
    progress: Progress = silent,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Return half the sums of squared gradients at the values of layers' inputs, float64 ``[BINS]`` each.

    Bins are equal over ``[-edge, edge]`` of the layer; values beyond count in the outer ones.  In nats per squared
    unit of the input, a mean over units (tokens or samples), so that weights times squared errors add up to the loss
    that ``predicted_kl_inputs`` predicts with the same data and seed.  Layers that no gradient reaches, and batches
    whose output is not finite, are left out.  Raises DataError, CannotRunError.
    """
    require_data(model, dataset, "the loss of an input range")
    units, sums, parts = 0, dict[str, np.ndarray](), dict[str, np.ndarray]()

    def weigh(name: str, values: torch.Tensor, gradient: torch.Tensor) -> None:
        edge = edges[name]
        place = ((values.double() + edge) * (BINS / (2 * edge))).floor().clamp(0, BINS - 1).long()
        squares = 0.5 * gradient.double().square()
        found = torch.bincount(place.reshape(-1), squares.reshape(-1), BINS).cpu().numpy()
        parts[name] = parts.get(name, 0) + found

    gradients = ActivationGradients(model=model, layers=tuple(edges), part="inputs", weigh=weigh)
    for number, batch in numbered_batches(model, dataset, batch_size, progress, "gradients"):
        parts.clear()
        output = gradients.forward(batch)
        if bool(output.detach().isfinite().all()) and gradients.backward(output, batch, number * batch_size, seed):
            units += units_of(batch, model.summary)
            sums |= {name: sums.get(name, 0) + part for name, part in parts.items()}
    return {name: each / units for name, each in sums.items()}
