"""A ``torch.export`` program (``.pt2``): unflattened into its modules, so that its layers can be tapped."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from workbench.errors import DataError, NotAModelError
from workbench.models.data.inputs import InputSpec
from workbench.models.execution.network import Call, Forward
from workbench.models.layer import LayerKind
from workbench.models.model import Model
from workbench.models.sources.exported_archive import require_plain
from workbench.models.sources.layers import (
    PACKED,
    Role,
    find_layers,
    is_norm,
    linear_role,
    stored_dtypes,
    transposed_role,
    unknown_role,
)
from workbench.models.sources.memory import WORKING_SHARE, require_memory
from workbench.models.sources.python_module import first_tensor
from workbench.models.sources.source import Opening, guessed_inputs, network_model
from workbench.models.sources.stored import StateDictStore, fingerprint
from workbench.models.summary import ModelSource, OutputKind

CONVOLUTIONS = {"conv1d": LayerKind.CONV1D, "conv2d": LayerKind.CONV2D, "conv3d": LayerKind.CONV3D}
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
        size = require_plain(request.path)
        require_memory(int(size * WORKING_SHARE), str(request.path), request.memory_limit)
        program = _load(request.path)
        store = StateDictStore(program.state_dict)
        takes, gives = _signature(program, request.path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            network: nn.Module = torch.export.unflatten(program)
        parts = find_layers(network, stored_dtypes(store.tensors), Graphs(network))
        inputs = _inputs(takes, guessed_inputs(parts))
        output = _output(gives, bool(inputs.tokens))
        return network_model(
            ModelSource(kind=self.name, path=request.given), network, parts, fingerprint(store), output,
            _call(_fixed(takes)), inputs,
        )  # fmt: skip


def _load(path: Path) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.export.load(path)
    except Exception as error:  # the reader raises nearly everything for an archive that it does not understand
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise NotAModelError(f"torch.export cannot load {path}: {reason}; export the model again") from error


def _signature(program: Any, path: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the program's only input and its first output, as tensors without data (sizes may be symbolic)."""
    names = program.graph_signature.user_inputs
    placeholders = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    taken = [placeholders.get(name) for name in names]
    if len(taken) != 1 or not isinstance(taken[0], torch.Tensor):
        raise NotAModelError(f"{path} takes {len(taken)} inputs; a program of one tensor was expected, wrap it in one")
    (result,) = [node for node in program.graph.nodes if node.op == "output"]
    return taken[0], result.args[0][0].meta["val"]


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


def _fixed(takes: torch.Tensor) -> int | None:
    return takes.shape[0] if takes.ndim and isinstance(takes.shape[0], int) else None


def _call(fixed: int | None) -> Call:
    """Run batches of any size; a program exported for ``fixed`` samples is run piece by piece, the last one padded."""

    def call(forward: Forward, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        inputs = batch["input_ids"] if "input_ids" in batch else batch["inputs"]
        if fixed is None or len(inputs) == fixed:
            return first_tensor(forward(inputs))
        if len(inputs) % fixed:
            raise DataError(
                f"the program was exported for batches of {fixed}, {len(inputs)} samples came; use a multiple of "
                f"{fixed}, or export it with a dynamic batch dimension (torch.export.Dim)"
            )
        return torch.cat([first_tensor(forward(piece)) for piece in torch.split(inputs, fixed)])

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
        axes = tuple(range(parameter.ndim))
        if name in PACKED or (owner is not None and owner is not module and path.endswith("out_proj")):
            return Role(kind=LayerKind.ATTENTION, axes=axes, named_by_module=name == "weight", per_token=True)
        if user is None or user.op != "call_function":
            return unknown_role(tuple(parameter.shape))
        operation = str(user.target).removeprefix("aten.").split(".")[0]
        role = _role_in(operation, user, node, tuple(parameter.shape))
        if role is None:
            return None if is_norm(operation) else unknown_role(tuple(parameter.shape))
        alone = owner is module and name == "weight" and _runs_alone(module, user)
        return replace(
            role, hookable=role.hookable and alone, named_by_module=role.named_by_module and name == "weight"
        )


def _role_in(operation: str, user: Any, node: Any, shape: tuple[int, ...]) -> Role | None:
    axes = tuple(range(len(shape)))
    if operation == "linear" and user.args[1] is node:
        return linear_role(axes)
    if operation in CONVOLUTIONS and user.args[1] is node:
        return Role(kind=CONVOLUTIONS[operation], axes=axes, hookable=True, named_by_module=True)
    if operation.startswith("conv_transpose") and user.args[1] is node:
        return transposed_role(shape, int(user.args[6]) if len(user.args) > 6 else 1)
    if operation == "embedding" and user.args[0] is node:
        return Role(kind=LayerKind.EMBEDDING, axes=axes, hookable=True, named_by_module=True)
    if operation in {"lstm", "gru", "rnn_tanh", "rnn_relu"}:
        return Role(kind=LayerKind.RECURRENT, axes=axes, per_token=True)
    return None


def _runs_alone(module: nn.Module, user: Any) -> bool:
    """Tell whether a module's graph is one operation on its only input, so that hooks on the module see the layer."""
    nodes = list(user.graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    calls = [node for node in nodes if node.op.startswith("call_")]
    output = next(node for node in nodes if node.op == "output")
    return len(placeholders) == 1 and calls == [user] and output.args[0] in (user, (user,))
