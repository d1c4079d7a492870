"""The tokens or samples that quantization changed most, as readable text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from workbench.measurement.evaluation import Changed
from workbench.models.data.samples import Decode
from workbench.models.model import Batch

MOST = 50
"""How many of the largest divergences are kept, and of the largest among flips."""

CONTEXT = 16
"""Tokens of text that are kept before a changed one, itself among them."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """What changed, still without texts, and what they are of: the context, both answers, what followed."""

    changed: Changed
    ids: tuple[Sequence[int], ...]


class MostChanged:
    """Collects over batches; memory for KEPT tokens or samples only.

    ``decode`` turns token ids into text; without it ids and labels are given as numbers.
    """

    def __init__(self, decode: Decode | None = None) -> None:
        self._decode = decode
        self._worst: list[_Unit] = []
        self._flips: list[_Unit] = []

    def add(
        self, divergence: torch.Tensor, answers: tuple[torch.Tensor, torch.Tensor], batch: Batch, first_sample: int
    ) -> None:
        """Add a batch: ``divergence`` in nats, 0 at padding, and both models' likeliest entries.

        All are ``[samples]`` or ``[samples, tokens]``; ``first_sample`` is the number of the batch's first sample.
        """
        flips = torch.where(answers[0] != answers[1], divergence, torch.zeros_like(divergence))
        for values, largest in ((divergence.flatten(), self._worst), (flips.flatten(), self._flips)):
            least = largest[-1].changed.kl if len(largest) == MOST else 0.0
            order = torch.argsort(values, descending=True, stable=True)[:MOST]
            for index in order[values[order] > least].tolist():
                largest.append(_unit(index, divergence, answers, batch, first_sample))
            largest.sort(key=_order)
            del largest[MOST:]

    def units(self) -> tuple[Changed, ...]:
        """Return the units, the largest divergence first: the worst of all and the worst of those that flipped."""
        units = sorted({_order(unit): unit for unit in (*self._worst, *self._flips)}.values(), key=_order)
        tokens = any(unit.changed.position >= 0 for unit in units)
        decode = self._decode if tokens and self._decode is not None else _numbers
        texts = iter(decode([row for unit in units for row in unit.ids if row]))
        named = ([next(texts) if row else "" for row in unit.ids] for unit in units)
        return tuple(
            replace(unit.changed, context=context, baseline=baseline, quantized=quantized, actual=actual)
            for unit, (context, baseline, quantized, actual) in zip(units, named, strict=True)
        )


def _unit(
    index: int, divergence: torch.Tensor, answers: tuple[torch.Tensor, torch.Tensor], batch: Batch, first_sample: int
) -> _Unit:
    """Return the token or sample with this flat index; ``first_sample`` is the number of the batch's first."""
    tokens = divergence.ndim == 2
    sample, position = divmod(index, divergence.shape[1]) if tokens else (index, -1)
    ids = batch["input_ids"][sample].tolist() if tokens and "input_ids" in batch else []
    actual = ids[position + 1 : position + 2]
    if "labels" in batch and not tokens:
        actual = batch["labels"].reshape(-1)[sample : sample + 1].tolist()
    baseline, quantized = (int(each.flatten()[index]) for each in answers)
    changed = Changed(
        sample=sample + first_sample, position=position, kl=float(divergence.flatten()[index]),
        flipped=baseline != quantized, context="", baseline="", quantized="", actual="",
    )  # fmt: skip
    return _Unit(changed, (ids[max(position + 1 - CONTEXT, 0) : position + 1], [baseline], [quantized], actual))


def _numbers(rows: Sequence[Sequence[int]]) -> list[str]:
    return [" ".join(map(str, row)) for row in rows]


def _order(unit: _Unit) -> tuple[float, int, int]:
    return -unit.changed.kl, unit.changed.sample, unit.changed.position
