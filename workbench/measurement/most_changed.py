"""The tokens or samples that quantization changed most, as readable text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from workbench.measurement.evaluation import Changed
from workbench.models.model import Batch

MOST = 50
"""How many of the largest divergences are kept, and of the largest among flips."""

CONTEXT = 16
"""Tokens of text that are kept before a changed one, itself among them."""

Decode = Callable[[Sequence[int]], str]


class MostChanged:
    """Collects over batches; memory for KEPT tokens or samples only.

    ``decode`` turns token ids into text; without it ids and labels are given as numbers.
    """

    def __init__(self, decode: Decode | None = None) -> None:
        self._decode = decode
        self._worst: list[Changed] = []
        self._flips: list[Changed] = []

    def add(
        self, divergence: torch.Tensor, answers: tuple[torch.Tensor, torch.Tensor], batch: Batch, first_sample: int
    ) -> None:
        """Add a batch: ``divergence`` in nats, 0 at padding, and both models' likeliest entries.

        All are ``[samples]`` or ``[samples, tokens]``; ``first_sample`` is the number of the batch's first sample.
        """
        flips = torch.where(answers[0] != answers[1], divergence, torch.zeros_like(divergence))
        for values, largest in ((divergence.flatten(), self._worst), (flips.flatten(), self._flips)):
            least = largest[-1].kl if len(largest) == MOST else 0.0
            order = torch.argsort(values, descending=True, stable=True)[:MOST]
            for index in order[values[order] > least].tolist():
                unit = self._unit(index, divergence, answers, batch)
                largest.append(replace(unit, sample=unit.sample + first_sample))
            largest.sort(key=_order)
            del largest[MOST:]

    def units(self) -> tuple[Changed, ...]:
        """Return the units, the largest divergence first: the worst of all and the worst of those that flipped."""
        return tuple(sorted({*self._worst, *self._flips}, key=_order))

    def _unit(
        self, index: int, divergence: torch.Tensor, answers: tuple[torch.Tensor, torch.Tensor], batch: Batch
    ) -> Changed:
        """Return the token or sample with this flat index, numbered within the batch."""
        tokens = divergence.ndim == 2
        sample, position = divmod(index, divergence.shape[1]) if tokens else (index, -1)
        ids = batch["input_ids"][sample].tolist() if tokens and "input_ids" in batch else []
        actual = ids[position + 1 : position + 2]
        if "labels" in batch and not tokens:
            actual = batch["labels"].reshape(-1)[sample : sample + 1].tolist()
        decode = self._decode if tokens and self._decode is not None else _numbers
        texts = [
            decode(numbers) if numbers else ""
            for numbers in (ids[max(position + 1 - CONTEXT, 0) : position + 1], actual)
        ]
        baseline, quantized = (int(each.flatten()[index]) for each in answers)
        return Changed(
            sample=sample, position=position, kl=float(divergence.flatten()[index]), flipped=baseline != quantized,
            context=texts[0], baseline=decode([baseline]), quantized=decode([quantized]), actual=texts[1],
        )  # fmt: skip


def _numbers(ids: Sequence[int]) -> str:
    return " ".join(map(str, ids))


def _order(unit: Changed) -> tuple[float, int, int]:
    return -unit.kl, unit.sample, unit.position
