"""Write a plan, or the model quantized by it, for another program."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.content_kind import require_replaceable
from workbench.deployment.checkpoints.folder import check_place
from workbench.deployment.endings import CONTENTS, ENDINGS, renamed
from workbench.errors import ExportError
from workbench.models.model import Model
from workbench.models.placement import Placement
from workbench.models.sources import reopen
from workbench.models.sources.files import own_files
from workbench.numerics.formats import parse_scheme, takes_range
from workbench.planning.plan import Plan, resolve
from workbench.planning.totals import quantized_inputs
from workbench.preflight import Estimate
from workbench.progress import Progress, part_of, silent
from workbench.readable import few
from workbench.session.calibrated_ranges import ranges_of_plan
from workbench.session.session import Session
from workbench.steps.changed_files import unchanged
from workbench.steps.options import Choice, OptionInfo, option
from workbench.steps.quantize import costs, quantize, require_same
from workbench.steps.requirements import CALIBRATED, PLAN_CALIBRATED, Requirement, with_moments
from workbench.steps.session_data import shown_inputs
from workbench.steps.step import Context, Step, short

if TYPE_CHECKING:
    from workbench.deployment.exporters import Exporter
    from workbench.models.execution.activation_quantizers import Ranges
    from workbench.models.summary import ModelSource, ModelSummary
    from workbench.quantization.quantized_model import QuantizedModel
    from workbench.quantization.transforms.rewrite import RewrittenTensors


def kinds() -> tuple[Choice, ...]:
    """Return every form that can be written."""
    from workbench.deployment.exporters import REGISTRY

    return tuple(Choice(member.name, f"{member.title}: {member.description}") for member in REGISTRY)


KIND = OptionInfo(label="Kind", choices=kinds, flag="to", metavar="KIND", help="the form to write")
OUT = OptionInfo(
    label="Write to", path="save", metavar="PATH", help="the file or folder to write",
    follow=lambda before, after: renamed(after.out, before.kind, after.kind),
)  # fmt: skip


def require_place(kind: str, out: str | Path, source: ModelSource) -> None:
    """Raise ExportError for a name or place that cannot take what ``kind`` writes, before the work of minutes.

    A name that ends as another form's does is refused, too: a folder called replay.py is a mistake.  So are the files
    of the model itself (of ``source``), and a file of other contents.
    """
    place, ending = Path(out), Path(out).suffix.lower()
    if ending and ending in ENDINGS.values() and ENDINGS.get(kind, ending) != ending:
        expected = f"a name that ends in {ENDINGS[kind]}" if ENDINGS[kind] else "the name of a folder"
        raise ExportError(f"{place.name} ends in {ending}, which {kind} does not write; give {expected}")
    folder = os.path.dirname(os.path.realpath(place))
    if not os.path.isdir(folder):
        raise ExportError(f"{kind} cannot go to {out}: there is no folder {folder}; create it or choose another")
    if not os.access(folder, os.W_OK):
        raise ExportError(f"{kind} cannot go to {out}: the folder is read-only; choose another or allow it")
    own = ENDINGS.get(kind)
    if own and os.path.isdir(place):
        raise ExportError(f"{out} is a folder, and {kind} writes a file; give its name: {place / f'model{own}'}")
    if own == "" and os.path.isfile(place):
        raise ExportError(f"{out} is a file, and {kind} writes a folder; choose the name of a new folder")
    if own == "":
        check_place(place, Path(source.path))
    elif os.path.isfile(place):
        if any(map(place.samefile, own_files(source))):
            raise ExportError(f"{out} is a file of the model itself, which {kind} would replace; choose another name")
        if own in CONTENTS:
            require_replaceable(place, CONTENTS[own], ExportError, kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """What to write and where."""

    kind: str = field(metadata=KIND.metadata)
    out: str = field(metadata=OUT.metadata)
    settings: tuple[str, ...] = option((), OptionInfo(
        label="Options", flag="set", metavar="OPTION=VALUE", empty="the defaults",
        help="options of that form, separated by commas, such as tool=auto-round for a recipe",
    ))  # fmt: skip


def apply(
    model: Model, plan: Plan, kind: str, out: str | Path, *, session: Session | None = None,
    settings: Sequence[str] = (), progress: Progress = silent,
) -> tuple[Path, ...]:  # fmt: skip
    """Quantize ``model`` by ``plan`` and write it to ``out`` in the form ``kind``; returns the paths written.

    ``settings`` (``option=value``) change the options of the form from their defaults.  A plan that the form cannot
    hold, and a folder that holds more than an earlier export, are refused before anything is quantized.  Raises
    ModelError, and removes what was written, where a file of the model's weights changes meanwhile.
    """
    return applied(model, plan, kind, out, session=session, settings=settings, progress=progress)[1]


def applied(
    model: Model, plan: Plan, kind: str, out: str | Path, *, session: Session | None, settings: Sequence[str],
    progress: Progress,
) -> tuple[QuantizedModel, tuple[Path, ...]]:  # fmt: skip
    """Do what :func:`apply` does, and return the quantized model, too."""
    from workbench.deployment.checkpoints.sizes import size_remark
    from workbench.deployment.exporters import LeavesOut, Remarks, exporter
    from workbench.deployment.tensors import carried_out, planned, possible

    chosen = exporter(kind, settings)
    require_place(chosen.name, out, model.summary.source)
    require_same(model.summary, plan, session)
    if not chosen.needs_model:
        bare = _without_weights(model.summary, plan, session)
        return bare, chosen.export(bare, None, Path(out), progress)
    ranges, known = {} if session is None else ranges_of_plan(session, plan), shown_inputs(model, session)
    _require_ranges(model, plan, ranges)
    progress(0.0, f"checking that {chosen.name} holds the plan")
    _require_fit(chosen, possible(plan, model, ranges), known)

    def accept(changes: RewrittenTensors, changed: Ranges) -> None:
        _require_fit(chosen, (planned(plan, model, changed, changes),), known)

    with unchanged(model, "Export") as written:
        quantized = quantize(model, plan, session=session, accept=accept, progress=part_of(progress, 0.0, 0.7))
        paths = chosen.export(quantized, known, Path(out), part_of(progress, 0.7, 1.0))
        written += paths
    left = chosen.left_out(known) if isinstance(chosen, LeavesOut) else []
    note = f"{few(left, 8)}: left out of the file, whose output does not depend on it" if left else ""
    size = size_remark(chosen.name, quantized.summary, carried_out(quantized, quantized.summary))
    remarks = chosen.remarks(quantized, known, Path(out)) if isinstance(chosen, Remarks) else []
    return replace(quantized, notes=(*quantized.notes, *filter(None, (note, size)), *remarks)), paths


def _require_ranges(model: Model, plan: Plan, ranges: Ranges) -> None:
    """Raise ExportError where static inputs have no range: no calibrated one, and none in the file of the model."""
    static = {
        name: scheme for name, scheme in quantized_inputs(model.summary, resolve(plan, model.summary.layers)).items()
        if takes_range(parse_scheme(scheme)) and (name, "input") not in ranges and model.encoded_range(name) is None
    }  # fmt: skip
    if static:
        raise ExportError(
            f"{few(static, 8)}: {', '.join(sorted(set(static.values())))} inputs need calibrated ranges, which a plan "
            "does not hold; calibrate first (--session S.qwb gives the session)"
        )


def _require_fit(chosen: Exporter, results: Iterable[QuantizedModel], model: Model) -> None:
    """Raise the exporter's error where it can hold none of ``results``, which have no values yet."""
    from workbench.deployment.exporters import Refuses

    if not isinstance(chosen, Refuses):
        return
    error = None
    for result in results:
        try:
            return chosen.refuse(result, model)
        except ExportError as refusal:
            error = error or refusal
    if error is not None:
        raise error


