"""The measurements of an audit: every layer alone, all together, and all but one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch

from workbench.errors import PlanError
from workbench.measurement.divergence import sample_divergence
from workbench.measurement.finite_batches import FiniteBatches
from workbench.models.data.batches import Data, require_data, units_of
from workbench.models.model import Model
from workbench.progress import Progress, silent
from workbench.sensitivity.audit import Audit
from workbench.sensitivity.measured import replaced_rows
from workbench.sensitivity.scoring import Ticker


def audit(
    model: Model,
    weights: Mapping[str, torch.Tensor],
    data: Data,
    *,
    predicted: Mapping[str, float] | None = None,
    predicted_interaction: float = 0.0,
    batch_size: int = 8,
    progress: Progress = silent,
) -> Audit:
    """Measure ``weights`` (layer to its quantized matrix) one by one, all together, and all but one.

    ``predicted`` maps layers to the loss that a table gives them; ``predicted_interaction`` is what it says they cost
    together beyond that.  Raises PlanError if nothing is quantized, CannotRunError and DataError.
    """
    require_data(model, data, "an audit of the plan")
    layers = tuple(weights)
    if not layers:
        raise PlanError("the plan quantizes no layer, so there is nothing to audit")
    tick = Ticker(progress=progress, total=(2 * len(layers) + 1) * -(-len(data) // batch_size))
    finite = FiniteBatches(model=model)
    cells = dict.fromkeys(layers, ("",))
    rows = replaced_rows(
        model, cells, lambda names: {name: {"": weights[name]} for name in names}, data, batch_size=batch_size,
        tick=tick, finite=finite,
    )  # fmt: skip
    alone = {name: losses[""] for name, losses in rows}
    views = [model.with_weights(weights)]
    views += [model.with_weights({name: weights[name] for name in layers if name != left}) for left in layers]
    whole, *without = _losses(model, views, data, batch_size, tick, finite)
    predictions = predicted or {}
    return Audit(
        layers=layers, predicted=np.array([predictions.get(name, np.nan) for name in layers]),
        alone=np.array([alone[name] for name in layers]), joined=whole - np.array(without), whole=whole,
        samples=len(data), notes=(*finite.notes, *_unreached(alone)),
        predicted_interaction=predicted_interaction,
    )  # fmt: skip


def _unreached(alone: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(
        f"the data never reached the layer {name}: what quantizing it costs is not known, and counts nowhere here"
        for name, loss in alone.items() if np.isnan(loss)
    )  # fmt: skip


def _losses(
    model: Model, views: list[Model], data: Data, batch_size: int, tick: Callable[[str], None], finite: FiniteBatches
) -> list[float]:
    """Return each view's divergence from the model, in nats per unit."""
    sums, units = [0.0] * len(views), 0
    for number, batch, reference in finite.of(data, batch_size):
        units += units_of(batch, model.summary)
        for index, view in enumerate(views):
            tick(f"the plan as a whole, batch {number + 1}")
            with torch.no_grad():
                output = view.run(batch)
            sums[index] += float(sample_divergence(reference, output, batch, model.summary.output).sum())
    return [total / units for total in sums]
