"""A model that came from a GGUF file as a GGUF file again: what the plan leaves as it is keeps its bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from workbench.deployment.gguf_tensors import FileTensor, layer_refusal, layer_tensors, require_fit, vector_tensor
from workbench.models.checkpoints.experts import rows_of
from workbench.models.gguf.architectures import by_name
from workbench.models.gguf.container import GgufFile
from workbench.models.gguf.tensors import gguf_names, names_of, row_order
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
    places, apart = dict(_places(model)), _apart(model)
    others = quantized.others.keys() | model.overrides.others.keys()
    changed = {layer.parameter for layer in model.summary.stored if _is_changed(quantized, model, layer)} | others
    parted = {_module(places[parameter]) for parameter in changed & apart.keys()}
    gone = {places[parameter][0] for parameter in apart if _module(places[parameter]) in parted}
    for parameter in [each for each in apart if places[each][0] in gone]:
        places[parameter] = apart[parameter]
        changed.add(parameter)
    layers = [layer for layer in model.summary.stored if layer.parameter in changed & places.keys()]
    reasons = {each.name: layer_refusal(each, _scheme(quantized, each), places[each.parameter][0]) for each in layers}
    require_fit({name: reason for name, reason in reasons.items() if reason is not None})
    tensors = {name: stored_tensor(model.file, name) for name in model.file.tensors if name not in gone}
    config = model.mapped.config if isinstance(model, GgufNetwork) else {}
    architecture = model.mapped.architecture if isinstance(model, GgufNetwork) else by_name(model.file.architecture)
    for layer in layers:
        order = None if architecture is None or not config else row_order(architecture, config, layer.parameter)
        own = layer_tensors(quantized, model, layer, places[layer.parameter], order)
        tensors |= {tensor.name: tensor for tensor in own}
    for tensor in model.summary.others:
        if architecture and tensor.name in changed & places.keys():
            order, (name, *_) = row_order(architecture, config, tensor.name), places[tensor.name]
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


def _places(model: GgufModel) -> Mapping[str, tuple[str, ...]]:
    """Return every parameter's tensors in the file, those of weights that were tied before among them."""
    if isinstance(model, GgufWeights):
        return {name: (name,) for name in model.file.tensors}
    look_up = _look_up(model)
    untied = {layer.parameter: names_of(look_up, layer.parameter) for layer in model.summary.stored}
    return {**{parameter: names for parameter, names in untied.items() if names}, **model.mapped.names}


def _apart(model: GgufModel) -> Mapping[str, tuple[str, ...]]:
    """Return the own tensors of queries, keys and values that lie in one of the file, for when one of them changes."""
    if isinstance(model, GgufWeights):
        return {}
    look_up = _look_up(model)
    return {parameter: names_of(look_up, parameter) for parameter in model.mapped.rows}


def _look_up(model: GgufNetwork) -> Callable[[str], str | None]:
    return gguf_names(model.mapped.architecture, len(model.file.tensors))


def _module(names: tuple[str, ...]) -> str:
    return names[0].rpartition(".")[0]


def _scheme(quantized: QuantizedModel, layer: Layer) -> str | None:
    stored = quantized.tensors.get(layer.name)
    return None if stored is None else stored.scheme


def _is_changed(quantized: QuantizedModel, model: GgufModel, layer: Layer) -> bool:
    """Return whether the plan or a transform gives a layer another form than the file's."""
    return _scheme(quantized, layer) != model.encoding(layer.name) or layer.name in model.overrides.weights
