"""An ONNX graph as a torch network: products by modules of torch, all between them by ONNX Runtime.

Where a gradient is asked for, or operations are traced, torch does the nodes in between too, if it knows them all and
gives the same numbers as ONNX Runtime.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import nn

from workbench.errors import DataError, first_line
from workbench.models.execution.stopped_gradients import not_the_network
from workbench.models.layer import LayerKind
from workbench.models.onnx.container import OnnxFile, StoredArray
from workbench.models.onnx.float_graph import FloatGraph, Weight
from workbench.models.onnx.inner import places
from workbench.models.onnx.names import TRANSPOSED_NAME
from workbench.models.onnx.nodes import taken_by
from workbench.models.onnx.operators import OPERATORS, evaluate
from workbench.readable import few

Tensors = Mapping[str, torch.Tensor]

MODULES = {
    LayerKind.CONV1D: nn.Conv1d, LayerKind.CONV2D: nn.Conv2d, LayerKind.CONV3D: nn.Conv3d,
}  # fmt: skip
TRANSPOSED = {3: nn.ConvTranspose1d, 4: nn.ConvTranspose2d, 5: nn.ConvTranspose3d}
TOLERANCE = 1e-3
"""How far, relative to the largest number, torch's answer may lie from ONNX Runtime's to be taken for the same."""
NOTHING = 1e-30
"""What is taken for 0 where two answers are compared: smaller numbers have too few digits."""

_HANDLES = itertools.count(1)
_GLUES: WeakValueDictionary[int, Glue] = WeakValueDictionary()


class Part(nn.Module):
    """A name that others lie below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerStep:
    """One run of the module ``path``."""

    path: str
    input: str
    output: str


