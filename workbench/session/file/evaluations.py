"""Evaluations, the error budget and the audit in a session file (see :mod:`workbench.session.file.hdf5`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from workbench.errors import SessionError
from workbench.measurement.evaluation import Changed, Evaluation, Metric
from workbench.sensitivity.audit import Audit, PlanAudit
from workbench.sensitivity.error_budget import BudgetPair, ErrorBudget, NoiseGains
from workbench.session.columns import Coded, Columns, Numbers
from workbench.session.file import records
from workbench.session.file.datasets import group_of, read_array, write_array
from workbench.session.file.records import build
from workbench.session.file.tree import Group

if TYPE_CHECKING:
    import h5py

R = TypeVar("R")

_UNITS = {"bits_per_weight": "bit", "nbytes": "byte", "predicted_kl": "nat"}
_LOSSES = ("predicted", "alone", "joined")
_TABLES = ("metrics", "changed")


def write_evaluations(file: h5py.Group, evaluations: tuple[Evaluation, ...]) -> None:
    """Write the group ``evaluations``."""
    group = records.write_table(file, "evaluations", Columns.of(Evaluation, evaluations, without=_TABLES), _UNITS)
    metrics = [(number, *item) for number, each in enumerate(evaluations) for item in each.metrics.items()]
    keys = {"evaluation": _numbers(metrics), "key": Coded.of([name for _, name, _ in metrics])}
    records.write_table(group, "metrics", Columns.of(Metric, [metric for *_, metric in metrics], keys))
    changed = [(number, unit) for number, each in enumerate(evaluations) for unit in each.changed]
    columns = Columns.of(Changed, [unit for _, unit in changed], {"evaluation": _numbers(changed)})
    records.write_table(group, "changed", columns, {"kl": "nat"})


def read_evaluations(file: Group) -> tuple[Evaluation, ...]:
    """Read the group ``evaluations``; raises SessionError."""
    facts = list(records.read_table(file, "evaluations", Evaluation, without=_TABLES).dictionaries())
    group = group_of(file, "evaluations")
    metrics = _by_evaluation(group, "metrics", Metric, {"evaluation": int, "key": str}, len(facts))
    changed: list[list[tuple[object, Changed]]] = [[] for _ in facts]
    if "changed" in group:  # older files lack it
        changed = _by_evaluation(group, "changed", Changed, {"evaluation": int}, len(facts))
    return tuple(
        build(Evaluation, {**row, "metrics": dict(by_key), "changed": tuple(unit for _, unit in units)}, "/evaluations")
        for row, by_key, units in zip(facts, metrics, changed, strict=True)
    )


def _numbers(rows: Sequence[tuple[int, *tuple[object, ...]]]) -> Numbers:
    return Numbers(np.array([row[0] for row in rows], dtype=np.int64))


def _by_evaluation(
    group: Group, name: str, kind: type[R], keys: Mapping[str, type], count: int
) -> list[list[tuple[object, R]]]:
    """Read a table and return, for each of ``count`` evaluations, the last of ``keys`` and the record of its rows."""
    columns, rows = records.read_records(group, name, kind, keys)
    owners, labels = (list(columns.keys[key].cells(0, columns.rows)) for key in (next(iter(keys)), [*keys][-1]))
    parts: list[list[tuple[object, R]]] = [[] for _ in range(count)]
    for owner, label, row in zip(owners, labels, rows, strict=True):
        if not 0 <= int(str(owner)) < count:
            raise SessionError(f"/evaluations: a {kind.__name__} refers to evaluation {owner}, there are {count}")
        parts[int(str(owner))].append((label, row))
    return parts


def write_error_budget(file: h5py.Group, pair: BudgetPair) -> None:
    """Write the group ``error_budget``."""
    group = records.write_scalars(file, "error_budget", pair)
    records.write_scalars(group, "gains", pair.gains)
    records.write_parts(group, pair.gains)
    write_array(group, "measured", pair.measured.noise)
    if pair.predicted is not None and pair.predicted.share is not None:
        write_array(group, "predicted_share", pair.predicted.share)


def read_error_budget(file: Group) -> BudgetPair | None:
    """Read the group ``error_budget``, None where there is none; raises SessionError."""
    if "error_budget" not in file:
        return None
    facts, group = records.read_scalars(file, "error_budget", BudgetPair), group_of(file, "error_budget")
    values = records.read_scalars(group, "gains", NoiseGains) | records.read_parts(group, NoiseGains)
    gains = build(NoiseGains, values, "/error_budget/gains")
    shape = (len(gains.layers), len(gains.blocks))
    noise = read_array(group, "measured", 1)
    share = read_array(group, "predicted_share", 2) if "predicted_share" in group else None
    if gains.gain.shape != shape or noise.shape != shape[1:] or (share is not None and share.shape != shape):
        raise SessionError(f"/error_budget has arrays that do not fit {shape[0]} layers and {shape[1]} blocks")
    predicted = None
    if share is not None:
        predicted = ErrorBudget(blocks=gains.blocks, noise=share.sum(axis=0), layers=gains.layers, share=share)
    budgets = {"measured": ErrorBudget(blocks=gains.blocks, noise=noise), "predicted": predicted}
    return build(BudgetPair, facts | {"gains": gains} | budgets, "/error_budget")


def write_audit(file: h5py.Group, plan_audit: PlanAudit) -> None:
    """Write the group ``audit``."""
    group, units = records.write_scalars(file, "audit", plan_audit), dict.fromkeys(("whole", *_LOSSES), "nat")
    records.write_scalars(group, "whole", plan_audit.audit, units)
    records.write_parts(group, plan_audit.audit, units)


def read_audit(file: Group) -> PlanAudit | None:
    """Read the group ``audit``, None where there is none; raises SessionError."""
    if "audit" not in file:
        return None
    facts, group = records.read_scalars(file, "audit", PlanAudit), group_of(file, "audit")
    values = records.read_scalars(group, "whole", Audit) | records.read_parts(group, Audit)
    audit = build(Audit, values, "/audit")
    if any(getattr(audit, name).shape != (len(audit.layers),) for name in _LOSSES):
        raise SessionError(f"/audit has losses that do not fit its {len(audit.layers)} layers")
    return build(PlanAudit, facts | {"audit": audit}, "/audit")
