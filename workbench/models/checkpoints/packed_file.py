"""The workbench's own packed safetensors: every scheme, its arrays as they are; see the exporter of that name."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from workbench.errors import NotAModelError, first_line
from workbench.models.checkpoints.packed import Packed, PackedWeight
from workbench.models.layer import Layer, LayerKind
from workbench.models.sources.layers import Role, block_of
from workbench.models.sources.stored import TensorStore
from workbench.numerics.formats import parse_scheme
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.plain_file import opened

TYPE = "quantization-workbench/packed"
VERSION = "1"
FIRST_BYTES = 1 << 12
"""The exporter writes the type first."""


def is_packed_file(path: Path) -> bool:
    """Recognize it by its first bytes whether a safetensors file holds packed tensors of ours."""
    if path.suffix != ".safetensors":
        return False
    try:
        with opened(path) as stream:
            return f'"type":"{TYPE}"'.encode() in stream.read(FIRST_BYTES)
    except OSError:
        return False


def read_packed_file(store: TensorStore, where: Path) -> Packed:
    """Return the packed weights; NotAModelError for a file of a later version, or one that does not describe them."""
    version = store.metadata.get("version")
    if version != VERSION:
        raise NotAModelError(f"{where} has version {str(version)[:20]}, this reads {VERSION}; update the workbench")
    try:
        described = json.loads(store.metadata["tensors"])
        return {name: _weight(store, name, facts) for name, facts in described.items()}
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise NotAModelError(f"{where} is damaged: it does not describe its tensors ({first_line(error)})") from error


def described_layers(store: TensorStore, packed: Packed, layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """Return ``layers``, which names and shapes told, with what the file says of its packed and of its tied ones."""
    try:
        return _described(store, packed, layers)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise NotAModelError(f"the file is damaged: it does not describe its layers ({first_line(error)})") from error


def _described(store: TensorStore, packed: Packed, layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    described = json.loads(store.metadata["tensors"])
    known = {layer.parameter: layer for layer in layers}
    ours = {}
    for name, weight in packed.items():
        facts, (rows, _) = described[name], described[name]["matrix"]
        guessed = known.get(name) or Role(kind=LayerKind.MATRIX).layer(weight.facts(name))
        sizes = [(weight.view or weight.shape)[axis] for axis in weight.axes]
        fitting = (count for count in range(len(sizes) + 1) if math.prod(sizes[:count]) == rows)
        kind = facts.get("kind")
        ours[name] = replace(
            guessed, name=str(facts["layer"]), axes=weight.axes, view=weight.view, row_axes=next(fitting),
            kind=LayerKind(kind) if kind in set(LayerKind) else guessed.kind,
        )  # fmt: skip
    stored = (*(ours.pop(layer.parameter, layer) for layer in layers), *ours.values())
    return (*stored, *_tied_layers(store, {layer.parameter: layer for layer in stored}))


def _tied_layers(store: TensorStore, owners: Mapping[str, Layer]) -> Iterator[Layer]:
    """Yield the layers that use the tensor of one of ``owners``, which are by parameter; ValueError for other axes."""
    for name, facts in json.loads(store.metadata.get("tied", "{}")).items():
        owner = owners[facts["of"]]
        if sorted(facts["axes"]) != sorted(owner.axes) or facts["parameter"] in owners:
            raise ValueError(f"{name} does not use {owner.parameter}")
        yield replace(
            owner, name=name, parameter=str(facts["parameter"]), kind=LayerKind(facts["kind"]), macs=None,
            axes=tuple(facts["axes"]), row_axes=int(facts["row_axes"]), block=block_of(name), tied_to=owner.name,
        )  # fmt: skip


def _weight(store: TensorStore, name: str, facts: Mapping[str, Any]) -> PackedWeight:
    """Return a weight; ValueError where its shapes do not fit together."""
    shape, view, axes = (tuple(map(int, facts.get(key, ()))) for key in ("shape", "view", "axes"))
    rows, columns = map(int, facts["matrix"])
    parts = {str(part): f"{name}.{part}" for part in facts["parts"]}
    sizes = view or shape
    if sorted(axes) != list(range(len(sizes))) or not math.prod(sizes) == math.prod(shape) == rows * columns:
        raise ValueError(f"{name} is {shape}, its matrix {rows} x {columns}")
    if not any(math.prod(sizes[axis] for axis in axes[:count]) == rows for count in range(len(axes) + 1)):
        raise ValueError(f"{name} is {shape}, its matrix {rows} x {columns}")
    scheme = parse_scheme(str(facts["scheme"])).name
    return PackedWeight(
        parts=tuple(store.tensors[part].name for part in parts.values()), shape=shape, scheme=scheme, axes=axes,
        view=view, load=partial(_load, store, parts, scheme, (rows, columns)),
    )  # fmt: skip


def _load(store: TensorStore, parts: Mapping[str, str], scheme: str, shape: tuple[int, int]) -> QuantizedTensor:
    arrays = {part: store.read(name).numpy() for part, name in parts.items()}
    return QuantizedTensor(scheme=scheme, shape=shape, arrays=arrays)