@dataclass(slots=True, kw_only=True, eq=False, weakref_slot=True)
class Glue:
    """Nodes between layers; ``inputs`` are values that run through the network, ``parameters`` its tensors by path."""

    nodes: Sequence[Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: tuple[str, ...]
    constants: Mapping[str, StoredArray]
    opsets: Sequence[Any]
    ir_version: int
    handle: int = field(default_factory=_HANDLES.__next__)
    _sessions: dict[tuple[torch.dtype, ...], Any] = field(default_factory=dict)
    _tensors: dict[str, torch.Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _GLUES[self.handle] = self

    def __deepcopy__(self, memo: Any) -> Glue:
        return self

    def by_runtime(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Run the nodes in ONNX Runtime on inputs and parameters; its sessions are made for the dtypes that come."""
        key = tuple(tensor.dtype for tensor in tensors)
        if key not in self._sessions:
            self._sessions[key] = self._session(key)
        arrays = {
            name: tensor.detach().cpu().contiguous().numpy()
            for name, tensor in zip((*self.inputs, *self.parameters), tensors, strict=True)
        }
        return [torch.from_numpy(each) for each in self._sessions[key].run(list(self.outputs), arrays)]

    def by_torch(self, values: Tensors, opset: int, both: bool) -> dict[str, torch.Tensor | None]:
        """Run the nodes in torch, with ``both`` the branches too that are not chosen."""
        known: dict[str, torch.Tensor | None] = dict(values)
        for name, array in self.constants.items():
            if name not in self._tensors:
                self._tensors[name] = array.tensor()
            known[name] = self._tensors[name]
        evaluate(self.nodes, known, opset, both)
        return {name: known[name] for name in self.outputs}

    def _session(self, dtypes: tuple[torch.dtype, ...]) -> Any:
        import onnxruntime
        from onnx import ValueInfoProto, helper

        names = (*self.inputs, *self.parameters)
        takes = [
            helper.make_tensor_value_info(name, KINDS[dtype], None) for name, dtype in zip(names, dtypes, strict=True)
        ]
        gives = [ValueInfoProto(name=name) for name in self.outputs]
        graph = helper.make_graph(self.nodes, "glue", takes, gives, [each.proto() for each in self.constants.values()])
        model = helper.make_model(graph, opset_imports=self.opsets, ir_version=self.ir_version)
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1  # many sessions, of which each does little
        options.enable_cpu_mem_arena = False  # each would keep the most that it ever took
        options.add_session_config_entry("session.disable_quant_qdq", "1")  # without VNNI, 8-bit sums saturate
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


KINDS = {
    torch.float32: 1, torch.uint8: 2, torch.int8: 3, torch.int16: 5, torch.int32: 6, torch.int64: 7, torch.bool: 9,
    torch.float16: 10, torch.float64: 11,
}  # fmt: skip
"""ONNX's numbers of the dtypes that run between layers."""


@torch.library.custom_op("quantization_workbench::onnx_nodes", mutates_args=())
def _nodes(handle: int, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Run nodes in ONNX Runtime, as one operation that those who follow the data see."""
    return _GLUES[handle].by_runtime(tensors)


@dataclass(slots=True, kw_only=True, eq=False)
class Execution:
    """How a graph runs.

    ``last`` maps places of ``steps`` to the values that nothing needs after them; ``refusal`` says why the network has
    no gradients, "" where it has.
    """

    steps: Sequence[LayerStep | Glue]
    last: Mapping[int, Sequence[str]]
    opset: int
    takes: Sequence[Any]
    outputs: Sequence[str]
    refusal: str = ""

    def __deepcopy__(self, memo: Any) -> Execution:
        return self


class OnnxNetwork(nn.Module):
    """The network of a graph; its parameters have names of the file's, so it has no attributes but ``_onnx``."""

    def __init__(self, file: OnnxFile, graph: FloatGraph) -> None:
        super().__init__()
        parameters: dict[str, nn.Parameter] = {}
        for name, weight in graph.weights.items():
            tied = weight.options.get("tied")
            values = parameters[tied] if tied else nn.Parameter(weight.numbers().values().float().contiguous(), False)
            parameters[name] = values
            _add(self, name, weight, values)
        named = [value.name for value in file.model.graph.output]
        steps = list(_steps(file, graph, named))
        takes = [value for value in file.model.graph.input if value.name not in file.arrays]
        gives = ((step.output,) if isinstance(step, LayerStep) else step.outputs for step in steps)
        running = {*(value.name for value in takes), *(name for names in gives for name in names)}
        glues = (step for step in steps if isinstance(step, Glue))
        unknown = [place for glue in glues for place in places(glue.nodes, {*OPERATORS, "If"})]
        self._onnx = Execution(
            steps=steps, last=_last_uses(steps), takes=takes,
            outputs=[name for name in named if name in running],  # and no stored tensors
            opset=next((each.version for each in file.model.opset_import if each.domain in ("", "ai.onnx")), 1),
            refusal=f"torch has no counterpart of its {few(unknown)}" if unknown else "",
        )  # fmt: skip

    def forward(self, inputs: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Run the graph; raises DataError with ONNX Runtime's words for inputs that it does not take."""
        from onnxruntime.capi import onnxruntime_pybind11_state as states

        try:
            if self._onnx.refusal:
                with not_the_network(), torch.no_grad():
                    return _run(self, inputs, False)
            return self._by_either(inputs, torch.is_grad_enabled() or _traced())
        except (states.RuntimeException, states.InvalidArgument, states.Fail) as error:
            raise DataError(f"ONNX Runtime does not run it on these data: {first_line(error)}") from error

    def _by_either(self, inputs: Mapping[str, torch.Tensor], in_torch: bool) -> list[torch.Tensor]:
        try:
            return _run(self, inputs, in_torch)
        except Exception as error:
            if not hasattr(error, "__notes__"):
                raise
            with not_the_network(), torch.no_grad():
                _run(self, inputs, False)  # says what is wrong with the data, if it is they
            raise DataError(f"these data reach what has no gradients: {_not_run(error)}") from error


def _traced() -> bool:
    """Return whether someone follows the operations."""
    return torch._C._len_torch_dispatch_stack() > 0 or torch._C._len_torch_function_stack() > 0


def execution(network: nn.Module) -> Execution:
    """Return how a graph's network runs."""
    assert isinstance(network, OnnxNetwork)
    return network._onnx


def _add(network: nn.Module, name: str, weight: Weight, values: nn.Parameter) -> None:
    *path, last = name.split(".")
    owner = network
    for at, part in enumerate(path):
        if part not in owner._modules:
            whole = at == len(path) - 1 and weight.kind not in (None, LayerKind.MATRIX, LayerKind.RECURRENT)
            owner.add_module(part, _module(weight, values) if whole else Part())
        owner = owner.get_submodule(part)
    owner.register_parameter(last, values)


def _run(network: OnnxNetwork, inputs: Tensors, in_torch: bool, both: bool = False) -> list[torch.Tensor]:
    run, values = network._onnx, dict[str, Any](inputs)
    for place, step in enumerate(run.steps):
        if isinstance(step, LayerStep):
            module, taken = network.get_submodule(step.path), values[step.input]
            if isinstance(module, nn.Embedding):  # ONNX counts ids below 0 from the end
                taken = torch.where(taken < 0, taken + module.num_embeddings, taken)
            values[step.output] = module(taken)
        else:
            own = {name: _tensor(network, name) for name in step.parameters}
            inputs = {**{name: values[name] for name in step.inputs}, **own}
            if in_torch:
                values |= step.by_torch(inputs, run.opset, both)
            else:
                with not_the_network(), torch.no_grad():
                    tensors = list(inputs.values())
                    results = _nodes(step.handle, tensors) if _traced() else step.by_runtime(tensors)
                values |= zip(step.outputs, results, strict=True)
        for name in run.last.get(place, ()):
            if name not in run.outputs:
                values.pop(name, None)
    return [values[name] if name in values else _tensor(network, name) for name in run.outputs]


def _tensor(network: OnnxNetwork, name: str) -> torch.Tensor:
    """Return a parameter, or the tensor that a run puts in its place."""
    owner, _, last = name.rpartition(".")
    tensor: torch.Tensor = getattr(network.get_submodule(owner), last)
    return tensor


def check(network: OnnxNetwork, inputs: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
    """Run both ways; where torch gives other numbers, note why there are no gradients.  Returns the outputs."""
    run = network._onnx
    with not_the_network(), torch.no_grad():
        theirs = _run(network, inputs, False)
        if not run.refusal:
            try:
                ours = _run(network, inputs, True, True)
            except Exception as error:  # whatever torch raises for shapes that it does not take
                run.refusal = _not_run(error)
                return theirs
            if not all(map(_close, ours, theirs)):
                run.refusal = "torch's operators give other numbers than ONNX Runtime's"
    return theirs


def _not_run(error: Exception) -> str:
    """Say which node torch does not run, and why."""
    return f"torch does not run its {' in '.join(getattr(error, '__notes__', ['nodes']))}: {first_line(error)}"


def _close(mine: torch.Tensor, other: torch.Tensor) -> bool:
    if mine.shape != other.shape:
        return False
    scale = max(float(other.double().abs().nan_to_num().max()) if other.numel() else 0.0, NOTHING)
    return torch.allclose(mine.double(), other.double(), rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True)


def _module(weight: Weight, values: nn.Parameter) -> nn.Module:
    """Return the module of a layer, whose parameters are registered later."""
    rows, columns, *_ = values.shape
    options = {name: value for name, value in weight.options.items() if name != "tied"}
    with torch.device("meta"):
        if weight.kind is LayerKind.LINEAR:
            return nn.Linear(columns, rows, bias=False)
        if weight.kind is LayerKind.EMBEDDING:
            return nn.Embedding(rows, columns, _weight=values.detach())  # on no device, its random start takes seconds
        groups = options["groups"]
        sizes: Any = {"kernel_size": tuple(values.shape[2:]), "bias": False, **{
            name: tuple(value) if isinstance(value, list) else value for name, value in options.items()
        }}  # fmt: skip
        if weight.kind in MODULES:
            return MODULES[weight.kind](columns * groups, rows, **sizes)
        return TRANSPOSED[values.ndim](rows, columns * groups, **sizes)


def _steps(file: OnnxFile, graph: FloatGraph, outputs: Sequence[str]) -> Iterator[LayerStep | Glue]:
    """Yield the layers and, between them, nodes in as few pieces as the order allows."""
    made_by_layers = {name for pair in graph.biases.values() for name in pair[1:]}
    biases, weights = {name for name, _ in graph.biases.values()}, {*graph.layers.values()}
    pending, waits = list[Any](), set[str]()
    users: dict[str, set[int]] = {name: {0} for name in outputs}
    for node in graph.nodes:
        for name in taken_by(node):
            users.setdefault(name, set()).add(id(node))
    for node in graph.nodes:
        product = next((name for name in node.output if name in graph.layers), None)
        if product is not None:
            taken = node.input[1] if node.op_type == "Gather" else node.input[0]
            if taken in waits:
                yield _glue(file, graph, pending, users)
                pending, waits = [], set()
            path = graph.layers[product].removesuffix(".weight")
            yield LayerStep(path=path, input=taken, output=graph.biases.get(product, ("", product))[1])
        elif node.op_type == "Transpose" and node.output[0].endswith(TRANSPOSED_NAME) and node.input[0] in weights:
            continue
        elif not (biases.intersection(node.input) or made_by_layers.intersection(node.output)):
            pending.append(node)
            waits.update(node.output)
    if pending:
        yield _glue(file, graph, pending, users)


def _glue(file: OnnxFile, graph: FloatGraph, nodes: list[Any], users: Mapping[str, set[int]]) -> Glue:
    produced = {name for node in nodes for name in node.output if name}
    taken = {name: None for node in nodes for name in sorted(taken_by(node)) if name not in produced}
    inside = {id(node) for node in nodes}
    return Glue(
        nodes=nodes, outputs=tuple(sorted(name for name in produced if users.get(name, inside) - inside)),
        inputs=tuple(name for name in taken if name not in graph.constants and name not in graph.weights),
        parameters=tuple(name for name in taken if name in graph.weights),
        constants={name: graph.constants[name] for name in taken if name in graph.constants},
        opsets=list(file.model.opset_import), ir_version=file.model.ir_version,
    )  # fmt: skip


def _last_uses(steps: Sequence[LayerStep | Glue]) -> dict[int, list[str]]:
    """Return the values that are not needed after each step."""
    last: dict[str, int] = {}
    for place, step in enumerate(steps):
        for name in (step.input,) if isinstance(step, LayerStep) else step.inputs:
            last[name] = place
    ended: dict[int, list[str]] = {}
    for name, place in last.items():
        ended.setdefault(place, []).append(name)
    return ended
