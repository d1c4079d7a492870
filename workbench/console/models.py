"""Commands on a model or a session as a whole: ``inspect``, ``calibrate``, ``apply``, ``info``, ``report``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from workbench.atomic import require_writable
from workbench.console.command import Command, Outcome, watched
from workbench.console.flags import (
    CLUSTER,
    DEVICE,
    DTYPE,
    MEMORY,
    SESSION,
    TRUST,
    flag,
    flags_of,
    options_of,
    workers_of,
)
from workbench.console.report import Report, Table, row
from workbench.console.reports.evaluations import figures_of
from workbench.console.reports.plans import left_to_the_runtime
from workbench.console.tensors import largest_tensors
from workbench.content_kind import SESSION as SESSION_KIND
from workbench.deployment.exporters import exporter
from workbench.errors import PlanError, SessionError, WorkbenchError
from workbench.insight.layer_facts import expert_tokens
from workbench.insight.plan_parts import transitions
from workbench.insight.quantities import layers_of
from workbench.memory import size_text
from workbench.models.layer import Layer
from workbench.models.model import Model
from workbench.numerics.formats import parse_scheme
from workbench.planning.plan import Plan, resolve
from workbench.preflight import Estimate
from workbench.progress import Progress
from workbench.session.session import Environment, Session
from workbench.steps.calibrate import CALIBRATE as STEP
from workbench.steps.calibrate import CalibrateOptions, calibrate
from workbench.steps.files.export import EXPORT, ExportOptions, applied, require_place
from workbench.steps.files.open_model import OpenModelOptions
from workbench.steps.files.open_model import open as open_model
from workbench.steps.preflight.record import with_estimate
from workbench.steps.session_data import opened_once
from workbench.steps.step import Context

MODEL = (flags_of(OpenModelOptions), TRUST, DEVICE, DTYPE, MEMORY)
"""The path of a model, how to open it and where it runs."""


def _model(arguments: argparse.Namespace) -> Model:
    options = asdict(options_of(OpenModelOptions, arguments))
    return open_model(**options, trust=arguments.trust, device=arguments.device, dtype=arguments.dtype)


def _apply(arguments: argparse.Namespace, progress: Progress) -> Report:
    model, plan, options = _model(arguments), Plan.load(arguments.plan), options_of(ExportOptions, arguments)
    require_place(exporter(options.kind).name, options.out, model.summary.source)  # before trials of seconds
    session = Session.load(arguments.session) if arguments.session else None
    about = session or Session(model=model.summary, environment=Environment.here(), plan=plan)
    context = Context(document=replace(about, plan=plan), opened=model, says=progress)
    with opened_once(), EXPORT.estimated(context, options):
        quantized, paths = applied(model, plan, session=session, progress=progress, **asdict(options))
    left = () if exporter(options.kind).name == "compressed-tensors" else left_to_the_runtime(quantized.summary, plan)
    return written(paths, (*quantized.notes, *left))


def _report(arguments: argparse.Namespace, progress: Progress) -> Report:
    from workbench.gui.screenshot import write_report

    return written((write_report(Path(arguments.session), Path(arguments.out)),))


def _stored(model: Model, layer: Layer) -> dict[str, Any]:
    """Return the scheme in which the model's file holds a layer (None: in plain numbers), and its bytes."""
    scheme = model.encoding(layer.name)
    nbytes = layer.nbytes if scheme is None else parse_scheme(scheme).bits(layer.matrix) // 8
    return {"stored_as": scheme, "stored_bytes": nbytes}


