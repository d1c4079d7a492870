"""A torch network behind the Model contract: run, tapped, with its inputs replaced, or with other weights."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.func import functional_call

from workbench.errors import CannotRunError, DataError, ModelError, WorkbenchError, nearest
from workbench.models.data.inputs import InputSpec
from workbench.models.layer import KeptTensor, Layer
from workbench.models.model import Replacement
from workbench.models.summary import ModelSummary

if TYPE_CHECKING:
    from workbench.models.model import Batch, Tap

Forward = Callable[..., Any]
Call = Callable[[Forward, Mapping[str, torch.Tensor]], torch.Tensor]
"""How a batch is handed to a network and what of its answer is the output: ``call(network or its stand-in, batch)``."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Body:
    """A network with what is needed to run and to tap it; shared by all views of one model.

    ``hooks`` maps the layers that can be tapped to the module that runs them.
    """

    network: nn.Module
    call: Call
    hooks: Mapping[str, str]
    lock: threading.RLock = field(default_factory=threading.RLock)


class NetworkModel:
    """A model that can be run.  The network's parameters are never changed, not even by ``with_weights``."""

    def __init__(
        self, summary: ModelSummary, body: Body, inputs: InputSpec, weights: Mapping[str, torch.Tensor] | None = None,
        kept: Mapping[str, torch.Tensor] | None = None,
    ) -> None:  # fmt: skip
        """``weights`` maps a layer that owns its tensor to the matrix that it runs with instead; ``kept`` likewise maps
        tensors that are not layers."""
        self._summary, self._body, self.inputs = summary, body, inputs
        self._weights, self._kept = dict(weights or {}), dict(kept or {})
        self._parameters = dict(body.network.named_parameters(remove_duplicate=False))

    @property
    def summary(self) -> ModelSummary:
        """The model's facts."""
        return self._summary

    @property
    def tappable(self) -> frozenset[str]:
        """The layers whose input and output can be tapped, and whose input can be replaced."""
        return frozenset(self._body.hooks)

    @property
    def network(self) -> nn.Module:
        """The network itself, for hooks; never change its parameters."""
        return self._body.network

    @property
    def body(self) -> Body:
        """The network itself, shared by all views; never change it."""
        return self._body

    @property
    def is_original(self) -> bool:
        """Whether the network runs as it is, without replaced tensors."""
        return not self._weights and not self._kept

    def parameter_names(self, layer: str) -> tuple[str, ...]:
        """Return every name in the network of the parameter of ``layer``: several where weights are tied."""
        facts = find_layer(self._summary, layer)
        return tuple(self._names_of(facts, self._parameters[facts.parameter])) or (facts.parameter,)

    @property
    def device(self) -> torch.device:
        """Where the parameters lie; batches are moved there."""
        first = next(iter(self._parameters.values()), None)
        return torch.device("cpu") if first is None else first.device

    def weight(self, layer: str) -> torch.Tensor:
        """Return the layer's matrix of outputs x inputs, detached, in its stored dtype (replaced ones as they came)."""
        facts = find_layer(self._summary, layer)
        replaced = self._weights.get(facts.tied_to or facts.name)
        if replaced is not None:
            return replaced.detach()
        return matrix_of(facts, self._parameters[facts.parameter].detach()).to(getattr(torch, facts.dtype))

    def kept(self, name: str) -> torch.Tensor:
        """Return a tensor that is not a layer (a norm, a bias, a buffer), detached, in its stored dtype."""
        facts = find_kept(self._summary, name)
        if name in self._kept:
            return self._kept[name].detach()
        tensor = self._parameters[name] if name in self._parameters else self._body.network.get_buffer(name)
        return tensor.detach().to(getattr(torch, facts.dtype))

    def with_weights(self, weights: Mapping[str, torch.Tensor]) -> NetworkModel:
        """Return a view that runs with ``weights`` (layer to matrix); tied layers run with the replaced tensor too."""
        replaced = merge_weights(self._summary, self._weights, weights)
        return NetworkModel(self._summary, self._body, self.inputs, replaced, self._kept)

    def with_kept(self, kept: Mapping[str, torch.Tensor]) -> NetworkModel:
        """Return a view that runs with other norms, biases or buffers; ModelError for a name or shape that is wrong."""
        for name, tensor in kept.items():
            facts = find_kept(self._summary, name)
            if tuple(tensor.shape) != facts.shape:
                raise ModelError(f"the tensor for {name} is {tuple(tensor.shape)}, it has to be {facts.shape}")
        return NetworkModel(self._summary, self._body, self.inputs, self._weights, {**self._kept, **kept})

    def untied(self, layers: Collection[str]) -> NetworkModel:
        """Return a view in which ``layers`` own their weight."""
        summary = cut_ties(self._summary, layers)
        own = {name: self.weight(name) for name in layers if self._summary.by_name[name].tied_to in self._weights}
        return NetworkModel(summary, self._body, self.inputs, {**self._weights, **own}, self._kept)

    def run(
        self,
        batch: Batch,
        tap: Tap | None = None,
        inputs: Mapping[str, Replacement] | None = None,
        layers: Sequence[str] | None = None,
        outputs: Mapping[str, Replacement] | None = None,
    ) -> torch.Tensor:
        """Run one batch and return the output; see :class:`workbench.models.model.Model`.

        Layers that are not ``tappable`` are never tapped.  Raises CannotRunError where ``inputs`` or ``outputs`` name
        one of them, DataError where the network does not accept the batch.
        """
        for name in (*(inputs or ()), *(outputs or ()), *(layers or ())):
            find_layer(self._summary, name)
        moved = {name: tensor.to(self.device) for name, tensor in batch.items()}
        with self._body.lock, self._hooks(tap, inputs or {}, layers, outputs or {}), no_fused_attention():
            try:
                return _by_sample(self._summary.name, self._body.call(self._forward(), moved), moved)
            except _CallbackFailed as failed:
                raise failed.cause from failed.cause.__cause__
            except (WorkbenchError, torch.OutOfMemoryError):
                raise
            except (RuntimeError, ValueError, IndexError, TypeError) as error:
                raise DataError(_rejected(self._summary.name, moved, error)) from error

    def _forward(self) -> Forward:
        if not self._weights and not self._kept:
            return self._body.network
        tensors: dict[str, torch.Tensor] = {}
        for name, matrix in self._weights.items():
            layer = self._summary.by_name[name]
            parameter = self._parameters[layer.parameter]
            tensor = tensor_of(layer, matrix).to(parameter.device, parameter.dtype)
            tensors |= dict.fromkeys(self._names_of(layer, parameter), tensor)
        for name, kept in self._kept.items():
            stored = self._parameters[name] if name in self._parameters else self._body.network.get_buffer(name)
            tensors[name] = kept.to(stored.device, stored.dtype)
        return lambda *args, **kwargs: functional_call(self._body.network, tensors, args, kwargs, tie_weights=False)

    def _names_of(self, layer: Layer, parameter: torch.Tensor) -> list[str]:
        """Return every name of the layer's parameter but those of layers that own their weight in this view."""
        mine = {other.parameter for other in self._summary.layers if layer.name in (other.name, other.tied_to)}
        others = {other.parameter for other in self._summary.layers} - mine
        return [name for name, each in self._parameters.items() if each is parameter and name not in others]

    @contextmanager
    def _hooks(
        self, tap: Tap | None, inputs: Mapping[str, Replacement], layers: Sequence[str] | None,
        outputs: Mapping[str, Replacement],
    ) -> Iterator[None]:  # fmt: skip
        hooks = self._body.hooks
        for name, end in (*((name, "input") for name in inputs), *((name, "output") for name in outputs)):
            if name not in hooks:
                raise CannotRunError(
                    f"the {end} of the layer {name} cannot be quantized: its weight is used inside a larger module; "
                    f"leave its {end}s in floating point"
                )
        tapped = [] if tap is None else [name for name in (hooks if layers is None else layers) if name in hooks]
        with ExitStack() as stack:
            for name, replace in inputs.items():
                module = self._body.network.get_submodule(hooks[name])
                handle = module.register_forward_pre_hook(_replacing(replace), with_kwargs=True)
                stack.callback(handle.remove)
            for name, replace in outputs.items():
                module = self._body.network.get_submodule(hooks[name])
                stack.callback(module.register_forward_hook(_leaving(replace)).remove)
            for name in tapped:
                assert tap is not None
                module = self._body.network.get_submodule(hooks[name])
                stack.callback(module.register_forward_hook(_tapping(name, tap), with_kwargs=True).remove)
            yield


