"""An untrusted graph runs in a limited process before it runs here: it may crash, hang, or fill the memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from workbench.errors import NotAModelError, out_of_memory
from workbench.limited import FORKS, MEMORY, limited
from workbench.models.data.tried import in_one_thread

ACTIVATIONS = 256
"""Bytes between layers that a graph may take for each byte of its inputs when it is tried."""

FIRST_RUN, LONGEST_RUN = 3.0, 60.0
"""Seconds of processor time that a graph may take when it is tried: beyond what its sizes explain, and at most."""


def seconds_for(nbytes: int, numbers: int) -> float:
    """Return the processor time that a graph's first run may take, by its weights and the numbers that it gets."""
    return min(FIRST_RUN + nbytes / 1e8 + nbytes * numbers / 4e9, LONGEST_RUN)


def memory_for(nbytes: int, inputs: int) -> int:
    """Return the bytes of memory that a graph's first run may take, by those of its weights and of its inputs."""
    return MEMORY + 3 * nbytes + ACTIVATIONS * inputs


def require_run(run: Callable[[], object], what: str, nbytes: int, inputs: list[torch.Tensor]) -> None:
    """Raise NotAModelError, which begins with ``what``, where ``run`` crashes, hangs or fills the memory.

    What it raises does not matter here: nobody is harmed by that.  ``nbytes``: those of the graph's weights.
    """
    if FORKS:
        seconds = seconds_for(nbytes, sum(each.numel() for each in inputs))
        memory = memory_for(nbytes, sum(each.nbytes for each in inputs))
        limited(partial(_run, run), what, NotAModelError, seconds=seconds, memory=memory)


def _run(run: Callable[[], object]) -> list[np.ndarray]:
    in_one_thread()
    try:
        with torch.no_grad():
            run()
    except Exception as error:  # anything else is raised again, and named, where the graph runs here
        if out_of_memory(error):
            raise MemoryError from error
    return []
