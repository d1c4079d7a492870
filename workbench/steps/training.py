"""Quantization-aware training as a step of the job: thin glue like :mod:`workbench.steps.tasks`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from workbench.errors import CannotRunError, ExportError
from workbench.planning.plan import Plan
from workbench.progress import Progress, part_of, silent
from workbench.session.calibrated_ranges import ranges_of_plan
from workbench.session.session import Session
from workbench.steps import session_data, tasks

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


def train(
    session: Session,
    plan: Plan | None = None,
    *,
    model: Model | None = None,
    data: str | Path | None = None,
    steps: int = 1000,
    learning_rate: float = 0.01,
    batch_size: int | None = None,
    loss: Literal["kl", "task"] = "kl",
    samples: int | None = None,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    trust: bool = False,
    progress: Progress = silent,
) -> QuantizedModel:
    """Train new weights on the grids of ``plan`` (default: the session's) from the floating-point model.

    ``data`` defaults to the calibration's.  See :func:`workbench.quantization.train.train`; the model's own
    weights stay.
    Raises MissingResultError without data, DataError, CannotRunError, PlanError and its kin.
    """
    from workbench.quantization.train import train as learn

    plan = plan or session.plan
    tasks.require_same(session.model, plan, None)
    if session.model.cannot_run is not None:
        raise CannotRunError(f"{session.model.name} cannot be trained: {session.model.cannot_run}")
    model = model or tasks.reopen(session.model, trust=trust)
    if data is None and session.calibration is not None:
        dataset = session_data.recorded(model, session.calibration, samples=samples)
    else:
        dataset = session_data.for_calibration(model, data, samples=samples, seed=seed)
    return learn(
        model, plan, dataset, steps=steps, learning_rate=learning_rate, batch_size=batch_size, loss=loss, seed=seed,
        ranges=ranges_of_plan(session, plan), checkpoint=checkpoint, progress=progress,
    )  # fmt: skip


def train_and_export(
    session: Session,
    kind: str,
    out: str | Path,
    *,
    plan: Plan | None = None,
    model: Model | None = None,
    trust: bool = False,
    progress: Progress = silent,
    **options: Any,
) -> tuple[Path, ...]:
    """Train as :func:`train` does, with its ``options``, and write the result; returns the paths written."""
    from workbench.deployment.exporters import exporter

    chosen = exporter(kind)
    if not chosen.needs_model:
        raise ExportError(f"{kind} holds no weights, so training for it is in vain; choose a kind with weights")
    model = model or tasks.reopen(session.model, trust=trust)
    trained = train(session, plan, model=model, trust=trust, progress=part_of(progress, 0.0, 0.9), **options)
    return chosen.export(trained, model, Path(out), part_of(progress, 0.9, 1.0))
