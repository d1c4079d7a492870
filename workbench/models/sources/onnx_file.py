"""An ONNX file: run by ONNX Runtime, its weights editable; the first plan says what its codes and scales are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from workbench.errors import NotAModelError, first_line
from workbench.limited import MEMORY, limited
from workbench.models.data.inputs import InputSpec, arguments_for, main_of
from workbench.models.execution.network import Body, Call, Forward, NetworkModel
from workbench.models.layer import LayerKind, StoredTensor
from workbench.models.model import Batch, Model, Overrides
from workbench.models.sources.exported_program import in_pieces
from workbench.models.sources.huggingface_heads import head_of, mean_pooled
from workbench.models.sources.layers import Modules, Role, find_layers, unknown_role
from workbench.models.sources.python_module import MAIN
from workbench.models.sources.source import Opening, network_model
from workbench.models.sources.stored import TensorStore, memory_to_run, require_memory
from workbench.models.summary import ModelSource, ModelSummary, OutputKind
from workbench.models.tracing import PIXELS, TOKENS
from workbench.plain_file import read_json

if TYPE_CHECKING:
    from workbench.models.layer import Layer
    from workbench.models.onnx.container import OnnxFile
    from workbench.models.onnx.graph import Normal
    from workbench.models.onnx.network import OnnxNetwork
    from workbench.numerics.quantized_tensor import QuantizedTensor

FILLED = ("attention_mask", "position_ids", "token_type_ids", "use_cache_branch")
"""Inputs that follow from the tokens where the data do not give them; so do empty caches (``past...``)."""

LARGEST_CONFIG = 1 << 20


@dataclass(frozen=True, slots=True)
class OnnxSource:
    """A graph with its tensors, inside it or in a file beside it; or a folder that holds one."""

    name = "onnx"
    description = "an .onnx file"

    def detects(self, path: Path) -> bool:
        """Recognize it by the suffix; a folder by holding .onnx files and no .safetensors ones."""
        if path.is_dir():
            return any(path.glob("*.onnx")) and not any(path.glob("*.safetensors"))
        return path.is_file() and path.suffix.lower() == ".onnx"

    def open(self, request: Opening) -> Model:
        """Read the graph, make its products layers, try it on random samples."""
        from workbench.models.onnx.container import read_onnx
        from workbench.models.onnx.graph import normal
        from workbench.models.onnx.integers import in_floating_point
        from workbench.models.onnx.network import OnnxNetwork

        path = graph_in(request.path)
        file = in_floating_point(read_onnx(path))
        try:
            graph = normal(file)
        except NotAModelError as error:
            raise NotAModelError(f"{path}: {error}") from None
        facts = [StoredTensor(name=name, dtype="float32", shape=each.shape) for name, each in file.arrays.items()]
        require_memory(memory_to_run(facts), str(path))
        try:
            network = OnnxNetwork(file, graph)
        except (RuntimeError, ValueError, TypeError, KeyError) as error:
            raise NotAModelError(f"{path}: its weights do not fit its operators: {first_line(error)}") from error
        return _model(ModelSource(kind=self.name, path=request.recorded), path, file, graph, network)


def graph_in(path: Path) -> Path:
    """Return the graph's file; NotAModelError for a folder with several of which none is called model.onnx."""
    if not path.is_dir():
        return path
    files = sorted(path.glob("*.onnx"))
    if len(files) > 1 and not (path / "model.onnx").is_file():
        names = ", ".join(file.name for file in files[:5])
        raise NotAModelError(f"{path} holds {len(files)} .onnx files ({names}); open one of them")
    return files[0] if len(files) == 1 else path / "model.onnx"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """How a graph is run as a file: ``takes`` its inputs, ``name`` the output that is looked at, whether its tokens are
    averaged."""

    takes: Mapping[str, _Input]
    spec: InputSpec
    place: int
    name: str
    pooled: bool

    def inputs(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Return everything that the graph takes, in its dtypes; ValueError for what the batch has not."""
        return _inputs_of(self.takes, batch, self.spec)

    def output(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the model's output from the graph's."""
        return mean_pooled(values, batch.get("attention_mask")) if self.pooled else values


class OnnxModel(NetworkModel):
    """A graph's network, and what the file holds quantized.  It stays on the host, in float32."""

    def __init__(
        self, summary: ModelSummary, body: Body, inputs: InputSpec, overrides: Overrides | None = None, *,
        file: OnnxFile, graph: Normal, answer: Answer,
    ) -> None:  # fmt: skip
        super().__init__(summary, body, inputs, overrides)
        self.file, self.graph, self.answer = file, graph, answer

    def _view(self, summary: ModelSummary, overrides: Overrides) -> OnnxModel:
        return OnnxModel(
            summary, self.body, self.inputs, overrides, file=self.file, graph=self.graph, answer=self.answer
        )

    def placed(self, device: torch.device, dtype: torch.dtype) -> OnnxModel:
        """Return the model as it is."""
        return self

    def _encoded(self, layer: Layer) -> QuantizedTensor | None:
        weight = self.graph.weights[layer.parameter]
        stored: QuantizedTensor | None = weight.stored() if weight.kind is not None else None
        return stored if stored is not None and stored.shape == layer.matrix else None

    def encoded_inputs(self, layer: str) -> str | None:
        inputs = self.graph.inputs.get(self.summary.layer(layer).parameter)
        return None if inputs is None else inputs.scheme

    def encoded_range(self, layer: str) -> tuple[float, float] | None:
        inputs = self.graph.inputs.get(self.summary.layer(layer).parameter)
        ends = None if inputs is None else inputs.range
        return None if ends is None else (min(ends[0], 0.0), max(ends[1], 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Input:
    """One input of a graph; sizes that are free are None."""

    name: str
    dtype: torch.dtype
    shape: tuple[int | None, ...]

    def filled(self, samples: int, tokens: int) -> torch.Tensor | None:
        """Return what follows from the tokens, None for an input that does not."""
        if self.name.startswith("past"):
            free = [0 if size is None else size for size in self.shape[1:]]
            return torch.zeros([samples, *free], dtype=self.dtype)
        if self.name not in FILLED:
            return None
        if self.name == "use_cache_branch":
            return torch.zeros(1, dtype=self.dtype)
        places = torch.arange(tokens).expand(samples, tokens)
        values = places if self.name == "position_ids" else torch.full_like(places, self.name == FILLED[0])
        return values.to(self.dtype)


def _model(source: ModelSource, path: Path, file: OnnxFile, graph: Normal, network: OnnxNetwork) -> OnnxModel:
    from workbench.models.onnx.network import execution

    takes = {each.name: each for each in map(_input, execution(network).takes)}
    part_of = Modules(network)

    def classify(owner: str, module: nn.Module, name: str, parameter: torch.Tensor) -> Role | None:
        weight = graph.weights[f"{owner}.{name}" if owner else name]
        if weight.kind is LayerKind.MATRIX:
            return unknown_role(tuple(parameter.shape))
        return None if weight.kind is None else part_of(owner, module, name, parameter)

    parts = find_layers(network, lambda name, tensor: graph.weights[name].dtype, classify)
    beside = path.parent.name != "onnx" or (path.parent / "config.json").is_file()
    folder = path.parent if beside else path.parent.parent
    tables = [
        graph.layers[node.output[0]] for node in graph.nodes
        if node.op_type == "Gather" and node.output[0] in graph.layers and node.input[1] in takes
    ]  # fmt: skip
    whole = [name for name, each in takes.items() if not each.dtype.is_floating_point]
    ids = "input_ids" if "input_ids" in whole else next(iter(whole), None)
    vocabulary = next((network.get_parameter(name).shape[0] for name in tables), None)
    inputs = _spec(takes, ids, vocabulary, folder)
    sample = partial(_sample, takes, inputs)
    place, gives = _tried(path, network, takes, sample(2))
    output, pooled = _output(gives, execution(network).outputs[place], inputs, _architecture(folder))
    answer = Answer(takes=takes, spec=inputs, place=place, name=execution(network).outputs[place], pooled=pooled)
    call = _call(answer) if inputs.batch is None else in_pieces(_call(answer), inputs.batch)
    inputs = replace(inputs, sentences=True, embeds=True) if pooled else inputs
    built = network_model(source, network, parts, _raw_store(file), output, call, inputs, sample, stated=False)
    return OnnxModel(built.summary, built.body, inputs, file=file, graph=graph, answer=answer)


def _input(value: Any) -> _Input:
    from workbench.models.onnx.container import DTYPES, FLOATS

    tensor = value.type.tensor_type
    shape = tuple(each.dim_value if each.dim_value > 0 else None for each in tensor.shape.dim)
    name = "float32" if tensor.elem_type in FLOATS else DTYPES.get(tensor.elem_type)
    if name is None or name in ("uint16", "uint32", "uint64"):
        raise NotAModelError(f"its input {value.name} is not a tensor of numbers that torch supports")
    return _Input(name=value.name, dtype=getattr(torch, name), shape=shape)


def _spec(takes: Mapping[str, _Input], ids: str | None, vocabulary: int | None, folder: Path) -> InputSpec:
    names = tuple(takes)
    main = ids if ids is not None and vocabulary is not None else next((n for n in (*MAIN, *names) if n in takes), "")
    first = takes[main]
    requires = tuple(name for name in names if name not in FILLED and not name.startswith("past"))
    batch = first.shape[0] if first.shape else None
    spec: dict[str, Any] = {"takes": names, "requires": requires, "main": main, "folder": folder, "batch": batch}
    if not first.dtype.is_floating_point:
        length = first.shape[1] if len(first.shape) == 2 else None
        tokenizer = folder if (folder / "tokenizer.json").is_file() else None
        spec |= {"vocabulary": vocabulary, "length": length, "positions": length, "tokenizer": tokenizer}
        return InputSpec(tokens=True, **spec)
    height, width = first.shape[2:] if len(first.shape) == 4 else (None, None)
    size = None if height is None or width is None else (height, width)
    return InputSpec(tokens=False, channels=first.shape[1] if len(first.shape) > 2 else None, size=size, **spec)


def _sample(takes: Mapping[str, _Input], spec: InputSpec, count: int) -> Batch:
    """Return random samples; sizes that are free are small."""
    generator, batch = torch.Generator().manual_seed(0), dict[str, torch.Tensor]()
    tokens = spec.length or TOKENS
    for name, each in takes.items():
        if (tensor := each.filled(count, tokens)) is not None:
            if not name.startswith("past") and name != "use_cache_branch":
                batch[name] = tensor
            continue
        free = (spec.channels or 3, PIXELS, PIXELS, PIXELS) if len(each.shape) > 3 else (tokens, tokens, tokens)
        shape = [count, *(size or free[at] for at, size in enumerate(each.shape[1:]))]
        if each.dtype.is_floating_point:
            batch[name] = torch.randn(shape, generator=generator)
        elif each.dtype is torch.bool:
            batch[name] = torch.ones(shape, dtype=torch.bool)
        else:
            batch[name] = torch.randint(0, spec.vocabulary or 2, shape, generator=generator).to(each.dtype)
    return batch


def _inputs_of(takes: Mapping[str, _Input], batch: Batch, spec: InputSpec) -> dict[str, torch.Tensor]:
    """Return everything that the graph takes, in its dtypes."""
    named = arguments_for(batch, spec)
    if len(spec.requires) == 1 and spec.requires[0] not in named:
        named = {spec.requires[0]: main_of(batch, spec)}
    main = named.get(spec.main)
    samples = 1 if main is None else main.shape[0]
    tokens = 0 if main is None or main.ndim < 2 else main.shape[1]
    tensors = {}
    for name, each in takes.items():
        tensor = named[name] if name in named else each.filled(samples, tokens)
        if tensor is None:
            raise ValueError(f"it also takes {name} ({' x '.join(str(size or 'any') for size in each.shape)})")
        tensors[name] = tensor.to(each.dtype)
    return tensors


def _call(answer: Answer) -> Call:
    def call(forward: Forward, batch: Batch) -> torch.Tensor:
        return answer.output(forward(answer.inputs(batch))[answer.place], batch)

    return call


def _tried(path: Path, network: OnnxNetwork, takes: Mapping[str, _Input], batch: Batch) -> tuple[int, torch.Tensor]:
    """Run random samples; returns the place of the output that is looked at, and what it gave."""
    import onnxruntime  # noqa: F401 - here, as the limited process opens no file

    from workbench.models.onnx.network import check, execution

    spec = InputSpec(takes=tuple(takes), requires=tuple(takes))
    if not set(batch) >= set(takes):
        spec = InputSpec(takes=tuple(takes), requires=tuple(batch), main=next(iter(batch)))
    try:
        tensors = _inputs_of(takes, batch, spec)
        nbytes = sum(each.nbytes for each in network.parameters())
        limited(partial(_trial, network, tensors), str(path), NotAModelError, seconds=30, memory=MEMORY + 3 * nbytes)
        outputs = check(network, tensors)
    except NotAModelError:
        raise
    except Exception as error:  # ONNX Runtime's errors have no common type
        raise NotAModelError(f"ONNX Runtime does not run {path}: {first_line(error)}") from error
    floating = [at for at, each in enumerate(outputs) if each.is_floating_point() and each.ndim > 1]
    if not floating:
        raise NotAModelError(f"{path} returns no tensor of floating-point numbers, so there is no loss to measure")
    place = next((at for at in floating if execution(network).outputs[at] == "logits"), floating[0])
    return place, outputs[place]


def _trial(network: OnnxNetwork, tensors: Mapping[str, torch.Tensor]) -> list[np.ndarray]:
    """Run a graph for the first time, in the limited process: it may crash, hang, or fill the memory."""
    torch.set_num_threads(1)
    with torch.no_grad():
        network(tensors)
    return []


def _output(gives: torch.Tensor, name: str, inputs: InputSpec, architecture: str) -> tuple[OutputKind, bool]:
    """Return what an output is, and whether its tokens are to be averaged."""
    head = head_of(architecture) if architecture else None
    if not inputs.tokens or gives.ndim == 2:
        vectors = "embed" in name.lower() or head is OutputKind.EMBEDDING
        return (OutputKind.CLASS_LOGITS if gives.ndim == 2 and not vectors else OutputKind.EMBEDDING), False
    if gives.ndim == 3 and head in (OutputKind.TOKEN_CLASSES, OutputKind.TOKEN_LOGITS):
        return head, False
    if gives.ndim == 3 and (name == "logits" or inputs.vocabulary == gives.shape[-1]):
        return OutputKind.TOKEN_LOGITS, False
    return OutputKind.EMBEDDING, gives.ndim == 3


def _architecture(folder: Path) -> str:
    """Return the class that config.json beside the graph names, "" where none is."""
    file = folder / "config.json"
    try:
        if file.stat().st_size > LARGEST_CONFIG:
            return ""
        names = read_json(file).get("architectures")
        return str(names[0])[:200]
    except (OSError, ValueError, TypeError, AttributeError, LookupError):
        return ""


def _raw_store(file: OnnxFile) -> TensorStore:
    """Return the file's bytes as tensors whose names say type and sizes: what is hashed."""
    names = {f"{each.name}\0{each.type}\0{each.shape}": each for each in file.arrays.values()}

    def read(name: str) -> torch.Tensor:
        return torch.from_numpy(np.require(names[name].octets(), requirements=["C", "W"]))

    facts = {name: StoredTensor(name=name, dtype="uint8", shape=(each.nbytes,)) for name, each in names.items()}
    return TensorStore(facts, read)
