"""Which layers a network's output depends on: the flow of data through one forward pass, followed back from the output.

Every operation of torch is recorded with the memory that it reads and writes, so that paths without a gradient
(``argmax``, ``detach``) count, and numbers that Python reads (``.item()``) count as paths to everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.multiprocessing import reductions
from torch.utils._python_dispatch import TorchDispatchMode

from workbench.memory import give_back
from workbench.models.data.batches import Data
from workbench.models.execution.network import NetworkModel
from workbench.models.execution.stacked import tensors_of
from workbench.models.model import Batch, Model
from workbench.models.tracing import probe

_known: WeakKeyDictionary[Model, dict[str, dict[str, str]]] = WeakKeyDictionary()
"""The unused layers of models that are open, by the content of the data: one more pass at every scoring otherwise."""


MORE = 16
"""So many other samples show whether a layer runs that the first one passes by."""

OF_SHAPES = frozenset(
    getattr(torch.ops.aten, name)
    for name in ("zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like",
                 "new_zeros", "new_ones", "new_full", "new_empty")
)  # fmt: skip
"""Operations that take the shape of a tensor and none of its values."""


class DataFlow(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Writes down which storages every operation reads and writes, and holds no values.

    Weak references keep a storage's place from being used again while its memory is free for others.
    ``decides``: values became numbers or shapes, so that what runs may depend on them.
    """

    supports_higher_order_operators = True
    """A branch or a loop of an exported program is one operation, which reads what either branch may."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._steps: list[tuple[frozenset[int], frozenset[int]]] = []
        self._places: dict[int, object] = {}
        self._decisive: set[int] = set()
        self.decides = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        inputs, outputs = tensors_of((args, kwargs or {})), tensors_of(result)
        for tensor in inputs + outputs:
            place = place_of(tensor)
            if place not in self._places:
                self._places[place] = _held(tensor)
        reads = frozenset[int]() if getattr(func, "overloadpacket", None) in OF_SHAPES else places(inputs)
        writes = places(outputs)
        if isinstance(func, torch._ops.OpOverload) and func._schema.is_mutable:
            writes |= places(inputs)
        self.decides |= not outputs or _shapes_by_values(func, inputs)
        if not outputs:  # a number for Python, on which anything that follows may depend
            self._decisive |= reads
        elif len(reads | writes) > 1:
            self._steps.append((reads, writes))
        return result

    def needed(self, output: torch.Tensor) -> frozenset[int]:
        """Return the storages (see :func:`places`) that ``output`` depends on, its own among them."""
        needed = places([output]) | self._decisive
        for reads, writes in reversed(self._steps):
            if not needed.isdisjoint(writes):
                needed |= reads
        return frozenset(needed)

    def read(self) -> frozenset[int]:
        """Return the storages that any operation read."""
        return frozenset().union(self._decisive, *(reads for reads, _ in self._steps))


def _shapes_by_values(func: Any, inputs: list[torch.Tensor]) -> bool:
    """Return whether the shape of a result depends on values: what ``nonzero`` returns, an index of booleans."""
    if func is torch.ops.aten.index.Tensor:
        return any(tensor.dtype in (torch.bool, torch.uint8) for tensor in inputs[1:])
    return torch.Tag.dynamic_output_shape in getattr(func, "tags", ())


def places(tensors: list[torch.Tensor]) -> frozenset[int]:
    """Return where the values of ``tensors`` lie: one number for a tensor and all views of it."""
    return frozenset(map(place_of, tensors))


def place_of(tensor: torch.Tensor) -> int:
    """Return where the values of a tensor lie."""
    return id(tensor) if tensor.layout != torch.strided else int(tensor.untyped_storage()._cdata)


def _held(tensor: torch.Tensor) -> object:
    """Return what keeps the place of a tensor its own: its storage's shell, or the tensor where it has none."""
    if tensor.layout != torch.strided:
        return tensor
    return reductions.StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]


def unused_layers(model: Model, data: Data | None = None) -> dict[str, str]:
    """Return the layers whose weight cannot change the model's output, each with the reason as a sentence.

    One sample runs: the first of ``data``, else one that the model's inputs describe; MORE others where a layer did not
    run and values decide what does.  Raises as
    :func:`workbench.models.tracing.probe` and ``Model.run`` do.  A layer counts as unused where its result goes nowhere
    (a pooler whose output is not read) or where it did not run at all (a tower for inputs that are not given).  A layer
    that did not run beside others of its list that did (an expert without tokens) may run for other samples, where any
    value decides what runs: it counts as used.  Empty for models that cannot be run.
    """
    if model.summary.cannot_run is not None or not isinstance(model, NetworkModel):
        return {}
    known = _known.setdefault(model, {})
    content = "" if data is None else data.record.content_hash
    if content not in known:
        known[content] = _unused(model, probe(model, data), data)
    return dict(known[content])


def _unused(model: NetworkModel, batch: Batch, data: Data | None) -> dict[str, str]:
    network = model.body.network
    flow = DataFlow()
    with torch.no_grad(), flow:
        output = model.run(batch)
    needed, read = flow.needed(output), flow.read()
    give_back()
    tensors = dict(network.named_parameters(remove_duplicate=False))
    place = {name: next(iter(places([tensor]))) for name, tensor in tensors.items()}
    ran = {name.rpartition(".")[0] for name in tensors if place[name] in read}
    ran |= {".".join(name.split(".")[:depth]) for name in ran for depth in range(name.count(".") + 1)}
    inputs, unused = " and ".join(name for name in batch if name != "labels"), dict[str, str]()
    for layer in model.summary.layers:
        if place[layer.parameter] in needed:
            continue
        if place[layer.parameter] in read:
            unused[layer.name] = "its result does not reach the model's output"
        elif not (flow.decides and _may_run(network, layer.parameter, ran)):
            unused[layer.name] = f"it does not run when the model is given {inputs}"
    idle = [name for name in unused if place[model.summary.by_name[name].parameter] not in read]
    elsewhere = _read_elsewhere(model, data) if idle and flow.decides and data is not None else frozenset()
    for name in idle:
        if place[model.summary.by_name[name].parameter] in elsewhere:
            del unused[name]
    return unused


def _read_elsewhere(model: NetworkModel, data: Data) -> frozenset[int]:
    """Return the storages that any of MORE samples, evenly through ``data``, has read."""
    read, size = frozenset[int](), model.inputs.batch or 1
    for batch in islice(data.batches(size), 1, None, max(len(data) // size // MORE, 1)):
        flow = DataFlow()
        with torch.no_grad(), flow:
            model.run(batch)
        read |= flow.read()
    return read


def _may_run(network: nn.Module, parameter: str, ran: set[str]) -> bool:
    """Return whether the parameter is in an entry of a list of modules of which another entry ran."""
    words = parameter.split(".")
    modules: Mapping[str, nn.Module] = dict(network.named_modules(remove_duplicate=False))
    for depth in range(len(words)):
        path = ".".join(words[:depth])
        within = modules.get(path)
        if isinstance(within, nn.ModuleList | nn.ModuleDict):
            prefix = f"{path}." if path else ""
            own = f"{prefix}{words[depth]}"
            if own not in ran and any(f"{prefix}{name}" in ran for name, _ in within.named_children()):
                return True
    return False
