"""The log: one rotating file for each process in the user's state folder, with a trace of native crashes.

``WORKBENCH_LOG_FOLDER`` moves the folder.  A file begins with the versions; every job and every error with its
traceback follow, without the names of the user's files.  Only the newest files are kept.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import logging
import os
import signal
import sys
import threading
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType

import platformdirs

from workbench.private import PrivateFormatter
from workbench.version import versions

FOLDER_VARIABLE = "WORKBENCH_LOG_FOLDER"
MAX_BYTES = 1 << 20
"""A file that grows beyond this is set aside once (``.log.1``) and begun again."""

MAX_FILES = 20
"""How many files of one role are kept; those of running processes are never removed."""


class _Handler(RotatingFileHandler):
    """Points ``faulthandler`` to the file, and to the next one after a rotation."""

    def _open(self) -> TextIOWrapper:
        stream = super()._open()
        faulthandler.enable(stream)
        return stream


def folder() -> Path:
    """Return the folder of the log files; it may not exist yet."""
    usual = Path(platformdirs.user_state_dir("quantization-workbench", appauthor=False)) / "log"
    return Path(os.environ.get(FOLDER_VARIABLE) or usual)


def start(role: str) -> Path | None:
    """Log this process (``window``, ``engine``, ``command``) from now on; return its file.

    Where the folder cannot be written there is no log, and the work goes on: returns None.
    """
    path = folder() / f"{role}-{os.getpid()}.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = _Handler(path, maxBytes=MAX_BYTES, backupCount=1, encoding="utf-8")
    except OSError:
        return None
    _remove_old(role, path)
    handler.setFormatter(PrivateFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.raiseExceptions = False  # where no line can be written, for want of memory or room, none is
    logging.getLogger().addHandler(handler)
    logging.getLogger("workbench").setLevel(logging.INFO)
    logging.getLogger("torch.utils._pytree").setLevel(logging.ERROR)  # to torchao's authors, not to users
    sys.excepthook = _logged
    with contextlib.suppress(RuntimeError, MemoryError):  # no room for a thread
        threading.Thread(target=_log_versions, args=(role,), name="log", daemon=True).start()
    return path


def _log_versions(role: str) -> None:
    """Looking the versions up takes 50 ms, so that no start waits for it."""
    logging.getLogger(__name__).info("%s\n%s", role, "\n".join(versions()))


def _logged(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Log an exception that ends the process."""
    if not issubclass(kind, KeyboardInterrupt):
        logging.getLogger(__name__).critical("uncaught", exc_info=(kind, error, trace))
    sys.__excepthook__(kind, error, trace)


def _remove_old(role: str, current: Path) -> None:
    with contextlib.suppress(OSError):
        files = sorted(current.parent.glob(f"{role}-*.log*"), key=lambda file: file.stat().st_mtime, reverse=True)
        for file in files[MAX_FILES:]:
            if file != current and not _runs(file.name.removeprefix(f"{role}-").partition(".")[0]):
                file.unlink(missing_ok=True)


def _runs(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError):
        return False
    except OSError:
        return True
    return True


BUS_LINE = (
    b"workbench: a part of a mapped file no longer exists: the model's file was truncated, or the disk that holds "
    b"it is gone or full; restore the file, and start again\n"
)


def name_bus_errors() -> None:
    """Let the process end with one line, and code 1, where a mapped file is cut while it is read.

    Python handles signals between its own instructions, which the reading never comes back to: so C calls this handler.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(_end_of_the_bus)
        ctypes.CDLL(None).signal(int(signal.SIGBUS), handler)
        _handlers.append(handler)


_handlers: list[object] = []


def _end_of_the_bus(number: int) -> None:
    os.write(2, BUS_LINE)
    os._exit(1)
