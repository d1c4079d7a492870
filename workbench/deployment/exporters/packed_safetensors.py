"""Exports the quantized model as it is counted: packed codes, scales and zero points in one safetensors file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from workbench.atomic import replacing
from workbench.deployment.failed import keeping_failed
from workbench.deployment.packed_layout import decode, layout
from workbench.deployment.safetensors_file import (
    name_taken,
    prove_bytes,
    prove_header,
    read_safetensors,
    write_safetensors,
)
from workbench.deployment.tensors import (
    Entry,
    array_entries,
    check,
    decoded,
    expected_nbytes,
    other_entries,
    require_same_bytes,
)
from workbench.errors import ExportError
from workbench.models.dtypes import tensor_bytes
from workbench.models.layer import StoredTensor
from workbench.numerics.formats import parse_scheme
from workbench.progress import Progress, part_of

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel

TYPE = "quantization-workbench/packed"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedSafetensors:
    """``<parameter>.codes``, ``.scales``, ``.zero_points`` for each quantized weight; all else as the model stores it.

    The file's metadata holds the plan, what each packed tensor is (``tensors``: scheme, shape, the matrix view) and how
    each scheme is decoded (``schemes``: see :mod:`workbench.deployment.packed_layout`).  ``tied`` are the layers that
    use another one's tensor, each with its own parameter and, as ``of``, the parameter of that one.
    """

    name: ClassVar = "safetensors"
    title: ClassVar = "Packed safetensors"
    description: ClassVar = "packed codes and scales in one safetensors file that says how to decode them"
    needs_model: ClassVar = True

    def refuse(self, planned: QuantizedModel, model: Model) -> None:
        """Raise ExportError for two tensors of one name; see :class:`workbench.deployment.exporters.Refuses`."""
        import torch

        opened = check(planned, model)
        names = {entry.name for entry in other_entries(planned, opened)}
        above = {name.rpartition(".")[0] for name in names}
        for layer in opened.summary.stored:
            if layer.name in planned.tensors and layer.parameter in above:
                scheme, row = parse_scheme(planned.tensors[layer.name].scheme), torch.ones(1, layer.matrix[1])
                for entry in array_entries(layer.parameter, scheme.encode(row, scheme.fit(row)).arrays):
                    if entry.name in names:
                        raise name_taken(entry.name)

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write, read back, compare every value; see :class:`workbench.deployment.exporters.Exporter`."""
        opened = check(quantized, model)
        metadata = _metadata(quantized, opened)
        with replacing(out, ExportError, "the packed model") as temporary:
            entries = list(_entries(quantized, opened))
            write_safetensors(temporary, entries, metadata, part_of(progress, 0.0, 0.5))
            with keeping_failed(temporary, out):
                prove_header(temporary, entries, metadata)
                _prove(temporary, quantized, opened, progress)
        progress(1.0, f"wrote {out.name}")
        return (out,)


def read_packed(path: Path) -> dict[str, np.ndarray]:
    """Return every tensor of a packed file under its parameter's name, in its stored shape.

    Quantized weights and kept floating-point tensors come as float32 (float64 stays), all else as stored; bit patterns
    of float8 stay uint8.  Raises ExportError for a file that is foreign, damaged or of a later version.
    """
    packed = PackedFile(path)
    return {name: packed.read(name) for name in packed.names}


def _entries(quantized: QuantizedModel, model: Model) -> Iterator[Entry]:
    for layer in model.summary.stored:
        if layer.name in quantized.tensors:
            yield from array_entries(layer.parameter, quantized.tensors[layer.name].arrays)
    yield from other_entries(quantized, model)


