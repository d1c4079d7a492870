"""Which parameters of a network are layers that a plan can give a scheme, and which are kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from workbench.models.layer import KeptTensor, Layer, LayerKind
from workbench.models.sources.stored import all_finite

SMALLEST = 64
"""A parameter of an unknown module with fewer elements than this is kept: nothing is won by quantizing it."""

CONVOLUTIONS = {nn.Conv1d: LayerKind.CONV1D, nn.Conv2d: LayerKind.CONV2D, nn.Conv3d: LayerKind.CONV3D}
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
RECURRENT = (nn.RNNBase, nn.RNNCellBase)
PACKED = frozenset({"in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """How one parameter is used.  ``hookable``: its module runs it alone, so that the module's input and output are
    the layer's; ``named_by_module``: the layer has the module's name rather than the parameter's."""

    kind: LayerKind
    axes: tuple[int, ...]
    row_axes: int = 1
    hookable: bool = False
    named_by_module: bool = False
    per_token: bool = False


Classifier = Callable[[str, nn.Module, str, torch.Tensor], "Role | None"]
"""``(module path, module, parameter name, parameter)`` to its role, or None for a parameter that is kept."""


@dataclass(slots=True, kw_only=True)
class NetworkParts:
    """What a network holds; ``hooks`` maps the layers that can be tapped to their module's path."""

    by_name: dict[str, Layer] = field(default_factory=dict)
    kept: list[KeptTensor] = field(default_factory=list)
    hooks: dict[str, str] = field(default_factory=dict)
    non_finite: list[str] = field(default_factory=list)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers in the order of the network."""
        return tuple(self.by_name.values())


def find_layers(
    network: nn.Module, dtypes: Callable[[str, torch.Tensor], str], classify: Classifier | None = None
) -> NetworkParts:
    """Return the layers and kept tensors of ``network``, in the order of its modules.

    ``dtypes`` gives the stored dtype of a named tensor.  A parameter that appears twice is one tensor: its first name
    owns it, later ones are tied to it.
    """
    role_of = classify or Modules(network)
    parts, owners = NetworkParts(), dict[int, str]()
    for path, module in network.named_modules(remove_duplicate=False):
        for name, parameter in module._parameters.items():
            if parameter is not None:
                role = role_of(path, module, name, parameter)
                _add(parts, owners, path, name, parameter, role, dtypes)
        for name, buffer in module._buffers.items():
            if buffer is not None and name not in module._non_persistent_buffers_set and id(buffer) not in owners:
                owners[id(buffer)] = _join(path, name)
                _keep(parts, _join(path, name), buffer, dtypes)
    return parts


def _add(
    parts: NetworkParts, owners: dict[int, str], path: str, name: str, parameter: torch.Tensor, role: Role | None,
    dtypes: Callable[[str, torch.Tensor], str],
) -> None:  # fmt: skip
    full, owner = _join(path, name), owners.get(id(parameter))
    if role is None:
        if owner is None:
            owners[id(parameter)] = full
            _keep(parts, full, parameter, dtypes)
        return
    layer = path if role.named_by_module and path else full
    if layer in parts.by_name or (owner and owner not in parts.by_name):
        return
    owners.setdefault(id(parameter), layer)
    stored = parts.by_name[owner].dtype if owner else dtypes(full, parameter)
    shape = tuple(parameter.shape)
    parts.by_name[layer] = Layer(
        name=layer, kind=role.kind, parameter=full, shape=shape, dtype=stored, axes=role.axes, row_axes=role.row_axes,
        block=block_of(layer), macs=parameter.numel() if role.per_token else None, tied_to=owner,
    )  # fmt: skip
    if role.hookable:
        parts.hooks[layer] = path
    if not all_finite(parameter):
        parts.non_finite.append(layer)


def _keep(parts: NetworkParts, name: str, tensor: torch.Tensor, dtypes: Callable[[str, torch.Tensor], str]) -> None:
    parts.kept.append(KeptTensor(name=name, shape=tuple(tensor.shape), dtype=dtypes(name, tensor)))
    if not all_finite(tensor):
        parts.non_finite.append(name)


class Modules:
    """The roles of parameters by the class of their module."""

    def __init__(self, network: nn.Module) -> None:
        attentions = [module for module in network.modules() if isinstance(module, nn.MultiheadAttention)]
        self._attention_outputs = {id(module.out_proj) for module in attentions}

    def __call__(self, path: str, module: nn.Module, name: str, parameter: torch.Tensor) -> Role | None:
        """Return the parameter's role, None where it is kept."""
        if not parameter.is_floating_point() or parameter.ndim < 2 or is_norm(type(module).__name__):
            return None
        if name == "weight" and (role := self._known(module, parameter)) is not None:
            return role
        axes = tuple(range(parameter.ndim))
        if isinstance(module, RECURRENT):
            return Role(kind=LayerKind.RECURRENT, axes=axes, per_token=True)
        if isinstance(module, nn.MultiheadAttention):
            return Role(kind=LayerKind.ATTENTION, axes=axes, per_token=True) if name in PACKED else None
        return unknown_role(tuple(parameter.shape), transposed=bool(getattr(module, "is_transposed", False)))

    def _known(self, module: nn.Module, parameter: torch.Tensor) -> Role | None:
        axes = tuple(range(parameter.ndim))
        if id(module) in self._attention_outputs:
            return Role(kind=LayerKind.ATTENTION, axes=axes, named_by_module=True, per_token=True)
        if isinstance(module, nn.Linear):
            return linear_role(axes)
        if type(module).__name__ == "Conv1D" and hasattr(module, "nf"):  # GPT-2's linear layer, stored inputs x outputs
            return linear_role((1, 0))
        for convolution, kind in CONVOLUTIONS.items():
            if isinstance(module, convolution):
                return Role(kind=kind, axes=axes, hookable=True, named_by_module=True)
        if isinstance(module, TRANSPOSED):
            return transposed_role(tuple(parameter.shape), module.groups)
        if isinstance(module, nn.Embedding | nn.EmbeddingBag):
            plain = type(module).forward is nn.Embedding.forward  # others take a mask or offsets, or scale the rows
            return Role(kind=LayerKind.EMBEDDING, axes=axes, hookable=plain, named_by_module=True)
        return None


