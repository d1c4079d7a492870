"""A GGUF file: its weights as it holds them, and the network where its architecture is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workbench.errors import MemoryLimitError, NotAModelError, first_line
from workbench.models.checkpoints.experts import joined_when_read, rows_of
from workbench.models.data.inputs import InputSpec, arguments_of
from workbench.models.execution.network import Body, NetworkModel
from workbench.models.execution.widened import LEAST, decoded_note, put_on_disk
from workbench.models.gguf.architectures import (
    SCALED_HEADS,
    Architecture,
    architecture_of,
    by_name,
    config_of,
    scale_size,
)
from workbench.models.gguf.container import GgufFile, StoredBlocks, read_gguf
from workbench.models.gguf.rotary import FREQUENCIES
from workbench.models.gguf.rotary import TENSORS as ROTARY
from workbench.models.gguf.tensors import QKV, fused_names, fused_rows, gguf_names, names_of, row_order
from workbench.models.gguf.tokenizer import has_tokenizer
from workbench.models.layer import Layer, StoredTensor
from workbench.models.model import Model, Overrides
from workbench.models.readers.pooling import IN_LLAMA_CPP, Pooling
from workbench.models.sources.heads.inputs import sample_of
from workbench.models.sources.heads.outputs import call_of, head_of
from workbench.models.sources.layers import find_layers
from workbench.models.sources.source import Opening, network_model
from workbench.models.sources.stored import TensorStore, all_finite, contents_of, fits, memory_to_run
from workbench.models.sources.weights_only import WeightsOnlyModel, weights_only_model
from workbench.models.summary import ModelSource, ModelSummary, OutputKind
from workbench.numerics.bands import row_tiles
from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.gguf.family import FAMILY
from workbench.numerics.formats.gguf.lattice import FAMILY as LATTICES
from workbench.numerics.formats.gguf.stored import FAMILY as STORED
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.scheme import Scheme
from workbench.readable import few

PLAIN = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64", "I8": "int8", "I16": "int16",
         "I32": "int32", "I64": "int64"}  # fmt: skip
"""The types that are torch's own dtypes."""

FACTORS = 1 << 16
"""The most bytes of rotary embeddings' factors: those of heads of 32,768 numbers."""

EXPERT_WIDTHS = {
    "moe_intermediate_size": "blk.0.ffn_down_exps.weight",
    "shared_expert_intermediate_size": "blk.0.ffn_down_shexp.weight",
}
"""Members of configurations that the first files of mixtures do not state, and the tensors whose columns they count."""

BIASES = {
    "attention_bias": ("blk.0.attn_q.bias", "blk.0.attn_qkv.bias"), "mlp_bias": ("blk.0.ffn_up.bias",),
    "use_qkv_bias": ("blk.0.attn_q.bias", "blk.0.attn_qkv.bias"), "use_qk_norm": ("blk.0.attn_q_norm.weight",),
}  # fmt: skip
"""Members of configurations that say whether a network has the tensors."""

NO_MODELS = {
    "adapter": "is an adapter (LoRA), which changes another model; join the two with llama-export-lora and open that",
    "imatrix": "is an importance matrix, not a model; open the model that it was made for, and calibrate that with it",
}
"""What ``general.type`` says of files that hold no model, and what to do."""


@dataclass(frozen=True, slots=True)
class GgufSource:
    """A model for llama.cpp: dequantized as it is read; the first plan says the type of every tensor."""

    name = "gguf"
    description = "a .gguf file"

    def detects(self, path: Path) -> bool:
        """Recognize it by the suffix."""
        return path.is_file() and path.suffix.lower() == ".gguf"

    def open(self, request: Opening) -> Model:
        """Read the header; build the network where its architecture is known, else weights only, with the reason."""
        file = read_gguf(request.path)
        if (reason := NO_MODELS.get(str(file.plain.get("general.type")))) is not None:
            raise NotAModelError(f"{request.path} {reason}")
        unknown = sorted({each.type for each in file.tensors.values() if each.type not in PLAIN and not _scheme(each)})
        if unknown:
            raise NotAModelError(f"{request.path} holds tensors of the type {few(unknown, 8)}, which is not read yet")
        source = ModelSource(kind=self.name, path=request.recorded)
        try:
            return _network(file, source)
        except (NotAModelError, MemoryLimitError) as error:
            reason = str(error)
        facts = {name: _facts(each) for name, each in file.tensors.items()}
        store = TensorStore(facts, Reader(file), files=file.files)
        bare = weights_only_model(source, store, read=request.contents)
        fingerprint = contents_of(_raw_store(file), read=request.contents).fingerprint
        summary = replace(bare.summary, cannot_run=reason, fingerprint=fingerprint)
        return GgufWeights(summary, store, file=file)


