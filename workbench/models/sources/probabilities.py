"""Outputs that are probabilities: which function a network ends in is read off its autograd graph, not guessed."""

from __future__ import annotations

from typing import Any

import torch

from workbench.errors import WorkbenchError
from workbench.models.execution.network import Call, Forward, NetworkModel
from workbench.models.model import Batch
from workbench.models.tracing import probe

EPSILON = 1e-7
"""Probabilities are held so far from 0 and 1, as near as float32 tells them apart."""

PASSED_ON = ("View", "Reshape", "Squeeze", "Unsqueeze", "UnsafeView", "Transpose", "Permute", "Clone", "Alias", "T",
             "Select", "Slice", "Cat", "ToCopy")  # fmt: skip
"""Nodes of an autograd graph that move numbers and do not change them."""


def label_logits(logits: torch.Tensor) -> torch.Tensor:
    """Return logits of labels that do not exclude each other, ``[samples, labels]``, as those of "no" and "yes" for
    each label, ``[samples, labels, 2]``: of these every divergence is a sum over labels."""
    return torch.stack([torch.zeros_like(logits), logits], dim=-1)


def of_sigmoids(call: Call) -> Call:
    """Return ``call`` with probabilities of labels as logits of "no" and "yes"."""

    def result(forward: Forward, batch: Batch) -> torch.Tensor:
        return label_logits(torch.logit(call(forward, batch), EPSILON))

    return result


def of_softmax(call: Call) -> Call:
    """Return ``call`` with probabilities of classes as their logarithms, which are logits."""

    def result(forward: Forward, batch: Batch) -> torch.Tensor:
        return call(forward, batch).clamp_min(EPSILON).log()

    return result


def ends_in(model: NetworkModel) -> str:
    """Return ``Sigmoid`` or ``Softmax`` where the network's output ``[samples, classes]`` is one, else "".

    A small sample runs; "" where none can be made.
    """
    try:
        with torch.enable_grad():
            output = model.run(probe(model, samples=model.inputs.batch or 2, guess=True))
    except WorkbenchError:
        return ""
    node: Any = output.grad_fn if output.ndim == 2 else None
    while node is not None:
        name = type(node).__name__.removesuffix("Backward0")
        if name in ("Sigmoid", "Softmax"):
            return name
        node = node.next_functions[0][0] if name in PASSED_ON and node.next_functions else None
    return ""
