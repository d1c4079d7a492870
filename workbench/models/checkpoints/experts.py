"""Where a checkpoint stores experts that the network holds as one tensor: one matrix for each expert and projection."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.models.layer import Layer, LayerKind, StoredTensor
from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.quantized_tensor import QuantizedTensor

PROJECTIONS = {"gate_up_proj": (("gate_proj", "up_proj"), ("w1", "w3")), "down_proj": (("down_proj",), ("w2",))}
"""What stands for a fused parameter, in the order of its rows; checkpoints have two sets of names."""

FIRST = re.compile(r"(.+)\.0\.\w+\.weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A tensor of the checkpoint, and the rows of the layer's matrix that it holds."""

    name: str
    rows: slice

    @property
    def module(self) -> str:
        """The module that a loader knows it by."""
        return self.name.removesuffix(".weight")


Owners = Mapping[tuple[str, ...], Sequence[str]]
"""Modules that hold experts, by the numbers in their names."""


def owners_of(tensors: Iterable[str]) -> Owners:
    """Return the modules that hold experts one by one."""
    owners: dict[tuple[str, ...], list[str]] = {}
    for name in tensors:
        match = FIRST.fullmatch(name)
        if match is not None and match[1] not in owners.setdefault(_numbers(match[1]), []):
            owners[_numbers(match[1])].append(match[1])
    return owners


def pieces_of(layer: Layer, owners: Owners, tensors: Mapping[str, StoredTensor]) -> tuple[Piece, ...]:
    """Return the tensors that stand for a layer of experts; none for a layer that is one tensor, or no experts.

    The module may be called otherwise (``block_sparse_moe.experts`` for ``mlp.experts``): the numbers are the same.
    """
    if layer.kind is not LayerKind.EXPERTS or layer.parameter in tensors:
        return ()
    places = owners.get(_numbers(layer.parameter.rpartition(".")[0]), ())
    return next((pieces for place in places if (pieces := _pieces(layer, place, tensors))), ())


def _numbers(name: str) -> tuple[str, ...]:
    """Return the numbers in a name: of the block, of the expert."""
    return tuple(re.findall(r"(?<=\.)\d+(?=\.|$)", name))


def _pieces(layer: Layer, owner: str, tensors: Mapping[str, StoredTensor]) -> tuple[Piece, ...]:
    rows, columns = layer.matrix
    for names in PROJECTIONS.get(layer.parameter.rpartition(".")[2], ()):
        every = [f"{owner}.{expert}.{name}.weight" for expert in range(layer.experts) for name in names]
        height = rows // len(every)
        if all(name in tensors and tensors[name].shape == (height, columns) for name in every):
            starts = range(0, rows, height)
            return tuple(Piece(name=name, rows=slice(at, at + height)) for name, at in zip(every, starts, strict=True))
    return ()


def rows_of(stored: QuantizedTensor, rows: slice | np.ndarray) -> QuantizedTensor:
    """Return some rows of a matrix whose scales are those of rows or of groups; views where possible.

    Where zero points are packed, ``rows`` is a slice that begins at a multiple of 8.
    """
    height, width = stored.shape
    arrays = {}
    for name, array in stored.arrays.items():
        if name == "zero_points" and isinstance(rows, slice):
            scheme = parse_scheme(stored.scheme)
            assert isinstance(scheme, ScaledScheme)
            each = scheme.element.bits * stored.arrays["scales"].size // height
            arrays[name] = array[rows.start * each // 8 : -(-rows.stop * each // 8)]
        else:
            arrays[name] = np.ascontiguousarray(array.reshape(height, -1)[rows])
    count = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
    return QuantizedTensor(scheme=stored.scheme, shape=(count, width), arrays=arrays)


class _Joined(Mapping[str, np.ndarray]):
    """The arrays of matrices one below the other, joined each time that they are read."""

    def __init__(self, parts: Sequence[tuple[QuantizedTensor, slice | np.ndarray]]) -> None:
        self._parts = parts

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._parts[0][0].arrays:
            raise KeyError(name)
        only = (replace(stored, arrays={name: stored.arrays[name]}) for stored, _ in self._parts)
        return np.concatenate([
            rows_of(stored, rows).arrays[name] for stored, (_, rows) in zip(only, self._parts, strict=True)
        ])  # fmt: skip

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts[0][0].arrays)

    def __len__(self) -> int:
        return len(self._parts[0][0].arrays)


def joined_when_read(parts: Sequence[tuple[QuantizedTensor, slice | np.ndarray]]) -> QuantizedTensor:
    """Return rows of matrices of one scheme one below the other, whose arrays take no memory until they are read.

    Scales are those of rows or of groups, and zero points, if any, are not packed.
    """
    height = sum(rows.stop - rows.start if isinstance(rows, slice) else len(rows) for _, rows in parts)
    first = parts[0][0]
    return QuantizedTensor(scheme=first.scheme, shape=(height, first.shape[1]), arrays=_Joined(parts))


def joined(parts: Sequence[QuantizedTensor]) -> QuantizedTensor | None:
    """Return matrices one below the other, the inverse of :func:`rows_of`; None where they have no common form."""
    first = parts[0]
    if any(part.scheme != first.scheme or part.shape[1] != first.shape[1] for part in parts):
        return None
    arrays = {name: np.concatenate([part.arrays[name] for part in parts]) for name in first.arrays}
    shape = sum(part.shape[0] for part in parts), first.shape[1]
    stored = QuantizedTensor(scheme=first.scheme, shape=shape, arrays=arrays)
    return stored if 8 * stored.nbytes == parse_scheme(first.scheme).bits(shape) else None
