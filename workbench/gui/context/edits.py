"""Edits of the plan that panels and commands make: each is an undoable step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from workbench.numerics.ranges import Range
from workbench.planning.plan import KEEP, Plan
from workbench.session.calibrated_ranges import range_by
from workbench.session.session import Session
from workbench.session.workspace import Workspace

MANUAL = "manual"
"""The method of a range that the user has set."""


def assign(workspace: Workspace, layers: Iterable[str], **changes: Any) -> int | None:
    """Set fields of the layers' Assignment (``weights``, ``inputs``, ``cache``, ``algorithm``, ``range_method``).

    A range method takes the place of ranges that were set by hand.  Returns the number of the edit, None if nothing
    changed.
    """
    names, session = tuple(layers), workspace.state.session
    if not names or session is None:
        return None
    current = workspace.state.assignments
    held = {name for name in names if is_by_hand(session, name)} if "range_method" in changes else set[str]()
    if (
        current
        and not held
        and all(getattr(current[name], key) == value for name in names for key, value in changes.items())
    ):
        return None

    def change(session: Session) -> Session:
        after = replace(session, plan=session.plan.assign(names, **changes))
        if not held:
            return after
        ranges = {
            (name, tap): each
            for (name, tap), each in session.active_ranges.items()
            if tap != "input" or name not in held
        }
        found = {(name, "input"): range_by(session.ranges, name, "input", changes["range_method"]) for name in held}
        return replace(after, active_ranges=ranges | {key: each for key, each in found.items() if each is not None})

    return workspace.edit(f"Set {_layers(names)} to {_values(changes)}", change)


def is_by_hand(session: Session, layer: str) -> bool:
    """Return whether the range of a layer's input was set by hand."""
    held = session.active_ranges.get((layer, "input"))
    return held is not None and held.method == MANUAL


def lock(workspace: Workspace, layers: Iterable[str], locked: bool) -> None:
    """Lock or unlock layers: a search does not change locked layers."""
    names, session = frozenset(layers), workspace.state.session
    if session is None or (names <= session.locked if locked else names.isdisjoint(session.locked)):
        return
    title = f"{'Lock' if locked else 'Unlock'} {_layers(tuple(names))}"
    workspace.edit(
        title, lambda session: replace(session, locked=session.locked | names if locked else session.locked - names)
    )


def set_range(workspace: Workspace, layer: str, tap: str, new: Range) -> None:
    """Make a range the active one of a layer's weights, input or output.

    A method's range of an input comes from the plan, so the plan's range method changes with it.
    """

    def change(session: Session) -> Session:
        by_plan = tap == "input" and new.method != MANUAL
        plan = session.plan.assign((layer,), range_method=new.method) if by_plan else session.plan
        return replace(session, plan=plan, active_ranges={**session.active_ranges, (layer, tap): new})

    workspace.edit(f"Set the {tap} range of {layer} ({new.method})", change)


def set_plan(workspace: Workspace, title: str, plan: Plan) -> None:
    """Make ``plan`` the current plan."""
    workspace.edit(title, lambda session: replace(session, plan=plan))


def _layers(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{len(names):,} layers"


def _values(changes: dict[str, Any]) -> str:
    floating = {"inputs": "floating-point inputs", "cache": "floating-point cache"}
    texts = []
    for key, value in changes.items():
        if key in floating:
            texts.append(f"{key} {value}" if value else floating[key])
        else:
            texts.append("keep FP" if value == KEEP else str(value))
    return ", ".join(texts)
