"""A ``torch.export`` program (``.pt2``): unflattened into its modules, so that its layers can be tapped."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from workbench.errors import DataError, NotAModelError, first_line
from workbench.models.data.inputs import InputSpec
from workbench.models.execution.network import Call, Forward
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
from workbench.models.sources.python_module import call_plainly
from workbench.models.sources.source import Opening, guessed_inputs, network_model
from workbench.models.sources.stored import WORKING_SHARE, require_memory, tensors_in_memory
from workbench.models.summary import ModelSource, OutputKind

MODULE_KINDS = {
    "linear": LayerKind.LINEAR, "conv1d": LayerKind.CONV1D, "conv2d": LayerKind.CONV2D, "conv3d": LayerKind.CONV3D,
}  # fmt: skip
"""What the operations of aten that take a weight as their second argument do."""

INTEGERS = (torch.int64, torch.int32)


@dataclass(frozen=True, slots=True)
class ExportedProgramFile:
    """A ``.pt2`` archive of plain data."""

    name = "exported_program"
    description = "a .pt2 exported program"

    def detects(self, path: Path) -> bool:
        """Tell by the suffix."""
        return path.is_file() and path.suffix == ".pt2"

    def open(self, request: Opening) -> Model:
        """Check the archive, load the program, find the layers in its graphs."""
        archive = plain_archive(request.path, lambda size: require_memory(size, str(request.path)))
        require_memory(int(archive.weights * WORKING_SHARE), str(request.path))
        program, network = _load(archive, request.path)
        store = tensors_in_memory(program.state_dict)
        takes, gives = _signature(program, request.path)
        parts = find_layers(network, stored_dtypes(store.tensors), Graphs(network))
        inputs = _inputs(takes, guessed_inputs(parts))
        source = ModelSource(kind=self.name, path=request.recorded)
        samples = takes.shape[0] if takes.ndim and isinstance(takes.shape[0], int) else None
        call = call_plainly if samples is None else _in_pieces(samples)
        return network_model(source, network, parts, store, _output(gives, bool(inputs.tokens)), call, inputs)


def _load(archive: PlainArchive, path: Path) -> tuple[Any, nn.Module]:
    """Return the program and its modules, from the bytes that were checked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program = torch.export.load(archive.image)
            return program, torch.export.unflatten(program)
        except Exception as error:  # the reader raises nearly everything for an archive that it does not understand
            raise NotAModelError(
                f"torch.export cannot load {path}: {first_line(error)}; export the model again"
            ) from error


def _signature(program: Any, path: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the program's only input and its first output, as tensors without data (sizes may be symbolic)."""
    names = program.graph_signature.user_inputs
    placeholders = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    inputs = [placeholders.get(name) for name in names]
    if len(inputs) != 1 or not isinstance(inputs[0], torch.Tensor):
        raise NotAModelError(f"{path} takes {len(inputs)} inputs; a program of one tensor was expected, wrap it in one")
    (result,) = [node for node in program.graph.nodes if node.op == "output"]
    return inputs[0], result.args[0][0].meta["val"]


def _inputs(takes: torch.Tensor, guessed: InputSpec) -> InputSpec:
    if takes.dtype in INTEGERS:
        length = takes.shape[1] if takes.ndim == 2 and isinstance(takes.shape[1], int) else None
        return InputSpec(tokens=True, vocabulary=guessed.vocabulary, length=length, positions=length)
    sizes = tuple(takes.shape[1:])
    if len(sizes) == 3 and isinstance(sizes[0], int):
        fixed = isinstance(sizes[1], int) and isinstance(sizes[2], int)
        return InputSpec(tokens=False, channels=sizes[0], size=(sizes[1], sizes[2]) if fixed else None)
    return replace(guessed, tokens=False, vocabulary=None)


def _output(gives: torch.Tensor, tokens: bool) -> OutputKind:
    if tokens and gives.ndim == 3:
        return OutputKind.TOKEN_LOGITS
    return OutputKind.CLASS_LOGITS if gives.ndim == 2 else OutputKind.EMBEDDING


def _in_pieces(size: int) -> Call:
    """Return how a program that was exported for ``size`` samples runs a multiple of them."""

    def call(forward: Forward, batch: Batch) -> torch.Tensor:
        samples = len(next(iter(batch.values())))
        if samples % size:
            raise DataError(
                f"the program was exported for batches of {size}, {samples} samples came; use a multiple of {size}, or "
                "export it with a dynamic batch dimension (torch.export.Dim)"
            )
        split = {name: torch.split(tensor, size) for name, tensor in batch.items()}
        pieces = [{name: parts[index] for name, parts in split.items()} for index in range(samples // size)]
        return torch.cat([call_plainly(forward, piece) for piece in pieces])

    return call


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
            return None if is_norm(operation) else unknown_role(shape)
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
    if operation.startswith("conv_transpose"):
        return transposed_role(shape, int(user.args[6]) if len(user.args) > 6 else 1)
    return module_role(MODULE_KINDS[operation]) if operation in MODULE_KINDS else None


def _runs_alone(module: nn.Module, user: Any) -> bool:
    """Tell whether a module's graph is one operation on its only input, so that hooks on the module see the layer."""
    nodes = list(user.graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    calls = [node for node in nodes if node.op.startswith("call_")]
    output = next(node for node in nodes if node.op == "output")
    return len(placeholders) == 1 and calls == [user] and output.args[0] in (user, (user,))
