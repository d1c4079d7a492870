"""Outputs that are probabilities: which function a network ends in is read off its autograd graph, not guessed."""

from __future__ import annotations

from typing import Any

import torch

from workbench.errors import WorkbenchError
from workbench.models.execution.distributions import are_distributions
from workbench.models.execution.network import Call, Forward, NetworkModel
from workbench.models.model import Batch
from workbench.models.summary import OutputKind
from workbench.models.tracing import run_accepted

EPSILON = 1e-7
"""Probabilities are held so far from 0 and 1, as near as float32 tells them apart."""

PASSED_ON = ("View", "Reshape", "Squeeze", "Unsqueeze", "UnsafeView", "Transpose", "Permute", "Clone", "Alias", "T",
             "Select", "Slice", "Cat", "ToCopy")  # fmt: skip
"""Nodes of an autograd graph that move numbers and do not change them."""


def label_logits(logits: torch.Tensor) -> torch.Tensor:
    """Return logits of labels that do not exclude each other, ``[samples, labels]``, as those of "no" and "yes" for
    each label, ``[samples, labels, 2]``: of these every divergence is a sum over labels."""
    return torch.stack([torch.zeros_like(logits), logits], dim=-1)


def logits_of(last: str, probabilities: torch.Tensor) -> torch.Tensor:
    """Return what a network that ends in ``last`` gives as logits: ``Softmax``, or ``Sigmoid`` of labels or of one."""
    if last == "Sigmoid":
        logits = torch.logit(probabilities, EPSILON)
        return label_logits(logits[:, None] if logits.ndim == 1 else logits)
    return probabilities.clamp_min(EPSILON).log()


def with_logits(call: Call, last: str) -> Call:
    """Return ``call`` with logits in place of probabilities."""

    def result(forward: Forward, batch: Batch) -> torch.Tensor:
        return logits_of(last, call(forward, batch))

    return result


def answer_of(model: NetworkModel) -> torch.Tensor | None:
    """Return what a small sample gives, with its autograd graph; None where none can be made."""
    try:
        with torch.enable_grad():
            return run_accepted(model, model.inputs.batch or 2, model.run)
    except WorkbenchError:
        return None


def ends_in(output: torch.Tensor) -> str:
    """Return ``Sigmoid`` or ``Softmax`` where an output ``[samples, classes]`` (or ``[samples]``) is one, else ""."""
    node: Any = output.grad_fn if output.ndim <= 2 else None
    while node is not None:
        name = type(node).__name__.removesuffix("Backward0")
        if name in ("Sigmoid", "Softmax"):
            return name
        node = node.next_functions[0][0] if name in PASSED_ON and node.next_functions else None
    return ""


def read_off(
    answer: torch.Tensor | None, output: OutputKind, call: Call, vocabulary: int | None = None
) -> tuple[OutputKind, Call]:
    """Return what logits are by a sample's ``answer``, and how they are got: probabilities are taken for what they are,
    a single number for each sample is not a choice among classes, and token logits have ``vocabulary`` numbers for each
    token."""
    if vocabulary is not None and answer is not None:
        by_token = answer.ndim == 3 and answer.shape[-1] == vocabulary
        output = OutputKind.TOKEN_LOGITS if by_token else OutputKind.CLASS_LOGITS
    last = "" if answer is None else ends_in(answer)
    if answer is not None and not last and answer.ndim == 2 and are_distributions(answer):
        last = "Softmax"
    if last == "Sigmoid":
        return OutputKind.POSITION_CLASSES, with_logits(call, last)
    if answer is not None and (answer.ndim == 1 or answer.shape[1:] == (1,)):
        return OutputKind.EMBEDDING, call
    return output, with_logits(call, last) if last == "Softmax" else call
