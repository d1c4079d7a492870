"""Evaluations, the error budget and the audit in a session file (see :mod:`workbench.session.file.hdf5`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import h5py
import numpy as np

from workbench.errors import SessionError
from workbench.measurement.evaluation import Changed, Evaluation, Metric
from workbench.sensitivity.audit import Audit, PlanAudit
from workbench.sensitivity.error_budget import BudgetPair, ErrorBudget, NoiseGains
from workbench.sensitivity.interaction import Directions
from workbench.session.columns import Coded, Column, Columns, Numbers
from workbench.session.file.datasets import describe, member, read_array, read_text, write_array, write_text
from workbench.session.file.records import build, read_record, read_records, read_table, write_record, write_table

R = TypeVar("R")
T = TypeVar("T")

_UNITS = {"bits_per_weight": "bit", "nbytes": "byte", "predicted_kl": "nat"}
_LOSSES = ("predicted", "alone", "joined")
_TABLES = ("metrics", "changed")


def write_evaluations(file: h5py.Group, evaluations: tuple[Evaluation, ...]) -> None:
    """Write the group ``evaluations``."""
    group = write_table(file, "evaluations", Columns.of(Evaluation, evaluations, without=_TABLES), _UNITS)
    metrics = [(number, *item) for number, each in enumerate(evaluations) for item in each.metrics.items()]
    numbers, names, values = zip(*metrics, strict=True) if metrics else ((), (), ())
    keys: dict[str, Column] = {"evaluation": _numbers(numbers), "key": Coded.of(names)}
    write_table(group, "metrics", Columns.of(Metric, values, keys))
    changed = [(number, unit) for number, each in enumerate(evaluations) for unit in each.changed]
    owners = {"evaluation": _numbers([number for number, _ in changed])}
    write_table(group, "changed", Columns.of(Changed, [unit for _, unit in changed], owners), {"kl": "nat"})


def read_evaluations(file: h5py.Group) -> tuple[Evaluation, ...]:
    """Read the group ``evaluations``; raises SessionError."""
    facts = list(read_table(file, "evaluations", Evaluation, without=_TABLES).dictionaries())
    group = member(file, "evaluations")
    metrics: list[dict[str, Metric]] = [{} for _ in facts]
    columns, records = read_records(group, "metrics", Metric, {"evaluation": int, "key": str})
    for key, metric, own in zip(_cells(columns, "key"), records, _owned(columns, metrics), strict=True):
        own[str(key)] = metric
    changed: list[list[Changed]] = [[] for _ in facts]
    if "changed" in group:  # older files lack it
        units, parts = read_records(group, "changed", Changed, {"evaluation": int})
        for unit, units_of in zip(parts, _owned(units, changed), strict=True):
            units_of.append(unit)
    rows = zip(facts, metrics, changed, strict=True)
    return tuple(
        build(Evaluation, {**row, "metrics": held, "changed": tuple(units)}, "/evaluations")
        for row, held, units in rows
    )


def _numbers(values: Sequence[int]) -> Numbers:
    return Numbers(np.array(values, dtype=np.int64))


def _cells(columns: Columns[R], key: str) -> list[object]:
    return list(columns.keys[key].cells(0, columns.rows))


def _owned(columns: Columns[R], evaluations: Sequence[T]) -> list[T]:
    """Return, for each row, the entry of ``evaluations`` that it belongs to."""
    numbers = [int(str(number)) for number in _cells(columns, "evaluation")]
    wrong = [number for number in numbers if not 0 <= number < len(evaluations)]
    if wrong:
        kind = columns.kind.__name__
        raise SessionError(f"/evaluations: a {kind} speaks of evaluation {wrong[0]}, there are {len(evaluations)}")
    return [evaluations[number] for number in numbers]


def write_error_budget(file: h5py.Group, pair: BudgetPair) -> None:
    """Write the group ``error_budget``."""
    group = write_record(file, "error_budget", pair)
    write_record(group, "gains", pair.gains)
    write_text(group, "layers", pair.gains.layers)
    write_text(group, "blocks", pair.gains.blocks)
    write_array(group, "gain", pair.gains.gain)
    write_array(group, "measured", pair.measured.noise)
    if pair.predicted is not None and pair.predicted.share is not None:
        write_array(group, "predicted_share", pair.predicted.share)


def write_directions(table: h5py.Group, directions: Directions) -> None:
    """Write the group ``directions`` of a sensitivity table."""
    group = table.create_group("directions")
    describe(group, "Directions")
    write_text(group, "layers", directions.layers)
    write_text(group, "schemes", directions.schemes)
    write_array(group, "values", directions.values)


def read_directions(table: h5py.Group) -> Directions | None:
    """Read the group ``directions``, None where there is none; raises SessionError."""
    if "directions" not in table:
        return None
    group = member(table, "directions")
    facts: dict[str, object] = {label: tuple(read_text(group, label)) for label in ("layers", "schemes")}
    return build(Directions, facts | {"values": read_array(group, "values", 3)}, group.name)


def read_error_budget(file: h5py.Group) -> BudgetPair | None:
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
    arrays = {"layers": layers, "blocks": blocks, "gain": gain}
    predicted = None
    if share is not None:
        predicted = ErrorBudget(blocks=blocks, noise=share.sum(axis=0), layers=layers, share=share)
    parts = {
        "gains": build(NoiseGains, read_record(group, "gains", NoiseGains) | arrays, "/error_budget/gains"),
        "measured": ErrorBudget(blocks=blocks, noise=noise),
        "predicted": predicted,
    }
    return build(BudgetPair, facts | parts, "/error_budget")


def write_audit(file: h5py.Group, audit: PlanAudit) -> None:
    """Write the group ``audit``."""
    group = write_record(file, "audit", audit)
    write_record(group, "whole", audit.audit, units={"whole": "nat"})
    write_text(group, "layers", audit.audit.layers)
    if audit.audit.notes:
        write_text(group, "notes", audit.audit.notes)
    for name in _LOSSES:
        write_array(group, name, getattr(audit.audit, name), "nat")


def read_audit(file: h5py.Group) -> PlanAudit | None:
    """Read the group ``audit``, None where there is none; raises SessionError."""
    if "audit" not in file:
        return None
    facts = read_record(file, "audit", PlanAudit)
    group = member(file, "audit")
    layers = tuple(read_text(group, "layers"))
    losses = {name: read_array(group, name, 1) for name in _LOSSES}
    parts = read_record(group, "whole", Audit) | {"layers": layers} | losses
    if "notes" in group:
        parts["notes"] = tuple(read_text(group, "notes"))
    if any(loss.shape != (len(layers),) for loss in losses.values()):
        raise SessionError(f"/audit has losses that do not fit its {len(layers)} layers")
    return build(PlanAudit, facts | {"audit": build(Audit, parts, "/audit")}, "/audit")
