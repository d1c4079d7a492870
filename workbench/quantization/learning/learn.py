"""AdaRound and SignRound for a whole plan: offsets and steps of every layer learned for the model's own output.

The rounding offsets of AdaRound (Nagel et al., ICML 2020) and the learned ranges of SignRound (Cheng et al., 2023), but
the objective is the divergence KL(FP model || quantized model) of the outputs on the calibration data, for all layers
at once, instead of each block's output error one after the other: layers make up for the errors of others.
Every weight stays at one of the two codes around it; scales, zero points and offsets are learned too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from workbench.measurement.gradients import fitting_batch
from workbench.measurement.shared_weights import curvature_of
from workbench.models.data.batches import Data, require_data
from workbench.models.model import Model, Replacement
from workbench.models.summary import ModelSummary
from workbench.numerics.curvature import Curvature
from workbench.numerics.formats import parse_scheme
from workbench.numerics.rounding.algorithm import Rounded
from workbench.numerics.rounding.lsq import LearnedMatrix
from workbench.numerics.rounding.round_weight import round_weight
from workbench.progress import Progress, silent
from workbench.quantization.learning.checkpoint import Checkpoint
from workbench.quantization.learning.data import Samples
from workbench.quantization.learning.loop import LearnOptions, Run, through


def learn_rounding(
    model: Model, schemes: Mapping[str, str], data: Data, *, student: Model | None = None,
    inputs: Mapping[str, Replacement] | None = None, curvature: Mapping[str, Curvature] | None = None,
    options: LearnOptions | None = None, checkpoint: str | Path | None = None, circumstances: Sequence[object] = (),
    purpose: str = "learned rounding", progress: Progress = silent,
) -> dict[str, Rounded]:  # fmt: skip
    """Return the weights of the layers in ``schemes`` (layer that owns its weight to scheme) on their grids.

    ``model`` is the teacher and holds the weights; ``student`` a view of it that runs with whatever else is quantized
    (default: nothing), ``inputs`` quantize layer inputs.  ``curvature`` makes a better first fit.  The same arguments
    give the same bits, also when a cancelled run continues from ``checkpoint`` (a file, written every 50 steps).
    ``circumstances`` are what else decides the bits (the plan of the other layers): a checkpoint of others is refused.
    Raises CannotRunError, DataError, NonFiniteError naming the layer, PlanError for a checkpoint of another run.
    """
    require_data(model, data, purpose)
    options = options or LearnOptions()
    most = fitting_batch(options.samples(model.summary.output), data, model, gradients=True)
    matrices = first_fits(model, schemes, curvature or {})
    run = Run(
        teacher=model, student=student or model, matrices=matrices, samples=Samples(data), options=options,
        inputs={name: through(replace) for name, replace in (inputs or {}).items()}, purpose=purpose, progress=progress,
        most=most,
    )  # fmt: skip
    saved = Checkpoint(
        checkpoint, purpose=[purpose, *circumstances], model=model.summary.fingerprint, schemes=dict(schemes),
        data=data.record.content_hash, samples=len(data), options=asdict(options),
    )  # fmt: skip
    run.learn(saved)
    return {name: matrix.rounded() for name, matrix in matrices.items()}


def without_non_finite(summary: ModelSummary, names: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Return the layers that can be learned, and why the others stay in floating point."""
    names = list(names)
    left = {
        name: f"the weight of {name} holds NaN or infinite values; it was kept in floating point"
        for name in names if name in summary.non_finite
    }  # fmt: skip
    return [name for name in names if name not in left], left


def first_fits(
    model: Model, schemes: Mapping[str, str], curvature: Mapping[str, Curvature]
) -> dict[str, LearnedMatrix]:
    """Return the layers' matrices, each at the parameters of rounding to nearest with clip search.

    The search is weighted by the second moment of the inputs where there is one.
    """
    matrices = {}
    for name, scheme in schemes.items():
        weight, moments = model.weight(name), curvature_of(model.summary, curvature, name)
        weighted = moments is not None and moments.full is not None
        rounded = round_weight(name, weight, scheme, "rtn-weighted" if weighted else "rtn-clip", moments)
        matrices[name] = LearnedMatrix(weight, parse_scheme(scheme), rounded.parameters)
    return matrices
