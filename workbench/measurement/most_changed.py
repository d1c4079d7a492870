"""The tokens or samples that quantization changed most, as readable text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from workbench.measurement.evaluation import Changed
from workbench.models.model import Batch

KEPT = 50
"""How many of the largest divergences are kept, and of the largest among flips."""

CONTEXT = 16
"""Tokens of text that are kept before a changed one, itself among them."""

Decode = Callable[[Sequence[int]], str]


@dataclass(frozen=True, slots=True)
class _Unit:
    kl: float
    sample: int
    position: int
    baseline: int
    quantized: int
    actual: int | None
    context: tuple[int, ...]


class MostChanged:
    """Collects over batches; memory for KEPT units only.

    ``decode`` turns token ids into text; without it ids and labels are given as numbers.
    """

    def __init__(self, decode: Decode | None = None) -> None:
        self._decode = decode
        self._worst: list[_Unit] = []
        self._flips: list[_Unit] = []

    def add(
        self, divergence: torch.Tensor, base: torch.Tensor, other: torch.Tensor, batch: Batch, first_sample: int
    ) -> None:
        """Add a batch: ``divergence`` ``[samples]`` or ``[samples, tokens]`` in nats, 0 at padding, and the logits.

        ``first_sample`` is the number of its first sample.
        """
        answers = base.argmax(-1), other.argmax(-1)
        flips = torch.where(answers[0] != answers[1], divergence, torch.zeros_like(divergence))
        for values, held in ((divergence, self._worst), (flips, self._flips)):
            order = torch.argsort(values.flatten(), descending=True, stable=True)[:KEPT]
            for index in order[values.flatten()[order] > 0].tolist():
                held.append(_unit(index, divergence, answers, batch, first_sample))
            held.sort(key=lambda unit: (-unit.kl, unit.sample, unit.position))
            del held[KEPT:]

    def units(self) -> tuple[Changed, ...]:
        """Return the units, the largest divergence first: the worst of all and the worst of those that flipped."""
        units = sorted({*self._worst, *self._flips}, key=lambda unit: (-unit.kl, unit.sample, unit.position))
        return tuple(self._readable(unit) for unit in units)

    def _readable(self, unit: _Unit) -> Changed:
        def text(ids: Sequence[int]) -> str:
            words = unit.position >= 0 and self._decode is not None
            return self._decode(ids) if words and self._decode and ids else " ".join(map(str, ids))

        return Changed(
            sample=unit.sample, position=unit.position, kl=unit.kl, flipped=unit.baseline != unit.quantized,
            context=text(unit.context), baseline=text([unit.baseline]), quantized=text([unit.quantized]),
            actual="" if unit.actual is None else text([unit.actual]),
        )  # fmt: skip


def _unit(
    index: int, divergence: torch.Tensor, answers: tuple[torch.Tensor, torch.Tensor], batch: Batch, first_sample: int
) -> _Unit:
    tokens = divergence.shape[1] if divergence.ndim == 2 else 1
    sample, position = divmod(index, tokens)
    ids = batch.get("input_ids") if divergence.ndim == 2 else None
    actual, context = None, ()
    if ids is not None:
        row = ids[sample].tolist()
        actual = int(row[position + 1]) if position + 1 < len(row) else None
        context = tuple(row[max(position + 1 - CONTEXT, 0) : position + 1])
    elif "labels" in batch and divergence.ndim == 1:
        actual = int(batch["labels"].reshape(-1)[sample])
    return _Unit(
        kl=float(divergence.flatten()[index]), sample=first_sample + sample,
        position=position if divergence.ndim == 2 else -1, baseline=int(answers[0].flatten()[index]),
        quantized=int(answers[1].flatten()[index]), actual=actual, context=context,
    )  # fmt: skip
