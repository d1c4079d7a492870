"""Experts of a checkpoint put together as mlx-lm loads them: one tensor for each projection of a block."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from workbench.deployment.checkpoints.origin import Origin, Part, Stack
from workbench.deployment.targets import ONE_BY_ONE
from workbench.deployment.tensors import Entry
from workbench.errors import ExportError
from workbench.models.checkpoints.switched import ONE, switched_name
from workbench.models.layer import Layer, LayerKind, StoredTensor
from workbench.readable import few

if TYPE_CHECKING:
    import torch

    from workbench.models.sources.stored import TensorStore

PROJECTIONS = {"gate_up_proj": ("gate_proj", "up_proj"), "down_proj": ("down_proj",)}
"""What a parameter that holds all experts has, in the order of an expert's rows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Source:
    """A tensor of the checkpoint of which ``rows`` (None: all, of one expert) belong to ``stacked``, as ``part``."""

    stacked: str
    name: str
    rows: np.ndarray | None
    part: Part


def with_experts_together(origin: Origin, layers: Collection[Layer], owner: str) -> Origin:
    """Return the checkpoint with the experts of every projection in one tensor ``[experts, outputs, inputs]``.

    ``owner`` is what mlx-lm calls the module around them.  Raises ExportError for experts that are stored otherwise.
    """
    sources = [*_of_one_expert(origin, layers), *_of_all_experts(origin, layers)]
    placed = {source.part.parameter for source in sources}
    left = [each.name for each in layers if each.kind is LayerKind.EXPERTS and each.parameter not in placed]
    if left:
        raise ExportError(
            "mlx-lm loads one tensor for each projection of the experts, which cannot be made of what the checkpoint "
            f"stores of {few(left, 4)}"
        )
    by_stack: dict[str, list[_Source]] = {}
    for source in sources:
        by_stack.setdefault(source.stacked.replace(".mlp.", f".{owner}."), []).append(source)
    return _together(origin, {layer.parameter: layer for layer in layers}, by_stack, owner)


def _of_one_expert(origin: Origin, layers: Collection[Layer]) -> list[_Source]:
    """Return the tensors that hold a projection of one expert each, in the order of the experts."""
    parts = {piece.name: Part(parameter=parameter, rows=piece.rows) for parameter, pieces in origin.pieces.items()
             for piece in pieces}  # fmt: skip
    for layer in layers:
        name = origin.names.get(layer.parameter, "")
        if layer.kind is LayerKind.LINEAR and ONE.fullmatch(name):
            parts[name] = Part(parameter=layer.parameter, rows=slice(0, layer.matrix[0]))
    return [_Source(stacked=switched_name(name), name=name, rows=None, part=parts[name]) for name in
            sorted(parts, key=_number)]  # fmt: skip


def _number(name: str) -> int:
    """Return the number of the expert: files have 10 before 2."""
    match = ONE.fullmatch(name)
    return int(match["expert"]) if match else 0


def _of_all_experts(origin: Origin, layers: Collection[Layer]) -> Iterator[_Source]:
    """Yield the projections in tensors that hold those of all experts, as the network does."""
    for layer in layers:
        name = origin.names.get(layer.parameter)
        one_by_one = layer.kind is LayerKind.EXPERTS and layer.axes == (0, 1, 2) and ONE_BY_ONE.fullmatch(layer.name)
        if name is None or not one_by_one:
            continue
        module, _, last = name.rpartition(".")
        projections = PROJECTIONS[last]
        rows = np.arange(layer.matrix[0]).reshape(layer.experts, len(projections), -1)
        for number, projection in enumerate(projections):
            own = rows[:, number].reshape(-1)
            stacked = f"{module.removesuffix('.experts')}.switch_mlp.{projection}.weight"
            yield _Source(stacked=stacked, name=name, rows=own, part=Part(parameter=layer.parameter, rows=own))


def _together(
    origin: Origin, layers: Mapping[str, Layer], by_stack: Mapping[str, Sequence[_Source]], owner: str
) -> Origin:
    """Return the checkpoint with each stack where the first of its sources is, and no source."""
    tensors, shards, originals = dict[str, StoredTensor](), dict[str, str](), dict[str, str]()
    stacks, begins = dict[str, Stack](), dict[str, list[str]]()
    for stacked, sources in by_stack.items():
        begins.setdefault(sources[0].name, []).append(stacked)
    hidden = {source.name for sources in by_stack.values() for source in sources}
    for name, tensor in origin.store.tensors.items():
        for stacked in begins.get(name, ()):
            parts = tuple(source.part for source in by_stack[stacked])
            layer = layers[parts[0].parameter]
            experts = layer.experts if layer.kind is LayerKind.EXPERTS else len(parts)
            shape = experts, sum(part.count for part in parts) // experts, layer.matrix[1]
            tensors[stacked] = StoredTensor(name=stacked, dtype=tensor.dtype, shape=shape)
            shards[stacked], stacks[stacked] = origin.shards[name], Stack(shape=shape, parts=parts)
        if name not in hidden:
            own = name.replace(".mlp.", f".{owner}.")
            tensors[own], shards[own], originals[own] = replace(tensor, name=own), origin.shards[name], name
    names = {name: own for own, name in originals.items()}
    store = replace(origin.store, tensors=tensors, read=partial(_read, origin.store, by_stack, originals), files=())
    kept = {parameter: names[name] for parameter, name in origin.names.items() if name in names}
    stacked_ones = frozenset(parameter for stack in stacks.values() for parameter in stack.parameters)
    return Origin(store=store, shards=shards, names=kept, pieces={}, stacks=stacks, stacked=stacked_ones)


def _read(
    store: TensorStore, by_stack: Mapping[str, Sequence[_Source]], originals: Mapping[str, str], name: str
) -> torch.Tensor:
    """Return a tensor in its stored dtype; that of all experts is a copy."""
    import torch

    if name not in by_stack:
        return store.read(originals[name])
    matrices = []
    for source in by_stack[name]:
        tensor = store.read(source.name)
        matrix = tensor.reshape(-1, tensor.shape[-1])
        matrices.append(matrix if source.rows is None else matrix[torch.from_numpy(source.rows)])
    return torch.cat(matrices)


def is_new(
    tensor: StoredTensor, parameters: Iterable[str], owned: Mapping[str, Entry], changed: Collection[str]
) -> bool:
    """Return whether the plan gives a tensor of the checkpoint, made of ``parameters``, other values or a dtype."""
    return any(each in changed or owned[each].dtype != tensor.dtype for each in parameters)


def stacked_entry(name: str, stack: Stack, owned: Mapping[str, Entry]) -> Entry:
    """Return experts in plain numbers, as the plan has them."""

    def load() -> torch.Tensor:
        import torch

        matrices = {each: torch.as_tensor(owned[each].load()).reshape(-1, stack.shape[-1]) for each in
                    stack.parameters}  # fmt: skip
        return torch.cat([matrices[part.parameter][part.rows] for part in stack.parts])

    return Entry(name=name, dtype=owned[stack.parameters[0]].dtype, shape=stack.shape, load=load)
