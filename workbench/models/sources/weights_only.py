"""A model of which only the tensors are known: what they do is guessed from names and shapes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from workbench.models.data.inputs import InputSpec
from workbench.models.dtypes import FLOATING
from workbench.models.layer import LayerKind, StoredTensor
from workbench.models.model import Model, Overrides
from workbench.models.sources.layers import PACKED, Role, is_norm, module_role, unknown_role
from workbench.models.sources.source import display_name
from workbench.models.sources.stored import TensorStore, contents_of
from workbench.models.summary import ModelSource, ModelSummary, OutputKind

CANNOT_RUN = (
    "the file holds weights only, not the network; open its Hugging Face folder, or a Python file with a factory "
    "function together with these weights"
)


class WeightsOnlyModel(Model):
    """The tensors of a file, read one at a time when asked for; it can be looked at and planned for, not run."""

    def __init__(self, summary: ModelSummary, store: TensorStore, overrides: Overrides | None = None) -> None:
        super().__init__(summary, InputSpec(), overrides or Overrides())
        self._store = store

    def _view(self, summary: ModelSummary, overrides: Overrides) -> WeightsOnlyModel:
        return WeightsOnlyModel(summary, self._store, overrides)

    def _stored(self, name: str, dtype: str) -> torch.Tensor:
        return self._store.read(name)


def weights_only_model(source: ModelSource, store: TensorStore, *, read: bool = True) -> WeightsOnlyModel:
    """Assemble the model of the tensors in ``store``; unless they are ``read``, it may have no fingerprint."""
    layers, unquantized = {}, []
    roles = {tensor.name: guess_role(tensor) for tensor in store.tensors.values()}
    for tensor in store.tensors.values():
        role, owner = roles[tensor.name], store.tied.get(tensor.name, "")
        shared = roles.get(owner)
        if role:
            tied_to = shared.layer(store.tensors[owner]).name if shared else None
            layers[tensor.name] = replace(role.layer(tensor, tied_to), macs=None)
        else:
            unquantized.append(tensor)
    contents = contents_of(store, read=read)
    summary = ModelSummary(
        name=display_name(Path(source.path)), source=source, fingerprint=contents.fingerprint, output=OutputKind.NONE,
        layers=tuple(layers.values()), others=tuple(unquantized), cannot_run=CANNOT_RUN,
        non_finite=tuple(layers[name].name if name in layers else name for name in contents.non_finite),
    )  # fmt: skip
    return WeightsOnlyModel(summary, store)


def guess_role(tensor: StoredTensor) -> Role | None:
    """Guess from a tensor's name and shape what it does; None for what is kept (norms, biases, buffers, integers)."""
    path, last, rank = tensor.name.lower(), tensor.name.rpartition(".")[2], len(tensor.shape)
    if tensor.dtype not in FLOATING or rank < 2 or 0 in tensor.shape or is_norm(path) or tensor.shape[0] == 1:
        return None
    if last.startswith(("weight_ih", "weight_hh")):
        return Role(kind=LayerKind.RECURRENT)
    if last in PACKED:
        return Role(kind=LayerKind.ATTENTION)
    table = any(part in path for part in ("embed", "embd", "wte", "wpe"))
    kinds = {
        2: LayerKind.EMBEDDING if table else LayerKind.LINEAR,
        3: LayerKind.EXPERTS if "expert" in path else LayerKind.CONV1D,
        4: LayerKind.CONV2D,
        5: LayerKind.CONV3D,
    }
    if last != "weight" or rank not in kinds:
        return unknown_role(tensor.shape)
    return module_role(kinds[rank], row_axes=2 if kinds[rank] is LayerKind.EXPERTS else 1)
