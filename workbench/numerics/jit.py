"""How kernels are compiled.  Importing this imports numba: only kernel files do so."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

from workbench.preflight import COMPILATION

F = TypeVar("F", bound=Callable[..., Any])

_numba: Any = importlib.import_module("numba")
_event: Any = importlib.import_module("numba.core.event")


class _Compilations(_event.Listener):  # type: ignore[misc]  # numba has no types
    """Adds what each thread spends on compiling, callees included, to the process's total."""

    def __init__(self) -> None:
        self._thread = threading.local()

    def on_start(self, event: object) -> None:
        depth = getattr(self._thread, "depth", 0)
        if depth == 0:
            self._thread.start = time.perf_counter()
        self._thread.depth = depth + 1

    def on_end(self, event: object) -> None:
        self._thread.depth -= 1
        if self._thread.depth == 0:
            COMPILATION.seconds += time.perf_counter() - self._thread.start


_event.register("numba:compile", _Compilations())


def compiled(function: F) -> F:
    """Compile ``function`` on its first call, once for each machine: the result is stored beside the source.

    It runs without the interpreter's lock, so several threads share the rows of a matrix.  No fast-math: every
    operation rounds as written, which is what makes the results equal llama.cpp's bit for bit.
    """
    return cast(F, _numba.njit(nogil=True, cache=True, error_model="numpy")(function))
