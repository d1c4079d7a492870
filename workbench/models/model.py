"""An opened model: it owns the network; apart from it only Workspace and Job are mutable."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from workbench.errors import CannotRunError, ModelError
from workbench.models.data.inputs import InputSpec
from workbench.models.layer import Layer
from workbench.models.summary import ModelSummary
from workbench.numerics.quantized_tensor import QuantizedTensor

if TYPE_CHECKING:
    import torch

Batch = Mapping[str, "torch.Tensor"]
"""Named tensors whose first axis is the sample: ``input_ids`` (int64, samples x tokens) or ``inputs``; ``labels``
(int64, samples) where the data set has them."""

Tap = Callable[[str, "torch.Tensor", "torch.Tensor"], None]
"""Called as ``tap(layer name, input, output)`` after a layer ran, with live tensors (so that a gradient hook can
be set on the output).  For linear layers the last axis is the feature, for convolutions axis 1; for an embedding
the input holds the int64 token ids."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Routed:
    """One product of a mixture's weight: ``experts`` (int64 ``[rows]``) says whose each row of the product is.

    ``keep`` (bool ``[rows]``) leaves out rows that no expert sees, None for all; ``padded``: rows of zeros are tokens
    of other experts.  ``again``: the tokens of this call are all that there are, for all experts, and were seen before.
    """

    experts: torch.Tensor
    count: int
    keep: torch.Tensor | None = None
    padded: bool = False
    again: bool = False

    def of_tokens(self, x: torch.Tensor) -> Routed:
        """Return the same without rows of ``x`` that are padding."""
        if not self.padded:
            return self
        return replace(self, keep=(x != 0).any(dim=-1).expand(*x.shape[:-1]).reshape(-1), padded=False)

    def rows(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the rows ``[tokens, features]`` of a product's input, output or gradient."""
        flat = tensor.reshape(-1, tensor.shape[-1])
        return flat if self.keep is None else flat[self.keep]

    @property
    def numbers(self) -> torch.Tensor:
        """The expert of each row that :meth:`rows` returns."""
        return self.experts if self.keep is None else self.experts[self.keep]


ExpertTap = Callable[[str, Routed, "torch.Tensor", "torch.Tensor"], None]
"""Called as ``tap(layer name, whose rows, input, output)`` after each product with the weight of a mixture of experts,
with live tensors whose last axis is the feature."""

Replacement = Callable[["torch.Tensor"], "torch.Tensor"]
"""What a layer's input or output passes through on its way."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Overrides:
    """What a view of a model has in place of the model's own.

    ``weights`` maps a layer that owns its tensor to a matrix of outputs x inputs, ``others`` maps names of
    ``summary.others`` to tensors, ``inputs`` and ``outputs`` map layers to what their input or output passes through.
    ``rotations`` maps layers to what their input passes through before anything else sees it: part of the network.
    """

    weights: Mapping[str, torch.Tensor] = field(default_factory=dict)
    others: Mapping[str, torch.Tensor] = field(default_factory=dict)
    inputs: Mapping[str, Replacement] = field(default_factory=dict)
    outputs: Mapping[str, Replacement] = field(default_factory=dict)
    rotations: Mapping[str, Replacement] = field(default_factory=dict)


class Model(ABC):
    """A network whose weights can be read, that can be run, and run again with other weights.

    The user's network is never changed: ``with_weights`` and the like return views.  ``tappable`` names the layers
    whose own input and output can be tapped or replaced, ``routed`` those of experts whose products can, each with the
    number of its experts.
    """

    notes: tuple[str, ...] = ()
    """What the model's files say and the first plan does not."""
    files: tuple[str, ...] = ()
    """The files of weights that the model's own file names."""

    tappable: frozenset[str] = frozenset()
    routed: Mapping[str, int] = {}

    def __init__(self, summary: ModelSummary, inputs: InputSpec, overrides: Overrides) -> None:
        self.summary, self.inputs, self.overrides = summary, inputs, overrides

    @property
    def device(self) -> torch.device:
        """Where the model's tensors lie and where it runs."""
        import torch

        return torch.device("cpu")

    @property
    def online(self) -> Mapping[str, Mapping[str, Any]]:
        """By which the network itself rotates inputs and outputs of layers, as compressed-tensors says it: none."""
        return {}

    @property
    def is_original(self) -> bool:
        """Whether a network runs here as it is, without overrides."""
        return False

    def on_device(self, batch: Batch) -> Batch:
        """Return the batch with its tensors on the model's device, arranged as the network goes by its padding."""
        device, arrange = self.device, self.inputs.arrange
        moved = {name: tensor.to(device) for name, tensor in batch.items()}
        return moved if arrange is None else arrange(moved)

    @abstractmethod
    def _stored(self, name: str, dtype: str) -> torch.Tensor:
        """Return the model's own tensor ``name``, detached, in its stored ``dtype``."""

    @abstractmethod
    def _view(self, summary: ModelSummary, overrides: Overrides) -> Self:
        """Return a view of the same network."""

    def sample(self, count: int) -> Batch | None:
        """Return ``count`` random samples of what the model takes, the same each time; None where that is not known."""
        return None

    def aliases(self) -> Mapping[str, str]:
        """Return the further names under which a network has a tensor, each with the first one."""
        owners = self.summary.by_name
        return {layer.parameter: owners[layer.tied_to].parameter for layer in self.summary.layers if layer.tied_to}

    def weight(self, layer: str) -> torch.Tensor:
        """Return the layer's weight as the matrix of outputs x inputs, detached, in its stored dtype.

        A view where the layout allows it; never write into it.  Replaced weights come as they were passed.
        """
        facts = self.summary.layer(layer)
        replaced = self.overrides.weights.get(facts.tied_to or facts.name)
        return facts.matrix_of(self._stored(facts.parameter, facts.dtype)) if replaced is None else replaced.detach()

    def held_weight(self, layer: str) -> torch.Tensor:
        """Return the numbers of :meth:`weight` in the dtype in which they are held, which takes no conversion.

        Float32 where a network whose file stores halves runs in float32.
        """
        return self.weight(layer)

    def encoded(self, layer: str) -> QuantizedTensor | None:
        """Return the layer's weight as its file holds it, where it holds it quantized; None for others.

        None too where a view replaces it.  A plan that gives the layer this very scheme changes no bit of it.
        """
        facts = self.summary.layer(layer)
        owner = facts.tied_to or facts.name
        return None if owner in self.overrides.weights else self._encoded(self.summary.by_name[owner])

    def encoding(self, layer: str) -> str | None:
        """Return the scheme of :meth:`encoded`; a quantized checkpoint's from its headers."""
        stored = self.encoded(layer)
        return None if stored is None else stored.scheme

    def _encoded(self, layer: Layer) -> QuantizedTensor | None:
        """Return the stored form of the layer's own weight, rows and columns as :meth:`weight` has them."""
        return None

    def encoded_inputs(self, layer: str) -> str | None:
        """Return the scheme that the model's file gives the layer's inputs, None where they are as computed."""
        return None

    def encoded_cache(self, layer: str) -> str | None:
        """Return the scheme in which the model's file stores what the layer gives the KV cache, else None."""
        return None

    def encoded_range(self, layer: str) -> tuple[float, float] | None:
        """Return the range of the layer's static inputs that the model's file states, low <= 0 <= high, else None."""
        return None

    def other(self, name: str) -> torch.Tensor:
        """Return the tensor ``name`` of ``summary.others`` as stored (dtype, shape), detached; never write into it."""
        facts, replaced = self.summary.other_tensor(name), self.overrides.others.get(name)
        return self._stored(name, facts.dtype) if replaced is None else replaced.detach()

    def run(
        self, batch: Batch, tap: Tap | None = None, inputs: Mapping[str, Replacement] | None = None,
        layers: Sequence[str] | None = None, outputs: Mapping[str, Replacement] | None = None,
        experts: ExpertTap | None = None, everywhere: bool = False,
    ) -> torch.Tensor:  # fmt: skip
        """Run one batch and return the output (logits: samples x tokens x vocabulary, or samples x classes).

        ``inputs`` maps a layer to a function that replaces its input (activation quantization), ``outputs`` to one
        that replaces its output (key-value caches), before the tap; ``layers`` limits the taps to some layers.
        ``experts`` taps the ``routed`` layers; ``everywhere`` lets them see all tokens once more (``Routed.again``).
        Gradients flow if the caller has enabled them.  Raises CannotRunError for weights-only models and where
        ``inputs`` or ``outputs`` name a layer that is not ``tappable``, DataError where the network does not accept
        the batch.
        """
        raise CannotRunError(f"{self.summary.name} cannot be run: {self.summary.cannot_run}")

    def with_weights(self, weights: Mapping[str, torch.Tensor]) -> Self:
        """Return a view that runs with ``weights`` (layer name to matrix of outputs x inputs).

        A layer that is tied to a replaced one runs with the replaced tensor too; where both are named, the owner's is
        used.  Raises ModelError for an unknown layer and for a matrix of another shape.
        """
        merged = dict(self.overrides.weights)
        for layer in sorted(map(self.summary.layer, weights), key=lambda layer: layer.tied_to is None):
            matrix = weights[layer.name]
            if tuple(matrix.shape) != layer.matrix:
                raise ModelError(f"the weight for {layer.name} is {tuple(matrix.shape)}, its matrix is {layer.matrix}")
            owner = self.summary.by_name[layer.tied_to or layer.name]
            same_view = (owner.axes, owner.row_axes) == (layer.axes, layer.row_axes)
            merged[owner.name] = matrix if same_view else owner.matrix_of(layer.tensor_of(matrix))
        return self._view(self.summary, replace(self.overrides, weights=merged))

    def with_others(self, others: Mapping[str, torch.Tensor]) -> Self:
        """Return a view that runs with other tensors for some of ``summary.others``; ModelError for a name or shape."""
        for name, tensor in others.items():
            shape = self.summary.other_tensor(name).shape
            if tuple(tensor.shape) != shape:
                raise ModelError(f"the tensor for {name} is {tuple(tensor.shape)}, it has to be {shape}")
        return self._view(self.summary, replace(self.overrides, others={**self.overrides.others, **others}))

    def with_activations(self, inputs: Mapping[str, Replacement], outputs: Mapping[str, Replacement]) -> Self:
        """Return a view in which layer inputs and outputs pass through these functions."""
        changed = replace(
            self.overrides, inputs={**self.overrides.inputs, **inputs}, outputs={**self.overrides.outputs, **outputs}
        )
        return self._view(self.summary, changed)

    def with_rotations(self, rotations: Mapping[str, Replacement]) -> Self:
        """Return a view in which these functions alone rotate inputs, before a tap or a quantizer sees them."""
        return self._view(self.summary, replace(self.overrides, rotations=rotations))

    def untied(self, layers: Collection[str]) -> Self:
        """Return a view in which these tied layers own their weight; its ``summary`` says so.  Values stay the same."""
        own = {name: self.weight(name) for name in layers if self.summary.layer(name).tied_to in self.overrides.weights}
        changed = replace(self.overrides, weights={**self.overrides.weights, **own})
        return self._view(self.summary.untied(layers), changed)
