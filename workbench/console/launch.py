"""Opens the window, or says why this machine cannot show one."""

from __future__ import annotations

import os
import sys

from workbench.errors import BackendUnavailableError

PACKAGES = (
    "libgl1 libegl1 libglib2.0-0 libxkbcommon0 libdbus-1-3 libfontconfig1 libxcb-cursor0 libxcb-icccm4 "
    "libxcb-keysyms1 libxcb-shape0 libxcb-xkb1 libxkbcommon-x11-0"
)
"""Debian's and Ubuntu's names of what Qt needs on X11."""


def missing_display() -> str | None:
    """Return why no window can be shown here, or None."""
    if sys.platform in ("win32", "darwin") or os.environ.get("QT_QPA_PLATFORM"):
        return None
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return None
    return "there is no display (DISPLAY and WAYLAND_DISPLAY are not set)"


def open_window(
    path: str | None, *, factory: str | None = None, weights: str | None = None, trust: bool = False
) -> int:
    """Run the window until it is closed, and return its exit code.

    Raises BackendUnavailableError without a display or without the libraries that Qt needs.
    """
    reason = missing_display()
    if reason:
        raise BackendUnavailableError(f"{reason}; run 'workbench demo --headless' or the other commands instead")
    try:
        from workbench.gui.app import run
    except ImportError as error:
        advice = f"on Debian or Ubuntu: apt install {PACKAGES}"
        raise BackendUnavailableError(f"Qt cannot be loaded: {error}; {advice}") from None
    return run(path, factory=factory, weights=weights, trust=trust)
