"""Whether the parts of a session that was read fit together: a file may say anything, and every face believes it."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from workbench.errors import SessionError
from workbench.models.dtypes import DTYPES
from workbench.models.layer import Layer, StoredTensor
from workbench.models.summary import ModelSummary
from workbench.session.columns import Coded, Column, Columns, Numbers, Ragged
from workbench.session.contents import LAYOUTS, TAPS, Contents

LARGEST = 1 << 48
"""Elements of one tensor; sums over all layers stay below 64 bits."""


def require_coherent(session: Contents) -> None:
    """Raise SessionError, in words that follow the file's name, where parts contradict each other."""
    for problem in (*_of_model(session.model), *_of_results(session), *_of_tables(session)):
        raise SessionError(problem)


def _of_model(model: ModelSummary) -> Iterable[str]:
    known = {layer.name: layer for layer in model.layers}
    if len(known) < len(model.layers):
        yield "two layers of its model have one name"
    tensors: tuple[Layer | StoredTensor, ...] = (*model.others, *model.layers)
    for each in {(each.dtype, each.shape): each for each in tensors}.values():  # one of each form
        if each.dtype not in DTYPES:
            yield f"the tensor {each.name} has the unknown dtype {each.dtype}"
        if any(size < 0 for size in each.shape) or math.prod(each.shape) > LARGEST:
            yield f"the tensor {each.name} has the shape {_sizes(each)}"
    for layer in {(each.shape, each.view, each.axes, each.row_axes): each for each in model.layers}.values():
        if not _is_matrix(layer):
            yield f"the layer {layer.name} of the shape {_sizes(layer)} is not a matrix along the axes {layer.axes}"
    for layer in model.layers:
        if layer.calls < 0 or layer.calls > LARGEST or not 0 <= (layer.macs or 0) <= LARGEST:
            yield f"the layer {layer.name} is called {layer.calls} times with {layer.macs} multiplications"
        owner = known.get(layer.tied_to or layer.name)
        if owner is None or owner.tied_to is not None:
            yield f"the layer {layer.name} is tied to {layer.tied_to}, which is not a layer with its own weight"
        for name in layer.shares_with:
            if name not in known:
                yield f"the layer {layer.name} shares its scheme with {name}, and there is no such layer"


def _sizes(tensor: Layer | StoredTensor) -> str:
    return " x ".join(map(str, tensor.shape[:8]))


def _is_matrix(layer: Layer) -> bool:
    """Return whether the stored axes, each once, make rows and columns."""
    viewed = layer.viewed
    fits = sorted(layer.axes) == list(range(len(viewed))) and 0 <= layer.row_axes <= len(viewed)
    return fits and min(viewed, default=0) >= 0 and math.prod(viewed) == layer.parameters


def _of_results(session: Contents) -> Iterable[str]:
    """Look at columns alone: records are made when they are asked for."""
    known = session.model.by_name
    for name in LAYOUTS:
        for part, columns in session.columns(name).items():
            taps = _distinct(columns, "tap") if "tap" in columns.keys else (part,) if part else ()
            unknown = [each for each in _distinct(columns, "layer") if each not in known]
            unknown += [each for each in taps if each not in TAPS]
            if unknown:
                yield f"its {name} name {unknown[0]}, which its model does not have"
    for tap, columns in session.columns("statistics").items():
        channels = [_lengths(columns.fields[f"channel_{name}"]) for name in ("absmax", "minimum", "maximum")]
        if not all(np.array_equal(channels[0], each) for each in channels[1:]):
            yield f"the statistics of the {tap}s have channels of different lengths"


def _distinct(columns: Columns[object], key: str) -> Iterable[object]:
    column = columns.keys[key]
    return column.distinct if isinstance(column, Coded) else dict.fromkeys(column.cells(0, columns.rows))


def _lengths(column: Column) -> np.ndarray:
    """Return how many entries each array of a column has, ``[records]``."""
    if isinstance(column, Ragged):
        return np.diff(column.offsets)
    if isinstance(column, Numbers):
        return np.full(len(column), math.prod(column.values.shape[1:]))
    return np.array([np.asarray(cell).size for cell in column.cells(0, len(column))])


def _of_tables(session: Contents) -> Iterable[str]:
    for metric, table in session.sensitivities.items():
        shape = (len(table.layers), len(table.schemes))
        if table.metric != metric:
            yield f"its table of {metric} says that it is one of {table.metric}"
        if len(table.row) < shape[0] or len(table.column) < shape[1]:
            yield f"its table of {metric} names a layer or a scheme twice"
        arrays = (("error", table.error), ("rerouting", table.rerouting), ("uncorrected", table.uncorrected))
        for name, array in arrays:
            expected = shape[:1] if name == "error" else shape
            if array is not None and array.shape != expected:
                yield f"its table of {metric} has the {name} of shape {array.shape}, expected {expected}"
