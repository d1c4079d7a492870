"""A Hugging Face folder whose weights are quantized (GPTQ, AWQ, compressed-tensors, FP8, MXFP4): model and plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from workbench.errors import ModelTooLargeError, NotAModelError, first_line
from workbench.models.checkpoints.compressed_tensors import cache_scheme, read_compressed_tensors
from workbench.models.checkpoints.experts import Owners, joined, owners_of, pieces_of
from workbench.models.checkpoints.float8 import read_float8, read_mxfp4
from workbench.models.checkpoints.gptq import read_awq, read_gptq
from workbench.models.checkpoints.packed import Packed, PackedWeight, Reader
from workbench.models.data.inputs import InputSpec, arguments_of
from workbench.models.execution.network import Body, NetworkModel
from workbench.models.kv_cache import makes_keys_or_values
from workbench.models.layer import Layer, StoredTensor
from workbench.models.model import Model, Overrides
from workbench.models.sources.huggingface import (
    TOKENIZERS,
    architecture_of,
    load_network,
    read_config,
    token_inputs,
)
from workbench.models.sources.huggingface_heads import call_of, head_of, output_kind, required_inputs, sample_of
from workbench.models.sources.layers import find_layers, stored_dtypes
from workbench.models.sources.safetensors_file import weight_files
from workbench.models.sources.source import Opening, network_model
from workbench.models.sources.stored import TensorStore, fingerprint, memory_to_run, require_memory, tensors_in_files
from workbench.models.sources.weights_only import WeightsOnlyModel, weights_only_model
from workbench.models.summary import ModelSource, ModelSummary, OutputKind
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.plain_file import read_json

READERS: Mapping[str, Reader] = {
    "gptq": read_gptq, "awq": read_awq, "compressed-tensors": read_compressed_tensors, "fp8": read_float8,
    "mxfp4": read_mxfp4,
}  # fmt: skip
"""What reads a checkpoint, by the ``quant_method`` that its config.json names."""


@dataclass(frozen=True, slots=True)
class QuantizedCheckpoint:
    """A quantized checkpoint: dequantized as it is read; the first plan says the scheme of every weight."""

    name = "quantized_checkpoint"
    description = "a quantized Hugging Face folder (GPTQ, AWQ, compressed-tensors, FP8, MXFP4)"

    def detects(self, path: Path) -> bool:
        """Tell by config.json naming a method that is read."""
        file = path / "config.json" if path.is_dir() else path
        if file.name != "config.json" or not file.is_file():
            return False
        try:
            config = read_json(file)
            return str(config["quantization_config"]["quant_method"]) in READERS
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def open(self, request: Opening) -> Model:
        """Read the headers; build the network where transformers knows it, else weights only, with the reason."""
        folder = request.path if request.path.is_dir() else request.path.parent
        config = read_config(folder, quantized=True)
        files = weight_files(folder)
        if not files:
            raise NotAModelError(f"{folder} has a config.json but no .safetensors file; fetch the weights too")
        raw = tensors_in_files(files)
        settings = config.pop("quantization_config")
        cache = cache_scheme(settings) if settings["quant_method"] == "compressed-tensors" else None
        checkpoint = Checkpoint.of(raw, _packed(folder, raw, settings), cache)
        if not checkpoint.packed:
            raise NotAModelError(
                f"{folder} says that it is quantized ({settings['quant_method']}), but "
                "none of its tensors is"
            )
        source = ModelSource(kind=self.name, path=str(folder))
        try:
            require_memory(memory_to_run(checkpoint.logical.tensors.values()), str(folder))
            return _network(folder, config, source, checkpoint)
        except (NotAModelError, ModelTooLargeError) as error:
            bare = weights_only_model(source, checkpoint.logical)
            summary = replace(bare.summary, cannot_run=str(error), fingerprint=fingerprint(raw))
            return QuantizedWeights(summary, checkpoint.logical, checkpoint=checkpoint)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Checkpoint:
    """``logical`` are the tensors that the network has, packed ones in float32; ``raw`` those of the files.

    ``owners`` are the modules whose experts are packed one by one, and one tensor in the network; ``cache`` is the
    scheme of keys and values.
    """

    raw: TensorStore
    packed: Packed
    logical: TensorStore
    owners: Owners
    cache: str | None = None

    @staticmethod
    def of(raw: TensorStore, packed: Packed, cache: str | None = None) -> Checkpoint:
        """Return the checkpoint whose ``packed`` weights hide their parts."""
        hidden = {part for weight in packed.values() for part in weight.parts}
        facts = {name: tensor for name, tensor in raw.tensors.items() if name not in hidden}
        for name, weight in packed.items():
            facts[name] = StoredTensor(name=name, dtype="float32", shape=weight.shape)
        read = lambda name: packed[name].tensor() if name in packed else raw.read(name)  # noqa: E731
        logical = TensorStore(facts, read)
        return Checkpoint(raw=raw, packed=packed, logical=logical, owners=owners_of(packed), cache=cache)

    def weight(self, layer: Layer) -> PackedWeight | None:
        """Return the packed weight that is the layer's own; names may differ in their first component."""
        names = (layer.parameter, layer.parameter.partition(".")[2])
        packed = next((self.packed[name] for name in names if name in self.packed), None)
        return packed if packed is not None and packed.shape == layer.shape else None

    def encoded(self, layer: Layer) -> QuantizedTensor | None:
        """Return the layer's weight as the file holds it."""
        weight = self.weight(layer)
        stored = self._experts(layer) if weight is None else weight.stored()
        return stored if stored is not None and stored.shape == layer.matrix else None

    def _experts(self, layer: Layer) -> QuantizedTensor | None:
        """Return experts that the file holds one by one."""
        pieces = pieces_of(layer, self.owners, self.logical.tensors)
        weights = [self.packed[piece.name] for piece in pieces if piece.name in self.packed]
        parts = [part for weight in weights if (part := weight.stored()) is not None]
        return joined(parts) if parts and len(parts) == len(pieces) else None

    def inputs(self, layer: Layer) -> str | None:
        """Return the scheme of the layer's inputs."""
        weight = self.weight(layer)
        return None if weight is None else weight.inputs

    def input_range(self, layer: Layer) -> tuple[float, float] | None:
        """Return what the layer's static inputs are clipped to."""
        weight = self.weight(layer)
        return None if weight is None else weight.input_range


