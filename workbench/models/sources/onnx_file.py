"""An ONNX file: run by ONNX Runtime, its weights editable; the first plan says what its codes and scales are."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import nn

from workbench.errors import DataError, NotAModelError, WorkbenchError, first_line
from workbench.limited import limited
from workbench.models.data.inputs import InputSpec, arguments_for, main_of
from workbench.models.data.tried import in_one_thread
from workbench.models.execution.first_run import FIRST_RUN, memory_for, seconds_for
from workbench.models.execution.network import Body, Call, Forward, NetworkModel
from workbench.models.layer import LayerKind, StoredTensor
from workbench.models.model import Batch, Model, Overrides
from workbench.models.onnx.container import read_onnx
from workbench.models.onnx.inputs import SAMPLES, SIZES, Input, fixed_samples, inputs_of, random_samples
from workbench.models.onnx.outputs import axis_of_samples, last_function
from workbench.models.sources.exported_program import in_pieces
from workbench.models.sources.heads.outputs import head_of, pooled
from workbench.models.sources.layers import Modules, Role, find_layers, unknown_role
from workbench.models.sources.probabilities import classes_of_pixels, logits_of
from workbench.models.sources.python_module import MAIN
from workbench.models.sources.source import Opening, network_model
from workbench.models.sources.stored import TensorStore, contents_of, memory_to_run, require_memory
from workbench.models.summary import ModelSource, ModelSummary, OutputKind
from workbench.plain_file import read_json
from workbench.readable import few

if TYPE_CHECKING:
    from workbench.models.layer import Layer
    from workbench.models.onnx.container import OnnxFile
    from workbench.models.onnx.float_graph import FloatGraph
    from workbench.models.onnx.network import OnnxNetwork
    from workbench.numerics.quantized_tensor import QuantizedTensor

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
        from workbench.models.onnx.integers import in_floating_point
        from workbench.models.onnx.network import OnnxNetwork

        path = graph_in(request.path)
        file = in_floating_point(read_onnx(path))
        graph = _float_graph(file, path)
        try:
            network = OnnxNetwork(file, graph)
        except (RuntimeError, ValueError, TypeError, KeyError) as error:
            raise NotAModelError(f"{path}: its weights do not fit its operators: {first_line(error)}") from error
        return _model(ModelSource(kind=self.name, path=request.recorded), path, file, graph, network)


def _float_graph(file: OnnxFile, path: Path) -> FloatGraph:
    from workbench.models.onnx.graph import float_graph

    try:
        graph = float_graph(file)
    except NotAModelError as error:
        raise NotAModelError(f"{path}: {error}") from None
    facts = [StoredTensor(name=name, dtype="float32", shape=each.shape) for name, each in file.arrays.items()]
    require_memory(memory_to_run(facts), str(path))
    return graph


def graph_in(path: Path) -> Path:
    """Return the graph's file; NotAModelError for a folder with several of which none is called model.onnx."""
    if not path.is_dir():
        return path
    files = sorted(path.glob("*.onnx"))
    if len(files) > 1 and not (path / "model.onnx").is_file():
        names = few((file.name for file in files), 5)
        raise NotAModelError(f"{path} holds {len(files)} .onnx files ({names}); open one of them")
    return files[0] if len(files) == 1 else path / "model.onnx"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """How a graph is run as a file: ``takes`` its inputs, ``name`` the output that is looked at.

    ``axis`` is where its samples lie, None where it has no axis of them, and ``rank`` how many axes it has.
    ``pooled``: its tokens are averaged.  ``last`` is ``Softmax`` or ``Sigmoid`` where it is probabilities.
    """

    takes: Mapping[str, Input]
    spec: InputSpec
    place: int
    name: str
    rank: int
    axis: int | None = 0
    pooled: bool = False
    last: str = ""

    def inputs(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Return everything that the graph takes, in its dtypes; DataError for what the batch has not."""
        return _inputs_of(self.takes, batch, self.spec)

    def output(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the model's output from the graph's, samples along the first axis."""
        values = self.by_sample(values)
        if self.last:
            return logits_of(self.last, values)
        values = values[:, None] if values.ndim == 1 else values  # one number a sample
        return pooled(values, batch.get("attention_mask"), self.spec.pooling) if self.pooled else values

    def by_sample(self, values: torch.Tensor) -> torch.Tensor:
        """Return values with their samples along the first axis; a graph may squeeze that of a single one."""
        if self.axis is None:
            return values[None]
        return (values if values.ndim == self.rank else values.unsqueeze(self.axis)).movedim(self.axis, 0)


class OnnxModel(NetworkModel):
    """A graph's network, and what the file holds quantized.  It stays on the host, in float32."""

    def __init__(
        self, summary: ModelSummary, body: Body, inputs: InputSpec, overrides: Overrides | None = None, *,
        file: OnnxFile, graph: FloatGraph, answer: Answer,
    ) -> None:  # fmt: skip
        from workbench.models.onnx.network import execution

        super().__init__(summary, body, inputs, overrides)
        self.file, self.graph, self.answer = file, graph, answer
        refusal = execution(body.network).refusal
        flows = f"no gradient flows through the graph, so that losses are measured: {refusal}" if refusal else ""
        self.notes = (*file.notes, *graph.notes, *filter(None, [flows]))
        self.files = tuple({str(each.file.path): None for each in file.arrays.values() if each.file is not None})

    def _view(self, summary: ModelSummary, overrides: Overrides) -> OnnxModel:
        return OnnxModel(
            summary, self.body, self.inputs, overrides, file=self.file, graph=self.graph, answer=self.answer
        )

    def placed(self, device: torch.device, dtype: torch.dtype) -> OnnxModel:
        """Return the model as it is."""
        return self

    def _encoded(self, layer: Layer) -> QuantizedTensor | None:
        weight = self.graph.weights[layer.parameter]
        stored: QuantizedTensor | None = weight.stored(layer) if weight.kind is not None else None
        return stored if stored is not None and stored.shape == layer.matrix else None

    def encoded_inputs(self, layer: str) -> str | None:
        inputs = self.graph.inputs.get(self.summary.layer(layer).parameter)
        return None if inputs is None else inputs.scheme

    def encoded_range(self, layer: str) -> tuple[float, float] | None:
        inputs = self.graph.inputs.get(self.summary.layer(layer).parameter)
        ends = None if inputs is None else inputs.range
        return None if ends is None else (min(ends[0], 0.0), max(ends[1], 0.0))


def _model(source: ModelSource, path: Path, file: OnnxFile, graph: FloatGraph, network: OnnxNetwork) -> OnnxModel:
    from workbench.models.onnx.network import execution

    part_of = Modules(network)

    def classify(owner: str, module: nn.Module, name: str, parameter: torch.Tensor) -> Role | None:
        weight = graph.weights[f"{owner}.{name}" if owner else name]
        if weight.kind in (LayerKind.MATRIX, LayerKind.RECURRENT):
            role = weight.options.get("role")
            return Role(**{"kind": weight.kind, **role}) if role else unknown_role(tuple(parameter.shape))
        return None if weight.kind is None else part_of(owner, module, name, parameter)

    parts = find_layers(network, lambda name, tensor: graph.weights[name].dtype, classify)
    beside = path.parent.name != "onnx" or (path.parent / "config.json").is_file()
    folder = path.parent if beside else path.parent.parent
    run = execution(network)
    takes, main = inputs_of(run.takes, graph, lambda name: len(network.get_parameter(name)), MAIN)
    inputs = _spec(takes, main, folder)
    trial = _tried(path, network, takes, inputs)
    inputs = replace(inputs, batch=trial.batch)
    gives, name = trial.outputs[trial.place], run.outputs[trial.place]
    last = last_function(graph, name, gives)

    @torch.no_grad()
    def turned() -> torch.Tensor:
        batch = random_samples(takes, main, trial.sizes, trial.batch or SAMPLES)
        batch = {name: each.flip(0) for name, each in batch.items()}
        return cast("torch.Tensor", network(_inputs_of(takes, batch, inputs))[trial.place])

    answer = Answer(takes=takes, spec=inputs, place=trial.place, name=name, rank=gives.ndim,
                    axis=axis_of_samples(gives, trial.batch or SAMPLES, turned))  # fmt: skip
    gives = answer.by_sample(gives)
    output, pooled = _output(gives, name, inputs, _architecture(folder), last)
    batch = random_samples(takes, main, trial.sizes, trial.batch or SAMPLES)
    pixels = classes_of_pixels(gives, batch) if output is OutputKind.EMBEDDING and last != "Sigmoid" else ""
    output = OutputKind.POSITION_CLASSES if pixels else output
    answer = replace(answer, pooled=pooled, last="" if output is OutputKind.EMBEDDING else last)
    call = _call(answer) if inputs.batch is None else in_pieces(_call(answer), inputs.batch)
    inputs = replace(inputs, sentences=True, embeds=True) if pooled else inputs
    sample = partial(random_samples, takes, main, trial.sizes)
    fingerprint = contents_of(_raw_store(file)).fingerprint
    built = network_model(source, network, parts, fingerprint, output, call, inputs, sample)
    model = OnnxModel(built.summary, built.body, inputs, file=file, graph=graph, answer=answer)
    model.notes = (*model.notes, *filter(None, [pixels]))
    return model


def _spec(takes: Mapping[str, Input], main: str, folder: Path) -> InputSpec:
    first = takes[main]
    sizes = [size if isinstance(size, int) else None for size in (None, *first.of_a_sample)]
    spec: dict[str, Any] = {
        "takes": tuple(takes), "requires": tuple(name for name, each in takes.items() if not each.follows),
        "main": main, "folder": folder, "batch": fixed_samples(takes, main),
        "shapes": {name: each.in_words for name, each in takes.items()},
    }  # fmt: skip
    if first.rows is not None or not first.dtype.is_floating_point:
        length = sizes[1] if len(sizes) == 2 else None
        tokenizer = folder if (folder / "tokenizer.json").is_file() else None
        spec |= {"vocabulary": first.rows, "length": length, "positions": length, "tokenizer": tokenizer}
        return InputSpec(tokens=True, **spec)
    height, width = sizes[2:] if len(sizes) == 4 else (None, None)
    size = None if height is None or width is None else (height, width)
    return InputSpec(tokens=False, channels=sizes[1] if len(sizes) > 2 else None, size=size, **spec)


def _inputs_of(takes: Mapping[str, Input], batch: Batch, spec: InputSpec) -> dict[str, torch.Tensor]:
    """Return everything that the graph takes, in its dtypes."""
    named = arguments_for(batch, spec)
    if len(spec.requires) == 1 and spec.requires[0] not in named:
        named = {spec.requires[0]: main_of(batch, spec)}
    main = named.get(spec.main)
    samples = 1 if main is None else main.shape[0]
    tokens = 0 if main is None or main.ndim < 2 else main.shape[1]
    tensors = {}
    for name, each in takes.items():
        if name in named:
            tensors[name] = each.placed(named[name])
        elif (tensor := each.filled(samples, tokens)) is not None:
            tensors[name] = tensor
        else:
            raise DataError(f"it also takes {name} ({each.in_words})")
    return tensors


def _call(answer: Answer) -> Call:
    def call(forward: Forward, batch: Batch) -> torch.Tensor:
        return answer.output(forward(answer.inputs(batch))[answer.place], batch)

    return call


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Trial:
    """The sizes that a graph ran on, the samples that it takes at once (None: any number), its outputs, and the place
    of the one that is looked at."""

    sizes: tuple[int, int]
    batch: int | None
    outputs: Sequence[torch.Tensor]
    place: int


def _tried(path: Path, network: OnnxNetwork, takes: Mapping[str, Input], spec: InputSpec) -> _Trial:
    """Run random samples of growing sizes until ONNX Runtime takes them and, if it can be, torch.

    On samples that are too short for the graph, ONNX Runtime may also crash.  A run that is stopped is the last: more
    numbers would not end it sooner.  All take together no more time than the largest may.
    """
    import onnxruntime  # noqa: F401 - here, as the limited process opens no file

    from workbench.models.onnx.network import check, execution

    run = execution(network)
    stated, success, before = run.refusal, None, dict[str, torch.Size]()
    failure: WorkbenchError | None = None
    seconds, began = FIRST_RUN, _spent()
    nbytes = sum(each.nbytes for each in network.parameters())
    for batch, sizes in itertools.product((spec.batch,) if spec.batch else (None, 1), SIZES):
        try:
            tensors = _inputs_of(takes, random_samples(takes, spec.main, sizes, batch or SAMPLES), spec)
            shapes = {name: each.shape for name, each in tensors.items()}
            if shapes == before:  # all sizes are fixed
                continue
            before = shapes
            size = memory_for(nbytes, sum(each.nbytes for each in tensors.values()))
            seconds = seconds_for(nbytes, sum(each.numel() for each in tensors.values()))
            left = round(max(seconds + began - _spent(), 0), 1)
            limited(partial(_trial, network, tensors), str(path), NotAModelError, seconds=left, memory=size)
            outputs = check(network, tensors)
        except (DataError, NotAModelError) as error:
            failure = failure or error
            if _spent() - began >= seconds:
                break
        else:
            success = success or (_Trial(sizes=sizes, batch=batch, outputs=outputs, place=0), run.refusal)
            if run.refusal == stated:
                success = _Trial(sizes=sizes, batch=batch, outputs=outputs, place=0), stated
        if success is not None and (run.refusal == stated or batch != success[0].batch or sizes == SIZES[2]):
            break
        run.refusal = stated
    if success is None:
        raise failure if isinstance(failure, NotAModelError) else NotAModelError(
            f"ONNX Runtime does not run {path}: {failure}"
        )  # fmt: skip
    trial, run.refusal = success
    floating = [at for at, each in enumerate(trial.outputs) if each.is_floating_point() and each.ndim]
    if not floating:
        raise NotAModelError(f"{path} returns no tensor of floating-point numbers, so there is no loss to measure")
    return replace(trial, place=next((at for at in floating if run.outputs[at] == "logits"), floating[0]))


def _spent() -> float:
    """Return the seconds of processor time of the processes that this one has waited for."""
    times = os.times()
    return times.children_user + times.children_system


def _trial(network: OnnxNetwork, tensors: Mapping[str, torch.Tensor]) -> list[np.ndarray]:
    """Run a graph for the first time, in the limited process: it may crash, hang, or fill the memory."""
    in_one_thread()
    try:
        with torch.no_grad():
            network(tensors)
    except DataError:
        raise
    except Exception as error:  # whatever torch raises for sizes that a layer does not take
        raise DataError(f"{first_line(error)}") from error
    return []


def _output(
    gives: torch.Tensor, name: str, inputs: InputSpec, architecture: str, last: str
) -> tuple[OutputKind, bool]:  # fmt: skip
    """Return what an output is, and whether its tokens are to be averaged."""
    head = head_of(architecture) if architecture else None
    if not inputs.tokens or gives.ndim < 3:
        vectors = "embed" in name.lower() or head is OutputKind.EMBEDDING
        if gives.ndim == 3 and last == "Softmax":
            return OutputKind.POSITION_CLASSES, False
        if gives.ndim != 2 or vectors or (gives.shape[1] == 1 and last != "Sigmoid"):
            return OutputKind.EMBEDDING, False
        return OutputKind.POSITION_CLASSES if last == "Sigmoid" else OutputKind.CLASS_LOGITS, False
    if gives.ndim == 3 and head in (OutputKind.TOKEN_CLASSES, OutputKind.TOKEN_LOGITS):
        return head, False
    if gives.ndim == 3 and (name == "logits" or inputs.vocabulary == gives.shape[-1]):
        return OutputKind.TOKEN_LOGITS, False
    if gives.ndim == 3 and last == "Softmax":
        return OutputKind.TOKEN_CLASSES, False
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
        return torch.from_numpy(np.require(names[name].raw_bytes(), requirements=["C", "W"]))

    facts = {name: StoredTensor(name=name, dtype="uint8", shape=(each.nbytes,)) for name, each in names.items()}
    return TensorStore(facts, read)
