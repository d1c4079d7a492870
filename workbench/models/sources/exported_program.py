"""A ``torch.export`` program (``.pt2``): unflattened into its modules, so that its layers can be tapped."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_map_only, tree_unflatten

from workbench.errors import DataError, NotAModelError, first_line, out_of_memory
from workbench.limited import FORKS, MEMORY, SECONDS, limited
from workbench.models.data.inputs import InputSpec, arguments_for, main_of
from workbench.models.data.tried import in_one_thread
from workbench.models.execution.first_run import require_run
from workbench.models.execution.network import Call, Forward
from workbench.models.execution.products import CONVOLUTIONS
from workbench.models.layer import LayerKind
from workbench.models.model import Batch, Model
from workbench.models.sources.exported_archive import PlainArchive, plain_archive
from workbench.models.sources.layers import (
    PACKED,
    Role,
    find_layers,
    is_norm,
    module_role,
    stored_dtypes,
    transposed_role,
    unknown_role,
)
from workbench.models.sources.python_module import MAIN, first_tensor
from workbench.models.sources.roles import SAMPLES
from workbench.models.sources.source import Opening, guessed_inputs, network_model
from workbench.models.sources.stored import WORKING_SHARE, contents_of, require_memory, tensors_in_memory
from workbench.models.summary import ModelSource, OutputKind
from workbench.models.tracing import TOKENS
from workbench.readable import few

MODULE_KINDS = {
    "linear": LayerKind.LINEAR, "conv1d": LayerKind.CONV1D, "conv2d": LayerKind.CONV2D, "conv3d": LayerKind.CONV3D,
}  # fmt: skip
"""What the operations of aten that take a weight as their second argument do."""

GRAPH_A_SECOND, GRAPH_ROOM, WEIGHTS_A_SECOND = 1e5, 200, 1e8
"""Bytes of a graph that are loaded in a second at least, the memory that each takes, and bytes of weights likewise."""

INTEGERS = (torch.int64, torch.int32)
HALF = (torch.float16, torch.bfloat16)


@dataclass(frozen=True, slots=True)
class ExportedProgramFile:
    """A ``.pt2`` archive of plain data."""

    name = "exported_program"
    description = "a .pt2 exported program"

    def detects(self, path: Path) -> bool:
        """Recognize it by the suffix."""
        return path.is_file() and path.suffix == ".pt2"

    def open(self, request: Opening) -> Model:
        """Check the archive, load the program, find the layers in its graphs."""
        archive = plain_archive(request.path, lambda size: require_memory(size, str(request.path)))
        require_memory(int(archive.weights * WORKING_SHARE), str(request.path))
        program, network = _load(archive, request.path)
        store = tensors_in_memory(program.state_dict)
        takes, gives = _signature(program, request.path)
        in_single_precision(network)
        parts = find_layers(network, stored_dtypes(store.tensors), Graphs(network))
        inputs, program_call = _inputs(takes, guessed_inputs(parts)), _call(program, takes)
        source = ModelSource(kind=self.name, path=request.recorded)
        sizes = {tensor.shape[0] for tensor in takes.values() if tensor.ndim and isinstance(tensor.shape[0], int)}
        static = sizes.pop() if len(sizes) == 1 else None
        call = program_call if static is None else in_pieces(program_call, static)
        inputs = replace(inputs, batch=static)
        sample = partial(_sample, takes, inputs.vocabulary or 2)
        output = _output(gives, inputs)
        batch = sample(static or SAMPLES)
        nbytes = sum(each.nbytes for each in network.parameters())
        require_run(lambda: call(network, batch), str(request.path), nbytes, [*batch.values()])
        fingerprint = contents_of(store).fingerprint
        return network_model(source, network, parts, fingerprint, output, call, inputs, sample, stated=False)


def _load(archive: PlainArchive, path: Path) -> tuple[Any, nn.Module]:
    """Return the program and its modules, from the bytes that were checked.

    Sizes that are more than a few operations are worked out in a limited process first.
    """
    import torch._export.serde.serialize  # a second, which other kinds of models need not wait for

    if archive.involved and FORKS:
        seconds = SECONDS + archive.graph / GRAPH_A_SECOND + archive.weights / WEIGHTS_A_SECOND
        memory = MEMORY + 4 * archive.image.getbuffer().nbytes + GRAPH_ROOM * archive.graph
        library = [Path(torch.__file__).parent]  # of which it may import more
        limited(partial(_try, archive), str(path), NotAModelError, seconds=seconds, memory=memory, reads=library)
    with quiet():
        try:
            return _loaded(archive)
        except Exception as error:  # the reader raises nearly everything for an archive that it does not understand
            raise NotAModelError(
                f"torch.export cannot load {path}: {first_line(error)}; export the model again"
            ) from error


def _try(archive: PlainArchive) -> list[np.ndarray]:
    """Load a program for nothing; what it raises it raises again outside of the limited process."""
    in_one_thread()
    try:
        _loaded(archive)
    except MemoryError:
        raise
    except Exception as error:
        if out_of_memory(error):
            raise MemoryError from error
    return []


def _loaded(archive: PlainArchive) -> tuple[Any, nn.Module]:
    archive.image.seek(0)
    program = torch.export.load(archive.image)
    args, kwargs = tree_unflatten([*program.graph_signature.user_inputs], program.call_spec.in_spec)
    if not (isinstance(args, Sequence) and isinstance(kwargs, Mapping)):
        raise ValueError("its inputs have no structure")
    return program, torch.export.unflatten(program)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep torch's warnings and logs off the terminal: of a file that cannot be loaded they write tracebacks."""
    logs = [log for name, log in list(logging.root.manager.loggerDict.items())
            if name.partition(".")[0] == "torch" and isinstance(log, logging.Logger) and not log.disabled]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for log in logs:
                log.disabled = True
            yield
        finally:
            for log in logs:
                log.disabled = False