class QuantizedWeights(WeightsOnlyModel):
    """The tensors of a checkpoint whose network is not known."""

    def __init__(
        self, summary: ModelSummary, store: TensorStore, overrides: Overrides | None = None, *, checkpoint: Checkpoint
    ) -> None:
        super().__init__(summary, store, overrides)
        self.checkpoint, self.logical = checkpoint, checkpoint.logical

    def _view(self, summary: ModelSummary, overrides: Overrides) -> QuantizedWeights:
        return QuantizedWeights(summary, self._store, overrides, checkpoint=self.checkpoint)

    def _encoded(self, layer: Layer) -> QuantizedTensor | None:
        return self.checkpoint.encoded(layer)

    def encoded_inputs(self, layer: str) -> str | None:
        return self.checkpoint.inputs(self.summary.layer(layer))

    def encoded_range(self, layer: str) -> tuple[float, float] | None:
        """See the contract."""
        return self.checkpoint.input_range(self.summary.layer(layer))

    def encoded_cache(self, layer: str) -> str | None:
        """See the contract."""
        return self.checkpoint.cache if makes_keys_or_values(self.summary.layer(layer)) else None


class QuantizedNetwork(NetworkModel):
    """A network whose weights came from a quantized checkpoint."""

    def __init__(
        self, summary: ModelSummary, body: Body, inputs: InputSpec, overrides: Overrides | None = None, *,
        checkpoint: Checkpoint,
    ) -> None:  # fmt: skip
        super().__init__(summary, body, inputs, overrides)
        self.checkpoint, self.logical = checkpoint, checkpoint.logical

    def _view(self, summary: ModelSummary, overrides: Overrides) -> QuantizedNetwork:
        return QuantizedNetwork(summary, self.body, self.inputs, overrides, checkpoint=self.checkpoint)

    def _encoded(self, layer: Layer) -> QuantizedTensor | None:
        return self.checkpoint.encoded(layer)

    def encoded_inputs(self, layer: str) -> str | None:
        return self.checkpoint.inputs(self.summary.layer(layer))

    def encoded_range(self, layer: str) -> tuple[float, float] | None:
        """See the contract."""
        return self.checkpoint.input_range(self.summary.layer(layer))

    def encoded_cache(self, layer: str) -> str | None:
        """See the contract."""
        return self.checkpoint.cache if makes_keys_or_values(self.summary.layer(layer)) else None


def _packed(folder: Path, raw: TensorStore, settings: Any) -> Packed:
    """Return the packed weights; NotAModelError for a configuration that lacks what its method needs."""
    try:
        return READERS[settings["quant_method"]](raw, settings)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RuntimeError) as error:
        raise NotAModelError(
            f"{folder}: quantization_config of config.json does not say what {settings['quant_method']} needs "
            f"({type(error).__name__}: {first_line(error)}); fetch the folder again"
        ) from error


def _network(folder: Path, config: dict[str, Any], source: ModelSource, checkpoint: Checkpoint) -> QuantizedNetwork:
    """Build the network from the logical tensors; NotAModelError with the reason where transformers cannot."""
    network = load_network(folder, architecture_of(config), checkpoint.logical, torch.float32)
    head = head_of(type(network).__name__)
    takes, _ = arguments_of(network.forward)
    if network.main_input_name != "input_ids":
        raise NotAModelError(f"{folder}: quantized checkpoints of {type(network).__name__} cannot be run yet")
    parts = find_layers(network, stored_dtypes(checkpoint.logical.tensors, "float32"))
    inputs = replace(
        token_inputs(folder, network), main=network.main_input_name, takes=takes, requires=required_inputs(network),
        folder=folder, sentences=head is not OutputKind.TOKEN_LOGITS or network.config.is_encoder_decoder,
        embeds=head is OutputKind.EMBEDDING,
        tokenizer=folder if any((folder / name).is_file() for name in TOKENIZERS) else None,
    )  # fmt: skip
    built = network_model(
        source, network, parts, checkpoint.raw, output_kind(head, network.config),
        call_of(head, inputs, network.config), inputs, sample_of(network, inputs),
    )  # fmt: skip
    return QuantizedNetwork(built.summary, built.body, inputs, checkpoint=checkpoint)
