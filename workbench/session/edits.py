"""What the user edits of a session, and how edits are undone: their difference is exchanged, what is newer stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeVar

from workbench.numerics.ranges import Range
from workbench.planning.plan import Plan
from workbench.session.budget import Budget
from workbench.session.calibrated_ranges import range_by
from workbench.session.session import Session

Key = TypeVar("Key")
Value = TypeVar("Value")
Ranges = Mapping[tuple[str, str], Range]

BRANCH = "Branch "
"""What the names of plans begin with that are kept because other edits took their place."""

MAX_BRANCHES = 20
"""Such plans of a session; the oldest one makes room."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EditableParts:
    """The parts of a session that the user edits."""

    plan: Plan
    plans: Mapping[str, Plan]
    active_ranges: Ranges
    locked: frozenset[str]
    target: str
    budget: Budget | None

    @staticmethod
    def of(session: Session) -> EditableParts:
        """Return the parts of ``session``."""
        return EditableParts(
            plan=session.plan, plans=session.plans, active_ranges=session.active_ranges, locked=session.locked,
            target=session.target, budget=session.budget,
        )  # fmt: skip

    def into(self, session: Session) -> Session:
        """Return ``session`` with these parts."""
        return replace(session, **{item.name: getattr(self, item.name) for item in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edit:
    """An entry of the undo stack: what the user changed, as the parts before and after.

    Undoing it reverts the difference of the two; what results have changed since stays.
    """

    number: int
    name: str
    before: EditableParts
    after: EditableParts


def with_branch(session: Session, undone: Sequence[Edit], following: Plan) -> Session:
    """Return ``session`` with the plan that ``undone`` edits (the last one first) had led to among its named plans.

    The same session where nothing was undone, or where that plan is the present or the ``following`` one or has a name.
    """
    if not undone:
        return session
    tip = undone[0].after.plan
    if any(replace(plan, name=tip.name) == tip for plan in (following, session.plan, *session.plans.values())):
        return session
    numbers = sorted(int(name.removeprefix(BRANCH)) for name in session.plans if is_branch(name))
    dropped = {f"{BRANCH}{number}" for number in numbers[: max(len(numbers) + 1 - MAX_BRANCHES, 0)]}
    name = f"{BRANCH}{(numbers or [0])[-1] + 1}"
    plans = {other: plan for other, plan in session.plans.items() if other not in dropped}
    return replace(session, plans={**plans, name: replace(tip, name=name)})


def is_branch(name: str) -> bool:
    """Whether a named plan was kept by itself and not saved by the user."""
    return name.startswith(BRANCH) and name.removeprefix(BRANCH).isdecimal()


def last_saved(plans: Iterable[str]) -> str:
    """Return which of named plans, in their order, the user saved last; empty for none."""
    return next((name for name in reversed([*plans]) if not is_branch(name)), "")


def same(session: Session, other: Session | None) -> bool:
    """Whether two sessions hold the same: edits that are equal, and the very same results."""
    if other is None:
        return False
    edits = {item.name for item in fields(EditableParts)}
    pairs = ((item.name, getattr(session, item.name), getattr(other, item.name)) for item in fields(Session))
    return all(first is two or (name in edits and first == two) for name, first, two in pairs)


def exchanged(session: Session, old: EditableParts, new: EditableParts) -> Session:
    """Return ``session`` with what differs between ``old`` and ``new`` as ``new`` has it."""
    now = EditableParts.of(session)
    return EditableParts(
        plan=now.plan if old.plan is new.plan else new.plan,
        plans=_exchanged_entries(now.plans, old.plans, new.plans),
        active_ranges=_exchanged_ranges(session, old.active_ranges, new.active_ranges),
        locked=(now.locked - (old.locked - new.locked)) | (new.locked - old.locked),
        target=now.target if old.target == new.target else new.target,
        budget=now.budget if old.budget == new.budget else new.budget,
    ).into(session)


def _exchanged_entries(
    now: Mapping[Key, Value], old: Mapping[Key, Value], new: Mapping[Key, Value]
) -> Mapping[Key, Value]:
    if old is new or now is old:
        return now if old is new else new
    entries = dict(now)
    for key in _differing(old, new):
        entries.pop(key, None)
        if key in new:
            entries[key] = new[key]
    return entries


def _exchanged_ranges(session: Session, old: Ranges, new: Ranges) -> Ranges:
    """Exchange ranges; where a calibration came in between, its result takes the place of an older one."""
    ranges = _exchanged_entries(session.active_ranges, old, new)
    if ranges is session.active_ranges or ranges is new:
        return ranges
    calibrated = dict(ranges)
    for layer, tap in _differing(old, new):
        restored, now = new.get((layer, tap)), session.active_ranges.get((layer, tap))
        if restored is None and now is not None and now.method != "manual" and now != old.get((layer, tap)):
            calibrated[layer, tap] = now  # a result that came after the edit stays
            continue
        if restored is None and tap == "input":
            method = session.plan.of(layer).range_method
        elif restored is not None and restored.method != "manual":
            method = restored.method
        else:
            continue
        latest = range_by(session.ranges, layer, tap, method)
        if latest is not None:
            calibrated[layer, tap] = latest
    return calibrated


def _differing(old: Mapping[Key, Value], new: Mapping[Key, Value]) -> list[Key]:
    return [key for key in {**old, **new} if old.get(key) is not new.get(key) and old.get(key) != new.get(key)]
