"""Which parameters of a network are layers that a plan can give a scheme, and which are kept."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

import torch
from torch import nn

from workbench.models.dtypes import dtype_name
from workbench.models.layer import Layer, LayerKind, StoredTensor
from workbench.models.sources.stored import all_finite

SMALLEST = 64
"""A parameter of an unknown module with fewer elements than this is kept: quantizing it gains nothing."""

CONVOLUTIONS = {nn.Conv1d: LayerKind.CONV1D, nn.Conv2d: LayerKind.CONV2D, nn.Conv3d: LayerKind.CONV3D}
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
RECURRENT = (nn.RNNBase, nn.RNNCellBase)
PACKED = frozenset({"in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"})
PER_TOKEN = (LayerKind.LINEAR, LayerKind.ATTENTION, LayerKind.RECURRENT)
"""Kinds whose weights are multiplied once for each token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """How one parameter is used.

    ``axes`` None: outputs come first as stored.  ``hookable``: its module runs it alone, so that the module's input and
    output are the layer's; ``named_by_module``: the layer has the module's name rather than the parameter's.
    """

    kind: LayerKind
    axes: tuple[int, ...] | None = None
    row_axes: int = 1
    hookable: bool = False
    named_by_module: bool = False

    def layer(self, tensor: StoredTensor, tied_to: str | None = None) -> Layer:
        """Return the layer of the parameter ``tensor``."""
        name = tensor.name.removesuffix(".weight") if self.named_by_module else tensor.name
        axes = self.axes or tuple(range(len(tensor.shape)))
        macs = math.prod(tensor.shape) if self.kind in PER_TOKEN else None
        return Layer(
            name=name, kind=self.kind, parameter=tensor.name, shape=tensor.shape, dtype=tensor.dtype, axes=axes,
            row_axes=self.row_axes, block=block_of(name), macs=macs, tied_to=tied_to,
        )  # fmt: skip


Classifier = Callable[[str, nn.Module, str, torch.Tensor], Role | None]
"""``(module path, module, parameter name, parameter)`` to its role, or None for a parameter that is kept."""

Dtypes = Callable[[str, torch.Tensor], str]
"""The stored dtype of a named tensor."""


@dataclass(slots=True, kw_only=True)
class NetworkParts:
    """What a network holds; ``hooks`` maps the layers that can be tapped to their module's path, ``functions`` those
    tapped at the function that uses their weight to the axis of its input along which the samples lie, ``experts``
    those of mixtures to the number of their experts, ``finite`` says that no tensor needs to be looked through."""

    by_name: dict[str, Layer] = field(default_factory=dict)
    others: list[StoredTensor] = field(default_factory=list)
    hooks: dict[str, str] = field(default_factory=dict)
    functions: dict[str, int] = field(default_factory=dict)
    experts: dict[str, int] = field(default_factory=dict)
    non_finite: list[str] = field(default_factory=list)
    finite: bool = False

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers in the order of the network."""
        return tuple(self.by_name.values())


def find_layers(
    network: nn.Module, dtypes: Dtypes, classify: Classifier | None = None, *, finite: bool = False
) -> NetworkParts:
    """Return the layers and other tensors of ``network``, in the order of its modules.

    A parameter that appears twice is one tensor: its first name owns it, later ones are tied to it.  A module with
    several names has its first.  No tensor is looked through for NaN and infinity where all are known to be ``finite``.
    """
    role_of = classify or Modules(network)
    parts, owners = NetworkParts(finite=finite), dict[int, str]()
    for path, module in network.named_modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                role = role_of(path, module, name, parameter)
                _add(parts, owners, path, name, parameter, role, dtypes)
        for name, buffer in module._buffers.items():
            if buffer is not None and name not in module._non_persistent_buffers_set:
                _add(parts, owners, path, name, buffer, None, dtypes)
    return parts


def _add(
    parts: NetworkParts, owners: dict[int, str], path: str, name: str, tensor: torch.Tensor, role: Role | None,
    dtypes: Dtypes,
) -> None:  # fmt: skip
    full, owner = f"{path}.{name}" if path else name, owners.get(id(tensor))
    if role is None and owner is not None:
        return
    dtype = parts.by_name[owner].dtype if owner in parts.by_name else dtypes(full, tensor)
    stored = StoredTensor(name=full, shape=tuple(tensor.shape), dtype=dtype)
    if role is None:
        parts.others.append(stored)
    else:
        layer = role.layer(stored, tied_to=owner)
        if layer.name in parts.by_name or (owner and owner not in parts.by_name):
            return
        parts.by_name[layer.name] = layer
        full = layer.name
        if role.hookable:
            parts.hooks[layer.name] = path
    owners.setdefault(id(tensor), full)
    if not parts.finite and not all_finite(tensor):
        parts.non_finite.append(full)


class Modules:
    """The roles of parameters by the class of their module."""

    def __init__(self, network: nn.Module) -> None:
        attentions = [each for each in network.modules() if issubclass(class_of(each), nn.MultiheadAttention)]
        self._attention_outputs = {id(each.get_submodule("out_proj")) for each in attentions}

    def __call__(self, path: str, module: nn.Module, name: str, parameter: torch.Tensor) -> Role | None:
        """Return the parameter's role, None where it is kept."""
        numbers = parameter.is_floating_point() and parameter.ndim > 1 and parameter.numel()
        kind = class_of(module)
        if not numbers or is_norm(kind.__name__):
            return None
        if name == "weight" and (role := self._known(module, kind, parameter)) is not None:
            return role
        if issubclass(kind, RECURRENT):
            return Role(kind=LayerKind.RECURRENT)
        if issubclass(kind, nn.MultiheadAttention):
            return Role(kind=LayerKind.ATTENTION) if name in PACKED else None
        return unknown_role(tuple(parameter.shape), transposed=bool(getattr(module, "is_transposed", False)))

    def _known(self, module: nn.Module, kind: type[nn.Module], parameter: torch.Tensor) -> Role | None:
        if id(module) in self._attention_outputs:
            return Role(kind=LayerKind.ATTENTION, named_by_module=True)
        if issubclass(kind, nn.Linear):
            return module_role(LayerKind.LINEAR)
        if kind.__name__ == "Conv1D" and hasattr(module, "nf"):  # GPT-2's linear layer, stored inputs x outputs
            return module_role(LayerKind.LINEAR, axes=(1, 0))
        for convolution, known in CONVOLUTIONS.items():
            if issubclass(kind, convolution):
                return module_role(known)
        if issubclass(kind, TRANSPOSED):
            return transposed_role(tuple(parameter.shape), cast("nn.ConvTranspose1d", module).groups)
        if issubclass(kind, nn.Embedding | nn.EmbeddingBag):
            plain = kind.forward is nn.Embedding.forward  # others take a mask or offsets, or scale the rows
            return Role(kind=LayerKind.EMBEDDING, hookable=plain, named_by_module=True)
        return None


