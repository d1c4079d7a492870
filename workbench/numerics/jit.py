"""How kernels are compiled.  Importing this imports numba: only kernel files do so."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

_numba: Any = importlib.import_module("numba")


def compiled(function: F) -> F:
    """Compile ``function`` on its first call, once for each machine: the result is stored beside the source.

    It runs without the interpreter's lock, so several threads share the rows of a matrix.  No fast-math: every
    operation rounds as written, which is what makes the results equal llama.cpp's bit for bit.
    """
    return cast(F, _numba.njit(nogil=True, cache=True, error_model="numpy")(function))
