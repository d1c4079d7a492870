"""A Hugging Face folder whose weights are quantized (GPTQ, AWQ, compressed-tensors, FP8, ...): model and plan."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from workbench.errors import MemoryLimitError, NotAModelError, SchemeError, UnsafeModelError, first_line
from workbench.models.checkpoints.auto_round import read_auto_round
from workbench.models.checkpoints.beside import scaled_without, with_settings
from workbench.models.checkpoints.bitsandbytes import read_bitsandbytes
from workbench.models.checkpoints.compressed_tensors import cache_scheme, read_compressed_tensors
from workbench.models.checkpoints.experts import Owners, joined, owners_of, pieces_of
from workbench.models.checkpoints.float8 import read_fbgemm, read_float8, read_mxfp4
from workbench.models.checkpoints.gptq import read_awq, read_gptq
from workbench.models.checkpoints.mlx import read_mlx
from workbench.models.checkpoints.modelopt import cache_settings, read_modelopt
from workbench.models.checkpoints.names import loaded_names
from workbench.models.checkpoints.online_transforms import Groups, online_groups, rotate, without_matrices
from workbench.models.checkpoints.packed import Packed, PackedWeight, Reader
from workbench.models.checkpoints.packed_file import TYPE, described_layers, is_packed_file, read_packed_file
from workbench.models.checkpoints.switched import one_by_one
from workbench.models.checkpoints.torchao import read_torchao
from workbench.models.data.inputs import InputSpec
from workbench.models.execution.network import Body, NetworkModel
from workbench.models.execution.widened import LEAST, decoded_note, put_on_disk, widened
from workbench.models.kv_cache import makes_keys_or_values
from workbench.models.layer import Layer
from workbench.models.model import Model, Overrides
from workbench.models.sources.heads.inputs import sample_of
from workbench.models.sources.heads.outputs import call_of, network_head, output_kind
from workbench.models.sources.huggingface import inputs_of, load_network, names_in_network, read_config
from workbench.models.sources.layers import find_layers, stored_dtypes
from workbench.models.sources.network_sizes import require_possible
from workbench.models.sources.safetensors_file import weight_files
from workbench.models.sources.source import Opening, network_model
from workbench.models.sources.stored import (
    TensorStore,
    all_finite,
    contents_of,
    fits,
    in_blocks,
    memory_to_run,
    tensors_in_files,
)
from workbench.models.sources.weights_only import WeightsOnlyModel, weights_only_model
from workbench.models.summary import ModelSource, ModelSummary
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.plain_file import read_json

READERS: Mapping[str, Reader] = {
    "gptq": read_gptq, "awq": read_awq, "compressed-tensors": read_compressed_tensors, "fp8": read_float8,
    "fbgemm_fp8": read_fbgemm, "modelopt": read_modelopt,
    "mxfp4": read_mxfp4, "torchao": read_torchao, "mlx": read_mlx, "auto-round": read_auto_round,
    "intel/auto-round": read_auto_round, "bitsandbytes": read_bitsandbytes,
}  # fmt: skip
"""What reads a checkpoint, by the ``quant_method`` that its config.json names (or by what MLX writes instead)."""

WHOLE = "model.safetensors"

PACKED_ALONE = (
    "the file holds packed weights only, not the network; put it, as model.safetensors, into a folder with the "
    "config.json and the tokenizer of its model, and open the folder"
)


def quantization_of(config: Any) -> tuple[str, Any] | None:
    """Return how config.json says that the weights are quantized, and its settings; None where it does not say.

    mlx-lm names no method: ``quantization`` has a group size and a number of bits.  Nor did bitsandbytes at first.
    """
    if not isinstance(config, dict):
        return None
    settings = config.get("quantization_config")
    if isinstance(settings, dict) and "quant_method" in settings:
        return str(settings["quant_method"]), settings
    if isinstance(settings, dict) and {"load_in_4bit", "load_in_8bit"} & settings.keys():
        return "bitsandbytes", settings
    settings = config.get("quantization", settings)
    if isinstance(settings, dict) and {"group_size", "bits"} <= settings.keys():
        return "mlx", settings
    return None


@dataclass(frozen=True, slots=True)
class QuantizedCheckpoint:
    """A quantized checkpoint: dequantized as it is read; the first plan says the scheme of every weight."""

    name = "quantized_checkpoint"
    description = (
        "a quantized Hugging Face folder (GPTQ, AWQ, compressed-tensors, bitsandbytes, ModelOpt, AutoRound, MLX, ...)"
    )

    def detects(self, path: Path) -> bool:
        """Recognize it by config.json naming a method that is read, or by a packed file of ours."""
        file = path / "config.json" if path.is_dir() else path
        if file.name != "config.json":
            return is_packed_file(file)
        try:
            method = quantization_of(with_settings(file.parent, read_json(file))) if file.is_file() else None
        except (OSError, ValueError):
            return False
        return method[0] in READERS if method is not None else is_packed_file(file.parent / WHOLE)

    def open(self, request: Opening) -> Model:
        """Read the headers; build the network where transformers knows it, else weights only, with the reason."""
        if not (request.path.is_dir() or request.path.name == "config.json"):
            return self._open_file(request.path)
        folder = request.path if request.path.is_dir() else request.path.parent
        config = read_config(folder, quantized=True)
        files = weight_files(folder)
        if not files:
            raise NotAModelError(f"{folder} has a config.json but no .safetensors file; fetch the weights too")
        checkpoint = _checkpoint(folder, files, config)
        config.pop("quantization_config", None)
        source = ModelSource(kind=self.name, path=str(folder))
        try:
            return _network(folder, config, source, checkpoint)
        except (NotAModelError, UnsafeModelError, MemoryLimitError) as error:
            if checkpoint.online:  # weights alone would be taken for those of a network that rotates nothing
                raise
            return _weights_alone(source, checkpoint, str(error))

    def _open_file(self, path: Path) -> Model:
        """Return what a packed file of ours holds; with ``config.json`` beside it the folder opens as a network."""
        source = ModelSource(kind=self.name, path=str(path))
        return _weights_alone(source, _checkpoint(path, [path], {}), PACKED_ALONE)


def _checkpoint(where: Path, files: list[Path], config: Mapping[str, Any]) -> Checkpoint:
    """Return what ``files`` hold by config.json; NotAModelError where nothing of it is quantized."""
    raw, quantization = tensors_in_files(files), quantization_of(config)
    require_possible(config, raw, where / "config.json")
    if quantization is None or raw.metadata.get("type") == TYPE:  # config.json may be that of a quantized original
        return Checkpoint.of(raw, read_packed_file(raw, where))
    method, settings = quantization
    said = {"compressed-tensors": settings, "modelopt": cache_settings(settings)}.get(method)
    cached = cache_scheme(said) if said else (None, "")
    held = one_by_one(raw) if method == "mlx" and not str(config.get("model_type")).startswith("granite") else raw
    packed, (online, remarks) = _packed(where, held, method, settings, config)
    checkpoint = Checkpoint.of(held, packed, *cached)
    checkpoint = replace(checkpoint, raw=raw, online=online, remarks=remarks)
    if name := scaled_without(checkpoint.logical):  # its codes would be taken for its values
        raise NotAModelError(
            f"{where} holds {name} in FP8 with scales beside it, and matrices with weight_scale(_inv) are "
            "read; save it with one matrix for each expert"
        )
    if not checkpoint.packed and cached == (None, "") and not online:
        form = f"{method}, {settings['format']}" if isinstance(settings.get("format"), str) else method
        raise NotAModelError(
            f"{where} says that it is quantized ({form[:80]}), but none of its tensors is in a form that is read"
        )
    return checkpoint


def _weights_alone(source: ModelSource, checkpoint: Checkpoint, reason: str) -> QuantizedWeights:
    """Return the tensors without a network; ``reason`` says why there is none."""
    bare = weights_only_model(source, in_blocks(checkpoint.logical)).summary
    layers = bare.layers
    if checkpoint.raw.metadata.get("type") == TYPE:
        layers = described_layers(checkpoint.raw, checkpoint.packed, layers)
    parameters, by_name = {layer.parameter for layer in layers}, {layer.name: layer for layer in layers}
    tied = {layer.parameter: by_name[layer.tied_to].parameter for layer in layers if layer.tied_to}
    logical = replace(checkpoint.logical, read=lambda name: checkpoint.logical.read(tied.get(name, name)))
    summary = replace(
        bare, cannot_run=reason, fingerprint=contents_of(checkpoint.raw).fingerprint, layers=layers,
        others=tuple(tensor for tensor in bare.others if tensor.name not in parameters),
    )  # fmt: skip
    return QuantizedWeights(summary, logical, checkpoint=checkpoint)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Checkpoint:
    """``logical`` are the tensors that the network has, packed ones in float32; ``raw`` those of the files.

    ``owners`` are the modules whose experts are packed one by one, and one tensor in the network; ``cache`` is the
    scheme of keys and values, ``dropped_cache`` what the files say of them and no plan can say; ``names`` are those of
    the network's parameters in the files, where transformers renames them.  ``online`` are rotations while the network
    runs, ``remarks`` notes on them.
    """

    raw: TensorStore
    packed: Packed
    logical: TensorStore
    owners: Owners
    cache: str | None = None
    dropped_cache: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    online: Groups = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @staticmethod
    def of(raw: TensorStore, packed: Packed, cache: str | None = None, dropped_cache: str = "") -> Checkpoint:
        """Return the checkpoint whose ``packed`` weights hide their parts."""
        hidden = {part for weight in packed.values() for part in weight.parts}
        facts = {name: tensor for name, tensor in raw.tensors.items() if name not in hidden}
        for name, weight in packed.items():
            facts[name] = weight.facts(name)
        read = lambda name: packed[name].tensor() if name in packed else raw.read(name)  # noqa: E731
        logical = TensorStore(facts, read)
        return Checkpoint(
            raw=raw, packed=packed, logical=logical, owners=owners_of(packed), cache=cache, dropped_cache=dropped_cache
        )

    def decoded_later(self) -> TensorStore:
        """Return the logical tensors, which are decoded to the disk when they are first used."""

        def read(name: str) -> torch.Tensor:
            weight = self.packed.get(name)
            if weight is None or math.prod(weight.shape) < LEAST:
                stored = self.logical.read(name)
                return widened(stored) if stored.is_floating_point() else stored
            return put_on_disk(weight.shape, lambda out: out.copy_(weight.tensor()))

        return replace(self.logical, read=read)

    def is_finite(self) -> bool:
        """Return whether no logical tensor holds NaN or infinity: nothing is put on the disk to see it."""
        return all(all_finite(self.logical.read(name)) for name in self.logical.tensors)

    def notes(self, layers: Collection[Layer]) -> tuple[str, ...]:
        """Describe what the files state of activations and the first plan does not."""
        dropped: dict[tuple[str, str | None], list[str]] = {}
        for name, weight in self.packed.items():
            if weight.dropped:
                dropped.setdefault((weight.dropped, weight.inputs), []).append(name.removesuffix(".weight"))
        notes = [
            f"the files round the inputs of {len(names):,} layers ({names[0]}) to {what}, which no plan can say; "
            + ("they are left as computed" if scheme is None else f"the plan rounds them to {scheme}")
            for (what, scheme), names in dropped.items()
        ]  # fmt: skip
        ordered = [name.removesuffix(".weight") for name, weight in self.packed.items() if weight.scheme is None]
        notes += [
            f"the files group the columns of {len(ordered):,} layers ({first}) by their activations (desc_act), which "
            "no plan can say; the layers have the files' values, and the plan keeps them" for first in ordered[:1]
        ]  # fmt: skip
        clipped = [layer for layer in layers if len({each.input_range for each in self._weights(layer)}) > 1]
        notes += [
            f"the files clip the inputs of each expert of {len(clipped):,} layers ({layer.name}) to a range of its "
            "own, which no plan can say; the plan has the widest" for layer in clipped[:1] if self.inputs(layer)
        ]  # fmt: skip
        alone = self.cache is not None and not any(map(makes_keys_or_values, layers))
        if alone or self.dropped_cache:
            reason = "no layer here makes them alone" if alone else "a plan rounds them token by token"
            cached = self.dropped_cache or self.cache
            notes.append(f"the files store keys and values as {cached}; {reason}, so they are left as computed")
        return (*notes, *self.remarks)

    def weight(self, layer: Layer) -> PackedWeight | None:
        """Return the packed weight that is the layer's own; names may differ in their first component."""
        names = (self.names.get(layer.parameter, ""), layer.parameter, layer.parameter.partition(".")[2])
        packed = next((self.packed[name] for name in names if name in self.packed), None)
        return packed if packed is not None and packed.shape == layer.shape else None

    def encoded(self, layer: Layer) -> QuantizedTensor | None:
        """Return the layer's weight as the file holds it."""
        weight = self.weight(layer)
        stored = self._experts(layer) if weight is None else weight.stored()
        return stored if stored is not None and stored.shape == layer.matrix else None

    def _pieces(self, layer: Layer) -> list[PackedWeight]:
        """Return experts that the file holds one by one, all of them packed; else none."""
        names = [piece.name for piece in pieces_of(layer, self.owners, self.logical.tensors)]
        return [self.packed[name] for name in names] if all(name in self.packed for name in names) else []

    def _experts(self, layer: Layer) -> QuantizedTensor | None:
        """Return experts that the file holds one by one."""
        weights = self._pieces(layer)
        parts = [part for weight in weights if (part := weight.stored()) is not None]
        return joined(parts) if parts and len(parts) == len(weights) else None

    def _weights(self, layer: Layer) -> list[PackedWeight]:
        weight = self.weight(layer)
        return self._pieces(layer) if weight is None else [weight]

    def inputs(self, layer: Layer) -> str | None:
        """Return the scheme of the layer's inputs, which all of its experts have."""
        schemes = {weight.inputs for weight in self._weights(layer)}
        return schemes.pop() if len(schemes) == 1 else None

    def input_range(self, layer: Layer) -> tuple[float, float] | None:
        """Return what the layer's static inputs are clipped to: of several experts, the widest."""
        ranges = [weight.input_range for weight in self._weights(layer)]
        known = [each for each in ranges if each is not None]
        if not known or len(known) < len(ranges):
            return None
        return min(low for low, _ in known), max(high for _, high in known)


