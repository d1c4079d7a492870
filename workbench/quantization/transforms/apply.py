"""Carrying out a plan's transforms, and proof that the floating-point model stayed what it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch

from workbench.errors import CannotRunError, MissingResultError, PlanError, TransformError
from workbench.measurement.calibrate import calibrate
from workbench.models.data.batches import Data
from workbench.models.model import Model
from workbench.models.tracing import probe, trace
from workbench.numerics.curvature import Curvature
from workbench.numerics.formats import parse_scheme, takes_range
from workbench.numerics.ranges import Loss, Range, method_for, range_method
from workbench.planning.plan import Assignment, Plan, resolve
from workbench.planning.transform_names import CORRECTIONS, GROUP, planned_summary, rotation_seed
from workbench.progress import Progress, silent
from workbench.quantization.transforms.batch_norms import FoldNorms
from workbench.quantization.transforms.equalize import Equalize
from workbench.quantization.transforms.online_rotation import OnlineRotation
from workbench.quantization.transforms.rewrite import Draft, RewrittenTensors
from workbench.quantization.transforms.rotation import Rotation
from workbench.quantization.transforms.scaling import Awq, SmoothQuant
from workbench.quantization.transforms.transform import FoldReport, Setting, Transform
from workbench.registry import Registry

TRANSFORMS: tuple[Transform, ...] = (
    FoldNorms(), Equalize(), Awq(), SmoothQuant(), Rotation(), Rotation(heads_only=True), OnlineRotation(),
)  # fmt: skip

REGISTRY: Registry[Transform] = Registry(TRANSFORMS, GROUP, kind="transform", error=PlanError, member_type=Transform)

TOLERANCE = 1e-4
"""The largest change of an output, relative to the largest output, that passes for rounding in float32."""

PROOF_SAMPLES = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transformed:
    """A rewritten model, still in floating point.

    ``model`` is a view whose outputs are the original's but for ``deviation``: the largest difference of an output on a
    few samples, relative to the largest output.  ``changes`` makes the view from the original, ``curvature`` and
    ``ranges`` are the view's.  ``report`` says what was done where, ``folded`` names batch norms that change
    nothing any more.
    """

    model: Model
    curvature: Mapping[str, Curvature]
    ranges: Mapping[tuple[str, str], Range]
    changes: RewrittenTensors = RewrittenTensors()
    report: tuple[FoldReport, ...] = ()
    deviation: float = 0.0
    notes: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()


def find_transform(name: str) -> Transform:
    """Return a transform, also ``rotation-7`` by its seed; raises PlanError naming the closest ones."""
    seed = rotation_seed(name)
    return Rotation(seed=seed) if seed is not None else REGISTRY.get(name)


def transform(
    model: Model, plan: Plan, *, curvature: Mapping[str, Curvature] | None = None,
    ranges: Mapping[tuple[str, str], Range] | None = None, data: Data | None = None, batch_size: int = 8,
    progress: Progress = silent,
) -> Transformed:  # fmt: skip
    """Rewrite ``model`` by ``plan.transforms`` in their order, and prove that its outputs are the same.

    Corrections, which take place after rounding, are passed over.
    ``curvature`` of a calibration for awq; ``data`` of the calibration for smoothquant and for static input schemes,
    whose ranges are calibrated again where inputs changed.  Raises CannotRunError for a weights-only model, PlanError
    for an unknown transform, TransformError where the graph allows none or the outputs changed, MissingResultError.
    """
    steps = _in_order(plan.transforms)
    if model.summary.cannot_run is not None:
        raise CannotRunError(
            f"{model.summary.name} cannot be transformed ({', '.join(plan.transforms)}): {model.summary.cannot_run}"
        )
    if not steps:
        return Transformed(model=model, curvature=curvature or {}, ranges=ranges or {})
    assignments = resolve(plan, planned_summary(model.summary, plan.transforms).layers)
    setting = Setting(trace=trace(model, data), assignments=assignments, data=data, batch_size=batch_size)
    draft = Draft.of(model, curvature or {})
    report: list[FoldReport] = []
    notes = list(draft.notes)
    for number, step in enumerate(steps):
        progress(number / (len(steps) + 1), f"rewriting the model: {step.name}")
        outcome = step.rewrite(draft, setting)
        report += outcome.changes
        notes += outcome.notes
    progress(len(steps) / (len(steps) + 1), "comparing the rewritten model with the original")
    view = draft.changes().apply(model)
    deviation = compare(model, view, data, [step.name for step in steps])
    if deviation is None:
        notes.append("the model's outputs are NaN or infinite, so the transforms could not be checked")
    return Transformed(
        model=view, changes=draft.changes(), curvature=draft.curvature, report=tuple(report), notes=tuple(notes),
        folded=tuple(sorted(draft.folded)),
        deviation=float("nan") if deviation is None else deviation,
        ranges=_ranges(view, assignments, draft.inputs, ranges or {}, data, batch_size),
    )  # fmt: skip


def _in_order(names: Iterable[str]) -> list[Transform]:
    """Return the rewrites; a rotation while the model runs comes last, after which columns are no channels."""
    steps = (find_transform(name) for name in names if name not in CORRECTIONS)
    return sorted(steps, key=lambda step: step == OnlineRotation())


def compare(model: Model, view: Model, data: Data | None, names: Iterable[str]) -> float | None:
    """Return how far the view's outputs are from the model's; None if none is finite.

    Raises TransformError above TOLERANCE.
    """
    batch = probe(model) if data is None else next(data.batches(PROOF_SAMPLES))
    with torch.no_grad():
        exact, rewritten = model.run(batch).float(), view.run(batch).float()
    finite = exact.isfinite()
    if not bool(finite.any()):
        return None
    exact, rewritten = exact[finite], rewritten[finite]
    size = float(exact.abs().max().clamp_min(torch.finfo(torch.float32).tiny))
    deviation = float((rewritten - exact).abs().max()) / size
    if not deviation <= TOLERANCE:
        raise TransformError(
            f"after {', '.join(names)} the outputs of {model.summary.name} differ by {deviation:.1e} of the largest "
            f"output, {TOLERANCE:g} is allowed: its graph does more than the trace shows; take the transform out of "
            "the plan"
        )
    return deviation


def _ranges(
    view: Model, assignments: Mapping[str, Assignment], changed: set[str], ranges: Mapping[tuple[str, str], Range],
    data: Data | None, batch_size: int,
) -> dict[tuple[str, str], Range]:  # fmt: skip
    """Return the ranges in force for the view: calibrated again for static schemes of inputs that changed."""
    static = {
        name: scheme for name in changed
        if (scheme := assignments[name].inputs) and takes_range(parse_scheme(scheme))
    }  # fmt: skip
    current = {key: value for key, value in ranges.items() if key[0] not in changed or key[1] != "input"}
    if not static:
        return current
    if data is None:
        raise MissingResultError(
            f"the plan gives the inputs of {min(static)} the scheme {static[min(static)]} and transforms them, "
            "so their range must be calibrated again, which needs the calibration data; calibrate first, or choose a "
            "dynamic scheme such as int8-token"
        )
    gradients = any(assignments[name].range_method == Loss.name for name in static)
    statistics = calibrate(view, data, batch_size=batch_size, curvature=gradients).statistics
    for name, scheme in static.items():
        if (name, "input") in statistics:
            form = parse_scheme(scheme)
            method = range_method(method_for(form, assignments[name].range_method))
            current[name, "input"] = method.range(statistics[name, "input"], form)
    return current
