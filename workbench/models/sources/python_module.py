"""A Python file with a factory function, and weights beside it.  Running the file needs the user's word."""

from __future__ import annotations

import hashlib
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from workbench.errors import DataError, NotAModelError, TrustRequiredError, WorkbenchError, nearest
from workbench.models.checkpoints.packed_file import is_packed_file, read_packed_file
from workbench.models.data.inputs import InputSpec, arguments_for, arguments_of, main_of, parameters_of
from workbench.models.execution.folded import fold_weights
from workbench.models.execution.network import Call, Forward, NetworkModel
from workbench.models.execution.stacked import tensors_of
from workbench.models.execution.unread import unread
from workbench.models.model import Batch, Model
from workbench.models.sources.layers import NetworkParts, find_layers, stored_dtypes
from workbench.models.sources.quantized_checkpoint import Checkpoint, QuantizedNetwork
from workbench.models.sources.roles import MOST_READ, SAMPLES
from workbench.models.sources.safetensors_file import weight_files
from workbench.models.sources.source import Opening, absolute, guessed_inputs, network_model
from workbench.models.sources.state_dict_file import SUFFIXES, load_state_dict
from workbench.models.sources.stored import (
    TensorStore,
    contents_of,
    memory_to_run,
    require_memory,
    tensors_in_files,
    tensors_in_memory,
)
from workbench.models.summary import ModelSource, OutputKind
from workbench.models.tracing import TOKENS
from workbench.readable import few

NETWORK_FILE = "network.py"
MAIN = ("input_ids", "inputs", "x")
"""Names of a network's first input, before what else its forward requires."""

BESIDE = ("weights.safetensors", "model.safetensors", "weights.pt", "weights.pth", "model.pt", "model.pth")

FOLDED = (
    "{} weight{} that the network computes before each run (weight normalization and the like) are layers by what they "
    "are computed to, and are exported so"
)


@dataclass(frozen=True, slots=True)
class PythonModule:
    """A ``.py`` file (or a folder with ``network.py``) that defines the factory and may define

    ``preprocess(images)``: arrays as stored -> what the network takes;
    ``OUTPUT``: ``token_logits``, ``class_logits``, ``position_classes``, ``detections`` or ``embedding``, where
    guessing from the layers would be wrong (a network that ends in a sigmoid gives probabilities of labels that do not
    exclude each other, one that ends in a softmax those of classes); ``SAMPLING_RATE``: of the sounds that the network
    takes, in Hz.
    """

    name = "python_module"
    description = "a Python file with a factory function"

    def detects(self, path: Path) -> bool:
        """Recognize it by the suffix, or by ``network.py`` in the folder."""
        return path.suffix == ".py" and path.is_file() or (path / NETWORK_FILE).is_file()

    def open(self, request: Opening) -> Model:
        """Run the file if it is trusted, build the network, load the weights."""
        file = request.path / NETWORK_FILE if request.path.is_dir() else request.path
        if not request.trust:
            raise TrustRequiredError(
                f"opening {file} runs it as a Python program; allow it (--trust) only if you know it", str(file)
            )
        weights = absolute(request.weights) if request.weights else weights_beside(file)
        store, checkpoint = _open_store(weights) if weights else (None, None)
        module = run_file(file)
        network = _build(module, file, request.factory or "build")
        if store is not None:
            _load(network, store, weights)
        else:
            store = tensors_in_memory(network.state_dict())
        folded = fold_weights(network)
        parts = find_layers(network, stored_dtypes(store.tensors))
        _to_single_precision(network)
        source = ModelSource(
            kind=self.name, path=request.recorded, factory=request.factory,
            weights=str(weights) if request.weights else None,
        )  # fmt: skip
        inputs, call = _inputs(module, network, parts)
        stated = hasattr(module, "OUTPUT")
        output = _output(module, parts, inputs, file)
        fingerprint = contents_of(store if checkpoint is None else checkpoint.raw).fingerprint
        model = network_model(source, network, parts, fingerprint, output, call, inputs, stated=stated)
        if folded:
            model.notes += (FOLDED.format(folded, "s" * (folded > 1)),)
        return model if checkpoint is None else _quantized(model, checkpoint)


def _quantized(model: NetworkModel, checkpoint: Checkpoint) -> QuantizedNetwork:
    network = QuantizedNetwork(model.summary, model.body, model.inputs, checkpoint=checkpoint)
    network.notes = (*model.notes, *network.notes)
    return network


