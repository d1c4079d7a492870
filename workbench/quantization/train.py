"""Quantization-aware training: new weights on the grids of a plan's schemes, learned from a frozen FP teacher.

LSQ (Esser et al., "Learned Step Size Quantization", ICLR 2020): weights, steps and zero points are trained through
straight-through rounding; the rate falls with a cosine.  The loss is the divergence from the floating-point model or
the task's own.  The original model is never changed: the result is a
:class:`~workbench.quantization.quantize.QuantizedModel`.
"""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path

from workbench.errors import PlanError
from workbench.models.data.batches import Data, require_data
from workbench.models.execution.activation_quantizers import Ranges
from workbench.models.model import Model
from workbench.planning.plan import KEEP, Plan, resolve
from workbench.progress import Progress, silent
from workbench.quantization.learning.learn import learn_rounding, without_non_finite
from workbench.quantization.learning.loop import LearnOptions, Loss
from workbench.quantization.quantized_model import QuantizedModel, encoded, input_quantizers

STEP_RATE = 0.2
"""A scale's rate relative to that of the weights: shares of itself against steps of the grid."""


def train(
    model: Model, plan: Plan, dataset: Data, *, steps: int = 1000, learning_rate: float = 0.01,
    batch_size: int | None = None, loss: Loss = "kl", seed: int = 0, ranges: Ranges | None = None,
    checkpoint: str | Path | None = None, progress: Progress = silent,
) -> QuantizedModel:  # fmt: skip
    """Train the weights that ``plan`` quantizes and return them on their grids.

    ``learning_rate``: the most that a weight moves in the first step, in steps of its grid; more is not better (small
    Llama, int3 in groups of 32: KL 0.102 at 0.01 after 1000 steps, 0.169 at 0.04 after 600).  ``loss``: ``kl`` to the
    floating-point model, or ``task`` (cross-entropy to the data's labels or next tokens).  Quantized layer inputs are
    trained through as well, static ones by ``ranges``.  ``checkpoint`` is a file that is written every 50 steps and
    when the run is cancelled; the same call goes on from it, to the bits of an uninterrupted run.  The algorithms that
    the plan names are not used.  Raises FingerprintMismatchError, CannotRunError, DataError, PlanError where the plan
    quantizes nothing, NonFiniteError.
    """
    _require_untransformed(model, plan)
    require_data(model, dataset, "training")
    ranges = dict(ranges or {})
    assignments = resolve(plan, model.summary.layers)
    quantized = (layer.name for layer in model.summary.stored if assignments[layer.name].weights != KEEP)
    names, left = without_non_finite(model.summary, quantized)
    if not names:
        raise PlanError("the plan quantizes no layer, so there is nothing to train; give at least one layer a scheme")
    options = LearnOptions(
        steps=steps, batch_size=batch_size, rate=learning_rate, scale_rate=learning_rate * STEP_RATE,
        zero_rate=learning_rate, limit=None, loss=loss, seed=seed,
    )  # fmt: skip
    schemes = {name: assignments[name].weights for name in names}
    inputs = {name: assignment.inputs for name, assignment in assignments.items()}
    learned = learn_rounding(
        model, schemes, dataset, inputs=input_quantizers(model.summary, plan, ranges), options=options,
        checkpoint=checkpoint, circumstances=(inputs, repr(sorted(ranges.items(), key=itemgetter(0)))),
        purpose="training", progress=progress,
    )  # fmt: skip
    tensors = {name: encoded(schemes[name], rounded) for name, rounded in learned.items()}
    return QuantizedModel(
        summary=model.summary, plan=plan, tensors=tensors, ranges=ranges, notes=tuple(left.values()), left=left
    )


def _require_untransformed(model: Model, plan: Plan) -> None:
    """Raise FingerprintMismatchError for another model's plan, PlanError for one with transforms."""
    plan.require_model(model.summary)
    if plan.transforms:
        raise PlanError(
            f"the plan transforms the model ({', '.join(plan.transforms)}), training starts from the model as it is; "
            "take the transforms out of the plan to train on it"
        )
