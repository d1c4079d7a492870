"""Why a step is not possible, with the key of the step that provides what is missing."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.session.session import Session
from workbench.steps.requirements import Requirement

STEP_KEYS = {
    "calibrate": "F5", "sensitivity": "F6", "refine": "Ctrl+F6", "plan": "F7", "targets": "Ctrl+F7", "evaluate": "F8",
    "audit": "Ctrl+Shift+F8", "train": "Ctrl+F8", "export": "Ctrl+Shift+E", "time-kernels": "F9",
    "runtime": "Ctrl+F9",
}  # fmt: skip
"""The shortcuts of steps, by the step's name."""

BUTTONS = {
    "calibrate": ("calibrate", "Calibrate…"), "sensitivity": ("score", "Compute Sensitivity…"),
    "plan": ("search", "Search a Plan"), "evaluate": ("evaluate", "Evaluate…"),
    "time-kernels": ("time_kernels", "Time the Kernels…"),
}  # fmt: skip
"""The action and the text of the button in an empty panel, by the step that fills it."""


def why_not(session: Session, requirements: Iterable[Requirement]) -> str | None:
    """Return the first reason why a step is not possible, as a sentence; None if it is."""
    return missing(session, requirements)[0] or None


def missing(session: Session, requirements: Iterable[Requirement]) -> tuple[str, str]:
    """Return the first reason why a step is not possible, and the step that provides what is missing; or nothing."""
    for need in requirements:
        reason = need.unmet(session)
        if reason is not None:
            key = f" ({STEP_KEYS[need.step]})" if need.step in STEP_KEYS else ""
            return f"{reason[:1].upper()}{reason[1:]}{key}", need.step
    return "", ""
