"""What an action is: its title, keys and tip, when it is possible, and the function that does it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from workbench.gui.commands.command import Command
from workbench.gui.shell import step_keys
from workbench.session.workspace import State
from workbench.steps.files.first_session import STILL_LOADING, is_first_look
from workbench.steps.requirements import RUNS
from workbench.steps.step import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionState:
    """What decides whether an action is possible: the document, and whether jobs run or failed."""

    state: State
    running: bool = False
    failed: bool = False


Condition = Callable[[ActionState], str | None]
"""Returns why an action is not possible now; None if it is."""


def has_session(now: ActionState) -> str | None:
    """A model or session must be open."""
    if is_first_look(now.state.session):
        return STILL_LOADING
    return None if now.state.session else "Open a model first"


def requires(is_met: Callable[[ActionState], object], reason: str, *, session: bool = True) -> Condition:
    """Return the condition ``is_met``, where ``session`` says that a session must be open as well."""

    def condition(now: ActionState) -> str | None:
        return (has_session(now) if session else None) or (None if is_met(now) else reason)

    return condition


always = requires(lambda now: True, "", session=False)
has_selection = requires(lambda now: now.state.selection, "Select layers first")
has_target = requires(lambda now: now.state.target, "Choose a target in the Plan panel first")
has_table = requires(
    lambda now: now.state.session is not None and now.state.session.table(now.state.metric) is not None,
    "Compute the sensitivity first",
)
can_undo = requires(lambda now: now.state.undo_name, "Nothing to undo", session=False)
can_redo = requires(lambda now: now.state.redo_name, "Nothing to redo", session=False)
is_running = requires(lambda now: now.running, "No job is running", session=False)
is_idle = requires(lambda now: not now.running, "Wait until the running jobs have ended")


def can_run_all(now: ActionState) -> str | None:
    """The model must be one that runs, and no job may be under way."""
    return is_idle(now) or (step_keys.why_not(now.state.session, (RUNS,)) if now.state.session else None)


has_failed = requires(lambda now: now.failed, "No job has failed", session=False)


def step_possible(step: Step[Any, Any]) -> Condition:
    """Return the condition that a session is open and meets a step's requirements."""

    def why_not(now: ActionState) -> str | None:
        session = now.state.session
        if session is None or is_first_look(session):
            return has_session(now)
        return now.state.plan_error or step_keys.why_not(session, step.requires)

    return why_not


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A command; ``icon`` puts it on the toolbar, ``separated`` draws a line before it, ``also`` is a second key."""

    id: str
    text: str
    shortcut: str
    menu: str
    run: Callable[[Command], Coroutine[Any, Any, None] | None]
    why_not: Condition = always
    tip: str = ""
    icon: str = ""
    separated: bool = False
    also: str = ""


def step_action(
    step: Step[Any, Any], identity: str, run: Callable[[Command], Coroutine[Any, Any, None] | None], *, mnemonic: str,
    menu: str = "&Run", icon: str = "", why_not: Condition | None = None, asks: bool = True,
) -> Action:  # fmt: skip
    """Return a step's action: title, tip and condition are the step's; ``asks``: a form opens first."""
    title = " ".join(word if word in SMALL_WORDS else word[:1].upper() + word[1:] for word in step.title.split())
    return Action(
        id=identity, text=f"{title.replace(mnemonic, f'&{mnemonic}', 1)}{'…' if asks else ''}", menu=menu, icon=icon,
        shortcut=step_keys.STEP_KEYS[step.name], run=run, why_not=why_not or step_possible(step),
        tip=step.summary.partition(". ")[0].rstrip("."),
    )  # fmt: skip


SMALL_WORDS = ("a", "for", "in", "of", "the", "with")
"""Words that are lower-case in menus."""


def plain(text: str) -> str:
    """Return an action's text without its mnemonic and dots."""
    return text.replace("&", "").rstrip("…")
