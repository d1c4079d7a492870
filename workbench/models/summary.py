"""What can be said of a model without its tensors: the part that a session stores and the window shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from math import prod

from workbench.errors import FingerprintMismatchError, ModelError, nearest
from workbench.models.layer import Layer, LayerKind, StoredTensor
from workbench.readable import few


class OutputKind(StrEnum):
    """What the model's output means, which decides the metrics.

    Token logits are those of the next token, token classes those of each token itself (masked models, tagging).
    Position classes are logits at every position of a sample, samples x positions x classes (pixels of a segmentation,
    frames of speech) or, with two classes, of labels that do not exclude each other: losses are counted in samples.
    Detections are a set of objects, samples x objects x (a logit of each label, then the box: the centre's x and y,
    width and height in parts of the picture).
    """

    TOKEN_LOGITS = "token_logits"
    TOKEN_CLASSES = "token_classes"
    CLASS_LOGITS = "class_logits"
    POSITION_CLASSES = "position_classes"
    DETECTIONS = "detections"
    EMBEDDING = "embedding"
    NONE = "none"

    @property
    def is_logits(self) -> bool:
        """Whether the outputs are logits, so that answers differ by a divergence and not by a distance."""
        return self not in (OutputKind.EMBEDDING, OutputKind.NONE)

    @property
    def per_token(self) -> bool:
        """Whether every token has logits of its own, so that losses are counted in tokens."""
        return self in (OutputKind.TOKEN_LOGITS, OutputKind.TOKEN_CLASSES)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSource:
    """How to open the model again: enough for a replay script and for the engine process.

    ``kind`` is the source's registry name (``huggingface``, ``exported_program``, ``python_module``,
    ``safetensors``, ``state_dict``); ``path`` the file or folder; ``factory`` and ``weights`` serve Python files.
    """

    kind: str
    path: str
    factory: str | None = None
    weights: str | None = None


@dataclass(frozen=True, kw_only=True)
class ModelSummary:
    """A model's facts: layers in the order of the network, its other tensors, a content fingerprint.

    ``others`` are the tensors that are not a layer's weight and stay as they are: norms, biases, buffers.
    ``fingerprint`` is ``sha256:`` and the hash over every tensor's name, dtype, shape and bytes.  ``cannot_run`` is the
    reason why the model cannot be run, or None where it can.
    """

    name: str
    source: ModelSource
    fingerprint: str
    output: OutputKind
    layers: tuple[Layer, ...]
    others: tuple[StoredTensor, ...] = ()
    cannot_run: str | None = None
    non_finite: tuple[str, ...] = ()

    @cached_property
    def by_name(self) -> dict[str, Layer]:
        """Every layer under its name."""
        return {layer.name: layer for layer in self.layers}

    @cached_property
    def embeddings(self) -> frozenset[str]:
        """The names of the embeddings, and of the layers that share weights with one."""
        return embeddings(self.layers)

    @cached_property
    def position(self) -> dict[str, int]:
        """The place of every layer in ``layers``."""
        return {layer.name: index for index, layer in enumerate(self.layers)}

    @cached_property
    def tied(self) -> tuple[Layer, ...]:
        """The layers that use another one's tensor."""
        return tuple(layer for layer in self.layers if layer.tied_to is not None)

    @cached_property
    def sharing(self) -> frozenset[str]:
        """The layers that share their tensor with another."""
        return frozenset(name for layer in self.tied for name in (layer.name, layer.tied_to) if name)

    @cached_property
    def stored(self) -> tuple[Layer, ...]:
        """The layers that own their tensor: tied layers are counted once."""
        return tuple(layer for layer in self.layers if layer.tied_to is None)

    @cached_property
    def parameters(self) -> int:
        """Weights of all layers, tied ones once, and the elements of other tensors."""
        return sum(layer.parameters for layer in self.stored) + sum(prod(tensor.shape) for tensor in self.others)

    @cached_property
    def nbytes(self) -> int:
        """Bytes of all tensors as stored, tied ones once."""
        return sum(layer.nbytes for layer in self.stored) + self.other_nbytes

    @cached_property
    def other_nbytes(self) -> int:
        """Bytes of the tensors that stay in floating point under every plan."""
        return sum(tensor.nbytes for tensor in self.others)

    @property
    def without_layers(self) -> str:
        """A sentence where the model has no layer at all, empty where it has some."""
        if self.layers:
            return ""
        shapes = [f"{tensor.name} ({' x '.join(map(str, tensor.shape))})" for tensor in self.others]
        return (
            f"{self.name} has no layer to quantize: of its {len(shapes)} tensors none is the weight of a product with "
            f"several outputs{': ' if shapes else ''}{few(shapes)}"
        )

    def layer(self, name: str) -> Layer:
        """Return the layer ``name``; raises ModelError naming the closest ones."""
        layer = self.by_name.get(name)
        if layer is None:
            raise ModelError(f"{self.name} has no layer {name!r}{nearest(name, self.by_name)}")
        return layer

    def other_tensor(self, name: str) -> StoredTensor:
        """Return the facts of the tensor ``name`` of ``others``; raises ModelError naming the closest ones."""
        known = {tensor.name: tensor for tensor in self.others}
        if name not in known:
            raise ModelError(f"{self.name} keeps no tensor {name!r}{nearest(name, known)}")
        return known[name]

    def untied(self, layers: Collection[str]) -> ModelSummary:
        """Return the facts with ``layers`` owning their weight; ModelError for one that is tied to nothing."""
        for name in layers:
            if self.layer(name).tied_to is None:
                raise ModelError(f"{name} is tied to no other layer, so its tie cannot be cut")
        cut = tuple(replace(layer, tied_to=None) if layer.name in layers else layer for layer in self.layers)
        return replace(self, layers=cut)

    def with_unused(self, reasons: Mapping[str, str]) -> ModelSummary:
        """Return the facts with ``reasons`` (by layer) why the output does not depend on some layers, and no others."""
        named = (replace(layer, unused=reasons.get(layer.name, "")) for layer in self.layers)
        return replace(self, layers=tuple(named))

    def require_fingerprint(self, other: str, what: str) -> None:
        """Raise FingerprintMismatchError unless ``other`` is this model's fingerprint."""
        if other != self.fingerprint:
            raise FingerprintMismatchError(
                f"{what} was made for the model with fingerprint {other}, but {self.name} has {self.fingerprint}; "
                "open the model it was made for, or make a new one for this model"
            )


def embeddings(layers: Iterable[Layer]) -> frozenset[str]:
    """Return the names of the embeddings, and of the layers that share weights with one."""
    everything = tuple(layers)
    names = {layer.name for layer in everything if layer.kind is LayerKind.EMBEDDING}
    names |= {layer.name for layer in everything if layer.tied_to in names}
    return frozenset(names | {layer.tied_to for layer in everything if layer.name in names and layer.tied_to})


def searchable(layers: Iterable[Layer]) -> Sequence[Layer]:
    """Return the layers that a search decides unless they are locked: not kept and unused ones.

    What the scored output does not depend on may serve another one, which nobody scored.  The user can still give these
    a scheme, and one to a layer with a reason to keep it (``Layer.keep``).
    """
    return tuple(layer for layer in layers if not layer.keep and not layer.unused)


def quantizable(layers: Iterable[Layer]) -> Sequence[Layer]:
    """Return the layers that bits per weight always count: those of :func:`searchable` but embeddings.

    An embedding is a table look-up: it costs no arithmetic, and many runtimes keep it in floating point.
    """
    everything = tuple(layers)
    tables = embeddings(everything)
    return tuple(layer for layer in searchable(everything) if layer.name not in tables)