class _Encoded(Model):
    """What a model says of the weights, inputs and caches that its quantized checkpoint stores."""

    checkpoint: Checkpoint

    @property
    def online(self) -> Groups:
        return self.checkpoint.online

    def encoding(self, layer: str) -> str | None:
        facts = self.summary.layer(layer)
        weight = None if facts.tied_to or layer in self.overrides.weights else self.checkpoint.weight(facts)
        return super().encoding(layer) if weight is None else weight.scheme

    def _encoded(self, layer: Layer) -> QuantizedTensor | None:
        return self.checkpoint.encoded(layer)

    def encoded_inputs(self, layer: str) -> str | None:
        return self.checkpoint.inputs(self.summary.layer(layer))

    def encoded_range(self, layer: str) -> tuple[float, float] | None:
        return self.checkpoint.input_range(self.summary.layer(layer))

    def encoded_cache(self, layer: str) -> str | None:
        return self.checkpoint.cache if makes_keys_or_values(self.summary.layer(layer)) else None


class QuantizedWeights(_Encoded, WeightsOnlyModel):
    """The tensors of a checkpoint whose network is not known."""

    def __init__(
        self, summary: ModelSummary, store: TensorStore, overrides: Overrides | None = None, *, checkpoint: Checkpoint
    ) -> None:
        super().__init__(summary, store, overrides)
        self.checkpoint, self.logical, self.notes = checkpoint, checkpoint.logical, checkpoint.notes(summary.layers)

    def _view(self, summary: ModelSummary, overrides: Overrides) -> QuantizedWeights:
        return QuantizedWeights(summary, self._store, overrides, checkpoint=self.checkpoint)


