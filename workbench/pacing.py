"""Long work on a background thread, done in short bursts where a window's thread wants the interpreter in between.

A thread that computes gives the interpreter's lock away every millisecond, but a window that draws wants it back dozens
of times for one frame and waits a millisecond each time.  Pausing after each burst lets whole frames through.  Only a
process that has a window is paced; anywhere else ``pause`` does nothing.
"""

from __future__ import annotations

import threading
import time

BURST_SECONDS = 0.002
"""Work between two pauses."""

PAUSE_SECONDS = 0.004
"""How long a pause is: about a frame's own work."""


class _Pace(threading.local):
    """Since when this thread has worked without a pause."""

    since = 0.0


_pace = _Pace()
_paced = threading.Event()


def pace_this_process(paced: bool = True) -> None:
    """Let background threads pause from now on (or not), because a window draws on the main thread."""
    if paced:
        _paced.set()
    else:
        _paced.clear()


def pause() -> None:
    """Sleep for a moment if this background thread has worked for a burst; called between small pieces of work."""
    if not _paced.is_set() or threading.current_thread() is threading.main_thread():
        return
    worked = time.perf_counter() - _pace.since
    if worked < BURST_SECONDS:
        return
    if worked < 1.0:  # else it has just begun
        time.sleep(PAUSE_SECONDS)
    _pace.since = time.perf_counter()
