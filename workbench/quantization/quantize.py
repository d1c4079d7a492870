"""A model and a plan to quantized tensors: the transforms, every layer's rounding, the corrections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import AlgorithmError, NonFiniteError
from workbench.models.execution.activation_quantizers import Ranges
from workbench.models.model import Model
from workbench.numerics.curvature import Curvature
from workbench.numerics.formats import parse_scheme
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.rounding.round_weight import needs_sequence, round_weight
from workbench.planning.plan import KEEP, LEARNED, Assignment, Plan, resolve
from workbench.planning.transform_names import CORRECTIONS, check_names
from workbench.progress import Progress, part_of, silent
from workbench.quantization.quantized_model import QuantizedModel, input_quantizers

if TYPE_CHECKING:
    from workbench.models.data.batches import Data

Rounding = tuple[dict[str, QuantizedTensor], dict[str, str]]
"""The stored form of each quantized weight, and why other weights stay in floating point."""


def quantize(
    model: Model,
    plan: Plan,
    *,
    ranges: Ranges | None = None,
    curvature: Mapping[str, Curvature] | None = None,
    data: Data | None = None,
    checkpoint: str | Path | None = None,
    progress: Progress = silent,
) -> QuantizedModel:
    """Quantize every weight that ``plan`` gives a scheme; the model is not changed.

    ``ranges`` (a session's ``active_ranges``) serve static input schemes, ``curvature`` algorithms that need the
    inputs' second moment, ``data`` (the calibration's) ``learned`` layers, which are learned together after all others;
    ``checkpoint`` is a file from which a cancelled run goes on.  With ``rtn`` and ``rtn-clip`` the model and the plan
    alone decide every bit; with any other algorithm, the other arguments do too, and the same ones give the same bits.
    Raises FingerprintMismatchError naming both fingerprints, UnmatchedRuleError, SchemeError, MissingResultError
    naming the layer that lacks a range or the data that were not given, and for transforms what
    :func:`workbench.quantization.transforms.apply.transform` raises.
    """
    if plan.fingerprint is not None:
        model.summary.require_fingerprint(plan.fingerprint, f"the plan {plan.name!r}")
    inputs = _Inputs(ranges=ranges or {}, curvature=curvature or {}, data=data, checkpoint=checkpoint)
    if plan.transforms:
        return _quantize_transformed(model, plan, inputs, progress)
    return _quantize_layers(model, plan, inputs, progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inputs:
    """What decides the result, in addition to model and plan; ``transforms`` have rewritten the model already."""

    ranges: Ranges
    curvature: Mapping[str, Curvature]
    data: Data | None
    checkpoint: str | Path | None
    transforms: tuple[str, ...] = ()

    def circumstances(self, assignments: Mapping[str, Assignment]) -> tuple[str, ...]:
        """Return in words what decides the bits of learned layers in addition to their schemes and data."""
        return repr(dict(assignments)), repr(self.transforms), repr(sorted(self.ranges.items(), key=itemgetter(0)))


def _quantize_transformed(model: Model, plan: Plan, inputs: _Inputs, progress: Progress) -> QuantizedModel:
    """Rewrite the model, quantize it by the plan's rules, then correct what stays in floating point.

    That is rounded to the dtype that the model's file stores it in, so that what is evaluated is what an export writes.
    Corrections take place last, wherever the plan names them, in their order.
    """
    from workbench.quantization.correction import correct, require_data_for
    from workbench.quantization.transforms.apply import transform

    check_names(plan.transforms)
    corrections = tuple(name for name in plan.transforms if name in CORRECTIONS)
    require_data_for(corrections, inputs.data)
    rewritten = transform(
        model, plan, curvature=inputs.curvature, ranges=inputs.ranges, data=inputs.data,
        progress=part_of(progress, 0.0, 0.3),
    )  # fmt: skip
    quantized = _quantize_layers(
        rewritten.model, replace(plan, transforms=()),
        replace(inputs, ranges=rewritten.ranges, curvature=rewritten.curvature, transforms=plan.transforms),
        part_of(progress, 0.3, 0.9 if corrections else 1.0),
    )  # fmt: skip
    changes = rewritten.changes.stored(rewritten.model.summary, quantized.tensors.keys())
    quantized = replace(quantized, plan=plan, changes=changes, notes=(*rewritten.notes, *quantized.notes))
    if not corrections:
        return quantized
    assert inputs.data is not None
    return correct(
        model, quantized, corrections, inputs.data, reference=rewritten.model, folded=rewritten.folded,
        progress=part_of(progress, 0.9, 1.0),
    )  # fmt: skip


def _quantize_layers(model: Model, plan: Plan, inputs: _Inputs, progress: Progress) -> QuantizedModel:
    """Quantize by the rules alone: single layers, then layers in sequence, then those that are learned together."""
    summary = model.summary
    assignments = resolve(plan, summary.layers)
    quantizers = input_quantizers(summary, plan, inputs.ranges)
    weights = {
        layer.name: assignments[layer.name] for layer in summary.stored if assignments[layer.name].weights != KEEP
    }
    learned = {name: given.weights for name, given in weights.items() if given.algorithm == LEARNED}
    sequence = {name: given for name, given in weights.items() if needs_sequence(given.algorithm)}
    single = {name: given for name, given in weights.items() if name not in learned and name not in sequence}
    share = 1.0 if not learned and not sequence else 0.1
    tensors, left = _round_single(model, single, inputs.curvature, part_of(progress, 0.0, share))
    if sequence:
        from workbench.quantization.sequential import quantize_in_sequence

        more, untouched = quantize_in_sequence(
            model, sequence, tensors, data=inputs.data, inputs=quantizers, curvature=inputs.curvature,
            progress=part_of(progress, share, 0.3 if learned else 1.0),
        )  # fmt: skip
        tensors, left, share = tensors | more, left | untouched, 0.3
    if learned:
        from workbench.quantization.learning.learn import learn_remaining

        more, untouched = learn_remaining(
            model, learned, tensors, data=inputs.data, inputs=quantizers, curvature=inputs.curvature,
            checkpoint=inputs.checkpoint, circumstances=inputs.circumstances(assignments),
            progress=part_of(progress, share, 1.0),
        )  # fmt: skip
        tensors, left = tensors | more, left | untouched
    progress(1.0, "quantized")
    return QuantizedModel(
        summary=summary, plan=plan, tensors=tensors, ranges=dict(inputs.ranges), notes=tuple(left.values()), left=left
    )


def _round_single(
    model: Model, assignments: Mapping[str, Assignment], curvature: Mapping[str, Curvature], progress: Progress
) -> Rounding:
    """Quantize layers that need nothing of each other."""
    tensors: dict[str, QuantizedTensor] = {}
    left: dict[str, str] = {}
    for number, (name, assignment) in enumerate(assignments.items()):
        progress(number / len(assignments), f"quantizing {name} to {assignment.weights}")
        try:
            rounded = round_weight(
                name, model.weight(name), assignment.weights, assignment.algorithm, curvature.get(name)
            )
        except (NonFiniteError, AlgorithmError) as error:
            left[name] = f"{error}; it was kept in floating point"
            continue
        tensors[name] = parse_scheme(assignment.weights).encode(rounded.values, rounded.parameters)
    return tensors, left