def _scheme(tensor: StoredBlocks) -> Scheme | None:
    """Return the number format of a tensor's type, None where it is one of torch's own or not read."""
    name = tensor.type.lower()
    members = (family.parse(each) for family in (FAMILY, LATTICES, STORED) for each in (name, name + "-gguf"))
    return next((scheme for scheme in members if scheme is not None), None)


def encoded_blocks(file: GgufFile, name: str) -> QuantizedTensor | None:
    """Return a tensor as the file holds it, rows in the file's order; None where it is stored in plain numbers."""
    tensor = file.tensors[name]
    scheme = _scheme(tensor)
    if scheme is None:
        return None
    return QuantizedTensor(scheme=scheme.name, shape=tensor.matrix, arrays={"blocks": file.raw(name)})


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads tensors of a file: blocks as float32, plain numbers in their own dtype."""

    file: GgufFile

    def __call__(self, name: str) -> torch.Tensor:
        tensor, stored = self.file.tensors[name], encoded_blocks(self.file, name)
        if stored is not None:
            return parse_scheme(stored.scheme).decode(stored).reshape(tensor.shape)
        raw = torch.from_numpy(np.require(self.file.raw(name).reshape(-1), requirements=["C", "W"]))
        return raw.view(getattr(torch, PLAIN[tensor.type])).reshape(tensor.shape)


def _facts(tensor: StoredBlocks) -> StoredTensor:
    return StoredTensor(name=tensor.name, shape=tensor.shape, dtype=PLAIN.get(tensor.type, "float32"))


def _raw_store(file: GgufFile) -> TensorStore:
    """Return the file's bytes as tensors whose names say type and sizes: what is hashed."""
    names = {f"{each.name}\0{each.type}\0{each.shape}": each for each in file.tensors.values()}

    def read(name: str) -> torch.Tensor:
        return torch.from_numpy(np.require(file.raw(names[name].name).reshape(-1), requirements=["C", "W"]))

    facts = {name: StoredTensor(name=name, dtype="uint8", shape=(each.nbytes,)) for name, each in names.items()}
    return TensorStore(facts, read, files=file.files)


