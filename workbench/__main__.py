"""The program ``workbench``: from its first line on, SIGINT and SIGTERM end it with one line.

Importing this begins the program, so nothing else does; what follows is in :mod:`workbench.program`, whose imports a
signal ends, too.
"""

import os
import sys

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
try:
    _HERE = os.getcwd()
except OSError:  # the folder has been removed
    _HERE = ""
if __name__ == "__main__" and not sys.flags.safe_path and sys.path[:1] == [_HERE] != [_OWN]:
    del sys.path[0]  # ``python -m`` would import an untrusted torch.py from the folder in which it is started

import signal  # noqa: E402
from types import FrameType  # noqa: E402


def _end(number: int, frame: FrameType | None) -> None:
    """End at once: nothing has begun, so nothing is left."""
    os.write(2, b"workbench: cancelled\n")
    os._exit(128 + number)


if "--multiprocessing-fork" not in sys.orig_argv:  # a spawned process imports the program again
    signal.signal(signal.SIGINT, _end)
    signal.signal(signal.SIGTERM, _end)


def start() -> None:
    """Run the command line and end the process with its code."""
    from workbench.program import start as run

    run()


if __name__ == "__main__":
    import multiprocessing

    multiprocessing.freeze_support()
    start()