class QuantizedNetwork(_Encoded, NetworkModel):
    """A network whose weights came from a quantized checkpoint."""

    def __init__(
        self, summary: ModelSummary, body: Body, inputs: InputSpec, overrides: Overrides | None = None, *,
        checkpoint: Checkpoint,
    ) -> None:  # fmt: skip
        super().__init__(summary, body, inputs, overrides)
        self.checkpoint, self.logical, self.notes = checkpoint, checkpoint.logical, checkpoint.notes(summary.layers)

    def _view(self, summary: ModelSummary, overrides: Overrides) -> QuantizedNetwork:
        return QuantizedNetwork(summary, self.body, self.inputs, overrides, checkpoint=self.checkpoint)


def _packed(
    folder: Path, raw: TensorStore, method: str, settings: Any, config: Mapping[str, Any]
) -> tuple[Packed, tuple[Groups, tuple[str, ...]]]:
    """Return the packed weights, and the rotations while the network runs with notes on them; NotAModelError for a
    configuration that lacks what its method needs."""

    @cache
    def networks() -> Mapping[str, str]:
        modules = {name.rpartition(".")[0] for name in raw.tensors}
        renamed = names_in_network(folder, config, [f"{module}.weight" for module in modules])
        return {name.removesuffix(".weight"): new.removesuffix(".weight") for name, new in renamed.items()}

    try:
        online = online_groups(settings) if method == "compressed-tensors" else ({}, ())
        return READERS[method](raw, settings, lambda module: networks().get(module, module)), online
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError, SchemeError) as error:
        raise NotAModelError(
            f"{folder}: quantization_config of config.json does not say what {method} needs "
            f"({type(error).__name__}: {first_line(error)}); fetch the folder again"
        ) from error