class _CallbackFailed(Exception):
    """Carries an error of the caller's own function through the network, apart from the network's errors."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _tapping(name: str, tap: Tap) -> Callable[..., None]:
    def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        value = args[0] if args else next(iter(kwargs.values()))
        if not isinstance(output, torch.Tensor):  # a subclass that returns more than the layer's output
            return
        try:
            tap(name, value, output)
        except Exception as error:
            raise _CallbackFailed(error) from error

    return hook


def _replacing(replace: Replacement) -> Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]:
    def hook(
        module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        try:
            if args:
                return (replace(args[0]), *args[1:]), kwargs
            first = next(iter(kwargs))
            return args, {**kwargs, first: replace(kwargs[first])}
        except Exception as error:
            raise _CallbackFailed(error) from error

    return hook


def _leaving(replace: Replacement) -> Callable[..., Any]:
    def hook(module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        try:
            return replace(output)
        except Exception as error:
            raise _CallbackFailed(error) from error

    return hook


@contextmanager
def no_fused_attention() -> Iterator[None]:
    """Switch torch's fused encoder layers off: they skip modules, and would give other bits with taps than without."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def cut_ties(summary: ModelSummary, layers: Collection[str]) -> ModelSummary:
    """Return a model's facts with ``layers`` owning their weight; ModelError for one that is tied to nothing."""
    for name in layers:
        if find_layer(summary, name).tied_to is None:
            raise ModelError(f"{name} is tied to no other layer, so its tie cannot be cut")
    cut = tuple(replace(layer, tied_to=None) if layer.name in layers else layer for layer in summary.layers)
    return replace(summary, layers=cut)


