"""A state dict saved by torch (``.pt``, ``.pth``): read without running the code that a pickle may hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from workbench.errors import NotAModelError, UnsafeModelError
from workbench.models.dtypes import DTYPES, dtype_name
from workbench.models.model import Model
from workbench.models.readers.plain_pickle import NotPlainError, ScriptedError
from workbench.models.readers.torch_file import UnsupportedTensor, read_torch_file
from workbench.models.sources.source import Opening
from workbench.models.sources.stored import require_memory, tensors_in_memory
from workbench.models.sources.weights_only import weights_only_model
from workbench.models.summary import ModelSource
from workbench.readable import few

SUFFIXES = (".pt", ".pth", ".ckpt", ".bin", ".jit")
NESTED = ("state_dict", "model_state_dict", "model")
WAY_OUT = (
    "save its state dict where it was made, safetensors.torch.save_file(model.state_dict(), 'model.safetensors'), and "
    "open that together with the Python file that builds the network"
)
SCRIPTED = (
    "is a TorchScript program, and opening it would run the code that it contains; if you know it, open a Python file "
    "with a function that loads it: import torch; def build(): return torch.jit.load({!r}, map_location='cpu')"
)


@dataclass(frozen=True, slots=True)
class StateDictFile:
    """Weights only, like a bare safetensors file."""

    name = "state_dict"
    description = "a .pt/.pth state dict"

    def detects(self, path: Path) -> bool:
        """Recognize it by the suffix."""
        return path.is_file() and path.suffix in SUFFIXES

    def open(self, request: Opening) -> Model:
        """Load the tensors; raises UnsafeModelError for a pickled module."""
        require_memory(request.path.stat().st_size, str(request.path))
        store = tensors_in_memory(load_state_dict(request.path))
        return weights_only_model(ModelSource(kind=self.name, path=request.recorded), store)


def load_weights_only(path: Path) -> Any:
    """Load a file of ``torch.save`` that holds tensors and plain containers; the tensors are mapped from it.

    Raises UnsafeModelError where opening it would run code, NotAModelError for any other file.
    """
    try:
        return read_torch_file(path)
    except ScriptedError:
        raise UnsafeModelError(f"{path} {SCRIPTED.format(str(path))}") from None
    except NotPlainError as error:
        raise UnsafeModelError(
            f"{path} is a pickled module ({error}), and opening it would run the code that it contains; {WAY_OUT}"
        ) from None
    except (ValueError, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        raise NotAModelError(
            f"{path} was not written by torch.save or is damaged ({reason}); fetch it again or {WAY_OUT}"
        ) from None


def require_plain(tensor: torch.Tensor | UnsupportedTensor, what: str) -> torch.Tensor:
    """Return a tensor; raises NotAModelError where it is not plain numbers in a file, each at a place of its own."""
    if isinstance(tensor, UnsupportedTensor):
        raise NotAModelError(f"{what} is {tensor.kind}; save it dense (tensor.to_dense(), tensor.contiguous())")
    if dtype_name(tensor) not in DTYPES:
        known = ", ".join(DTYPES)
        raise NotAModelError(f"{what} has the dtype {dtype_name(tensor)}, known are {known}; convert it to one of them")
    return tensor


def load_state_dict(path: Path) -> dict[str, torch.Tensor]:
    """Return the named tensors of a state dict or of a checkpoint that holds one, under any name."""
    loaded = load_weights_only(path)
    for key in NESTED:
        if isinstance(loaded, Mapping) and isinstance(loaded.get(key), Mapping):
            loaded = loaded[key]
    if isinstance(loaded, Mapping):
        within = {str(name): each for name, each in loaded.items() if isinstance(each, Mapping) and _tensors(each)}
        if not (tensors := _tensors(loaded)) and len(within) > 1:
            names = few(sorted(within), 8)
            raise NotAModelError(f"{path} holds several sets of tensors: {names}; save the one of the network alone")
        tensors = tensors or next(map(_tensors, within.values()), {})
        if tensors:
            return {name: require_plain(each, f"{path}: the tensor {name}") for name, each in tensors.items()}
    raise NotAModelError(f"{path} holds {type(loaded).__name__} without named tensors; a state dict was expected")


def _tensors(loaded: Mapping[Any, Any]) -> dict[str, torch.Tensor | UnsupportedTensor]:
    return {str(name): value for name, value in loaded.items() if isinstance(value, torch.Tensor | UnsupportedTensor)}
