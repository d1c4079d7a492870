"""A model's layers, what a calibration collected, what a session holds, the files that were written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workbench.console.report import Report, Row, Table, readable_bytes
from workbench.console.reports.evaluations import figures_of
from workbench.console.reports.outliers import largest_tensors
from workbench.console.reports.plans import left_to_the_runtime
from workbench.console.step_command import Outcome
from workbench.errors import PlanError
from workbench.insight.transitions import transitions
from workbench.models.summary import ModelSummary
from workbench.planning.plan import resolve
from workbench.session.session import Session
from workbench.steps.files.export import ExportOptions
from workbench.steps.train import TrainOptions


def inspected(summary: ModelSummary) -> Report:
    """Return a model's layers."""
    rows = [
        {
            "name": layer.name, "kind": layer.kind, "shape": layer.shape, "dtype": layer.dtype,
            "parameters": layer.parameters, "bytes": layer.nbytes, "tied_to": layer.tied_to,
        }
        for layer in summary.layers
    ]  # fmt: skip
    shown = [
        {**row, "size": row["bytes"], "tied": f"tied to {row['tied_to']}" if row["tied_to"] else ""} for row in rows
    ]
    return Report(
        facts={
            "model": summary.name, "fingerprint": summary.fingerprint, "parameters": summary.parameters,
            "bytes": summary.nbytes, "layers": rows,
        },
        parts=[
            f"{summary.name}: {summary.parameters:,} parameters, {readable_bytes(summary.nbytes)}",
            summary.fingerprint,
            Table(rows=shown, columns="name=layer | kind | shape | dtype | parameters | size | tied="),
        ],
    )  # fmt: skip


def calibrated(session: Session, out: str) -> Report:
    """Return what a calibration collected, with the tensors of the most extreme values."""
    record, layers = session.calibration, len({layer for layer, _ in session.statistics})
    outliers = largest_tensors(session, "*", 1)[:3] if session.outliers else []
    data = f"{record.samples} samples of {record.name}" if record else "weights only"
    return Report(
        facts={
            "session": out, "model": session.model.name, "fingerprint": session.model.fingerprint,
            "data": record and record.name, "data_hash": record and record.content_hash,
            "samples": record.samples if record else 0, "layers": layers, "outliers": outliers,
        },
        parts=[
            f"calibrated {layers} layers of {session.model.name} on {data}",
            f"session: {out}",
            *(
                f"outlier: {row['tap']} of {row['layer']} reaches {row['largest']:.4g}, {row['sigmas']:.0f} standard "
                "deviations"
                for row in outliers
            ),
        ],
        notes=session.notes,
    )  # fmt: skip


def summarized(session: Session, path: Path) -> Report:
    """Return what a session holds."""
    record, model, changes = session.calibration, session.model, list[dict[str, Any]]()
    tables = {name: list(table.score.shape) for name, table in session.sensitivities.items()}
    with suppress(PlanError):  # a plan that does not fit the model is repaired in the window
        changes = [asdict(change) for change in transitions(model, resolve(session.plan, model.layers))]
    shown = [{**change, "sizes": " -> ".join(map(readable_bytes, change["nbytes"]))} for change in changes]
    return Report(
        facts={
            "session": path, "model": model.name, "fingerprint": model.fingerprint, "parameters": model.parameters,
            "layers": len(model.layers), "source": model.source.path,
            "calibration": record
            and {"data": record.path, "samples": record.samples, "hash": record.content_hash},
            "statistics": len(session.statistics), "sensitivities": tables, "plan": session.plan.name,
            "rules": len(session.plan.rules),
            "evaluations": [{**figures_of(run), "plan": run.plan_name} for run in session.evaluations],
            "timings": len(session.timings), "workbench": session.environment.workbench, "transitions": changes,
        },
        parts=[
            facts_table({
                "model": f"{model.name} ({model.parameters:,} parameters, {len(model.layers)} layers)",
                "fingerprint": model.fingerprint,
                "source": model.source.path,
                "calibration": f"{record.samples} samples of {record.path}" if record else "none",
                "statistics": f"{len(session.statistics)} tensors",
                "sensitivity": ", ".join(f"{name} {rows} x {columns}" for name, (rows, columns) in tables.items())
                or "none",
                "plan": f"{session.plan.name} ({len(session.plan.rules)} rules)",
                "evaluations": len(session.evaluations),
                "timings": len(session.timings),
                "made with": f"workbench {session.environment.workbench}",
            }),
            Table(rows=shown, columns="before=stored as | after=becomes | layers | weights | sizes=size"),
        ],
    )  # fmt: skip


def facts_table(facts: Mapping[str, object]) -> Table:
    """Return one row for each fact, without headings and for the text alone."""
    rows = [{"title": title, "fact": str(fact)} for title, fact in facts.items()]
    return Table(rows=rows, columns="title | fact", titles=False)


def written(paths: Iterable[Path | str], notes: Iterable[str] = ()) -> Report:
    """Return the files that a command wrote, with their bytes."""
    files: list[Row] = []
    lines = []
    for path in map(Path, paths):
        size = sum(file.stat().st_size for file in (path.rglob("*") if path.is_dir() else (path,)) if file.is_file())
        files.append({"path": path, "bytes": size})
        lines.append(f"wrote {path} ({readable_bytes(size)})")
    return Report(facts={"files": files}, parts=lines, notes=tuple(notes))


def exported(outcome: Outcome[ExportOptions, tuple[str, ...]] | Outcome[TrainOptions, tuple[str, ...]]) -> Report:
    """Return the files that hold the session's quantized model, and what of the plan they cannot hold."""
    return written(outcome.result, left_to_the_runtime(outcome.before.model, outcome.before.plan))