def export(
    session: Session, kind: str, out: str | Path, *, plan: Plan | None = None, model: Model | None = None,
    trust: bool = False, device: str = "auto", settings: Sequence[str] = (), notes: list[str] | None = None,
    progress: Progress = silent,
) -> tuple[Path, ...]:  # fmt: skip
    """Write the session's plan (or ``plan``), or the model quantized by it, to ``out``; returns the paths written.

    ``notes`` gets a sentence for whatever the file does not hold.

    Forms that hold no weights (the plan, a replay script) do not open the model.  Raises ExportError.
    """
    from workbench.deployment.exporters import exporter

    plan = plan or session.plan
    chosen = exporter(kind, settings)
    require_place(chosen.name, out, session.model.source)
    if chosen.needs_model:
        model = model or reopen(session.model, trust=trust, placement=Placement(device))
        quantized, paths = applied(model, plan, kind, out, session=session, settings=settings, progress=progress)
        notes = [] if notes is None else notes
        notes += quantized.notes
        return paths
    require_same(session.model, plan, None)
    return chosen.export(_without_weights(session.model, plan, session), None, Path(out), progress)


def _without_weights(summary: ModelSummary, plan: Plan, session: Session | None) -> QuantizedModel:
    """Return what forms are made of that hold no weights."""
    from workbench.quantization.quantized_model import QuantizedModel

    resolve(plan, summary.layers)
    if session is None:
        return QuantizedModel(summary=summary, plan=plan, tensors={})
    return QuantizedModel(
        summary=summary, plan=plan, tensors={}, ranges=ranges_of_plan(session, plan), curvature=session.curvature,
        calibrated_on=session.calibration.name if session.calibration else "",
    )  # fmt: skip


def _run(context: Context, options: ExportOptions) -> tuple[str, ...]:
    from workbench.deployment.exporters import exporter

    require_place(options.kind, options.out, context.session.model.source)  # before a model is opened
    model = context.model() if exporter(options.kind).needs_model else None
    paths = export(context.session, model=model, notes=context.notes, progress=context.progress, **asdict(options))
    return tuple(str(path) for path in paths)


WHOLE = ("huggingface", "state-dict")
"""Forms that hold every weight in float32."""


def _costs(context: Context, options: ExportOptions) -> Estimate | None:
    from workbench.deployment.exporters import exporter, preparing

    chosen = exporter(options.kind, options.settings)
    if not chosen.needs_model:
        return None
    model = context.model()
    nbytes = 4 * model.summary.parameters if options.kind in WHOLE else None
    return costs(model, context.session.plan, context.session, options.out, nbytes, preparing=preparing(chosen, model))


def _needs(session: Session, options: ExportOptions) -> Session:
    """Add the moments that the plan's algorithms look at, and those that are what is written."""
    reduced = with_moments(session, options)
    return replace(reduced, curvature=session.curvature) if options.kind == "imatrix" else reduced


def _wants(session: Session, options: ExportOptions) -> tuple[Requirement, ...]:
    from workbench.deployment.exporters import exporter

    if options.kind == "imatrix":
        return () if session.curvature else (CALIBRATED,)
    return (PLAN_CALIBRATED,) if exporter(options.kind).needs_model else ()


EXPORT: Step[ExportOptions, tuple[str, ...]] = Step(
    runs_model=True, costs=_costs,
    name="export", title="Export", options=ExportOptions, run=_run, needs=_needs, wants=_wants, call="wb.export",
    summary="Writes the plan, or the quantized model, for another program.",
    heading=lambda options, session: f"Export {options.kind} to {short(options.out)}",
    first=lambda session: ExportOptions(kind=kinds()[0].value, out=""),
)  # fmt: skip
