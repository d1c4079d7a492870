"""Opens the window, or says why this machine cannot show one."""

from __future__ import annotations

import argparse
import gc
import os
import sys

from workbench.console.command import Command
from workbench.console.flags import TRUST, flag, flags_of
from workbench.errors import BackendUnavailableError
from workbench.progress import Progress
from workbench.steps.files.open_model import OpenModelOptions

PACKAGES = (
    "libgl1 libegl1 libglib2.0-0 libxkbcommon0 libdbus-1-3 libfontconfig1 libxcb-cursor0 libxcb-icccm4 "
    "libxcb-keysyms1 libxcb-shape0 libxcb-xkb1 libxkbcommon-x11-0"
)
"""Debian's and Ubuntu's names of what Qt needs on X11."""


def open_window(
    path: str | None, *, factory: str | None = None, weights: str | None = None, trust: bool = False
) -> int:
    """Run the window until it is closed, and return its exit code.

    Raises BackendUnavailableError without a display or without the libraries that Qt needs.
    """
    screens = ("QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY")
    if sys.platform not in ("win32", "darwin") and not any(map(os.environ.get, screens)):
        raise BackendUnavailableError(
            "there is no display (DISPLAY and WAYLAND_DISPLAY are not set); run 'workbench demo --headless' or the "
            "other commands instead"
        )
    gc.disable()  # loading leaves nothing to collect; the window starts the collector when it is shown
    try:
        from workbench.gui.app import run
    except ImportError as error:
        advice = f"on Debian or Ubuntu: apt install {PACKAGES}"
        raise BackendUnavailableError(f"Qt cannot be loaded: {error}; {advice}") from None
    return run(path, factory=factory, weights=weights, trust=trust)


def _run(arguments: argparse.Namespace, progress: Progress) -> int:
    return open_window(arguments.path, factory=arguments.factory, weights=arguments.weights, trust=arguments.trust)


GUI = Command(
    name="gui", help="Opens the window (also without a command).", example="gui path/to/model", run=_run,
    flags=(
        flag("path", nargs="?", metavar="MODEL|S.qwb", help="a model or a session to open"),
        flags_of(OpenModelOptions, "path"), TRUST,
    ),
)  # fmt: skip
