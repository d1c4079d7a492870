"""What an action is: its title, keys and tip, when it is possible, and the function that does it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from workbench.gui.commands.command import Command
from workbench.gui.shell import step_keys
from workbench.session.workspace import State
from workbench.steps.files.first_look import STILL_LOADING, is_first_look
from workbench.steps.step import Requirement, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What decides whether an action is possible: the document, and whether jobs run or failed."""

    state: State
    running: bool = False
    failed: bool = False


Reason = str | None
"""Why an action is not possible now; None if it is."""


def always(now: Situation) -> Reason:
    """Nothing is needed."""
    return None


def has_session(now: Situation) -> Reason:
    """A model or session must be open."""
    if is_first_look(now.state.session):
        return STILL_LOADING
    return None if now.state.session else "Open a model first"


def has_selection(now: Situation) -> Reason:
    """Layers must be selected."""
    return has_session(now) or (None if now.state.selection else "Select layers first")


def has_target(now: Situation) -> Reason:
    """A target must be chosen."""
    return has_session(now) or (None if now.state.target else "Choose a target in the Plan panel first")


def has_table(now: Situation) -> Reason:
    """The table of the chosen metric must be there."""
    session = now.state.session
    if session is None or session.table(now.state.metric) is None:
        return has_session(now) or "Compute the sensitivity first"
    return None


def can_undo(now: Situation) -> Reason:
    """There must be an edit to undo."""
    return None if now.state.undo_name else "Nothing to undo"


def can_redo(now: Situation) -> Reason:
    """There must be an edit to redo."""
    return None if now.state.redo_name else "Nothing to redo"


def is_running(now: Situation) -> Reason:
    """A job must run."""
    return None if now.running else "No job is running"


def has_failed(now: Situation) -> Reason:
    """A job must have failed or been cancelled."""
    return None if now.failed else "No job has failed"


def step_possible(step: Step[Any, Any], *also: Requirement) -> Callable[[Situation], Reason]:
    """Return the condition that a session is open and meets a step's requirements, and others."""

    def why_not(now: Situation) -> Reason:
        session = now.state.session
        if session is None or is_first_look(session):
            return has_session(now)
        return now.state.plan_error or step_keys.why_not(session, (*step.requires, *also))

    return why_not


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """``menu`` is where it stands; ``icon`` puts it on the toolbar; ``separated`` draws a line before it.

    ``also`` is a second shortcut.
    """

    id: str
    text: str
    shortcut: str
    menu: str
    run: Callable[[Command], Coroutine[Any, Any, None] | None]
    why_not: Callable[[Situation], Reason] = always
    tip: str = ""
    icon: str = ""
    separated: bool = False
    also: str = ""


def step_action(
    step: Step[Any, Any], identity: str, run: Callable[[Command], Coroutine[Any, Any, None] | None], *, mnemonic: str,
    menu: str = "&Run", icon: str = "", why_not: Callable[[Situation], Reason] | None = None, asks: bool = True,
) -> Action:  # fmt: skip
    """Return a step's action: title, tip and condition are the step's; ``asks``: a form opens first."""
    title = " ".join(word if word in SMALL_WORDS else word[:1].upper() + word[1:] for word in step.title.split())
    return Action(
        id=identity, text=f"{title.replace(mnemonic, f'&{mnemonic}', 1)}{'…' if asks else ''}", menu=menu, icon=icon,
        shortcut=step_keys.STEP_KEYS[step.name], run=run, why_not=why_not or step_possible(step),
        tip=step.summary.partition(". ")[0].rstrip("."),
    )  # fmt: skip


SMALL_WORDS = ("a", "of", "the", "with")
"""Words that are lower-case in menus."""


def plain(text: str) -> str:
    """Return an action's text without its mnemonic and dots."""
    return text.replace("&", "").rstrip("…")
