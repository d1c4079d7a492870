"""Whether losses add up: predicted, measured one layer at a time, and measured of the whole plan, side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import PlanError
from workbench.models.model import Model
from workbench.progress import Progress, silent

if TYPE_CHECKING:
    import torch

    from workbench.measurement.finite_batches import FiniteBatches
    from workbench.models.data.batches import Data


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformLoss:
    """A plan of one scheme that takes no more bytes, measured on the same samples, in nats.

    ``low`` and ``high`` bound the 95 % bootstrap interval of the audited plan's loss minus this one's.
    """

    scheme: str
    bits_per_weight: float
    loss: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Audit:
    """Losses of one plan's weights in nats, against the floating-point model on the same data.

    ``predicted`` and ``alone`` (each layer quantized by itself) and ``joined`` (what quantizing it adds when all others
    are quantized already) are float64 ``[layers]``; ``predicted`` is NaN where no table has the cell.  ``whole`` is the
    measured loss of all of them together.  ``alone`` is NaN for a layer that no data reached: it adds nothing to the
    sums.  ``notes`` say what was left out.  ``predicted_interaction`` is what the errors are predicted to cost together
    beyond the sum, where the table knows that.  ``low`` and ``high`` bound the 95 % bootstrap interval of ``whole``,
    ``predicted_error`` is the standard error of the whole prediction by its own ``predicted_samples`` (NaN: not known).
    ``predicted_doubt`` is what its form may be wrong by, as a logarithm at 95 % (NaN: not known).
    ``uniform`` are plans of one scheme and at most this size, the best predicted first.
    """

    layers: tuple[str, ...]
    predicted: np.ndarray
    alone: np.ndarray
    joined: np.ndarray
    whole: float
    samples: int
    notes: tuple[str, ...] = ()
    predicted_interaction: float = 0.0
    low: float = math.nan
    high: float = math.nan
    predicted_error: float = math.nan
    predicted_samples: int = 0
    uniform: tuple[UniformLoss, ...] = ()
    predicted_doubt: float = math.nan

    @property
    def predicted_sum(self) -> float:
        """The plan's predicted loss; NaN if a cell of a layer that data reached is missing."""
        return float(self.predicted[self.reached].sum())

    @property
    def alone_sum(self) -> float:
        """The sum of the losses measured one layer at a time."""
        return float(self.alone[self.reached].sum())

    @property
    def reached(self) -> np.ndarray:
        """Which layers the data reached, bool ``[layers]``."""
        reached: np.ndarray = ~np.isnan(self.alone)
        return reached

    @property
    def interaction(self) -> np.ndarray:
        """``joined - alone``, float64 ``[layers]``: above 0 where a layer's error makes the others' worse."""
        difference: np.ndarray = self.joined - self.alone
        return difference

    @property
    def correction(self) -> float:
        """``whole / predicted_whole``: what predictions near this plan are to be multiplied with; NaN without them.

        It is fitted to a measurement, so whoever shows a corrected prediction says so.
        """
        return self.whole / self.predicted_whole if self.predicted_whole > 0 else float("nan")

    @property
    def predicted_whole(self) -> float:
        """The predicted loss of all layers together, as the totals of a plan say it; NaN if a cell is missing."""
        return self.predicted_sum + self.predicted_interaction

    def most_interacting(self, count: int = 5) -> tuple[str, ...]:
        """Return the layers of the largest interaction, whatever its sign, largest first."""
        order = np.argsort(-np.abs(np.nan_to_num(self.interaction)), kind="stable")
        return tuple(self.layers[index] for index in order[:count])

    @property
    def best_uniform(self) -> UniformLoss | None:
        """The measured uniform plan of the least loss, None where none was measured."""
        return min(self.uniform, key=lambda plan: plan.loss, default=None)

    def against_uniform(self, unit: str) -> str:
        """Return how the plan compares with the best uniform one of at most its size; empty where none was measured.

        ``unit`` is that of the losses.
        """
        best = self.best_uniform
        if best is None:
            return ""
        if best.high < 0 or best.low > 0:
            verdict = "is better than" if best.high < 0 else "is WORSE than"
        else:
            verdict = "cannot be told by these samples from"
        advice = "; take that one, or calibrate on more samples and search again" if best.low > 0 else ""
        return (
            f"the plan {verdict} the best uniform plan of at most its size: {self.whole:.4g} {unit}, {best.scheme} "
            f"{best.loss:.4g} (difference {best.low:.3g} to {best.high:.3g}){advice}"
        )

    def sentence(self, unit: str) -> str:
        """Return the finding in words; ``unit`` is that of the losses."""
        ratio = self.whole / self.alone_sum if self.alone_sum > 0 else float("nan")
        judged = "add up" if 0.8 <= ratio <= 1.25 else "do not add up"
        predicted = "not known" if np.isnan(self.predicted_sum) else f"{self.predicted_sum:.4g}"
        if self.predicted_interaction:
            predicted = f"{self.predicted_whole:.4g} together and {predicted} one by one"
        bounds = "" if math.isnan(self.low) else f" ({self.low:.3g} to {self.high:.3g})"
        return (
            f"the layers' losses {judged}: together {self.whole:.4g} {unit}{bounds}, one by one {self.alone_sum:.4g}, "
            f"predicted {predicted} ({self.samples} samples)"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanAudit:
    """An audit and the plan that it belongs to.

    ``rounded_inputs`` and ``cached`` are how many layers' inputs, and keys or values, the plan also rounds: an audit
    leaves them as they are.
    """

    plan_name: str
    plan_hash: str
    rounded_inputs: int
    cached: int
    audit: Audit


def audit_weights(
    model: Model, weights: Mapping[str, torch.Tensor], data: Data, *, predicted: Mapping[str, float] | None = None,
    predicted_interaction: float = 0.0, predicted_error: float | None = None, predicted_samples: int = 0,
    predicted_doubt: float = math.nan, uniform: Mapping[tuple[str, float], Mapping[str, torch.Tensor]] | None = None,
    batch_size: int = 8, progress: Progress = silent,
) -> Audit:  # fmt: skip
    """Measure ``weights`` (layer to its quantized matrix) one by one, all together, and all but one.

    ``predicted`` maps layers to the loss that a table gives them; ``predicted_interaction`` is what it says they cost
    together beyond that.  ``uniform`` maps (scheme, bits per weight) to the weights of plans to compare with.
    Raises PlanError if nothing is quantized, CannotRunError and DataError.
    """
    from workbench.measurement.finite_batches import FiniteBatches
    from workbench.models.data.batches import require_data
    from workbench.sensitivity.measured import replaced_rows
    from workbench.sensitivity.scoring import Ticker

    require_data(model, data, "an audit of the plan")
    layers = tuple(weights)
    if not layers:
        raise PlanError("the plan quantizes no layer, so there is nothing to audit")
    others = dict(uniform or {})
    tick = Ticker(progress=progress, total=(2 * len(layers) + len(others) + 1) * -(-len(data) // batch_size))
    finite = FiniteBatches(model=model)
    rows = replaced_rows(
        model, dict.fromkeys(layers, ("",)), lambda names: {name: {"": weights[name]} for name in names}, data,
        batch_size=batch_size, tick=tick, finite=finite,
    )  # fmt: skip
    alone = {name: losses[""] for name, losses in rows}
    views = [model.with_weights(weights), *(model.with_weights(matrices) for matrices in others.values())]
    views += [model.with_weights({name: weights[name] for name in layers if name != left}) for left in layers]
    each, units = _losses(model, views, data, batch_size, tick, finite)
    whole, *losses = (float(sample.sum()) / units for sample in each)
    low, high = _interval(each[0], units)
    unreached = (
        f"the data never reached the layer {name}: what quantizing it costs is not known, and counts nowhere here"
        for name, loss in alone.items() if np.isnan(loss)
    )  # fmt: skip
    return Audit(
        layers=layers, predicted=np.array([(predicted or {}).get(name, np.nan) for name in layers]),
        alone=np.array([alone[name] for name in layers]), joined=whole - np.array(losses[len(others) :]), whole=whole,
        samples=len(data), notes=(*finite.notes, *unreached), predicted_interaction=predicted_interaction, low=low,
        high=high, predicted_error=math.nan if predicted_error is None else predicted_error,
        predicted_samples=predicted_samples, predicted_doubt=predicted_doubt, uniform=tuple(
            UniformLoss(scheme=scheme, bits_per_weight=bits, loss=loss, low=bounds[0], high=bounds[1])
            for (scheme, bits), loss, bounds in zip(
                others, losses, (_interval(each[0] - other, units) for other in each[1:]), strict=False
            )
        ),
    )  # fmt: skip


def _losses(
    model: Model, views: list[Model], data: Data, batch_size: int, tick: Callable[[str], None], finite: FiniteBatches
) -> tuple[list[np.ndarray], int]:
    """Return each view's divergence from the model by sample (float64, summed over its units), and all units."""
    import torch

    from workbench.measurement.divergence import sample_divergence
    from workbench.models.data.batches import units_of

    sums, units = [list[np.ndarray]() for _ in views], 0
    for number, batch, reference in finite.of(data, batch_size):
        units += units_of(batch, model.summary)
        for index, view in enumerate(views):
            tick(f"the plan as a whole, batch {number + 1}")
            with torch.no_grad():
                output = view.run(batch)
            divergence = sample_divergence(reference, output, batch, model.summary.output)
            sums[index].append(divergence.double().cpu().numpy())
    return [np.concatenate(parts) for parts in sums], units


def _interval(each: np.ndarray, units: int) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the sum of ``each`` over ``units``, by samples."""
    from workbench.measurement.bootstrap import interval

    low, high = interval(each, np.ones(each.size), seed=0)
    return low * each.size / units, high * each.size / units
