"""What a graph returns: whether its output is probabilities is read off the operators that make it, not guessed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from workbench.models.execution.distributions import NEAR, are_distributions
from workbench.models.onnx.kinds import CODES, MOVES

if TYPE_CHECKING:
    from workbench.models.onnx.float_graph import FloatGraph

ROUNDED = 0.1
"""How far the sum of a softmax lies from 1 where its values are rounded to 8 bits."""


def last_function(graph: FloatGraph, name: str, values: torch.Tensor) -> str:
    """Return ``Softmax`` or ``Sigmoid`` where the output ``name`` is one, moved about or rounded at most, else "".

    ``values`` are those of a sample: a softmax counts where they add up to 1 along the last axis.  Where they do, it is
    one whatever operators made it (JAX writes an exponential over its sum).
    """
    makers = {output: node for node in graph.nodes for output in node.output}
    near = NEAR
    while (node := makers.get(name)) is not None and node.op_type in MOVES | CODES:
        near = ROUNDED if node.op_type in CODES else near
        name = node.input[0]
    if node is not None and node.op_type == "Sigmoid":
        return "Sigmoid"
    rounded = node is not None and node.op_type == "Softmax"
    return "Softmax" if are_distributions(values, near if rounded else NEAR) else ""


def axis_of_samples(values: torch.Tensor, samples: int, turned: Callable[[], torch.Tensor]) -> int | None:
    """Return the axis along which an output of so many samples has one entry for each, None for one sample's alone.

    Of several axes of that size, it is the one along which the output turns when the samples do: ``turned()`` is the
    output for the same samples in reversed order.
    """
    axes = [axis for axis, size in enumerate(values.shape) if size == samples]
    if samples > 1 and len(axes) > 1:
        again, near = turned(), NEAR * float(values.abs().max())
        axes = [axis for axis in axes if torch.allclose(values.flip(axis), again, atol=near, equal_nan=True)] or axes
    return axes[0] if axes else None if samples == 1 else 0
