"""Makes a session of the tree that was read from its file, or of what is whole in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, cast

from workbench.errors import SessionError, first_line
from workbench.measurement.evaluation import Timing
from workbench.models.data.record import DataRecord
from workbench.models.summary import ModelSummary
from workbench.planning.plan import Assignment, Plan, Rule
from workbench.sensitivity.table import Sensitivity
from workbench.session.budget import known_budget
from workbench.session.contents import LAYOUTS, Contents, Environment
from workbench.session.file import evaluations, records, results
from workbench.session.file.datasets import group_of, original_name, place, read_text
from workbench.session.file.tree import Group
from workbench.session.table import Layout, Table

C = TypeVar("C", bound=Contents)
K = TypeVar("K", str, tuple[str, str], tuple[str, str, str])
R = TypeVar("R")

DAMAGE = (
    OSError, RuntimeError, KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError, MemoryError,
)  # fmt: skip
UNKNOWN = Environment(workbench="", python="", numpy="", torch="", device="", threads=0)


@dataclass(frozen=True, slots=True)
class Attempt:
    """Reads parts: a damaged one is an error, or, in a repair, a line in ``lost`` and None."""

    lost: list[str] | None = None

    def __call__(self, where: str, read: Callable[[], R]) -> R | None:
        """Return what ``read`` returns; ``where`` is the part's place."""
        try:
            return read()
        except (SessionError, *DAMAGE) as error:
            if self.lost is None:
                raise
            self.lost.append(f"/{where}: {first_line(error)}")
            return None

    def each(self, file: Group, name: str, read: Callable[[Group, str], R]) -> dict[str, R]:
        """Return what ``read`` makes of each member of the group ``name``."""
        parent, parts = self(name, lambda: group_of(file, name)), {}
        for link in parent or ():
            part = self(f"{name}/{link}", lambda link=link: read(cast(Group, parent), link))  # type: ignore[misc]
            if part is not None:
                parts[original_name(link)] = part
        return parts


def session_of(file: Group, kind: type[C], attempt: Attempt, spare: ModelSummary | None = None) -> C:
    """Return the session of a tree; ``attempt`` says what becomes of parts that are damaged.

    The model's facts are needed: ``spare`` ones stand in where those of the tree are damaged.
    """

    def model() -> ModelSummary:
        return _read_record(file, "model", ModelSummary)

    def optional(name: str, read: Callable[[], R | None]) -> R | None:
        return attempt(name, read) if name in file else None

    def texts(name: str) -> tuple[str, ...]:
        return tuple(attempt(name, lambda: read_text(file, name)) or ())

    stored = {name: layout for name, layout in LAYOUTS.items() if name != "outliers" or name in file}  # older files
    tables = {name: _read_layout(file, name, layout, attempt) for name, layout in stored.items()}
    return kind(
        model=model() if spare is None else attempt("model", model) or spare,
        environment=attempt("environment", lambda: _read_record(file, "environment", Environment)) or UNKNOWN,
        plan=attempt("plan", lambda: _read_plan(file, "plan")) or Plan(),
        calibration=optional("calibration", lambda: _read_record(file, "calibration", DataRecord)),
        evaluation=optional("evaluation", lambda: _read_record(file, "evaluation", DataRecord)),
        sensitivities=attempt.each(file, "sensitivity", lambda parent, link: _read_record(parent, link, Sensitivity)),
        plans=attempt.each(file, "plans", _read_plan),
        locked=frozenset(texts("locked")),
        target=str(file.attrs.get("target", "")),
        budget=known_budget(file.attrs.get("budget"), file.attrs.get("budget_unit")),
        evaluations=attempt("evaluations", lambda: evaluations.read_evaluations(file)) or (),
        error_budget=optional("error_budget", lambda: evaluations.read_error_budget(file)),
        audit=optional("audit", lambda: evaluations.read_audit(file)),
        timings=attempt("timings", lambda: tuple(records.read_records(file, "timings", Timing)[1])) or (),
        results=attempt.each(file, "results", results.read_result) if "results" in file else {},  # older files
        notes=texts("notes"),
        **tables,
    )


def _read_record(parent: Group, name: str, kind: type[R]) -> R:
    return records.build(kind, records.read_record(parent, name, kind), place(parent, name))


def _read_layout(file: Group, name: str, layout: Layout[K, R], attempt: Attempt) -> Table[K, R]:
    """Read a table and make its records, which refuse damaged values."""
    keys = dict.fromkeys(layout.names, str)

    def table(parent: Group, link: str) -> Table[K, R]:
        tap = original_name(link) if layout.by_tap else ""
        table = Table.of_columns(layout, {tap: records.read_table(parent, link, layout.kind, keys)})
        records.built(table.make_all, f"/{name}")
        return table

    if layout.by_tap:
        parts = attempt.each(file, name, table)
        return Table.of_columns(layout, {tap: part.parts[tap] for tap, part in parts.items()})
    return attempt(name, lambda: table(file, name)) or Table(layout, {})


def _read_plan(parent: Group, name: str) -> Plan:
    facts = records.read_record(parent, name, Plan, without=("rules",))
    columns, assignments = records.read_records(group_of(parent, name), "rules", Assignment, {"pattern": str})
    patterns = zip(columns.keys["pattern"].cells(0, columns.rows), assignments, strict=True)
    rules = tuple(Rule(pattern=str(pattern), assignment=assignment) for pattern, assignment in patterns)
    return records.build(Plan, {**facts, "rules": rules}, f"the plan {name}")