def find_layer(summary: ModelSummary, name: str) -> Layer:
    """Return the facts of the layer ``name``; raises ModelError naming the closest ones."""
    layer = summary.by_name.get(name)
    if layer is None:
        raise ModelError(f"{summary.name} has no layer {name!r}{nearest(name, summary.by_name)}")
    return layer


def find_kept(summary: ModelSummary, name: str) -> KeptTensor:
    """Return the facts of the kept tensor ``name``; raises ModelError naming the closest ones."""
    known = {tensor.name: tensor for tensor in summary.kept}
    if name not in known:
        raise ModelError(f"{summary.name} keeps no tensor {name!r}{nearest(name, known)}")
    return known[name]


def matrix_of(layer: Layer, tensor: torch.Tensor) -> torch.Tensor:
    """Return a stored tensor (of ``layer.shape``) as the matrix of outputs x inputs; a view where possible."""
    return tensor.permute(layer.axes).reshape(layer.matrix)


def tensor_of(layer: Layer, matrix: torch.Tensor) -> torch.Tensor:
    """Return a matrix of outputs x inputs as the stored tensor: the inverse of ``matrix_of``.

    Contiguous, as a file gives it: products of the same numbers in another order of memory differ in their last bits.
    """
    sizes = [layer.shape[axis] for axis in layer.axes]
    back = [layer.axes.index(axis) for axis in range(len(layer.axes))]
    return matrix.reshape(sizes).permute(back).contiguous()


def merge_weights(
    summary: ModelSummary, before: Mapping[str, torch.Tensor], weights: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Return the replaced matrices by owning layer; where a layer and one tied to it are given, the owner's holds.

    Raises ModelError for an unknown layer and for a matrix of another shape.
    """
    merged = dict(before)
    owners = [find_layer(summary, name) for name in weights]
    for layer in sorted(owners, key=lambda layer: layer.tied_to is None):
        matrix = weights[layer.name]
        if tuple(matrix.shape) != layer.matrix:
            raise ModelError(f"the weight for {layer.name} is {tuple(matrix.shape)}, its matrix is {layer.matrix}")
        owner = summary.by_name[layer.tied_to] if layer.tied_to else layer
        same_view = (owner.axes, owner.row_axes) == (layer.axes, layer.row_axes)
        merged[owner.name] = matrix if same_view else matrix_of(owner, tensor_of(layer, matrix))
    return merged


def _by_sample(name: str, output: torch.Tensor, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Return ``output``; raises DataError unless its first axis is that of the samples."""
    samples = next(iter(batch.values())).shape[0] if batch else 0
    if batch and (output.ndim == 0 or output.shape[0] != samples):
        raise DataError(
            f"{name} gave an output of shape {tuple(output.shape)} for {samples} samples; expected one row for each "
            "sample, samples x ...: let the model return its logits or embeddings before they are summed or averaged"
        )
    return output


def _rejected(name: str, batch: Mapping[str, torch.Tensor], error: Exception) -> str:
    shapes = ", ".join(f"{key} {tuple(value.shape)} {value.dtype}" for key, value in batch.items()).replace(
        "torch.", ""
    )
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return f"{name} does not accept a batch of {shapes}: {reason}; give data of the shape that the model was made for"
