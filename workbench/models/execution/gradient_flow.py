"""Whether gradients flow through a network, and through what its code stops, too: tried once for each model.

Code that runs under ``no_grad`` was never meant to be differentiated: it may call operations without a derivative, or
write into what the way back needs.  And some networks have such operations where their output depends on them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from enum import Enum, auto
from weakref import WeakKeyDictionary

import torch
from torch import nn

from workbench.errors import out_of_memory
from workbench.models.execution.network import REFUSALS, NetworkModel
from workbench.models.execution.stopped_gradients import ThroughStops
from workbench.models.model import Model


class Flow(Enum):
    """How far gradients flow."""

    THROUGH_STOPS = auto()
    AS_WRITTEN = auto()
    NONE = auto()

    def mode(self) -> AbstractContextManager[object]:
        """Return the context to run the network in."""
        return ThroughStops() if self is Flow.THROUGH_STOPS else nullcontext()


_known: WeakKeyDictionary[nn.Module, Flow] = WeakKeyDictionary()


def flow_of(model: Model, attempt: Callable[[Flow], None] | None = None) -> Flow:
    """Return how far gradients flow through a model's network, also for views of it.

    ``attempt(flow)`` goes forward and back with a sample and raises one of the network's REFUSALS where that fails (a
    way back of its own may assert that it is trained); without it, what is not known yet is taken to work.
    """
    if not isinstance(model, NetworkModel):
        return Flow.THROUGH_STOPS
    network = model.body.network
    if network not in _known and attempt is not None:
        _known[network] = _tried(attempt)
    return _known.get(network, Flow.THROUGH_STOPS)


def _tried(attempt: Callable[[Flow], None]) -> Flow:
    for flow in (Flow.THROUGH_STOPS, Flow.AS_WRITTEN):
        try:
            attempt(flow)
        except REFUSALS as error:
            if out_of_memory(error):
                raise
        else:
            return flow
    return Flow.NONE


def may_fail(output: torch.Tensor) -> bool:
    """Return whether the way back from ``output`` has operations that are not torch's own or have no derivative."""
    waiting, known = [output.grad_fn], set[object]()
    while waiting:
        node = waiting.pop()
        if node is None or node in known:
            continue
        if isinstance(node, torch._C._FunctionBase) or "NotImplemented" in node.name():
            return True
        known.add(node)
        waiting += [following for following, _ in node.next_functions]
    return False
