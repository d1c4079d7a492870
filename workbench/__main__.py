"""``workbench`` and ``python -m workbench``: the command line, which a signal ends with one line at any moment."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_received: list[int] = []


def _stop(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    raise KeyboardInterrupt(number)


def _again(told: UnraisableHookArgs) -> None:
    """A signal that arrived in a finalizer, where Python drops exceptions, comes again; anything else is shown."""
    if issubclass(told.exc_type, KeyboardInterrupt) and _received:
        threading.Thread(target=_send_again, args=(_received[-1],), daemon=True).start()
    else:
        sys.__unraisablehook__(told)


def _send_again(number: int) -> None:
    """Send the signal once the finalizer is over: raised in it, its exception would be dropped like the first."""
    time.sleep(0.02)
    os.kill(os.getpid(), number)


def main() -> Any:
    """Run the command line; returns its code, 130 after SIGINT and 143 after SIGTERM, also while modules are loaded."""
    signal.signal(signal.SIGINT, _stop)
    signal.signal(signal.SIGTERM, _stop)
    sys.unraisablehook = _again
    try:
        from workbench.cli import main as run

        code: Any = run()
    except BaseException as error:  # libraries make other errors of an interrupt
        if isinstance(error, SystemExit) and not _received:
            code = error.code
        elif not _received:
            raise
        else:
            print("workbench: cancelled", file=sys.stderr, flush=True)
            code = 128 + _received[-1]
    return 128 + _received[-1] if _received and code else code


def start() -> None:
    """Run it and end the process: a second signal at the end is no traceback."""
    code = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if _received:  # threads of libraries may not want to end
        sys.stdout.flush()
        os._exit(code or 0)
    sys.exit(code)


if __name__ == "__main__":
    multiprocessing.freeze_support()
    start()
