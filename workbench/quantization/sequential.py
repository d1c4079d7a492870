"""Layers quantized one after another, each with the inputs that those before it, already quantized, give it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from workbench.errors import AlgorithmError, MissingResultError, NonFiniteError
from workbench.models.model import Model
from workbench.numerics.curvature import Curvature
from workbench.numerics.formats import parse_scheme
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.rounding.algorithm import PrefixMoments
from workbench.numerics.rounding.round_weight import round_weight
from workbench.planning.plan import Assignment
from workbench.progress import Progress, silent

if TYPE_CHECKING:
    import torch

    from workbench.models.data.batches import Data

BATCH_SIZE = 32
"""Samples that run at once."""


def quantize_in_sequence(
    model: Model,
    assignments: Mapping[str, Assignment],
    before: Mapping[str, QuantizedTensor],
    *,
    data: Data | None,
    inputs: Mapping[str, Callable[[torch.Tensor], torch.Tensor]],
    curvature: Mapping[str, Curvature],
    progress: Progress = silent,
) -> tuple[dict[str, QuantizedTensor], dict[str, str]]:
    """Quantize the layers of ``assignments`` in the order in which they run; return them and why others were kept.

    ``before`` holds what is quantized already, ``inputs`` the quantizers of layers' inputs, which take part.  Layers
    with the same input are one stage: ``data`` runs twice up to each.  Raises MissingResultError without data.
    """
    from workbench.models.data.batches import require_data
    from workbench.quantization.prefix import prefix_moments, stages

    if data is None:
        name, assignment = next(iter(assignments.items()))
        raise MissingResultError(
            f"{assignment.algorithm} quantizes {name} with the calibration's data, and none is given; calibrate and "
            "give the session, or choose rtn-clip, which looks at weights only",
            command="workbench apply ... --session S.qwb",
        )
    require_data(model, data, "quantizing layer by layer")
    tensors: dict[str, QuantizedTensor] = {}
    left: dict[str, str] = {}
    order = stages(model, next(iter(data.batches(1))), tuple(assignments))
    reached = {name for stage in order for name in stage.layers}
    for name in assignments:
        if name not in reached:
            left[name] = (
                f"{assignments[name].algorithm} keeps no second moment of the inputs of {name}; it was kept as it is"
            )
    done = {name: parse_scheme(stored.scheme).decode(stored) for name, stored in before.items()}
    for number, stage in enumerate(order):
        progress(number / len(order), f"quantizing {', '.join(stage.layers)} with the inputs that it gets")
        moments = prefix_moments(model, model.with_weights(done), stage, data, BATCH_SIZE, inputs)
        for name in stage.layers:
            try:
                tensors[name] = _quantized(name, model, assignments[name], curvature.get(name), moments)
            except (AlgorithmError, NonFiniteError) as error:
                left[name] = f"{error}; it was kept in floating point"
            else:
                done[name] = parse_scheme(tensors[name].scheme).decode(tensors[name])
    return tensors, left


def _quantized(
    name: str, model: Model, assignment: Assignment, known: Curvature | None, moments: PrefixMoments
) -> QuantizedTensor:
    rounded = round_weight(name, model.weight(name), assignment.weights, assignment.algorithm, known, moments)
    return parse_scheme(assignment.weights).encode(rounded.values, rounded.parameters)
