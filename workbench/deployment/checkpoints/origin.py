"""The checkpoint that a model came from: its tensors, their names and shards, and what of them a plan changes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import ExportError, ModelError
from workbench.models.checkpoints.experts import Piece, owners_of, pieces_of
from workbench.models.checkpoints.names import loaded_names
from workbench.models.checkpoints.switched import switched_name

if TYPE_CHECKING:
    import numpy as np

    from workbench.models.model import Model
    from workbench.models.sources.stored import TensorStore

WHOLE = "model.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """Rows of a layer's matrix, by its parameter."""

    parameter: str
    rows: slice | np.ndarray

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.rows.stop - self.rows.start if isinstance(self.rows, slice) else len(self.rows)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stack:
    """A tensor ``[experts, outputs, inputs]`` that is made of ``parts``, one below the other."""

    shape: tuple[int, int, int]
    parts: tuple[Part, ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that parts are of, each once."""
        return tuple(dict.fromkeys(part.parameter for part in self.parts))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Origin:
    """``shards`` maps each tensor of ``store`` to the file it lies in, ``names`` the network's parameters to tensors.

    A parameter that the checkpoint stores in several tensors, or in another shape, has no name.  ``pieces`` are the
    tensors of the experts among them, ``stacks`` tensors of several experts that the written checkpoint has instead,
    made of the parameters ``stacked``.
    """

    store: TensorStore
    shards: Mapping[str, str]
    names: Mapping[str, str]
    pieces: Mapping[str, tuple[Piece, ...]]
    stacks: Mapping[str, Stack] = field(default_factory=dict)
    stacked: frozenset[str] = frozenset()

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files, in order."""
        return tuple(sorted(set(self.shards.values()))) or (WHOLE,)


def origin_of(model: Model, folder: Path) -> Origin:
    """Return the checkpoint in ``folder``, from which ``model`` was opened; ExportError where it cannot be read."""
    from workbench.models.sources.safetensors_file import weight_files
    from workbench.models.sources.stored import TensorStore, tensors_in_files

    files = weight_files(folder)
    if not files:
        raise ExportError(f"{folder} no longer has its .safetensors files, whose names and layout are copied")
    try:
        stores = {file.name: tensors_in_files([file], passing=True) for file in files}
    except ModelError as error:
        raise ExportError(str(error)) from error
    shards = {name: file for file, store in stores.items() for name in store.tensors}
    logical: TensorStore | None = getattr(model, "logical", None)
    if logical is None:
        every = {name: tensor for store in stores.values() for name, tensor in store.tensors.items()}
        places = dict(shards)
        logical = TensorStore(every, lambda name: stores[places[name]].read(name))
    else:
        modules = {name.rpartition(".")[0]: file for name, file in shards.items()}
        places = {name: name.rpartition(".")[0] for name in logical.tensors}
        places = {name: module if module in modules else switched_name(name).rpartition(".")[0] for name, module in
                  places.items()}  # fmt: skip
        shards = {name: shards.get(name, modules.get(module, files[0].name)) for name, module in places.items()}
    if len(files) == 1:
        shards = dict.fromkeys(logical.tensors, WHOLE)
    owners = owners_of(logical.tensors)
    every_piece = {layer.parameter: pieces_of(layer, owners, logical.tensors) for layer in model.summary.stored}
    pieces = {parameter: listed for parameter, listed in every_piece.items() if listed}
    return Origin(store=logical, shards=shards, names=_names(model, logical), pieces=pieces)


def _names(model: Model, store: TensorStore) -> dict[str, str]:
    """Return each parameter's name in the checkpoint: that of what transformers loads, or one component longer or
    shorter."""
    network = getattr(getattr(model, "body", None), "network", None)
    loaded = {parameter: name for name, parameter in loaded_names(network, store.tensors).items()}
    shortened = {re.sub(r"^[^.]+\.", "", name): name for name in store.tensors}
    parameters = {layer.parameter: layer.shape for layer in model.summary.layers}
    parameters |= {tensor.name: tensor.shape for tensor in model.summary.others}
    names = {}
    for parameter, shape in parameters.items():
        without = re.sub(r"^[^.]+\.", "", parameter)
        candidates = (loaded.get(parameter, parameter), parameter, without, shortened.get(parameter, ""))
        for name in candidates:
            if name in store.tensors and store.tensors[name].shape == shape:
                names[parameter] = name
                break
    layers = model.summary.by_name
    for layer in model.summary.tied:  # the tensor may be stored under the name of another layer that has it
        owner = layers[layer.tied_to].parameter if layer.tied_to else ""
        if owner not in names and layer.parameter in names:
            names[owner] = names.pop(layer.parameter)
    return names
