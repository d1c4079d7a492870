"""Embeddings whose ids all samples of a batch share, such as positions, and whether each sample may have its own."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from workbench.errors import WorkbenchError
from workbench.models.data.batches import samples_of
from workbench.models.layer import LayerKind
from workbench.models.model import Batch, Model, Replacement


def repeated(samples: int) -> Replacement:
    """Return what gives each of ``samples`` ids ``[1, tokens]`` of its own."""
    return lambda ids: ids.expand(samples, *ids.shape[1:]) if len(ids) == 1 else ids


def repeatable(model: Model, batch: Batch, names: Iterable[str]) -> frozenset[str]:
    """Return those of ``names`` that are embeddings whose ids ``[1, tokens]`` may be repeated for each sample.

    The output of two samples of ``batch`` must stay the same; where the network refuses or answers something else, none
    may.  Raises what running the model raises.
    """
    samples = min(samples_of(batch), 2)
    tables = tuple(name for name in names if model.summary.by_name[name].kind is LayerKind.EMBEDDING)
    if samples < 2 or not tables:
        return frozenset()
    few = {name: tensor[:samples] for name, tensor in batch.items()}
    shapes: dict[str, set[torch.Size]] = {}

    def tap(name: str, ids: torch.Tensor, output: torch.Tensor) -> None:
        shapes.setdefault(name, set()).add(ids.shape)

    with torch.no_grad():
        expected = model.run(few, tap=tap, layers=tables)
        shared = frozenset(n for n, each in shapes.items() if all(len(shape) == 2 and shape[0] == 1 for shape in each))
        if not shared:
            return shared
        try:
            output = model.run(few, inputs=dict.fromkeys(shared, repeated(samples)))
        except WorkbenchError:
            return frozenset()
    same = output.shape == expected.shape and torch.allclose(output, expected, rtol=1e-4, atol=1e-5, equal_nan=True)
    return shared if same else frozenset()