def run_file(file: Path) -> ModuleType:
    """Execute a Python file as a module of its own; modules beside it can be imported by it while it runs."""
    name = f"workbench_user_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"
    module = ModuleType(name)
    module.__file__ = str(file)
    sys.modules[name] = module
    sys.path.insert(0, str(file.parent))
    try:
        exec(compile(file.read_bytes(), str(file), "exec"), module.__dict__)
    except WorkbenchError:
        raise
    except (Exception, SystemExit) as error:
        sys.modules.pop(name, None)
        raise NotAModelError(f"running {file} failed: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(file.parent))
    return module


def _build(module: ModuleType, file: Path, factory: str) -> nn.Module:
    build = getattr(module, factory, None)
    if not callable(build):
        names = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        raise NotAModelError(
            f"{file} has no function {factory!r} that builds the network{nearest(factory, names)}; "
            "define it or name another one (factory)"
        )
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            network = build()
    except Exception as error:
        raise NotAModelError(f"{factory}() in {file} failed: {type(error).__name__}: {error}") from error
    if not isinstance(network, nn.Module):
        raise NotAModelError(f"{factory}() in {file} returned {type(network).__name__}, expected a torch.nn.Module")
    return _as_written(network, module)


def _as_written(network: nn.Module, file: ModuleType) -> nn.Module:
    """Return the network that is compiled in ``network``, its parts and the functions of ``file`` not compiled either.

    Compiled code would not let anything look inside, and would be compiled again for each weight.
    """
    compiled: Any = sys.modules.get("torch._dynamo")
    if compiled is None:
        return network
    whole = nn.ModuleList([network])
    for module in list(whole.modules()):
        for name, child in module.named_children():
            if isinstance(child, compiled.OptimizedModule):
                module._modules[name] = child._orig_mod
        module._compiled_call_impl = None
    for owner in (file, *{type(module) for module in whole.modules()}):
        for name, value in list(vars(owner).items()):
            if callable(plain := getattr(value, "_torchdynamo_orig_callable", None)):
                setattr(owner, name, plain)
    return whole[0]


def weights_beside(file: Path) -> Path | None:
    """Return the file of weights that belongs to a Python file by its name; None if there is none."""
    names = (f"{file.stem}.safetensors", f"{file.stem}.pt", f"{file.stem}.pth", *BESIDE)
    return next((file.parent / name for name in names if (file.parent / name).is_file()), None)


def _open_store(weights: Path) -> tuple[TensorStore, Checkpoint | None]:
    """Return the tensors that the network has, and the packed file of ours where they lie in one."""
    if not weights.exists():
        raise NotAModelError(f"the weights {weights} do not exist; give a .safetensors file or a .pt/.pth state dict")
    if weights.suffix in SUFFIXES:
        require_memory(weights.stat().st_size, str(weights))
        return tensors_in_memory(load_state_dict(weights)), None
    store = tensors_in_files(weight_files(weights))
    checkpoint = Checkpoint.of(store, read_packed_file(store, weights)) if is_packed_file(weights) else None
    store = store if checkpoint is None else checkpoint.logical
    require_memory(memory_to_run(store.tensors.values()), str(weights))
    return store, checkpoint


def _load(network: nn.Module, store: TensorStore, weights: Path | None) -> None:
    state = {name: store.read(name) for name in store.tensors}
    if all(name.startswith("module.") for name in state):  # saved from DataParallel
        state = {name.removeprefix("module."): tensor for name, tensor in state.items()}
    state = {name.replace("_orig_mod.", ""): tensor for name, tensor in state.items()}  # saved from torch.compile
    wrong = _misfits(network, state, weights)
    if wrong and fold_weights(network):  # the file may hold what the weights are computed to
        wrong = _misfits(network, state, weights)
    if wrong:
        raise NotAModelError(f"{weights} does not fit the network: {wrong}; give this network's")


def _misfits(network: nn.Module, state: Mapping[str, torch.Tensor], weights: Path | None) -> str:
    """Load ``state``; return how many of its names, and of the network's, have no counterpart."""
    try:
        missing, unexpected = _loaded(network, state)
    except (RuntimeError, ValueError) as error:
        raise NotAModelError(f"{weights} does not fit the network: {' '.join(str(error).split())}") from None
    missing = [name for name in missing if not _tied_to_loaded(network, name, state)]
    wrong = [f"{len(names)} {what} ({names[0]}, ...)" for what, names in
             (("missing", missing), ("unknown to it", unexpected)) if names]  # fmt: skip
    return f"of its tensors {' and '.join(wrong)}" if wrong else ""


def _loaded(network: nn.Module, state: Mapping[str, torch.Tensor]) -> tuple[list[str], list[str]]:
    """Load ``state``; return the names that it lacks and those that the network does not have."""
    try:
        missing, unexpected = network.load_state_dict(state, strict=False)
    except ValueError:  # a module that asks for its version (torchvision's MNASNet), which no safetensors hold
        versioned = OrderedDict(state)
        versioned._metadata = network.state_dict()._metadata  # type: ignore[attr-defined]
        missing, unexpected = network.load_state_dict(versioned, strict=False)
    return missing, unexpected


def _tied_to_loaded(network: nn.Module, name: str, state: Mapping[str, torch.Tensor]) -> bool:
    parameters, buffers = (each(remove_duplicate=False) for each in (network.named_parameters, network.named_buffers))
    tensors: dict[str, torch.Tensor] = {**dict(parameters), **dict(buffers)}
    mine = tensors.get(name)
    return mine is not None and any(other in state and value is mine for other, value in tensors.items())


def _to_single_precision(network: nn.Module) -> None:
    for tensor in (*network.parameters(), *network.buffers()):
        if tensor.is_floating_point() and tensor.dtype.itemsize < 4:
            tensor.data = tensor.data.float()


class _LookUps(TorchFunctionMode):
    """Notes the rows of the tables in which ``ids`` (int64 ``[samples, tokens]``) are looked up."""

    def __init__(self, ids: torch.Tensor) -> None:
        super().__init__()
        self.rows: list[int] = []
        self._ids = ids.flatten(), ids.T.flatten()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in ("embedding", "__getitem__", "index_select"):
            indices = [each.flatten() for each in tensors_of(args) if not each.is_floating_point()]
            tables = [each for each in tensors_of(args) if each.is_floating_point() and each.ndim == 2]
            if tables and any(torch.equal(each, ids) for each in indices for ids in self._ids):
                self.rows.append(len(tables[0]))
        return func(*args, **(kwargs or {}))


def with_tokens(inputs: InputSpec, network: nn.Module, call: Call) -> InputSpec:
    """Return what the network takes: ids, where it runs with them and looks them up in a table.

    The order in which modules are defined does not tell: a head, or a table of positions, may come first.
    """
    if inputs.preprocess is not None or len(inputs.requires) > 1:
        return inputs
    large = sum(parameter.numel() for parameter in network.parameters()) > MOST_READ
    ids = torch.randint(0, 2, (SAMPLES, TOKENS), generator=torch.Generator().manual_seed(0))
    look_ups = _LookUps(ids)
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]), unread(network) if large else nullcontext(), look_ups:
            call(network.eval(), {"input_ids": ids})
    except Exception:  # a network that takes something else raises whatever it likes
        return inputs
    return replace(inputs, tokens=True, vocabulary=look_ups.rows[0], channels=None) if look_ups.rows else inputs


