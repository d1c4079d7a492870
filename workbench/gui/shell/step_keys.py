"""Why a step is not possible, with the key of the step that provides what is missing."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.session.session import Session
from workbench.steps.requirements import Requirement

STEP_KEYS = {
    "calibrate": "F5", "sensitivity": "F6", "refine": "Ctrl+F6", "plan": "F7", "evaluate": "F8",
    "audit": "Ctrl+Shift+F8", "train": "Ctrl+F8", "export": "Ctrl+Shift+E", "time-kernels": "F9",
}  # fmt: skip
"""The shortcuts of steps, by the step's name."""

BUTTONS = {
    "F5": ("calibrate", "Calibrate…"), "F6": ("score", "Compute Sensitivity…"), "F8": ("evaluate", "Evaluate…"),
    "F9": ("time_kernels", "Time the Kernels…"),
}  # fmt: skip
"""The action and the text of the button that an empty panel shows, by the first key that its text names."""


def why_not(session: Session, requirements: Iterable[Requirement]) -> str | None:
    """Return the first reason why a step is not possible, as a sentence; None if it is."""
    for need in requirements:
        reason = need.unmet(session)
        if reason is not None:
            key = f" ({STEP_KEYS[need.step]})" if need.step in STEP_KEYS else ""
            return f"{reason[:1].upper()}{reason[1:]}{key}"
    return None