class GgufWeights(WeightsOnlyModel):
    """The tensors of a file whose network is not known, under the file's names."""

    def __init__(
        self, summary: ModelSummary, store: TensorStore, overrides: Overrides | None = None, *, file: GgufFile
    ) -> None:
        super().__init__(summary, store, overrides)
        self.file, self.files = file, tuple(map(str, file.files))

    def _view(self, summary: ModelSummary, overrides: Overrides) -> GgufWeights:
        return GgufWeights(summary, self._store, overrides, file=self.file)

    def _encoded(self, layer: Layer) -> QuantizedTensor | None:
        stored = encoded_blocks(self.file, layer.parameter)
        return stored if stored is None or stored.shape == layer.matrix else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mapped:
    """A network's parameters in a file: ``names`` of the tensors that hold each, ``orders`` of rows where they differ.

    Several tensors hold the projections of fused experts; ``rows`` are those of a parameter in a tensor that holds
    queries, keys and values.
    """

    file: GgufFile
    architecture: Architecture
    config: Mapping[str, Any]
    names: Mapping[str, tuple[str, ...]]
    orders: Mapping[str, np.ndarray]
    rows: Mapping[str, slice]

    def tensor(self, parameter: str, transposed: bool) -> torch.Tensor:
        """Return a parameter of the network from the file, float32."""
        names = self.names[parameter]
        tensors = [Reader(self.file)(name).float() for name in names]
        values = tensors[0] if len(tensors) == 1 else torch.cat(tensors, 1)
        if parameter in self.rows:
            values = values[self.rows[parameter]].clone()
        if parameter in self.orders:
            values = values[torch.from_numpy(np.argsort(self.orders[parameter]))]
        if self.architecture.shifted_norms and names[0].endswith("norm.weight"):
            values = values - 1
        return values.T.contiguous() if transposed else values

    def shaped(
        self, shapes: Mapping[str, tuple[int, ...]], on_disk: bool, parameter: str, transposed: bool
    ) -> torch.Tensor:
        """Return a parameter in its shape, which a file may have without axes of 1; where ``on_disk``, a large one is
        decoded to the disk when it is first used."""
        shape = shapes[parameter]
        if not on_disk or math.prod(shape) < LEAST or len(shape) < 2:
            return self.tensor(parameter, transposed).reshape(shape)
        return put_on_disk(shape, partial(self._write, parameter, transposed))

    def _write(self, parameter: str, transposed: bool, out: torch.Tensor) -> None:
        """Write a parameter to ``out``, tensor by tensor of the file, bands of rows where they are in blocks."""
        names, stored = self.names[parameter], None
        if len(names) > 1:
            for name, own in zip(names, out.chunk(len(names), 1), strict=True):
                own.copy_(Reader(self.file)(name))
            return
        if not transposed:
            stored = self.encoded(parameter)
        if stored is None:
            out.copy_(self.tensor(parameter, transposed).reshape(out.shape))
            return
        for band, values in _decoded(stored):
            out.view(stored.shape)[band] = values

    def is_finite(self) -> bool:
        """Return whether the file holds no NaN and no infinity: nothing is put on the disk to see it."""
        for name in self.file.tensors:
            stored = encoded_blocks(self.file, name)
            bands = [(None, Reader(self.file)(name))] if stored is None else _decoded(stored)
            if not all(all_finite(values) for _, values in bands):
                return False
        return True

    def encoded(self, parameter: str) -> QuantizedTensor | None:
        """Return a parameter's matrix as the file holds it; None where that is in plain numbers or in two formats."""
        names = self.names[parameter]
        stored = [each for name in names if (each := encoded_blocks(self.file, name)) is not None]
        if len(stored) < len(names) or len({each.scheme for each in stored}) > 1:
            return None
        if len(stored) > 1:
            experts, rows, _ = self.file.tensors[names[0]].shape
            starts = range(0, experts * rows, rows)
            return joined_when_read([(each, slice(start, start + rows)) for start in starts for each in stored])
        part, order = self.rows.get(parameter), self.orders.get(parameter)
        own = stored[0] if part is None else rows_of(stored[0], part)
        return own if order is None else rows_of(own, np.argsort(order))


def _decoded(stored: QuantizedTensor) -> Iterator[tuple[slice, torch.Tensor]]:
    """Yield bands of rows and their values, float32."""
    for band in row_tiles(*stored.shape):
        yield band, parse_scheme(stored.scheme).decode(rows_of(stored, band))


class GgufNetwork(NetworkModel):
    """A network whose weights came from a file."""

    def __init__(
        self, summary: ModelSummary, body: Body, inputs: InputSpec, overrides: Overrides | None = None, *,
        mapped: Mapped,
    ) -> None:  # fmt: skip
        super().__init__(summary, body, inputs, overrides)
        self.mapped, self.file, self.files = mapped, mapped.file, tuple(map(str, mapped.file.files))

    def _view(self, summary: ModelSummary, overrides: Overrides) -> GgufNetwork:
        return GgufNetwork(summary, self.body, self.inputs, overrides, mapped=self.mapped)

    def _encoded(self, layer: Layer) -> QuantizedTensor | None:
        return self.mapped.encoded(layer.parameter)


def _architecture(file: GgufFile) -> Architecture | None:
    """Return the architecture, of those of one name the one with the file's tensors; None for one that is not known."""
    if file.architecture == "bert" and "token_types.weight" not in file.tensors:
        return architecture_of("distilbert", NotAModelError)
    if file.architecture == "llama" and file.plain.get("llama.expert_count"):
        return architecture_of("mixtral", NotAModelError)
    if "olmo2.attention.sliding_window" in file.plain:
        return architecture_of("olmo3", NotAModelError)
    return by_name(file.architecture)


