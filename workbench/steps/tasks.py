"""The job's steps as pure functions: what the window's requests, the command line and scripts all call.

Thin glue: each opens what it needs, calls the layer below, and puts the result into a new Session.  A ``progress`` that
raises CancelledError ends a step without a trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import CannotRunError, MissingResultError, PlanError
from workbench.measurement.evaluation import Evaluation
from workbench.models.data.record import DataRecord
from workbench.models.sources import reopen as reopen
from workbench.numerics.formats import parse_scheme, standard_schemes
from workbench.planning.plan import KEEP, Plan, resolve
from workbench.planning.totals import plan_totals
from workbench.progress import Progress, part_of, silent
from workbench.sensitivity.metrics import TABLE_METRICS, find_metric
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session
from workbench.steps import session_data
from workbench.steps.activation_scores import activation_table
from workbench.steps.calibrate import calibrate as calibrate
from workbench.steps.files.export import apply as apply
from workbench.steps.files.export import export as export
from workbench.steps.files.new_session import start as start
from workbench.steps.files.open_model import open as open
from workbench.steps.quantize import quantize as quantize
from workbench.steps.quantize import require_same as require_same

if TYPE_CHECKING:
    from workbench.models.data.datasets import Dataset
    from workbench.models.model import Model


def score(
    session: Session,
    metric: str = "predicted_kl",
    *,
    model: Model | None = None,
    schemes: Sequence[str] | None = None,
    samples: int | None = None,
    batch_size: int = 8,
    seed: int = 0,
    algorithm: str = "rtn-clip",
    trust: bool = False,
    progress: Progress = silent,
) -> Session:
    """Score every layer under every scheme by ``metric`` and return the session with the table.

    The metrics are those of :mod:`workbench.sensitivity.metrics`, of weights and of activations.  ``schemes`` default
    to the standard ones.  An earlier table of the same metric, algorithm, seed and data is extended.  Metrics that run
    the model use the calibration's data, which must be unchanged (DataError).  Raises MissingResultError naming the
    missing step, CannotRunError for what a weights-only model cannot do.
    """
    from workbench.sensitivity.score import score as score_cells

    notes: list[str] = []
    record = find_metric(metric)
    if record.part != "weights":
        _require_runs(session, metric)
        if algorithm != "rtn-clip":
            raise PlanError(f"the algorithm {algorithm} rounds weights, and {metric} scores activations; leave it out")
        table = activation_table(
            session, metric, model or reopen(session.model, trust=trust), _calibrated(session, metric), schemes,
            samples=samples, batch_size=batch_size, seed=seed, notes=notes, progress=progress,
        )  # fmt: skip
        return _with_table(session, metric, table, notes)
    names = tuple(parse_scheme(name).name for name in schemes or [scheme.name for scheme in standard_schemes()])
    model = model or reopen(session.model, trust=trust)
    dataset = None
    if record.needs_data:
        _require_runs(session, metric)
        dataset = session_data.recorded(model, _calibrated(session, metric), samples=samples)
    earlier = session.sensitivities.get(metric)
    if earlier is not None and _extends(earlier, algorithm, seed, dataset):
        names = (*earlier.schemes, *(name for name in names if name not in earlier.column))
    table = score_cells(
        model, metric, names, curvature=session.curvature, dataset=dataset, batch_size=batch_size, seed=seed,
        algorithm=algorithm, previous=earlier, notes=notes, progress=progress,
    )  # fmt: skip
    return _with_table(session, metric, table, notes)


def _with_table(session: Session, metric: str, table: Sensitivity, notes: Sequence[str]) -> Session:
    """Return the session with a table and what there is to tell of it."""
    said = tuple(f"{metric}: {note}" for note in notes)
    return replace(
        session, sensitivities={**session.sensitivities, metric: table},
        notes=tuple(dict.fromkeys((*session.notes, *said))),
    )  # fmt: skip


def search(
    session: Session,
    *,
    bits_per_weight: float | None = None,
    size: int | None = None,
    microseconds: float | None = None,
    loss: float | None = None,
    minimise: str = "loss",
    metric: str | None = None,
    schemes: Sequence[str] | None = None,
    inputs: str | Sequence[str] | None = None,
    cache: str | None = None,
    target: str | None = None,
    lock: Sequence[str] = (),
    allow: Mapping[str, Sequence[str]] | None = None,
    strategy: str = "optimal",
    batch: int = 1,
    corrected: bool = False,
    range_method: str | None = None,
    progress: Progress = silent,
) -> Plan:
    """Return the plan that minimises ``minimise`` (``loss``, ``nbytes``, ``bits_per_weight``, ``microseconds``).

    Budgets, one at least: ``bits_per_weight``, ``size`` (bytes of the whole model), ``microseconds`` of all timed
    layers at ``batch`` rows, ``loss`` in the table's unit.  ``metric`` names the table (default: the best there is).
    The rest is as in :func:`workbench.steps.planner.find_plan`.  Raises MissingResultError, BudgetError, PlanError.
    """
    from workbench.planning.budgets import Budgets
    from workbench.steps.planner import find_plan

    budgets = Budgets(nbytes=size, bits_per_weight=bits_per_weight, microseconds=microseconds, loss=loss)
    return find_plan(
        session, budgets, minimise=minimise, strategy_name=strategy, metric=metric, schemes=schemes, target=target,
        lock=(lock,) if isinstance(lock, str) else lock, allow=allow, inputs=inputs, cache=cache, batch=batch,
        corrected=corrected, range_method=range_method, progress=progress,
    )  # fmt: skip


def complete_table(
    session: Session,
    plan: Plan,
    metric: str | None = None,
    *,
    model: Model | None = None,
    trust: bool = False,
    progress: Progress = silent,
) -> Session:
    """Return the session with a table that covers every scheme of ``plan``; as it is if it has none of that metric."""
    if metric is None and not session.sensitivities.keys() & set(TABLE_METRICS):
        return session
    table = session.require_table(metric)
    used = {assignment.weights for assignment in resolve(plan, session.model.layers).values()} - {KEEP}
    missing = sorted(used - set(table.schemes))
    if not missing:
        return session
    return score(
        session, table.metric, model=model, schemes=(*table.schemes, *missing), samples=table.samples or None,
        seed=table.seed, algorithm=table.algorithm, trust=trust, progress=progress,
    )  # fmt: skip


def evaluate(
    session: Session,
    plan: Plan | None = None,
    *,
    model: Model | None = None,
    data: str | Path | None = None,
    samples: int | None = None,
    batch_size: int = 8,
    seed: int = 0,
    metric: str | Path | None = None,
    trust: bool = False,
    progress: Progress = silent,
) -> Evaluation:
    """Measure ``plan`` (default: the session's) against the floating-point model.

    ``data`` defaults to the session's evaluation data, else to the part of the calibration's data that calibration
    never sees.  ``metric`` is a trusted Python file with a function of one's own (``file.py`` or ``file.py:name``, see
    :mod:`workbench.measurement.user_metric`).  Raises CannotRunError, DataError, PlanError and its kin.
    """
    from workbench.measurement.evaluate import evaluate as measure
    from workbench.measurement.most_changed import MostChanged
    from workbench.measurement.user_metric import load_metric
    from workbench.models.data.inputs import InputSpec
    from workbench.models.data.samples import decoder

    plan = plan or session.plan
    require_same(session.model, plan, None)
    if session.model.cannot_run is not None:
        raise CannotRunError(f"{session.model.name} cannot be evaluated: {session.model.cannot_run}")
    sums = plan_totals(
        session.model, plan, session.sensitivities.get("predicted_kl"), session.inputs_table("predicted_kl"),
        session.cache_table("predicted_kl"),
    )  # fmt: skip
    model = model or reopen(session.model, trust=trust)
    dataset = session_data.for_evaluation(model, session, data, samples=samples, seed=seed)
    own = () if metric is None else (load_metric(metric, trust=trust),)
    spec = getattr(model, "inputs", InputSpec())
    changed = MostChanged(decoder(spec) if spec.tokenizer is not None else None)
    quantized = quantize(model, plan, session=session, progress=part_of(progress, 0.0, 0.3))
    notes: list[str] = []
    metrics = measure(
        model, quantized.bind(model), dataset, batch_size=batch_size, seed=seed, most_changed=changed, user_metrics=own,
        notes=notes, progress=part_of(progress, 0.3, 1.0),
    )  # fmt: skip
    return Evaluation(
        plan_name=plan.name, plan_hash=plan.hash, data_name=dataset.record.name, data_hash=dataset.record.content_hash,
        bits_per_weight=sums.bits_per_weight, nbytes=sums.nbytes, predicted_kl=sums.predicted, metrics=metrics,
        changed=changed.units(), notes=tuple(dict.fromkeys((*quantized.notes, *dataset.notes, *notes))),
    )  # fmt: skip


def _require_runs(session: Session, metric: str) -> None:
    if session.model.cannot_run is not None:
        raise CannotRunError(
            f"{session.model.name} cannot be scored by {metric}: {session.model.cannot_run}; the metric weight_error "
            "needs weights only"
        )


def _extends(earlier: Sensitivity, algorithm: str, seed: int, dataset: Dataset | None) -> bool:
    """Tell whether cells of the earlier table may stand beside new ones."""
    data_hash, samples = (dataset.record.content_hash, len(dataset)) if dataset is not None else ("", 0)
    alike = (algorithm, seed, data_hash, samples)
    return (earlier.algorithm, earlier.seed, earlier.data_hash, earlier.samples) == alike


def _calibrated(session: Session, metric: str) -> DataRecord:
    if session.calibration is None:
        raise MissingResultError(
            f"the metric {metric} needs calibration data, and the session was not calibrated yet; calibrate first, "
            "or use the metric weight_error",
            command="workbench calibrate MODEL --data DATA --out S.qwb",
        )
    return session.calibration


