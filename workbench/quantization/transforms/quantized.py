"""Quantizing by a plan with transforms: the rewrite, the plan's rules on the rewritten model, then corrections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from workbench.models.data.batches import Data
from workbench.models.model import Model
from workbench.numerics.curvature import Curvature
from workbench.numerics.ranges import Range
from workbench.planning.plan import Plan
from workbench.planning.transform_names import CORRECTIONS, check_names
from workbench.progress import Progress, part_of
from workbench.quantization.correction import correct, require_data_for
from workbench.quantization.quantize import QuantizedModel, quantize
from workbench.quantization.transforms.apply import transform


def quantize_transformed(
    model: Model, plan: Plan, *, ranges: Mapping[tuple[str, str], Range], curvature: Mapping[str, Curvature],
    data: Data | None, checkpoint: str | Path | None, progress: Progress,
) -> QuantizedModel:  # fmt: skip
    """Return the quantized form of the rewritten model; arguments and errors as for ``quantize`` and ``transform``.

    What stays in floating point is rounded to the dtype that the model's file stores it in, so that what is evaluated
    is what an export writes.  Corrections take place last, wherever the plan names them, in their order.
    """
    check_names(plan.transforms)
    corrections = tuple(name for name in plan.transforms if name in CORRECTIONS)
    require_data_for(corrections, data)
    done = transform(model, plan, curvature=curvature, ranges=ranges, data=data, progress=part_of(progress, 0.0, 0.3))
    found = quantize(
        done.model, replace(plan, transforms=()), ranges=done.ranges, curvature=done.curvature, data=data,
        checkpoint=checkpoint, progress=part_of(progress, 0.3, 0.9 if corrections else 1.0),
    )  # fmt: skip
    changes = done.changes.stored(done.model.summary, found.tensors.keys())
    found = replace(found, plan=plan, changes=changes, notes=(*done.notes, *found.notes))
    if not corrections:
        return found
    assert data is not None
    return correct(
        model, found, corrections, data, reference=done.model, folded=done.folded,
        progress=part_of(progress, 0.9, 1.0),
    )  # fmt: skip