def _network(file: GgufFile, source: ModelSource) -> GgufNetwork:
    """Build the network; NotAModelError with the reason why it cannot be, MemoryLimitError for a full disk."""
    from workbench.models.sources.lean_transformers import quiet, transformers

    architecture = _architecture(file)
    if architecture is None:
        raise NotAModelError(
            f"the architecture {file.architecture or 'is not named, so it'} is not known here; its weights can be "
            "looked at, planned for and exported"
        )
    on_disk = not fits(memory_to_run(_facts(each) for each in file.tensors.values()))
    cls = getattr(transformers, architecture.network)
    settings, options = _settings(file, architecture, cls.config_class), {}
    if architecture.network == "BertModel":
        options["add_pooling_layer"] = False
    try:
        with quiet(), torch.device("meta"):
            skeleton = cls(cls.config_class(**settings), **options)
            if _pooling(file) is not None and "output.weight" not in file.tensors:  # it has no head of words
                cls = type(skeleton.base_model)
                skeleton = cls(skeleton.config, **options)
    except Exception as error:  # transformers raises nearly everything for settings that make no sense
        raise NotAModelError(f"its metadata do not make a {architecture.network}: {first_line(error)}") from error
    config = skeleton.config.to_dict()
    mapped = _mapped(file, architecture, config, skeleton)
    transposed = {f"{path}.weight" for path, module in skeleton.named_modules() if type(module).__name__ == "Conv1D"}
    shapes = {parameter: tuple(tensor.shape) for parameter, tensor in skeleton.state_dict().items()}
    read = partial(mapped.shaped, shapes, on_disk)
    state = {parameter: read(parameter, parameter in transposed) for parameter in mapped.names}
    with quiet():
        network = cls.from_pretrained(None, config=skeleton.config, state_dict=state, dtype=torch.float32, **options)
    _scale_rotary(network, file)
    model = _model(file, source, network, mapped, finite=on_disk and mapped.is_finite())
    model.notes += (decoded_note(state.values()),) if on_disk else ()
    return model


def _settings(file: GgufFile, architecture: Architecture, config: type) -> dict[str, Any]:
    """Return the members of a ``config``; NotAModelError for metadata that are missing or not the tensors'."""
    stated = file.plain
    try:
        small = (name for name in ROTARY if name in file.tensors and file.tensors[name].nbytes <= FACTORS)
        factors = {name: Reader(file)(name).float().tolist() for name in small}
        settings = {**architecture.computed, **config_of(architecture, stated, factors)}
    except (KeyError, TypeError, ValueError) as error:
        raise NotAModelError(f"its metadata lack {error}") from None
    table = file.tensors.get("token_embd.weight")
    blocks = settings.get("num_hidden_layers", settings.get("n_layer"))
    if table is None or not isinstance(blocks, int) or not 0 < blocks <= len(file.tensors):
        raise NotAModelError(
            f"it says {blocks!r} blocks and has {len(file.tensors)} tensors; it is damaged or incomplete"
        )
    settings |= {"vocab_size": table.matrix[0], "tie_word_embeddings": "output.weight" not in file.tensors}
    for kind in ("bos", "eos", "pad"):
        place = stated.get(f"tokenizer.ggml.{ {'pad': 'padding'}.get(kind, kind) }_token_id")
        settings[f"{kind}_token_id"] = place if isinstance(place, int) and place < table.matrix[0] else None
    for member, names in BIASES.items():
        if hasattr(config, member) and member not in architecture.computed:
            settings[member] = any(name in file.tensors for name in names)
    if architecture.name in SCALED_HEADS:
        settings["query_pre_attn_scalar"] = scale_size(architecture, settings)
    for member, name in EXPERT_WIDTHS.items():
        if member in architecture.keys.values() and name in file.tensors:
            settings[member] = file.tensors[name].shape[-1]
    if architecture.network in ("BertModel", "NomicBertModel"):
        settings["type_vocab_size"] = file.tensors["token_types.weight"].matrix[0]
    return settings


