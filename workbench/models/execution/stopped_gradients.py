"""The derivative of what a network computes, also where its code stops gradients.

Networks stop gradients for the sake of their training: a detector detaches the queries that its encoder proposes, a
module runs a frozen tower under ``no_grad``.  What rounding the weights before such a place costs goes through it all
the same, so that gradients have to.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_outside = threading.local()

STRAIGHT_THROUGH = "SubBackward0"
"""The last operation of ``(rounded - x).detach()``: added to ``x`` it makes rounding have a slope of one on purpose."""


class ThroughStops(TorchFunctionMode):
    """Lets gradients through ``detach``, ``.data`` and ``no_grad`` of the code that runs meanwhile.

    A difference that is detached stays so: straight-through estimators add it.  What runs in :func:`not_the_network`
    is left alone, and so is ``inference_mode``, whose tensors cannot have gradients.  ``ignored`` counts the stops.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ignored = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not getattr(_outside, "depth", 0):
            name = getattr(func, "__name__", "")
            if name == "_set_grad_enabled":
                self.ignored += 1
                return None
            stops = (name == "detach" or func == _DATA) and args[0].requires_grad
            if stops and getattr(args[0].grad_fn, "name", str)() != STRAIGHT_THROUGH:
                self.ignored += 1
                return args[0].view_as(args[0])
        return func(*args, **(kwargs or {}))


_DATA = torch.Tensor.data.__get__  # type: ignore[attr-defined]


@contextmanager
def not_the_network() -> Iterator[None]:
    """Let what runs meanwhile stop gradients: code of ours that a network calls."""
    _outside.depth = getattr(_outside, "depth", 0) + 1
    try:
        yield
    finally:
        _outside.depth -= 1
