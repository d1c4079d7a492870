"""A model that came from a GGUF file as a GGUF file again: what the plan leaves as it is keeps its bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from workbench.deployment.gguf_tensors import FileTensor, layer_refusal, matrix_tensor, require_fit, vector_tensor
from workbench.models.checkpoints.experts import rows_of
from workbench.models.gguf.architectures import by_name
from workbench.models.gguf.container import GgufFile
from workbench.models.gguf.tensors import gguf_names, row_order
from workbench.models.layer import Layer
from workbench.models.sources.gguf_file import GgufNetwork, GgufWeights, Reader, encoded_blocks
from workbench.numerics.formats import parse_scheme

if TYPE_CHECKING:
    import torch

    from workbench.quantization.quantized_model import QuantizedModel

GgufModel = GgufNetwork | GgufWeights


def tensors_again(quantized: QuantizedModel, model: GgufModel) -> list[FileTensor]:
    """Return every tensor of the file in its order, then those that the plan's transforms added.

    Raises ExportError for a plan that the file cannot hold.
    """
    names = _names(model)
    layers = {names[layer.parameter]: layer for layer in model.summary.stored if layer.parameter in names}
    changed = {name: layer for name, layer in layers.items() if _is_changed(quantized, model, layer)}
    reasons = {layer.name: layer_refusal(layer, _scheme(quantized, layer), name) for name, layer in changed.items()}
    require_fit({name: reason for name, reason in reasons.items() if reason is not None})
    tensors = {name: stored_tensor(model.file, name) for name in model.file.tensors}
    config = model.mapped.config if isinstance(model, GgufNetwork) else {}
    architecture = model.mapped.architecture if isinstance(model, GgufNetwork) else by_name(model.file.architecture)
    for name, layer in changed.items():
        order = None if architecture is None or not config else row_order(architecture, config, layer.parameter)
        tensors[name] = matrix_tensor(quantized, model, layer, name, order)
    for tensor in model.summary.others:
        name = names.get(tensor.name, "")
        replaced = tensor.name in quantized.others or tensor.name in model.overrides.others
        if name in tensors and architecture and replaced:
            order = row_order(architecture, config, tensor.name)
            tensors[name] = vector_tensor(quantized, model, architecture, tensor, name, order)
    return list(tensors.values())


def stored_tensor(file: GgufFile, name: str) -> FileTensor:
    """Return a tensor of ``file`` as it is."""
    facts, stored = file.tensors[name], encoded_blocks(file, name)

    def values(part: slice) -> torch.Tensor:
        if stored is None:
            return Reader(file)(name).reshape(-1, *facts.shape[-1:])[part]
        return parse_scheme(stored.scheme).decode(rows_of(stored, part))

    return FileTensor(
        name=name, type=facts.type, shape=facts.shape, nbytes=facts.nbytes, source=name, values=values,
        data=lambda part: file.raw(name)[part].reshape(-1),
    )  # fmt: skip


def _names(model: GgufModel) -> Mapping[str, str]:
    """Return every parameter's name in the file, those of weights that were tied before among them."""
    if isinstance(model, GgufWeights):
        return {name: name for name in model.file.tensors}
    look_up = gguf_names(model.mapped.architecture, len(model.file.tensors))
    untied = {layer.parameter: look_up(layer.parameter) for layer in model.summary.stored}
    return {**{parameter: name for parameter, name in untied.items() if name is not None}, **model.mapped.names}


def _scheme(quantized: QuantizedModel, layer: Layer) -> str | None:
    stored = quantized.tensors.get(layer.name)
    return None if stored is None else stored.scheme


def _is_changed(quantized: QuantizedModel, model: GgufModel, layer: Layer) -> bool:
    """Return whether the plan or a transform gives a layer another form than the file's."""
    return _scheme(quantized, layer) != model.encoding(layer.name) or layer.name in model.overrides.weights