def _mapped(file: GgufFile, architecture: Architecture, config: Mapping[str, Any], skeleton: Any) -> Mapped:
    """Return where each parameter lies; NotAModelError where one is missing or of another shape."""
    look_up: Callable[[str], str | None] = gguf_names(architecture, int(skeleton.config.num_hidden_layers))
    names: dict[str, tuple[str, ...]] = {}
    rows: dict[str, slice] = {}
    asked: dict[str, list[tuple[int, ...]]] = {}
    tied = set(getattr(skeleton, "all_tied_weights_keys", None) or ()) if config.get("tie_word_embeddings") else set()
    for parameter, tensor in skeleton.state_dict().items():
        if parameter in tied:
            continue
        usual = names_of(look_up, parameter)
        own = names[parameter] = fused_names(usual, file.tensors)
        if lacking := [name for name in own or (parameter,) if name not in file.tensors]:
            raise NotAModelError(f"the tensor {few(lacking, 2)} of its architecture is missing")
        if QKV in own[0] and own != usual:
            rows[parameter] = fused_rows(usual[0], tensor.shape[0], file.tensors[own[0]].shape[0])
        for name in own:
            shape = tensor.shape if len(own) == 1 else (tensor.shape[0], tensor.shape[1] // len(own), tensor.shape[2])
            asked.setdefault(name, []).append(tuple(shape))
    for name, shapes in asked.items():
        if math.prod(file.tensors[name].shape) != sum(map(math.prod, shapes)):
            wanted = " and ".join(map(str, shapes))
            raise NotAModelError(f"the tensor {name} has {file.tensors[name].shape}, its metadata ask for {wanted}")
    if spare := sorted(file.tensors.keys() - set(asked) - set(ROTARY)):
        raise NotAModelError(f"its architecture has no place for {few(spare, 4)}")
    found = {parameter: row_order(architecture, config, parameter) for parameter in names}
    orders = {parameter: order for parameter, order in found.items() if order is not None}
    return Mapped(file=file, architecture=architecture, config=config, names=names, orders=orders, rows=rows)


def _pooling(file: GgufFile) -> Pooling | None:
    """Return how the file says that an embedding is made; None where it says nothing, or that it ranks texts."""
    number = file.plain.get(f"{file.architecture}.pooling_type")
    return next((pooling for pooling, own in IN_LLAMA_CPP.items() if own == number), None)


def _scale_rotary(network: Any, file: GgufFile) -> None:
    """Divide the rotary frequencies by the file's factors, where it has them (Llama 3)."""
    if FREQUENCIES not in file.tensors:
        return
    factors = Reader(file)(FREQUENCIES).float()
    for module in network.modules():
        if hasattr(module, "inv_freq") and module.inv_freq.shape == factors.shape:
            module.inv_freq = module.inv_freq / factors
            module.original_inv_freq = module.inv_freq.clone()


def _model(file: GgufFile, source: ModelSource, network: Any, mapped: Mapped, *, finite: bool) -> GgufNetwork:
    dtypes = {parameter: _facts(file.tensors[name]).dtype for parameter, (name, *_) in mapped.names.items()}
    parts = find_layers(network, lambda name, tensor: dtypes.get(name, "float32"), finite=finite)
    head = head_of(type(network).__name__) or OutputKind.NONE
    takes, _ = arguments_of(network.forward)
    inputs = InputSpec(
        tokens=True, vocabulary=int(network.get_input_embeddings().weight.shape[0]),
        positions=mapped.config.get("max_position_embeddings") or mapped.config.get("n_positions"),
        tokenizer=file.path if has_tokenizer(file.plain) else None, main="input_ids", takes=takes,
        requires=("input_ids",), folder=file.path.parent, sentences=head is not OutputKind.TOKEN_LOGITS,
        embeds=head is OutputKind.EMBEDDING, pooling=_pooling(file) or Pooling.MEAN,
    )  # fmt: skip
    fingerprint, call = contents_of(_raw_store(file)).fingerprint, call_of(head, inputs, network.config)
    built = network_model(source, network, parts, fingerprint, head, call, inputs, sample_of(network, inputs))
    model = GgufNetwork(built.summary, built.body, inputs, mapped=mapped)
    model.notes = (*built.notes, *_notes(mapped, built.summary.stored))
    return model


def _notes(mapped: Mapped, layers: Iterable[Layer]) -> tuple[str, ...]:
    """Say which fused experts the plan cannot hold in the file's types."""
    several = [layer for layer in layers if len(mapped.names[layer.parameter]) > 1]
    types = {
        layer.name: {mapped.file.tensors[name].type for name in mapped.names[layer.parameter]} for layer in several
    }
    mixed = [name for name, kinds in types.items() if len(kinds) > 1]
    return tuple(
        f"the file holds the projections of experts in {len(mixed):,} layers ({name}) in types of their own "
        f"({few(sorted(types[name]), 2)}), and a plan has one format for what runs as one matrix; it keeps the values"
        for name in mixed[:1]
    )
