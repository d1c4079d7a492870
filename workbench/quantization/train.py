"""Quantization-aware training: new weights on the grids of a plan's schemes, learned from a frozen FP teacher.

LSQ (Esser et al., "Learned Step Size Quantization", ICLR 2020): weights, steps and zero points are trained through
straight-through rounding; the rate falls with a cosine.  The loss is the divergence from the floating-point model or
the task's own.  The original model is never changed: the result is a
:class:`~workbench.quantization.quantize.QuantizedModel`.
"""

from __future__ import annotations

from pathlib import Path

from workbench.errors import PlanError
from workbench.models.data.batches import Data, require_data
from workbench.models.execution.activation_quantizers import Ranges
from workbench.models.model import Model
from workbench.numerics.formats import parse_scheme
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.rounding.algorithm import Rounded
from workbench.planning.plan import KEEP, Assignment, Plan, resolve
from workbench.progress import Progress, silent
from workbench.quantization.learning.data import Samples
from workbench.quantization.learning.learn import first_fits, passing, saved_at
from workbench.quantization.learning.loop import LearnOptions, Run
from workbench.quantization.learning.loss import Loss
from workbench.quantization.quantized_model import QuantizedModel, input_quantizers

STEP_RATE = 0.2
"""A scale's rate relative to that of the weights: shares of itself against steps of the grid."""


def train(
    model: Model,
    plan: Plan,
    dataset: Data,
    *,
    steps: int = 1000,
    learning_rate: float = 0.01,
    batch_size: int | None = None,
    loss: Loss = "kl",
    seed: int = 0,
    ranges: Ranges | None = None,
    checkpoint: str | Path | None = None,
    progress: Progress = silent,
) -> QuantizedModel:
    """Train the weights that ``plan`` quantizes and return them on their grids.

    ``learning_rate``: the most that a weight moves in the first step, in steps of its grid; more is not better (small
    Llama, int3 in groups of 32: KL 0.102 at 0.01 after 1000 steps, 0.169 at 0.04 after 600).  ``loss``: ``kl`` to the
    floating-point model, or ``task`` (cross-entropy to the data's labels or next tokens).  Quantized layer inputs are
    trained through as well, static ones by ``ranges``.  ``checkpoint`` is a file that is written every 50 steps and
    when the run is cancelled; the same call goes on from it, to the bits of an uninterrupted run.  The algorithms that
    the plan names are not used.  Raises FingerprintMismatchError, CannotRunError, DataError, PlanError where the plan
    quantizes nothing, NonFiniteError.
    """
    if plan.fingerprint is not None:
        model.summary.require_fingerprint(plan.fingerprint, f"the plan {plan.name!r}")
    if plan.transforms:
        raise PlanError(
            f"the plan transforms the model ({', '.join(plan.transforms)}), training starts from the model as it is; "
            "take the transforms out of the plan to train on it"
        )
    require_data(model, dataset, "training")
    assignments = resolve(plan, model.summary.layers)
    schemes, left = _trainable(model, assignments)
    options = LearnOptions(
        steps=steps, batch_size=batch_size, rate=learning_rate, scale_rate=learning_rate * STEP_RATE,
        zero_rate=learning_rate, limit=None, loss=loss, seed=seed,
    )  # fmt: skip
    matrices = first_fits(model, schemes, {})
    run = Run(
        teacher=model, student=model, matrices=matrices, samples=Samples(dataset), options=options,
        inputs=passing(input_quantizers(model.summary, plan, ranges or {})), purpose="training", progress=progress,
    )  # fmt: skip
    inputs = {name: assignment.inputs for name, assignment in assignments.items()}
    circumstances = "training", inputs, repr(sorted((ranges or {}).items(), key=lambda item: item[0]))
    run.learn(saved_at(checkpoint, model, schemes, dataset, options, circumstances))
    rounded = {name: matrix.rounded() for name, matrix in matrices.items()}
    tensors = {name: _encoded(schemes[name], one) for name, one in rounded.items()}
    return QuantizedModel(
        summary=model.summary, plan=plan, tensors=tensors, ranges=dict(ranges or {}), notes=tuple(left.values()),
        left=left,
    )  # fmt: skip


def _trainable(model: Model, assignments: dict[str, Assignment]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the scheme of every weight that is trained, and why others cannot be."""
    schemes, left = {}, {}
    for layer in model.summary.stored:
        scheme = assignments[layer.name].weights
        if scheme == KEEP:
            continue
        if layer.name in model.summary.non_finite:
            left[layer.name] = f"the weight of {layer.name} holds NaN or infinite values; it was kept in floating point"
            continue
        schemes[layer.name] = scheme
    if not schemes:
        raise PlanError("the plan quantizes no layer, so there is nothing to train; give at least one layer a scheme")
    return schemes, left


def _encoded(scheme: str, rounded: Rounded) -> QuantizedTensor:
    return parse_scheme(scheme).encode(rounded.values, rounded.parameters)