def linear_role(axes: tuple[int, ...]) -> Role:
    """The role of a linear layer's weight, stored with the output axis at ``axes[0]``."""
    return Role(kind=LayerKind.LINEAR, axes=axes, hookable=True, named_by_module=True, per_token=True)


def transposed_role(shape: tuple[int, ...], groups: int) -> Role:
    """The role of a transposed convolution's weight: inputs x (outputs / groups) x kernel.

    Ungrouped, a row is an output channel.  Depthwise (one input for each group), input and output axes together number
    the outputs.  In between no permutation puts the output channels first: a row is one output channel of every group.
    """
    kernel = tuple(range(2, len(shape)))
    kind = LayerKind.CONV_TRANSPOSE
    if groups > 1 and groups == shape[0]:
        return Role(kind=kind, axes=(0, 1, *kernel), row_axes=2, hookable=True, named_by_module=True)
    return Role(kind=kind, axes=(1, 0, *kernel), hookable=True, named_by_module=True)


def unknown_role(shape: tuple[int, ...], transposed: bool = False) -> Role | None:
    """The role of a parameter whose module says nothing: experts if 3-D, a matrix if of more than one row."""
    if len(shape) < 2 or shape[0] == 1 or torch.Size(shape).numel() < SMALLEST:
        return None
    if len(shape) == 3:
        return Role(kind=LayerKind.EXPERTS, axes=(0, 2, 1) if transposed else (0, 1, 2), row_axes=2)
    return Role(kind=LayerKind.MATRIX, axes=tuple(range(len(shape))))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def is_norm(name: str) -> bool:
    """Tell whether a class or parameter is named after a normalization."""
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


def stored_dtypes(stored: Mapping[str, Any], fallback: str | None = None) -> Callable[[str, torch.Tensor], str]:
    """Return a look-up of a tensor's stored dtype by name; ``stored`` maps names to anything with a ``dtype``.

    A checkpoint may lack or have a first component that the network's names have not (``transformer.``); a tensor that
    is not found at all has ``fallback``, else its own dtype.
    """
    shortened = {re.sub(r"^[^.]+\.", "", name): tensor.dtype for name, tensor in stored.items()}

    def look_up(name: str, tensor: torch.Tensor) -> str:
        without = re.sub(r"^[^.]+\.", "", name)
        if name in stored:
            return str(stored[name].dtype)
        if without in stored:
            return str(stored[without].dtype)
        own = str(tensor.dtype).removeprefix("torch.")
        return str(shortened.get(name) or (fallback if tensor.is_floating_point() else None) or own)

    return look_up
