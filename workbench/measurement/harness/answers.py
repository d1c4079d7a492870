"""What a language model answers: log-likelihoods of given continuations, and its own likeliest ending."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from workbench.measurement.gradients import PASS_BYTES
from workbench.models.data.text import padded
from workbench.models.model import Model

Scored = tuple[float, bool]
"""The log-likelihood in nats, and whether every token of it is the likeliest one."""


def scores(
    model: Model, rows: Sequence[tuple[Sequence[int], Sequence[int]]], *, longest: int, batch_size: int,
    done: Callable[[int], None] = lambda count: None,
) -> list[Scored]:  # fmt: skip
    """Return the score of each row's ending after its context, both token ids, the context not empty.

    The last ``longest`` tokens of what comes before the last one are seen.  ``done`` hears of every batch.
    """
    inputs = [[*context, *ending][-(longest + 1) :][:-1] for context, ending in rows]
    result: list[Scored] = [(0.0, True)] * len(rows)
    for places in _batches(inputs, model.inputs.vocabulary or 1, batch_size):
        logits = _logits(model, [inputs[place] for place in places])
        for row, place in zip(logits, places, strict=True):
            ending = torch.tensor(list(rows[place][1])[-len(inputs[place]) :], dtype=torch.int64, device=row.device)
            if len(ending):
                own = row[len(inputs[place]) - len(ending) : len(inputs[place])].float().log_softmax(dim=-1)
                likely = bool((own.argmax(dim=-1) == ending).all())
                result[place] = (float(own.gather(1, ending[:, None]).sum(dtype=torch.float64)), likely)
        done(len(places))
    return result


def continued(
    model: Model, ids: Sequence[int], *, most: int, kept: Callable[[list[int], bool], int | None]
) -> list[int]:
    """Return at most ``most`` tokens that the model continues ``ids`` with, the likeliest each time.

    ``kept(tokens so far, whether they are the last)`` says how many of them are the answer, None to go on.
    """
    known, new = list(ids), list[int]()
    while (count := kept(new, len(new) >= most)) is None:
        new.append(int(_logits(model, [known + new])[0, -1].argmax()))
    return new[:count]


def _batches(inputs: Sequence[Sequence[int]], vocabulary: int, batch_size: int) -> Iterator[list[int]]:
    """Yield the places of inputs that run together: of like length, the longest first, within PASS_BYTES of logits."""
    order = sorted(range(len(inputs)), key=lambda place: (-len(inputs[place]), place))
    while order:
        room = PASS_BYTES // (4 * vocabulary * max(len(inputs[order[0]]), 1))
        count = max(1, min(batch_size, room))
        yield order[:count]
        order = order[count:]


@torch.no_grad()
def _logits(model: Model, rows: Sequence[Sequence[int]]) -> torch.Tensor:
    """Return the logits of rows that are filled up at their end, where a causal model does not look."""
    ids = padded(rows, 0)
    batch = {"input_ids": ids}
    if "attention_mask" in model.inputs.takes and len({len(row) for row in rows}) > 1:
        batch["attention_mask"] = padded([[1] * len(row) for row in rows], 0)
    return model.run(batch)