def _inspect(arguments: argparse.Namespace, progress: Progress) -> Report:
    """Return a model's layers; the bytes of large files are read only for the fingerprint."""
    from workbench.models.placement import Placement
    from workbench.models.sources import open_model as opened

    options = asdict(options_of(OpenModelOptions, arguments))
    place = Placement(arguments.device, arguments.dtype)
    model = opened(**options, trust=arguments.trust, placement=place, contents=arguments.fingerprint)
    summary = model.summary
    rows = [row(layer, "name kind shape dtype parameters bytes=nbytes tied_to keep", **_stored(model, layer))
            for layer in summary.layers]  # fmt: skip
    said = {layer.name: f"stays as it is: {layer.keep}" for layer in summary.layers if layer.keep}
    said |= {layer.name: f"tied to {layer.tied_to}" for layer in summary.tied}
    shown = [{**each, "size": each["bytes"], "there": size_text(each["stored_bytes"]),
              "tied": said.get(each["name"], "")} for each in rows]  # fmt: skip
    whole = summary.nbytes + sum(each["stored_bytes"] - each["bytes"] for each in rows if each["tied_to"] is None)
    coded, columns = any(each["stored_as"] for each in rows), "name=layer | kind | shape | dtype | parameters | size"
    columns += " | stored_as=in the file as | there=in the file" if coded else ""
    notes = [*model.notes, *([f"the model cannot run: {summary.cannot_run}"] if summary.cannot_run else [])]
    return Report(
        facts=row(summary, "model=name fingerprint parameters bytes=nbytes output", stored_bytes=whole, layers=rows,
                  notes=notes),
        parts=[
            f"{summary.name}: {summary.parameters:,} parameters, {size_text(summary.nbytes)}"
            f"{f' ({size_text(whole)} as the file stores them)' if coded else ''}, "
            f"output: {summary.output.replace('_', ' ')}",
            summary.fingerprint or "fingerprint: not computed, as all bytes must be read for it (--fingerprint)",
            summary.without_layers or Table(rows=shown, columns=f"{columns} | tied="),
            *(f"note: {note}" for note in notes),
        ],
    )  # fmt: skip


def _calibrate(arguments: argparse.Namespace, progress: Progress) -> Report:
    """Calibrate; return what was collected, with the tensors of the most extreme values."""
    from workbench.measurement.partial_results import remembered

    options, estimates, notes = options_of(CalibrateOptions, arguments), list[Estimate](), list[str]()
    out = Path(arguments.out)
    require_writable(out, SessionError, "the session", SESSION_KIND)
    with remembered(notes):  # until the session is saved
        with workers_of(arguments), opened_once():  # a cluster that is not there is named before anything is opened
            model = _model(arguments)
            with STEP.estimated(Context(opened=model, says=watched(progress, [], estimates)), options):
                session = calibrate(model, progress=progress, **asdict(options))
        session = with_estimate(session, STEP.name, estimates[-1]) if estimates else session
        session = replace(session, notes=(*session.notes, *notes))
        session.save(out)
    record, layers = session.calibration, len({layer for layer, _ in session.statistics})
    outliers = largest_tensors(session, "*", 1)[:3] if session.outliers else []
    data = f"{record.samples} samples of {record.name}" if record else "weights only"
    lines = [
        f"outlier: {tensor['tap']} of {tensor['layer']} reaches {tensor['largest']:.4g}, {tensor['sigmas']:.0f} "
        "standard deviations"
        for tensor in outliers
    ]
    return Report(
        facts=row(
            session.model, "model=name fingerprint", session=arguments.out, layers=layers, outliers=outliers,
            data=record and record.name, data_hash=record and record.content_hash,
            samples=record.samples if record else 0, device=session.environment.device, experts=_mixtures(session),
        ),
        parts=[
            f"calibrated {layers} layers of {session.model.name} on {data} ({session.environment.device})",
            f"session: {arguments.out}", *lines,
            *([_experts_table(mixtures)] if (mixtures := _mixtures(session)) else []),
        ],
        notes=session.notes,
    )  # fmt: skip


def _mixtures(session: Session) -> list[dict[str, Any]]:
    """Return the tokens that each expert was sent by layer, and how many all were shown."""
    known = [(layer.name, expert_tokens(session, layer)) for layer in session.model.layers]
    return [{"layer": name, "tokens": each[0].tolist(), "shown_to_all": each[1]} for name, each in known if each]


def _experts_table(mixtures: Sequence[Mapping[str, Any]]) -> Table:
    """Return a row for each mixture: how many experts, and the tokens that the least and the most of them saw."""
    rows = [
        {"layer": each["layer"], "experts": len(each["tokens"]), "fewest": min(each["tokens"]),
         "expert": int(np.argmin(each["tokens"])), "most": max(each["tokens"]), "shown": each["shown_to_all"]}
        for each in mixtures
    ]  # fmt: skip
    shown = " | shown=shown to all" * any(each["shown"] for each in rows)
    columns = "layer | experts | fewest=fewest tokens sent | expert=of expert | most=most tokens sent"
    return Table(rows=rows, columns=columns + shown)