def _network(folder: Path, config: dict[str, Any], source: ModelSource, checkpoint: Checkpoint) -> QuantizedNetwork:
    """Build the network from the logical tensors; NotAModelError with the reason where transformers cannot."""
    on_disk = not fits(memory_to_run(checkpoint.logical.tensors.values()))
    held = without_matrices(checkpoint.decoded_later() if on_disk else checkpoint.logical, checkpoint.online)
    network, notes = load_network(folder, config, held, torch.float32)
    rotate(network, checkpoint.online, checkpoint.raw)
    head = network_head(network)
    finite = on_disk and checkpoint.is_finite()
    parts = find_layers(network, stored_dtypes(checkpoint.logical.tensors, "float32"), finite=finite)
    inputs = inputs_of(folder, config, network)
    built = network_model(
        source, network, parts, contents_of(checkpoint.raw).fingerprint, output_kind(network),
        call_of(head, inputs, network.config), inputs, sample_of(network, inputs),
    )  # fmt: skip
    renamed = {new: name for name, new in loaded_names(network, checkpoint.logical.tensors).items()}
    opened = QuantizedNetwork(built.summary, built.body, inputs, checkpoint=replace(checkpoint, names=renamed))
    later = (decoded_note(network.parameters()),) if on_disk else ()
    opened.notes = (*notes, *later, *opened.notes)
    return opened
