"""``workbench`` and ``python -m workbench``: the command line, which a signal ends with one line at any moment."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

GRACE = 1.2
"""Seconds that a command has after a signal to end by itself: native code and partial results that are being written
may take longer, and are left then."""

QUIET = {"TQDM_DISABLE": "1", "TRANSFORMERS_VERBOSITY": "error"}
"""Libraries' own bars and remarks, off: they read this when they are imported."""

_received: list[int] = []
_lost: list[int] = []
"""Signals that come again."""

_ended_with: list[int] = []


def _stop(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    while frame is not None and frame.f_code is not _again.__code__:
        frame = frame.f_back
    if frame is not None:
        _later(number)  # what is raised in the hook would be shown with its traceback
    elif len(_received) == 1 or _lost or os.name == "nt":  # a second one would end the tidying up after the first
        _lost.clear()
        raise KeyboardInterrupt(number)


def _again(unraisable: UnraisableHookArgs) -> None:
    """A signal that arrived in a finalizer, where Python drops exceptions, comes again.

    Anything else is shown, but not after a signal: a finalizer that was interrupted fails for that reason.
    """
    if issubclass(unraisable.exc_type, KeyboardInterrupt) and _received:
        _later(_received[-1])
    elif not _received:
        sys.__unraisablehook__(unraisable)


def _later(number: int) -> None:
    _lost.append(number)
    threading.Thread(target=_send_again, args=(number,), daemon=True).start()


def _send_again(number: int) -> None:
    """Send the signal once the finalizer is over: raised in it, its exception would be dropped like the first."""
    time.sleep(0.02)
    os.kill(os.getpid(), number)


def _watch() -> None:
    """End the process from a thread where a signal has not, ``GRACE`` seconds after it.

    The system hands the thread each signal through a pipe while the main thread is in native code, where Python has no
    say.  Nothing is done for those that a window has taken over.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_end_in_time, args=(reading,), name="signals", daemon=True).start()


def _end_in_time(reading: int) -> None:
    while number := os.read(reading, 1):
        if number[0] not in (signal.SIGINT, signal.SIGTERM) or signal.getsignal(number[0]) is not _stop:
            continue
        time.sleep(GRACE)
        with contextlib.suppress(OSError):  # the command may have said so, and take its time to free its memory
            os.write(2, b"" if getattr(sys.modules.get("workbench.cli"), "told", ()) else b"workbench: cancelled\n")
        with contextlib.suppress(Exception):
            _leave_nothing()
        os._exit(128 + number[0])


def _leave_nothing() -> None:
    """Remove half-written files, and end the processes that this one has started."""
    import psutil

    from workbench import atomic

    atomic.abandon()
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            child.kill()


def _stand_in() -> None:
    """Open what the caller has closed of the standard streams: the next file would get its number, and their text.

    What is written to the output then fails, as a result that went nowhere has to.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        way = os.O_RDONLY if name == "stdout" and os.name != "nt" else os.O_RDWR
        descriptor = os.open(os.devnull, way)
        if descriptor != number:
            os.dup2(descriptor, number)
            os.close(descriptor)
        mode = "r" if name == "stdin" else "w"
        setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def main() -> Any:
    """Run the command line; returns its code, 130 after SIGINT and 143 after SIGTERM, also while modules are loaded.

    From then on both signals go nowhere: one that comes at the very end gives no traceback.
    """
    try:
        signal.signal(signal.SIGINT, _stop)
        signal.signal(signal.SIGTERM, _stop)
        _stand_in()
        if os.name != "nt":  # there, signals wake no pipe
            _watch()
        sys.unraisablehook = _again
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        from workbench.cli import main as run

        code: Any = run()
        _ignore()
    except BaseException as error:  # libraries make other errors of an interrupt
        _ignore()
        if isinstance(error, SystemExit) and not _received:
            code = error.code
        elif not _received:
            raise
        else:
            print("workbench: cancelled", file=sys.stderr, flush=True)
            code = 128 + _received[-1]
    return 128 + _received[-1] if _received and code else code


def _ignore() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def start() -> None:
    """Run it and end the process; what is printed on the way, such as help, may find no room either."""
    atexit.register(_leave)  # the first, and so the last to be called
    code = main()
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # where the end of Python writes the rest
        if not isinstance(error, BrokenPipeError):
            print(f"workbench: the result cannot be written: {error.strerror}", file=sys.stderr)
            code = code or 1
    if _received:  # threads of libraries may not want to end
        sys.stdout.flush()
        with contextlib.suppress(Exception):
            _leave_nothing()  # the signal may have come while something was being removed
        os._exit(code or 0)
    if code is None or isinstance(code, int):
        _ended_with.append(code or 0)
    sys.exit(code)


def _leave() -> None:
    """End the process where Python would free its objects one by one: for a second or more, while signals go nowhere.

    A window's objects are Qt's, which writes settings when they end.
    """
    if _ended_with and "PySide6" not in sys.modules:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(_ended_with[0])