def _info(arguments: argparse.Namespace, progress: Progress) -> Report:
    """Return what a session holds."""
    path = Path(arguments.session)
    if not path.exists():
        raise WorkbenchError(f"{path} does not exist; give the path of a session (.qwb)")
    session = Session.load(path)
    record, model, changes = session.calibration, session.model, list[dict[str, Any]]()
    tables = {name: list(table.score.shape) for name, table in session.sensitivities.items()}
    with suppress(PlanError):  # a plan that does not fit the model is repaired in the window
        changes = [asdict(change) for change in transitions(model, resolve(session.plan, model.layers))]
    mixtures = _mixtures(session)
    shown = [{**change, "sizes": " -> ".join(map(size_text, change["nbytes"]))} for change in changes]
    return Report(
        facts=row(
            model, "model=name fingerprint parameters", session=path, layers=len(model.layers),
            source=model.source.path, calibration=record and row(record, "data=path samples hash=content_hash"),
            statistics=len(session.statistics), sensitivities=tables, plan=session.plan.name,
            rules=len(session.plan.rules),
            evaluations=[{**figures_of(run), "plan": run.plan_name} for run in session.evaluations],
            timings=len(session.timings), workbench=session.environment.workbench,
            device=session.environment.device, transitions=changes, experts=mixtures,
        ),
        parts=[
            facts_table({
                "model": f"{model.name} ({model.parameters:,} parameters, {layers_of(model)})",
                "fingerprint": model.fingerprint, "source": model.source.path,
                "calibration": f"{record.samples} samples of {record.path}" if record else "none",
                "statistics": f"{len(session.statistics)} tensors",
                "sensitivity": ", ".join(f"{name} {size[0]} x {size[1]}" for name, size in tables.items()) or "none",
                "plan": f"{session.plan.name} ({len(session.plan.rules)} rules)",
                "evaluations": len(session.evaluations), "timings": len(session.timings),
                "made with": f"workbench {session.environment.workbench}", 
                "calibrated on": session.environment.device,
            }),
            Table(rows=shown, columns="before=stored as | after=becomes | layers | weights | sizes=size"),
            *([_experts_table(mixtures)] if mixtures else []),
        ],
    )  # fmt: skip


def facts_table(facts: Mapping[str, object]) -> Table:
    """Return one row for each fact, without headings and for the text alone."""
    rows = [{"title": title, "fact": str(fact)} for title, fact in facts.items()]
    return Table(rows=rows, columns="title | fact", titles=False)


def written(paths: Iterable[Path | str], notes: Iterable[str] = ()) -> Report:
    """Return the files that a command wrote, with their bytes."""
    sizes = {
        path: sum(file.stat().st_size for file in (path.rglob("*") if path.is_dir() else (path,)) if file.is_file())
        for path in map(Path, paths)
    }
    files = [{"path": path, "bytes": size} for path, size in sizes.items()]
    lines = [f"wrote {path} ({size_text(size)})" for path, size in sizes.items()]
    return Report(facts={"files": files}, parts=lines, notes=tuple(notes))


def exported(outcome: Outcome[Any, tuple[str, ...]]) -> Report:
    """Return the files that hold the session's quantized model, and what of the plan they cannot hold."""
    return written(outcome.result, (*outcome.notes, *left_to_the_runtime(outcome.before.model, outcome.before.plan)))


INSPECT = Command(
    name="inspect", help="Lists the layers of a model.", example="inspect path/to/model --json", run=_inspect,
    flags=(*MODEL, flag("--fingerprint", action="store_true", help="read large files whole for the fingerprint")),
)  # fmt: skip
CALIBRATE = Command(
    name=STEP.name, help=STEP.summary, example="calibrate path/to/model --data text.txt --out S.qwb", run=_calibrate,
    flags=(
        *MODEL, CLUSTER, flags_of(CalibrateOptions),
        flag("--out", metavar="S.qwb", required=True, help="write the session here (required)"),
    ),
)  # fmt: skip
APPLY = Command(
    name="apply", help="Quantizes a model by a plan and writes it.",
    example="apply path/to/model --plan plan.json --to safetensors --out quantized.safetensors", run=_apply,
    flags=(
        *MODEL, flag("--plan", metavar="PLAN.json", required=True, help="the plan (required)"),
        flag("--session", metavar="S.qwb", help="where calibrated ranges come from, if the plan needs them"),
        flags_of(ExportOptions),
    ),
)  # fmt: skip
INFO = Command(name="info", help="Says what a session holds.", example="info S.qwb", run=_info, flags=(SESSION, TRUST))
REPORT = Command(
    name="report", help="Writes a session's printable report.", example="report S.qwb report.html", run=_report,
    flags=(SESSION, flag("out", metavar="OUT.html", help="write the page here, figures and tables inside")),
)  # fmt: skip
