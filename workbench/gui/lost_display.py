"""What is done when the X display is lost: Xlib ends the process at once, unless Qt notices first."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from PySide6.QtGui import QGuiApplication

_HANDLER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_held: list[object] = []
"""Xlib keeps the handler's address only."""


def when_display_is_lost(act: Callable[[], None]) -> None:
    """Call ``act()`` before Xlib ends the process; it may not use the display.  Nothing happens on other platforms."""
    if QGuiApplication.platformName() != "xcb":
        return
    try:
        xlib = ctypes.CDLL("libX11.so.6")
    except OSError:
        return

    def lost(display: int | None) -> int:
        act()
        return 0

    _held[:] = [_HANDLER(lost)]
    xlib.XSetIOErrorHandler(*_held)
