"""How long the capture of a network will take: torch spends about the same on each operation that it writes down."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from workbench.deployment.onnx.capture import OPSET, example, quietly
from workbench.models.execution.network import NetworkModel, no_fused_attention
from workbench.models.model import Model
from workbench.preflight import clock

TRIED = 4
"""Blocks of the network of the trial."""


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the operations of a pass."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return function(*args, **(kwargs or {}))


class _Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(4, 8), nn.Linear(8, 4), nn.LayerNorm(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.up(self.norm(x)).reshape(x.shape[0], -1, 2, 4).transpose(1, 2).softmax(dim=-1)
        size = x.square().mean(dim=-1, keepdim=True).rsqrt()
        answer: torch.Tensor = x + self.down(inner.transpose(1, 2).flatten(2)) * size
        return answer


def capture_seconds(model: Model) -> float:
    """Return the seconds that the graph of ``model`` will take; 0 for one that cannot be captured.

    Its operations are counted in a pass over a few tokens; what one takes is tried on a small network, once in a
    process.  A network that is captured only after an attempt with other shapes has failed takes longer.
    """
    if not isinstance(model, NetworkModel):
        return 0.0
    batch = example(model)
    with torch.no_grad(), no_fused_attention(), _Operations() as operations:
        model.run(batch)
    return int(operations.count) * _seconds_each()


@cache
def _seconds_each() -> float:
    x, free = torch.randn(2, 3, 4), torch.export.Dim.DYNAMIC

    def capture(blocks: int) -> float:
        network = nn.Sequential(*[_Block() for _ in range(blocks)]).eval()
        with torch.no_grad(), _Operations() as operations:
            network(x)
        start = clock()
        with quietly(), torch.no_grad():
            program: Any = torch.onnx.export(
                network, (x,), dynamo=True, dynamic_shapes=({0: free, 1: free},), opset_version=OPSET, optimize=False,
                verbose=False,
            )  # fmt: skip
            program.optimize()
        return (clock() - start) / int(operations.count)

    capture(1)  # loads what others have
    return capture(TRIED)
