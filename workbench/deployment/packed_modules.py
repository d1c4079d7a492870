"""A network whose weights stay packed: each is decoded when its module runs, and let go again."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from workbench.deployment.exporters.packed_safetensors import PackedFile
from workbench.errors import ExportError, nearest


def load_packed(path: str | Path, network: nn.Module) -> nn.Module:
    """Give ``network`` the weights of a packed file, in place, and return it; packed ones stay packed.

    ``network`` is one of the class that the file was made of (its own weights may be on the meta device).  Tensors that
    are not packed are copied into it.  Raises ExportError for a file that is foreign or of another network.
    """
    file = PackedFile(Path(path))
    owners = dict(_owners(network))
    for name in file.names:
        if name not in owners:
            raise ExportError(
                f"{path} holds {name}, which the network lacks{nearest(name, owners)}; does it "
                "belong to this class of network?"
            )
    ties: dict[int, list[str]] = {}
    for name, (module, part) in owners.items():
        ties.setdefault(id(getattr(module, part)), []).append(name)
    for name in file.names:
        module, part = owners[name]
        aliases = ties[id(getattr(module, part))]
        if tuple(getattr(module, part).shape) != file.shape(name):
            shape = tuple(getattr(module, part).shape)
            raise ExportError(f"{path} holds {name} as {file.shape(name)}, the network has {shape}")
        for alias in aliases:
            if name in file.tensors:
                _pack(*owners[alias], file, name)
            elif alias == name or alias not in file.names:
                _place(*owners[alias], torch.from_numpy(file.read(name)))
    missing = [name for name, (module, part) in owners.items() if _is_meta(module, part)]
    if missing:
        raise ExportError(f"{path} lacks {missing[0]}, which the network has; does it belong to this class of network?")
    return network.eval()


def _owners(network: nn.Module) -> Iterator[tuple[str, tuple[nn.Module, str]]]:
    """Yield every parameter and stored buffer under each of its names, with the module that has it."""
    for path, module in network.named_modules(remove_duplicate=False):
        stored = [name for name in module._buffers if name not in module._non_persistent_buffers_set]
        for part in (*module._parameters, *stored):
            if getattr(module, part) is not None:
                yield (f"{path}.{part}" if path else part), (module, part)


def _is_meta(module: nn.Module, part: str) -> bool:
    stored = module._parameters.get(part)
    return stored is not None and stored.is_meta


def _place(module: nn.Module, part: str, tensor: torch.Tensor) -> None:
    if part in module._buffers:
        module._buffers[part] = tensor
    else:
        module._parameters[part] = nn.Parameter(tensor, requires_grad=False)


def _pack(module: nn.Module, part: str, file: PackedFile, name: str) -> None:
    """Put the packed arrays of ``name`` in the place of a parameter, whose values its module then decodes."""
    del module._parameters[part]
    arrays = {}
    for array in file.tensors[name]["parts"]:
        buffer = f"{part}_packed_{array}"
        module.register_buffer(buffer, file.store.read(f"{name}.{array}").clone())
        arrays[array] = buffer
    vars(module).setdefault("packed", {})[part] = (file, name, arrays)
    plain: Any = _plain_class(type(module))
    module.__class__ = _packed_class(plain, tuple(sorted(vars(module)["packed"])))


def _plain_class(kind: type[nn.Module]) -> type[nn.Module]:
    plain: type[nn.Module] = kind.__bases__[0] if getattr(kind, "packed_parts", ()) else kind
    return plain


@cache
def _packed_class(kind: Any, parts: tuple[str, ...]) -> Any:
    """Return a subclass of ``kind`` whose ``parts`` are decoded whenever they are asked for."""

    def decoded(part: str) -> property:
        def read(module: Any) -> torch.Tensor:
            file, name, arrays = vars(module)["packed"][part]
            values = file.decoded(name, {array: module._buffers[buffer].numpy() for array, buffer in arrays.items()})
            return torch.from_numpy(values)

        return property(read)

    members: dict[str, Any] = {part: decoded(part) for part in parts}
    return type(f"Packed{kind.__name__}", (kind,), {**members, "packed_parts": parts})