def _inputs(module: ModuleType, network: nn.Module, parts: NetworkParts) -> tuple[InputSpec, Call]:
    """Return what the network takes, and how it is called."""
    takes, requires = arguments_of(network.forward)
    inputs = replace(
        guessed_inputs(parts), preprocess=getattr(module, "preprocess", None), takes=takes, requires=requires,
        main=next((name for name in (*MAIN, *requires, *takes) if name in takes), ""),
        rate=getattr(module, "SAMPLING_RATE", None),
    )  # fmt: skip
    main = next((each for each in parameters_of(network.forward) if each.name == inputs.main), None)
    by_place = main is not None and main.kind is not main.KEYWORD_ONLY
    inputs = with_tokens(inputs, network, partial(call_by_name, inputs, by_place=by_place))
    return inputs, partial(call_by_name, inputs, by_place=by_place)


def _output(module: ModuleType, parts: NetworkParts, inputs: InputSpec, file: Path) -> OutputKind:
    stated = getattr(module, "OUTPUT", None)
    if stated is not None:
        try:
            return OutputKind(stated)
        except ValueError:
            raise NotAModelError(
                f"{file} says OUTPUT = {stated!r}, expected one of {', '.join(kind.value for kind in OutputKind)}"
            ) from None
    last = parts.layers[-1].matrix[0] if parts.layers else None
    return OutputKind.TOKEN_LOGITS if inputs.tokens and last == inputs.vocabulary else OutputKind.CLASS_LOGITS


def call_by_name(spec: InputSpec, forward: Forward, batch: Batch, by_place: bool = True) -> torch.Tensor:
    """Return the tensor of the network's answer; its first input is handed over by place, unless it takes none so."""
    named = arguments_for(batch, spec)
    if by_place and spec.takes and spec.main in named and spec.takes[0] == spec.main:
        return first_tensor(forward(named.pop(spec.main), **named))
    return first_tensor(forward(**named) if named else forward(main_of(batch, spec)))


def first_tensor(answer: Any) -> torch.Tensor:
    """Return the output of a network that answers with a tensor, a tuple, a dictionary or an object with ``logits``;
    else the first tensor of floating-point numbers in it."""
    if isinstance(answer, list | tuple) and answer and isinstance(answer[0], Mapping):
        raise DataError(
            f"the network returned a list of {len(answer)} dictionaries ({few(answer[0], 4)}), objects chosen by their "
            "scores; let it return what it has before the choice, samples x objects x (a logit of each label, then the "
            'box: the centre\'s x and y, width and height in parts of the picture), and state OUTPUT = "detections"'
        )
    getters: tuple[Callable[[Any], Any], ...] = (
        lambda value: value, lambda value: value.logits, lambda value: value["logits"], lambda value: value[0],
        lambda value: next(each for each in tensors_of(value) if each.is_floating_point()),
    )  # fmt: skip
    for get in getters:
        try:
            output = get(answer)
        except (AttributeError, LookupError, TypeError, StopIteration):
            continue
        if isinstance(output, torch.Tensor):
            return output
    raise TypeError(f"the network returned {type(answer).__name__}, expected a tensor")