def in_single_precision(network: nn.Module) -> None:
    """Let a program in half precision compute in float32: its tensors, and what its graphs cast to."""
    for tensor in (*network.parameters(), *network.buffers()):
        if tensor.dtype in HALF:
            tensor.data = tensor.data.float()

    def single(value: Any) -> Any:
        return torch.float32 if value in HALF else value

    for module in network.modules():
        graph = getattr(module, "graph", None)
        for node in graph.nodes if graph is not None else ():
            if node.op == "call_function":
                node.args, node.kwargs = (tree_map_only(torch.dtype, single, each) for each in (node.args, node.kwargs))


def _signature(program: Any, path: Path) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Return the program's inputs by name and its first output, tensors without data (sizes may be symbolic).

    Constants that it was exported with (``use_cache=False``) are none of its inputs.
    """
    placeholders = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    named = [name for name in program.graph_signature.user_inputs if isinstance(name, str) and name in placeholders]
    inputs = {name: placeholders[name] for name in named if isinstance(placeholders[name], torch.Tensor)}
    if not inputs or len(inputs) < len(named):
        other = [name for name in named if name not in inputs]
        raise NotAModelError(
            f"{path} takes {few(other, 8) or 'nothing'}, which is not a tensor; export it "
            "with tensors and constants as its only inputs"
        )
    (result,) = [node for node in program.graph.nodes if node.op == "output"]
    outputs = [getattr(node, "meta", {}).get("val") for node in result.args[0]]
    gives = next((value for value in outputs if isinstance(value, torch.Tensor) and value.is_floating_point()), None)
    if gives is None:
        raise NotAModelError(f"{path} returns no tensor of floating-point numbers, so there is no loss to measure")
    return inputs, gives


def _inputs(takes: Mapping[str, torch.Tensor], guessed: InputSpec) -> InputSpec:
    """Return what the program takes; ids come before other inputs."""
    names = tuple(takes)
    main = next((name for name in (*MAIN, *names) if name in takes), names[0])
    sizes = tuple(size if isinstance(size, int) else None for size in takes[main].shape[1:])
    if takes[main].dtype in INTEGERS:
        length = sizes[0] if len(sizes) == 1 else None
        spec = InputSpec(tokens=True, vocabulary=guessed.vocabulary, length=length, positions=length)
    elif len(sizes) == 3 and sizes[0] is not None:
        fixed = None if sizes[1] is None or sizes[2] is None else (sizes[1], sizes[2])
        spec = InputSpec(tokens=False, channels=sizes[0], size=fixed)
    else:
        spec = replace(guessed, tokens=False, vocabulary=None)
    return replace(spec, takes=names, requires=names, main=main)


def _output(gives: torch.Tensor, inputs: InputSpec) -> OutputKind:
    """Return what the output is: token logits where each token has a number for every entry of the vocabulary."""
    if inputs.tokens and gives.ndim == 3 and inputs.vocabulary in (None, gives.shape[-1]):
        return OutputKind.TOKEN_LOGITS
    return OutputKind.CLASS_LOGITS if gives.ndim == 2 else OutputKind.EMBEDDING


def _sample(takes: Mapping[str, torch.Tensor], vocabulary: int, count: int) -> Batch:
    """Return random samples: sizes that are free as they were at the export; masks and the like are ones."""
    generator, ids = torch.Generator().manual_seed(0), next((n for n in (*MAIN, *takes) if n in takes), "")
    batch = {}
    for name, tensor in takes.items():
        shape = [count, *(size if isinstance(size, int) else _hint(size) for size in tensor.shape[1:])]
        if tensor.is_floating_point():
            batch[name] = torch.randn(shape, generator=generator)
        elif name == ids:
            batch[name] = torch.randint(0, vocabulary, shape, generator=generator)
        else:
            batch[name] = torch.ones(shape, dtype=tensor.dtype)
    return batch


def _hint(size: Any) -> int:
    return int(size.node.hint) if size.node.has_hint() else TOKENS


def _call(program: Any, takes: Mapping[str, torch.Tensor]) -> Call:
    """Return how a batch is handed to the program: each input by its name, in its place and of its dtype."""
    names, structure, leaves = tuple(takes), program.call_spec.in_spec, program.graph_signature.user_inputs
    spec = InputSpec(takes=names, main=next((name for name in (*MAIN, *names) if name in takes), ""))
    dtypes = {name: torch.float32 if tensor.dtype in HALF else tensor.dtype for name, tensor in takes.items()}

    def call(forward: Forward, batch: Batch) -> torch.Tensor:
        named = arguments_for(batch, spec)
        if len(names) == 1 and not named:
            named = {names[0]: main_of(batch, spec)}
        if missing := [name for name in names if name not in named]:
            raise DataError(
                f"the data hold {few(batch, 8)}; the program also needs "
                + few((f"{name} {tuple(takes[name].shape)}" for name in missing), 8)
            )
        values = [named[each].to(dtypes[each]) if each in names else each for each in leaves]
        args, kwargs = tree_unflatten(values, structure)
        return first_tensor(forward(*args, **kwargs))

    return call


def in_pieces(whole: Call, size: int) -> Call:
    """Return how a program that was exported for ``size`` samples runs any number: the last piece is filled up."""

    def call(forward: Forward, batch: Batch) -> torch.Tensor:
        samples = len(next(iter(batch.values())))
        return torch.cat([whole(forward, piece) for piece in pieces_of(batch, size)])[:samples]

    return call


def pieces_of(batch: Batch, size: int) -> Iterator[Batch]:
    """Yield batches of ``size`` samples; the last one is filled up with its last sample."""
    samples = len(next(iter(batch.values())))
    filled = torch.arange(-(-samples // size) * size).clamp_(max=samples - 1)
    for rows in torch.split(filled, size):
        yield {name: tensor[rows] for name, tensor in batch.items()}


WEIGHT_NORM = "_weight_norm"
"""Makes a weight of its first argument, which a note names: the layer multiplies what comes of it."""


class Graphs:
    """The roles of parameters by the operations that use them in the graphs of an unflattened program."""

    def __init__(self, network: nn.Module) -> None:
        self._uses: dict[str, tuple[Any, Any, Any]] = {}
        for path, module in network.named_modules(remove_duplicate=False):
            graph = getattr(module, "graph", None)
            for node in graph.nodes if graph is not None else ():
                if node.op == "get_attr":
                    full = f"{path}.{node.target}" if path else str(node.target)
                    for user in node.users:
                        self._uses.setdefault(full, (module, node, user))

    def __call__(self, path: str, module: nn.Module, name: str, parameter: torch.Tensor) -> Role | None:
        """Return the parameter's role, None where it is kept."""
        if not parameter.is_floating_point() or parameter.ndim < 2:
            return None
        owner, node, user = self._uses.get(f"{path}.{name}" if path else name, (None, None, None))
        if name in PACKED or (owner is not None and owner is not module and path.endswith("out_proj")):
            return Role(kind=LayerKind.ATTENTION, named_by_module=name == "weight")
        shape = tuple(parameter.shape)
        if user is None or user.op != "call_function":
            return unknown_role(shape)
        operation = str(user.target).removeprefix("aten.").split(".")[0]
        role = _role_in(operation, user, node, shape)
        if role is None:
            kept = user.args[0] is not node if operation == WEIGHT_NORM else is_norm(operation)
            return None if kept else unknown_role(shape)
        alone = owner is module and name == "weight" and _runs_alone(module, user)
        return replace(
            role, hookable=role.hookable and alone, named_by_module=role.named_by_module and name == "weight"
        )


def _role_in(operation: str, user: Any, node: Any, shape: tuple[int, ...]) -> Role | None:
    if operation == "embedding" and user.args[0] is node:
        return module_role(LayerKind.EMBEDDING)
    if operation in {"lstm", "gru", "rnn_tanh", "rnn_relu"}:
        return Role(kind=LayerKind.RECURRENT)
    if len(user.args) < 2 or user.args[1] is not node:
        return None
    if operation == "convolution":
        transposed, groups = bool(user.args[6]), int(user.args[8])
        return transposed_role(shape, groups) if transposed else module_role(CONVOLUTIONS[len(shape)])
    if operation.startswith("conv_transpose"):
        return transposed_role(shape, int(user.args[6]) if len(user.args) > 6 else 1)
    return module_role(MODULE_KINDS[operation]) if operation in MODULE_KINDS else None


def _runs_alone(module: nn.Module, user: Any) -> bool:
    """Return whether a module's graph is one operation on its only input, so that hooks on the module see the layer."""
    nodes = list(user.graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    calls = [node for node in nodes if node.op.startswith("call_")]
    output = next(node for node in nodes if node.op == "output")
    return len(placeholders) == 1 and calls == [user] and output.args[0] in (user, (user,))
