"""A model and a plan to quantized tensors: the transforms, every layer's rounding, the corrections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from workbench.models.data.batches import Data
from workbench.models.execution.activation_quantizers import Ranges
from workbench.models.model import Model
from workbench.numerics.curvature import Curvature
from workbench.numerics.rounding.round_weight import needs_sequence
from workbench.planning.plan import KEEP, LEARNED, Plan, resolve
from workbench.planning.transform_names import CORRECTIONS, check_names
from workbench.progress import Progress, part_of, silent
from workbench.quantization.correction import correct, require_data_for
from workbench.quantization.quantized_model import QuantizedModel, input_quantizers
from workbench.quantization.rounding import Collected, Rounding
from workbench.quantization.transforms.apply import transform
from workbench.quantization.transforms.rewrite import RewrittenTensors

Accept = Callable[[RewrittenTensors, Ranges], None]


def quantize(
    model: Model, plan: Plan, *, ranges: Ranges | None = None, curvature: Mapping[str, Curvature] | None = None,
    data: Data | None = None, checkpoint: str | Path | None = None, accept: Accept | None = None,
    progress: Progress = silent,
) -> QuantizedModel:  # fmt: skip
    """Quantize every weight that ``plan`` gives a scheme; the model is not changed.

    ``ranges`` (a session's ``active_ranges``) serve static input schemes, ``curvature`` algorithms that need the
    inputs' second moment, ``data`` (the calibration's) ``learned`` layers, which are learned together after all others;
    ``checkpoint`` is a file from which a cancelled run goes on.  ``accept`` is called with what the plan's transforms
    made of the model, and the ranges after them, before any weight is rounded; what it raises passes.  With ``rtn`` and
    ``rtn-clip`` the model and the plan alone decide every bit; with any other algorithm, the other arguments do too,
    and the same ones give the same bits.
    Raises FingerprintMismatchError naming both fingerprints, UnmatchedRuleError, SchemeError, MissingResultError
    naming the layer that lacks a range, or data that are missing, and for transforms what
    :func:`workbench.quantization.transforms.apply.transform` raises.
    """
    plan.require_model(model.summary)
    collected = Collected(ranges=ranges or {}, curvature=curvature or {}, data=data, checkpoint=checkpoint)
    if plan.transforms:
        return _quantize_transformed(model, plan, collected, accept, progress)
    return _quantize_layers(model, plan, collected, progress)


def _quantize_transformed(
    model: Model, plan: Plan, collected: Collected, accept: Accept | None, progress: Progress
) -> QuantizedModel:
    """Rewrite the model, quantize it by the plan's rules, then correct what stays in floating point.

    That is rounded to the dtype that the model's file stores it in, so that what is evaluated is what an export writes.
    Corrections take place last, wherever the plan names them, in their order.
    """
    check_names(plan.transforms)
    corrections = tuple(name for name in plan.transforms if name in CORRECTIONS)
    require_data_for(corrections, collected.data)
    rewritten = transform(
        model, plan, curvature=collected.curvature, ranges=collected.ranges, data=collected.data,
        progress=part_of(progress, 0.0, 0.3),
    )  # fmt: skip
    if accept is not None:
        accept(rewritten.changes, rewritten.ranges)
    after = replace(collected, ranges=rewritten.ranges, curvature=rewritten.curvature, transforms=plan.transforms)
    remaining = part_of(progress, 0.3, 0.9 if corrections else 1.0)
    quantized = _quantize_layers(rewritten.model, replace(plan, transforms=()), after, remaining)
    changes = rewritten.changes.stored(rewritten.model.summary, quantized.tensors.keys())
    quantized = replace(quantized, plan=plan, changes=changes, notes=(*rewritten.notes, *quantized.notes))
    if collected.data is None or not corrections:
        return quantized
    return correct(
        model, quantized, corrections, collected.data, reference=rewritten.model, folded=rewritten.folded,
        progress=part_of(progress, 0.9, 1.0),
    )  # fmt: skip


def _quantize_layers(model: Model, plan: Plan, collected: Collected, progress: Progress) -> QuantizedModel:
    """Quantize by the rules alone: single layers, then layers in sequence, then those that are learned together."""
    summary = model.summary
    rounding = Rounding(
        model=model, assignments=resolve(plan, summary.layers), collected=collected,
        inputs=input_quantizers(summary, plan, collected.ranges),
    )  # fmt: skip
    each: list[str] = []
    sequence: list[str] = []
    learned: list[str] = []
    for layer in summary.stored:
        algorithm = rounding.assignments[layer.name].algorithm
        if rounding.assignments[layer.name].weights != KEEP:
            kind = learned if algorithm == LEARNED else sequence if needs_sequence(algorithm) else each
            kind.append(layer.name)
    parts = ((rounding.round_each, each, 1), (rounding.round_in_sequence, sequence, 2), (rounding.learn, learned, 7))
    done, total = 0, sum(share for _, names, share in parts if names)
    for run, names, share in parts:
        if names:
            run(names, part_of(progress, done / total, (done + share) / total))
            done += share
    progress(1.0, "quantized")
    left = rounding.left
    return QuantizedModel(
        summary=summary, plan=plan, tensors=rounding.tensors, ranges=dict(collected.ranges),
        notes=tuple(left.values()), left=left,
    )  # fmt: skip
