"""Evaluations, the error budget and the audit in a session file (see :mod:`workbench.session.file.hdf5`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.errors import SessionError
from workbench.measurement.evaluation import Changed, Evaluation, Metric
from workbench.sensitivity.audit import Audit, PlanAudit
from workbench.sensitivity.error_budget import BudgetPair, ErrorBudget, NoiseGains
from workbench.sensitivity.interaction import Directions
from workbench.session.file.columns import Group, describe, member, read_array, read_text, write_array, write_text
from workbench.session.file.records import build, read_record, read_rows, read_table, write_record, write_table

_UNITS = {"bits_per_weight": "bit", "nbytes": "byte", "predicted_kl": "nat"}
_LOSSES = ("predicted", "alone", "joined")
_TABLES = ("metrics", "changed")


def write_evaluations(file: Group, evaluations: tuple[Evaluation, ...]) -> None:
    """Write the group ``evaluations``."""
    group = write_table(file, "evaluations", Evaluation, evaluations, units=_UNITS, without=_TABLES)
    entries = [(index, *item) for index, each in enumerate(evaluations) for item in each.metrics.items()]
    numbers = np.array([index for index, _, _ in entries], dtype=np.int64)
    keys: dict[str, list[str] | np.ndarray] = {"evaluation": numbers, "key": [key for _, key, _ in entries]}
    write_table(group, "metrics", Metric, [metric for _, _, metric in entries], keys=keys)
    owners = np.array([index for index, each in enumerate(evaluations) for _ in each.changed], dtype=np.int64)
    changed = [one for each in evaluations for one in each.changed]
    write_table(group, "changed", Changed, changed, keys={"evaluation": owners}, units={"kl": "nat"})


def read_evaluations(file: Group) -> tuple[Evaluation, ...]:
    """Read the group ``evaluations``; raises SessionError."""
    rows, _ = read_rows(file, "evaluations", Evaluation, without=_TABLES)
    group = member(file, "evaluations")
    metrics, (numbers, keys) = read_table(group, "metrics", Metric, keys={"evaluation": int, "key": str})
    for number, key, metric in zip(numbers, keys, metrics, strict=True):
        _owner(rows, number, "metrics").setdefault("metrics", {})[key] = metric
    if "changed" in group:  # older files lack it
        units, (owners,) = read_table(group, "changed", Changed, keys={"evaluation": int})
        for number, unit in zip(owners, units, strict=True):
            row = _owner(rows, number, "changed")
            row["changed"] = (*row.get("changed", ()), unit)
    return tuple(build(Evaluation, {"metrics": {}} | row, "/evaluations") for row in rows)


def _owner(rows: list[dict[str, Any]], number: int, table: str) -> dict[str, Any]:
    if not 0 <= number < len(rows):
        raise SessionError(f"/evaluations/{table} speaks of evaluation {number}, there are {len(rows)}")
    return rows[number]


def write_error_budget(file: Group, pair: BudgetPair) -> None:
    """Write the group ``error_budget``."""
    group = write_record(file, "error_budget", pair)
    write_record(group, "gains", pair.gains)
    write_text(group, "layers", pair.gains.layers)
    write_text(group, "blocks", pair.gains.blocks)
    write_array(group, "gain", pair.gains.gain)
    write_array(group, "measured", pair.measured.noise)
    if pair.predicted is not None and pair.predicted.share is not None:
        write_array(group, "predicted_share", pair.predicted.share)


def write_directions(table: Group, directions: Directions) -> None:
    """Write the group ``directions`` of a sensitivity table."""
    group = table.create_group("directions")
    describe(group, "Directions")
    write_text(group, "layers", directions.layers)
    write_text(group, "schemes", directions.schemes)
    write_array(group, "values", directions.values)


def read_directions(table: Group) -> Directions | None:
    """Read the group ``directions``, None where there is none; raises SessionError."""
    if "directions" not in table:
        return None
    group = member(table, "directions")
    facts: dict[str, Any] = {label: tuple(read_text(group, label)) for label in ("layers", "schemes")}
    return build(Directions, facts | {"values": read_array(group, "values", 3)}, group.name)


def read_error_budget(file: Group) -> BudgetPair | None:
    """Read the group ``error_budget``, None where there is none; raises SessionError."""
    if "error_budget" not in file:
        return None
    facts = read_record(file, "error_budget", BudgetPair)
    group = member(file, "error_budget")
    layers, blocks = tuple(read_text(group, "layers")), tuple(read_text(group, "blocks"))
    shape = (len(layers), len(blocks))
    gain, noise = read_array(group, "gain", 2), read_array(group, "measured", 1)
    share = read_array(group, "predicted_share", 2) if "predicted_share" in group else None
    if gain.shape != shape or noise.shape != shape[1:] or (share is not None and share.shape != shape):
        raise SessionError(f"/error_budget has arrays that do not fit {shape[0]} layers and {shape[1]} blocks")
    kept = {"layers": layers, "blocks": blocks, "gain": gain}
    predicted = None
    if share is not None:
        predicted = ErrorBudget(blocks=blocks, noise=share.sum(axis=0), layers=layers, share=share)
    parts = {
        "gains": build(NoiseGains, read_record(group, "gains", NoiseGains) | kept, "/error_budget/gains"),
        "measured": ErrorBudget(blocks=blocks, noise=noise),
        "predicted": predicted,
    }
    return build(BudgetPair, facts | parts, "/error_budget")


def write_audit(file: Group, found: PlanAudit) -> None:
    """Write the group ``audit``."""
    group = write_record(file, "audit", found)
    write_record(group, "whole", found.audit, units={"whole": "nat"})
    write_text(group, "layers", found.audit.layers)
    if found.audit.notes:
        write_text(group, "notes", found.audit.notes)
    for name in _LOSSES:
        write_array(group, name, getattr(found.audit, name), "nat")


def read_audit(file: Group) -> PlanAudit | None:
    """Read the group ``audit``, None where there is none; raises SessionError."""
    if "audit" not in file:
        return None
    facts = read_record(file, "audit", PlanAudit)
    group = member(file, "audit")
    parts: dict[str, Any] = read_record(group, "whole", Audit) | {"layers": tuple(read_text(group, "layers"))}
    parts |= {name: read_array(group, name, 1) for name in _LOSSES}
    if "notes" in group:
        parts["notes"] = tuple(read_text(group, "notes"))
    if any(parts[name].shape != (len(parts["layers"]),) for name in _LOSSES):
        raise SessionError(f"/audit has losses that do not fit its {len(parts['layers'])} layers")
    return build(PlanAudit, facts | {"audit": build(Audit, parts, "/audit")}, "/audit")
