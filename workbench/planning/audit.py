"""Whether losses add up: predicted, measured one layer at a time, and measured of the whole plan, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from workbench.errors import PlanError
from workbench.models.batches import Data, require_data, units_of
from workbench.models.divergence import sample_divergence
from workbench.models.model import Model
from workbench.planning.measured import Tick, replaced_rows
from workbench.progress import Progress, silent


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Audit:
    """Losses of one plan's weights in nats, against the floating-point model on the same data.

    ``predicted`` and ``alone`` (each layer quantized by itself) and ``joined`` (what quantizing it adds when all others
    are quantized already) are float64 ``[layers]``; ``predicted`` is NaN where no table has the cell.  ``whole`` is the
    measured loss of all of them together.
    """

    layers: tuple[str, ...]
    predicted: np.ndarray
    alone: np.ndarray
    joined: np.ndarray
    whole: float
    samples: int

    @property
    def predicted_sum(self) -> float:
        """The plan's predicted loss; NaN if a cell is missing."""
        return float(self.predicted.sum())

    @property
    def alone_sum(self) -> float:
        """The sum of the losses measured one layer at a time."""
        return float(self.alone.sum())

    @property
    def interaction(self) -> np.ndarray:
        """``joined - alone``, float64 ``[layers]``: above 0 where a layer's error makes the others' worse."""
        found: np.ndarray = self.joined - self.alone
        return found

    @property
    def correction(self) -> float:
        """``whole / predicted_sum``: what predictions near this plan are to be multiplied with; NaN without them.

        It is fitted to a measurement, so whoever shows a corrected prediction says so.
        """
        return self.whole / self.predicted_sum if self.predicted_sum > 0 else float("nan")

    def most_interacting(self, count: int = 5) -> tuple[str, ...]:
        """Return the layers of the largest interaction, whatever its sign, largest first."""
        order = np.argsort(-np.abs(self.interaction), kind="stable")
        return tuple(self.layers[index] for index in order[:count])

    def sentence(self) -> str:
        """Return the finding in words."""
        ratio = self.whole / self.alone_sum if self.alone_sum > 0 else float("nan")
        judged = "add up" if 0.8 <= ratio <= 1.25 else "do not add up"
        return (
            f"the layers' losses {judged}: together {self.whole:.4g} nats, one by one {self.alone_sum:.4g}, predicted "
            f"{self.predicted_sum:.4g} ({self.samples} samples)"
        )


def audit(
    model: Model,
    weights: Mapping[str, torch.Tensor],
    data: Data,
    *,
    predicted: Mapping[str, float] | None = None,
    batch_size: int = 8,
    progress: Progress = silent,
) -> Audit:
    """Measure ``weights`` (layer to its quantized matrix) one by one, all together, and all but one.

    ``predicted`` maps layers to the loss that a table gives them.  Raises PlanError if nothing is quantized,
    CannotRunError and DataError.
    """
    require_data(model, data, "an audit of the plan")
    layers = tuple(weights)
    if not layers:
        raise PlanError("the plan quantizes no layer, so there is nothing to audit")
    done = 0
    total = (2 * len(layers) + 1) * -(-len(data) // batch_size)

    def tick(text: str) -> None:
        nonlocal done
        progress(min(done / total, 1.0), text)
        done += 1

    wanted = dict.fromkeys(layers, ("",))
    rows = replaced_rows(model, wanted, lambda name, key: weights[name], data, batch_size=batch_size, tick=tick)
    alone = {name: losses[""] for name, losses in rows}
    views = [model.with_weights(weights)]
    views += [model.with_weights({name: weights[name] for name in layers if name != left}) for left in layers]
    whole, *without = _losses(model, views, data, batch_size, tick)
    found = predicted or {}
    return Audit(
        layers=layers, predicted=np.array([found.get(name, np.nan) for name in layers]),
        alone=np.array([alone[name] for name in layers]), joined=whole - np.array(without), whole=whole,
        samples=len(data),
    )  # fmt: skip


def _losses(model: Model, views: list[Model], data: Data, batch_size: int, tick: Tick) -> list[float]:
    """Return each view's divergence from the model, in nats per unit."""
    sums, units = [0.0] * len(views), 0
    with torch.no_grad():
        for number, batch in enumerate(data.batches(batch_size)):
            reference = model.run(batch)
            units += units_of(batch, model.summary)
            for index, view in enumerate(views):
                tick(f"the plan as a whole, batch {number + 1}")
                output = view.run(batch)
                sums[index] += float(sample_divergence(reference, output, batch, model.summary.output).sum())
    return [total / units for total in sums]
