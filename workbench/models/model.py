"""The contract of an opened model: it owns the network; apart from it only Workspace and Job are mutable."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from workbench.models.summary import ModelSummary

if TYPE_CHECKING:
    import torch

Batch = Mapping[str, "torch.Tensor"]
"""Named tensors whose first axis is the sample: ``input_ids`` (int64, samples x tokens) or ``inputs``; ``labels``
(int64, samples) where the data set has them."""

Tap = Callable[[str, "torch.Tensor", "torch.Tensor"], None]
"""Called as ``tap(layer name, input, output)`` after a layer ran, with live tensors (so that a gradient hook can be set
on the output).  For linear layers the last axis is the feature, for convolutions axis 1; for an embedding the input
holds the int64 token ids."""

Replacement = Callable[["torch.Tensor"], "torch.Tensor"]
"""What a layer's input or output passes through on its way."""


@runtime_checkable
class Model(Protocol):
    """A network whose weights can be read, that can be run, and run again with other weights.

    The user's network is never changed: ``with_weights`` returns a view that runs with replaced tensors.
    """

    @property
    def summary(self) -> ModelSummary:
        """The model's facts."""
        ...

    def weight(self, layer: str) -> torch.Tensor:
        """Return the layer's weight as the matrix of outputs x inputs, in its stored dtype, detached.

        A view where the layout allows it; never write into it.
        """
        ...

    def kept(self, name: str) -> torch.Tensor:
        """Return the tensor ``name`` of ``summary.kept`` as stored (dtype, shape), detached; never write into it."""
        ...

    def run(
        self,
        batch: Batch,
        tap: Tap | None = None,
        inputs: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] | None = None,
        layers: Sequence[str] | None = None,
        outputs: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] | None = None,
    ) -> torch.Tensor:
        """Run one batch and return the output (logits: samples x tokens x vocabulary, or samples x classes).

        ``inputs`` maps a layer to a function that replaces its input (activation quantization), ``outputs`` to one
        that replaces its output (key-value caches), before the tap; ``layers`` limits the tap to some layers.
        Gradients flow if the caller has enabled them.  Raises CannotRunError for weights-only models.
        """
        ...

    def with_weights(self, weights: Mapping[str, torch.Tensor]) -> Model:
        """Return a view of this model that runs with ``weights`` (layer name to matrix of outputs x inputs).

        A layer that is tied to a replaced one runs with the replaced tensor too.
        """
        ...

    def with_kept(self, kept: Mapping[str, torch.Tensor]) -> Model:
        """Return a view that runs with other tensors for some of ``summary.kept`` (norms, biases, buffers), by name."""
        ...

    def untied(self, layers: Collection[str]) -> Model:
        """Return a view in which these tied layers own their weight; its ``summary`` says so.  Values stay the same."""
        ...
