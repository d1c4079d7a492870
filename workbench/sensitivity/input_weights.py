"""How much an error costs at each value of a layer's input: squared gradients in the bins of its histogram.

The loss of activation noise (:mod:`workbench.sensitivity.activations`) is a sum over positions of a squared gradient
times a squared rounding error.  A static quantizer's error depends on the value alone, so the squared gradients of
equal values can be added up beforehand: one run forward and backward then serves every range and every format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from workbench.measurement.gradients import batch_generator, drawn_gradient
from workbench.models.data.batches import Data, numbered_batches, require_data, units_of
from workbench.models.model import Model
from workbench.numerics.statistics.layer_statistics import BINS
from workbench.progress import Progress, silent

if TYPE_CHECKING:
    from workbench.models.model import Batch


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
    units, sums = 0, None
    for number, batch in numbered_batches(dataset, batch_size, progress, "gradients"):
        squares = _of_batch(model, layer, batch, edge, number, seed)
        if squares is not None:
            units += units_of(batch, model.summary)
            sums = squares if sums is None else sums + squares
    return None if sums is None or not units else np.asarray(sums / units)


def _of_batch(model: Model, layer: str, batch: Batch, edge: float, number: int, seed: int) -> np.ndarray | None:
    leaves: list[torch.Tensor] = []
    sums = np.zeros(BINS)

    def enter(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        begun = tensor if tensor.requires_grad else tensor.detach().requires_grad_()
        leaves.append(begun)
        own = begun.view_as(begun)  # a node of the graph for this layer alone
        values = own.detach()
        own.register_hook(lambda gradient: _add(sums, values, gradient, edge))  # type: ignore[no-untyped-call]
        return own

    with torch.enable_grad():
        output = model.run(batch, inputs={layer: enter})
    if not leaves or not output.requires_grad or not bool(output.detach().isfinite().all()):
        return None
    gradient = drawn_gradient(output, batch, model.summary.output, batch_generator(seed, number))
    torch.autograd.grad(output, leaves, gradient, allow_unused=True)
    return sums


def _add(sums: np.ndarray, values: torch.Tensor, gradient: torch.Tensor, edge: float) -> None:
    """Add half the squared gradients of ``values`` to the bins that hold the values."""
    place = ((values.double() + edge) * (BINS / (2 * edge))).floor().clamp(0, BINS - 1).long()
    squares = 0.5 * gradient.detach().double().square()
    sums += torch.bincount(place.reshape(-1), squares.reshape(-1), BINS).cpu().numpy()
