"""AdaRound and SignRound for a whole plan: offsets and steps of every layer learned for the model's own output.

The rounding offsets of AdaRound (Nagel et al., ICML 2020) and the learned ranges of SignRound (Cheng et al., 2023), but
the objective is the divergence KL(FP model || quantized model) of the outputs on the calibration data, for all layers
at once, instead of each block's output error one after the other: errors of one layer are made good by the others.
Every weight stays at one of the two codes around it; scales, zero points and offsets are learned too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from workbench.errors import MissingResultError
from workbench.models.data.batches import Data, require_data
from workbench.models.model import Model
from workbench.numerics.curvature import Curvature
from workbench.numerics.formats import parse_scheme
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.rounding.algorithm import Rounded
from workbench.numerics.rounding.lsq import LearnedMatrix
from workbench.numerics.rounding.round_weight import round_weight
from workbench.progress import Progress, silent
from workbench.quantization.learning.checkpoint import Checkpoint, run_key
from workbench.quantization.learning.data import Samples
from workbench.quantization.learning.loop import LearnOptions, Replacement, Run, through


def learn_rounding(
    model: Model,
    schemes: Mapping[str, str],
    data: Data,
    *,
    student: Model | None = None,
    inputs: Mapping[str, Replacement] | None = None,
    curvature: Mapping[str, Curvature] | None = None,
    options: LearnOptions | None = None,
    checkpoint: str | Path | None = None,
    circumstances: Sequence[str] = (),
    progress: Progress = silent,
) -> dict[str, Rounded]:
    """Return the weights of the layers in ``schemes`` (layer that owns its weight to scheme) on their grids.

    ``model`` is the teacher and holds the weights; ``student`` a view of it that runs with whatever else is quantized
    (default: nothing), ``inputs`` quantize layer inputs.  ``curvature`` makes a better first fit.  The same arguments
    give the same bits, also when a run was cancelled and goes on from ``checkpoint`` (a file, written every 50 steps).
    ``circumstances`` say what else decides the bits (the plan of the other layers): a checkpoint of others is refused.
    Raises CannotRunError, DataError, NonFiniteError naming the layer, PlanError for a checkpoint of another run.
    """
    require_data(model, data, "learned rounding")
    chosen = options or LearnOptions()
    matrices = first_fits(model, schemes, curvature or {})
    run = Run(
        teacher=model, student=student or model, matrices=matrices, samples=Samples(data), options=chosen,
        inputs=passing(inputs), purpose="learning to round", progress=progress,
    )  # fmt: skip
    run.learn(saved_at(checkpoint, model, schemes, data, chosen, ("rounding", *circumstances)))
    return {name: matrix.rounded() for name, matrix in matrices.items()}


def learn_remaining(
    model: Model,
    schemes: Mapping[str, str],
    others: Mapping[str, QuantizedTensor],
    *,
    data: Data | None,
    inputs: Mapping[str, Replacement],
    curvature: Mapping[str, Curvature],
    checkpoint: str | Path | None = None,
    circumstances: Sequence[str] = (),
    progress: Progress = silent,
) -> tuple[dict[str, QuantizedTensor], dict[str, str]]:
    """Return the stored form of the layers of ``schemes``, learned beside ``others``, and why any were kept.

    Raises MissingResultError without data, and what :func:`learn_rounding` raises.
    """
    if data is None:
        raise MissingResultError(
            f"the plan learns the rounding of {_listed(schemes)} on calibration data, and none were given; calibrate "
            "and give the session, or choose rtn-clip",
            command="workbench apply ... --session S.qwb",
        )
    kept = [name for name in schemes if name in model.summary.non_finite]
    left = {name: f"the weight of {name} holds NaN or infinite values; it was kept in floating point" for name in kept}
    finite = {name: scheme for name, scheme in schemes.items() if name not in kept}
    if not finite:
        return {}, left
    decoded = {name: parse_scheme(stored.scheme).decode(stored) for name, stored in others.items()}
    learned = learn_rounding(
        model, finite, data, student=model.with_weights(decoded), inputs=inputs, curvature=curvature,
        checkpoint=checkpoint, circumstances=circumstances, progress=progress,
    )  # fmt: skip
    tensors = {
        name: parse_scheme(finite[name]).encode(rounded.values, rounded.parameters) for name, rounded in learned.items()
    }
    return tensors, left


def _listed(names: Mapping[str, str]) -> str:
    first = next(iter(names))
    return first if len(names) == 1 else f"{first} and {len(names) - 1} more layers"


def first_fits(
    model: Model, schemes: Mapping[str, str], curvature: Mapping[str, Curvature]
) -> dict[str, LearnedMatrix]:
    """Return the layers' matrices, each at the parameters of rounding to nearest with clip search.

    The search is weighted by the second moment of the inputs where there is one.
    """
    matrices = {}
    for name, scheme in schemes.items():
        weight, known = model.weight(name), curvature.get(name)
        weighted = known is not None and known.full is not None
        rounded = round_weight(name, weight, scheme, "rtn-weighted" if weighted else "rtn-clip", known)
        matrices[name] = LearnedMatrix(weight, parse_scheme(scheme), rounded.parameters)
    return matrices


def passing(inputs: Mapping[str, Replacement] | None) -> dict[str, Replacement]:
    """Return input quantizers that let gradients pass."""
    return {name: through(replace) for name, replace in (inputs or {}).items()}


def saved_at(
    path: str | Path | None, model: Model, schemes: Mapping[str, str], data: Data, options: LearnOptions,
    purpose: Sequence[object],
) -> Checkpoint | None:
    """Return where the run is saved, with the key of all that decides its bits; None without a path."""
    if path is None:
        return None
    key = run_key(
        purpose=list(purpose), model=model.summary.fingerprint, schemes=dict(schemes), data=data.record.content_hash,
        samples=len(data), options=asdict(options),
    )  # fmt: skip
    return Checkpoint(path=Path(path), key=key)
