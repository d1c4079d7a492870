"""Outputs that are probabilities: which function a network ends in is read off its autograd graph, not guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, cast

import torch

from workbench.errors import DataError, WorkbenchError
from workbench.models.execution.distributions import are_distributions
from workbench.models.execution.network import Call, Forward, NetworkModel
from workbench.models.execution.stacked import tensors_of
from workbench.models.model import Batch
from workbench.models.summary import OutputKind
from workbench.models.tracing import run_accepted
from workbench.readable import few

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


Answer = tuple[torch.Tensor, Any, Batch, int]
"""The output of a small sample, the whole that it is a part of, the sample, and how many others were refused before."""


def answer_of(model: NetworkModel) -> Answer | None:
    """Return what a small sample gives; None where none can be made."""
    whole, tried, samples = list[Any](), list[Batch](), model.inputs.batch or 2

    def run(batch: Batch) -> torch.Tensor:
        tried.append(batch)
        whole.append(None)
        try:
            return model.run(batch)
        except DataError:
            if not steps_first(whole[-1], samples):
                raise
            return cast("torch.Tensor", whole[-1].transpose(0, 1))

    with ExitStack() as stack, torch.enable_grad():
        with suppress(RuntimeError):  # a TorchScript program takes no hooks
            hook = model.body.network.register_forward_hook(lambda module, inputs, given: whole.append(given))
            stack.callback(hook.remove)
        with suppress(WorkbenchError):
            output = run_accepted(model, samples, run)
            return output, whole[-1], tried[-1], len(tried) - 1
    return None


def steps_first(whole: Any, samples: int) -> bool:
    """Return whether a network's answer is steps x samples x features, as recurrent networks have it."""
    return isinstance(whole, torch.Tensor) and whole.ndim == 3 and whole.shape[1] == samples != whole.shape[0]


def with_samples_first(answer: Answer | None, call: Call) -> Call:
    """Return ``call`` with the samples first where the ``answer`` to a few of them has the steps first."""
    if answer is None or not steps_first(answer[1], len(answer[0])):
        return call
    return lambda forward, batch: call(forward, batch).transpose(0, 1)


def several(answer: Answer | None) -> str:
    """Return a sentence where the network returned several tensors of numbers for each sample, of which one counts."""
    given = None if answer is None else answer[1]
    named = hasattr(given, "logits") or isinstance(given, Mapping) and "logits" in given
    whole = () if named else [each for each in tensors_of(given) if each.is_floating_point()]
    sizes = [" x ".join(map(str, each.shape[1:])) for each in whole if each.ndim > 1]
    return "" if len(sizes) < 2 else (
        f"the network returns {len(sizes)} tensors (samples x {few(sizes, 6)}), of which the first is its output: what "
        "only the others depend on has no loss; where another one counts, let the file return it alone"
    )  # fmt: skip


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
    answer: Answer | None, output: OutputKind, call: Call, vocabulary: int | None = None, tables: Sequence[int] = ()
) -> tuple[OutputKind, Call, str]:
    """Return what logits are by a sample's ``answer``, how they are got, and a note where that is the likeliest alone.

    Probabilities are taken for what they are, a single number for each sample is not a choice among classes, token
    logits are ``vocabulary`` numbers for each token or, of several texts, as many as one of the ``tables`` of ids has
    rows, and those at every pixel are classes where they are not as many as the picture's channels.
    """
    if answer is None:
        return output, call, ""
    given, whole, batch, _ = answer
    if vocabulary is not None and output is not OutputKind.EMBEDDING:
        texts = sum(each.dtype == torch.int64 and each.ndim == 2 and "mask" not in name for name, each in batch.items())
        logits = OutputKind.TOKEN_CLASSES if texts > 1 else OutputKind.TOKEN_LOGITS
        by_token = given.ndim == 3 and given.shape[-1] in (vocabulary, *tables[: len(tables) * (texts > 1)])
        output = logits if by_token else OutputKind.CLASS_LOGITS
    last = ends_in(given)
    steps = given.ndim == 3 and output is OutputKind.CLASS_LOGITS
    if not last and (steps or given.ndim == 2) and are_distributions(given):
        last = "Softmax"
    if steps and (last or are_distributions(given.exp())):  # of frames of speech, letters of a line
        output = OutputKind.POSITION_CLASSES
    if last == "Sigmoid":
        return OutputKind.POSITION_CLASSES, with_logits(call, last), ""
    if given.ndim == 1 or given.shape[1:] == (1,):
        return OutputKind.EMBEDDING, call, ""
    if note := classes_of_pixels(given, batch, named=isinstance(whole, Mapping)):
        return OutputKind.POSITION_CLASSES, call, note
    return output, with_logits(call, last) if last == "Softmax" else call, ""


def classes_of_pixels(given: torch.Tensor, batch: Batch, named: bool = False) -> str:
    """Return a sentence where an output ``[samples, channels, height, width]`` is taken for logits of classes at every
    pixel: with the size of the ``batch``'s only picture and other channels, or ``named`` (as torchvision's are)."""
    sides = [each.shape[1:] for each in batch.values() if each.ndim == 4]
    if given.ndim != 4 or given.shape[1] < 2:
        return ""
    one = len(sides) == 1 and sides[0][1:] == given.shape[2:] and sides[0][0] != given.shape[1]
    return "" if not (one or named) else (
        f"the output, samples x {' x '.join(map(str, given.shape[1:]))} in a trial, is taken for the logits of "
        f"{given.shape[1]} classes at every pixel; if it is something else, open the network from a Python file that "
        'states OUTPUT = "embedding" (numbers)'
    )  # fmt: skip
