"""Quantizing by a plan with transforms: first the rewrite, then the plan's rules on the rewritten model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from workbench.models.batches import Data
from workbench.models.model import Model
from workbench.numerics.curvature import Curvature
from workbench.numerics.ranges import Range
from workbench.planning.plan import Plan
from workbench.planning.quantize import QuantizedModel, quantize
from workbench.planning.transforms.apply import transform
from workbench.progress import Progress, part_of


def quantize_transformed(
    model: Model, plan: Plan, *, ranges: Mapping[tuple[str, str], Range], curvature: Mapping[str, Curvature],
    data: Data | None, checkpoint: str | Path | None, progress: Progress,
) -> QuantizedModel:  # fmt: skip
    """Return the quantized form of the rewritten model; arguments and errors as for ``quantize`` and ``transform``.

    What stays in floating point is rounded to the dtype that the model's file stores it in, so that what is evaluated
    is what an export writes.
    """
    done = transform(model, plan, curvature=curvature, ranges=ranges, data=data, progress=part_of(progress, 0.0, 0.3))
    found = quantize(
        done.model, replace(plan, transforms=()), ranges=done.ranges, curvature=done.curvature, data=data,
        checkpoint=checkpoint, progress=part_of(progress, 0.3, 1.0),
    )  # fmt: skip
    changes = done.changes.stored(done.model.summary, found.tensors.keys())
    return replace(found, plan=plan, changes=changes, notes=(*done.notes, *found.notes))
