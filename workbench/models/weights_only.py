"""A model of which only the tensors are known: it can be looked at and planned for, not run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from workbench.errors import CannotRunError
from workbench.models.data.inputs import InputSpec
from workbench.models.execution.network import cut_ties, find_kept, find_layer, matrix_of, merge_weights
from workbench.models.summary import ModelSummary

if TYPE_CHECKING:
    from workbench.models.model import Batch, Tap
    from workbench.models.sources.stored import TensorStore


class WeightsOnlyModel:
    """The tensors of a file, read one at a time when asked for."""

    tappable: frozenset[str] = frozenset()

    def __init__(
        self, summary: ModelSummary, store: TensorStore, weights: Mapping[str, torch.Tensor] | None = None,
        kept: Mapping[str, torch.Tensor] | None = None,
    ) -> None:  # fmt: skip
        """``weights`` maps a layer to the matrix that stands for it in this view, ``kept`` other tensors likewise."""
        self._summary, self._store = summary, store
        self._weights, self._kept = dict(weights or {}), dict(kept or {})
        self.inputs = InputSpec()

    @property
    def summary(self) -> ModelSummary:
        """The model's facts."""
        return self._summary

    def weight(self, layer: str) -> torch.Tensor:
        """Return the layer's matrix of outputs x inputs in its stored dtype, read from the file now."""
        facts = find_layer(self._summary, layer)
        replaced = self._weights.get(facts.tied_to or facts.name)
        return matrix_of(facts, self._store.read(facts.parameter)) if replaced is None else replaced.detach()

    def kept(self, name: str) -> torch.Tensor:
        """Return a tensor that is not a layer in its stored dtype, read from the file now."""
        facts = find_kept(self._summary, name)
        return self._kept[name].detach() if name in self._kept else self._store.read(facts.name)

    def with_weights(self, weights: Mapping[str, torch.Tensor]) -> WeightsOnlyModel:
        """Return a view with other weights; it cannot be run either."""
        replaced = merge_weights(self._summary, self._weights, weights)
        return WeightsOnlyModel(self._summary, self._store, replaced, self._kept)

    def with_kept(self, kept: Mapping[str, torch.Tensor]) -> WeightsOnlyModel:
        """Return a view with other tensors that are not layers."""
        for name in kept:
            find_kept(self._summary, name)
        return WeightsOnlyModel(self._summary, self._store, self._weights, {**self._kept, **kept})

    def untied(self, layers: Collection[str]) -> WeightsOnlyModel:
        """Return a view in which ``layers`` own their weight."""
        own = {name: self.weight(name) for name in layers}
        return WeightsOnlyModel(cut_ties(self._summary, layers), self._store, {**self._weights, **own}, self._kept)

    def run(
        self,
        batch: Batch,
        tap: Tap | None = None,
        inputs: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] | None = None,
        layers: Sequence[str] | None = None,
        outputs: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] | None = None,
    ) -> torch.Tensor:
        """Raise CannotRunError with the reason: the network itself is not known."""
        raise CannotRunError(f"{self._summary.name} cannot be run: {self._summary.cannot_run}")