def _metadata(quantized: QuantizedModel, model: Model) -> dict[str, str]:
    tensors, schemes = {}, {}
    for layer in model.summary.stored:
        if layer.name in quantized.tensors:
            stored = quantized.tensors[layer.name]
            schemes[stored.scheme] = layout(parse_scheme(stored.scheme))
            tensors[layer.parameter] = {
                "layer": layer.name, "scheme": stored.scheme, "matrix": stored.shape, "shape": layer.shape,
                "axes": layer.axes, "kind": str(layer.kind), "parts": sorted(stored.arrays),
                **({"view": layer.view} if layer.view else {}),
            }  # fmt: skip
    owners = {layer.name: layer.parameter for layer in model.summary.stored}
    tied = {
        layer.name: {"of": owners[str(layer.tied_to)], "parameter": layer.parameter, "kind": str(layer.kind),
                     "axes": layer.axes, "row_axes": layer.row_axes} for layer in model.summary.tied
    }  # fmt: skip
    return {
        "type": TYPE, "version": str(VERSION), "model": model.summary.name, "fingerprint": model.summary.fingerprint,
        "plan": quantized.plan.to_json(), "tensors": _dump(tensors), "schemes": _dump(schemes),
        "tied": _dump(tied),
    }  # fmt: skip


def _dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


class PackedFile:
    """A packed file opened for reading: its header is read once, tensors one at a time."""

    def __init__(self, path: Path) -> None:
        """Read the header; raises ExportError for a file that is foreign, damaged or of a later version."""
        self.store = read_safetensors(path)
        metadata = self.store.metadata
        if metadata.get("type") != TYPE:
            raise ExportError(f"{path} is not a packed file of the workbench")
        if metadata.get("version") != str(VERSION):
            raise ExportError(
                f"{path} has version {metadata.get('version')}, this reads {VERSION}; update the workbench"
            )
        try:
            self.tensors: dict[str, Any] = json.loads(metadata["tensors"])
            self.schemes: dict[str, Any] = json.loads(metadata["schemes"])
            packed = {f"{name}.{part}" for name, entry in self.tensors.items() for part in entry["parts"]}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ExportError(f"{path} is damaged: it does not describe its tensors") from error
        self.names = (*self.tensors, *(name for name in self.store.tensors if name not in packed))

    def read(self, name: str) -> np.ndarray:
        """Return one tensor as :func:`read_packed` does."""
        import torch

        entry = self.tensors.get(name)
        if entry is None:
            tensor = self.store.read(name)
            if tensor.is_floating_point() and tensor.itemsize < 4:
                tensor = tensor.float() if tensor.itemsize == 2 else tensor.view(torch.uint8)
            return tensor.numpy()
        return self.decoded(name, {part: self.store.read(f"{name}.{part}").numpy() for part in entry["parts"]})

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape as the network has it."""
        entry = self.tensors.get(name)
        return self.store.tensors[name].shape if entry is None else tuple(entry["shape"])

    def decoded(self, name: str, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the packed tensor ``name``, float32 in its stored shape, from its arrays."""
        entry = self.tensors[name]
        matrix = decode(self.schemes[entry["scheme"]], tuple(entry["matrix"]), arrays)
        axes = entry["axes"]
        back = sorted(range(len(axes)), key=axes.__getitem__)
        return np.ascontiguousarray(matrix.reshape([entry["shape"][axis] for axis in axes]).transpose(back))


def _prove(path: Path, quantized: QuantizedModel, model: Model, progress: Progress) -> None:
    """Raise ExportError unless the file's bytes are the plan's and its values those that were evaluated."""
    packed, layers = PackedFile(path), model.summary.stored
    expected, nbytes = expected_nbytes(quantized, model), sum(each.nbytes for each in packed.store.tensors.values())
    if nbytes != expected:
        raise ExportError(f"the file holds {nbytes} bytes of tensors, the plan counts {expected}; please report")
    for number, layer in enumerate(layers):
        progress(0.5 + number / max(len(layers), 1) / 2, f"checking {layer.name}")
        if layer.name in quantized.tensors:
            values = np.ascontiguousarray(packed.read(layer.parameter)).reshape(-1).view(np.uint8)
            decoded_tensor = StoredTensor(name=layer.parameter, dtype="float32", shape=layer.shape)
            require_same_bytes(decoded_tensor, values, tensor_bytes(decoded(quantized, layer)), "please report")
    prove_bytes(packed.store, other_entries(quantized, model))