def class_of(module: nn.Module) -> type[nn.Module]:
    """Return a module's class: of a TorchScript program's module, torch.nn's of the name that it was written under."""
    if not isinstance(module, torch.jit.ScriptModule):
        return type(module)
    known = getattr(nn, module.original_name, None)
    return known if isinstance(known, type) and issubclass(known, nn.Module) else nn.Module


def module_role(kind: LayerKind, axes: tuple[int, ...] | None = None, row_axes: int = 1) -> Role:
    """The role of a weight that its module runs alone."""
    return Role(kind=kind, axes=axes, row_axes=row_axes, hookable=True, named_by_module=True)


def transposed_role(shape: tuple[int, ...], groups: int) -> Role:
    """The role of a transposed convolution's weight: inputs x (outputs / groups) x kernel.

    Ungrouped, a row is an output channel.  Depthwise (one input for each group), input and output axes together number
    the outputs.  In between no permutation puts the output channels first: a row is one output channel of every group.
    """
    if groups > 1 and groups == shape[0]:
        return module_role(LayerKind.CONV_TRANSPOSE, row_axes=2)
    return module_role(LayerKind.CONV_TRANSPOSE, axes=(1, 0, *range(2, len(shape))))


def unknown_role(shape: tuple[int, ...], transposed: bool = False) -> Role | None:
    """The role of a parameter whose module says nothing: experts if 3-D, a matrix if of more than one row."""
    if len(shape) < 2 or shape[0] == 1 or math.prod(shape) < SMALLEST:
        return None
    if len(shape) == 3:
        return Role(kind=LayerKind.EXPERTS, axes=(0, 2, 1) if transposed else None, row_axes=2)
    return Role(kind=LayerKind.MATRIX)


def is_norm(name: str) -> bool:
    """Return whether a class or parameter is named after a normalization."""
    return "norm" in name.lower()


def block_of(name: str) -> str:
    """Return the nearest repeated container (``model.layers.0``), else the top-level module.

    Single experts are part of their block: a container named ``experts`` does not count as repeated.
    """
    parts = name.split(".")
    for last in range(len(parts) - 2, 0, -1):
        if parts[last].isdigit() and "expert" not in parts[last - 1]:
            return ".".join(parts[: last + 1])
    return parts[0]


def stored_dtypes(stored: Mapping[str, StoredTensor], fallback: str | None = None) -> Dtypes:
    """Return a look-up of a tensor's stored dtype by its name in the network.

    A checkpoint may lack or have a first component that the network's names have not (``transformer.``); a tensor under
    none of these names has ``fallback``, else its own dtype.
    """
    shortened = {re.sub(r"^[^.]+\.", "", name): tensor for name, tensor in stored.items()}

    def look_up(name: str, tensor: torch.Tensor) -> str:
        without = re.sub(r"^[^.]+\.", "", name)
        match = stored.get(name) or stored.get(without) or shortened.get(name)
        if match is not None:
            return match.dtype
        return fallback if fallback and tensor.is_floating_point() else dtype_name(tensor)

    return look_up
