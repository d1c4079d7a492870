"""A bare safetensors file, or a folder of shards: weights only, read lazily."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import NotAModelError
from workbench.models.dtypes import FLOATING
from workbench.models.layer import KeptTensor, Layer, LayerKind
from workbench.models.model import Model
from workbench.models.sources.layers import PACKED, Role, block_of, is_norm, linear_role, unknown_role
from workbench.models.sources.source import Opening, display_name
from workbench.models.sources.stored import (
    SafetensorsStore,
    StoredTensor,
    TensorStore,
    fingerprint,
    non_finite_tensors,
)
from workbench.models.summary import ModelSource, ModelSummary, OutputKind
from workbench.models.weights_only import WeightsOnlyModel

INDEX = ".safetensors.index.json"
CANNOT_RUN = (
    "the file holds weights only, not the network; open its Hugging Face folder, or a Python file with a factory "
    "function together with these weights"
)


@dataclass(frozen=True, slots=True)
class SafetensorsFiles:
    """``model.safetensors``, ``model.safetensors.index.json``, or a folder that holds them."""

    name = "safetensors"
    description = "a .safetensors file or folder"

    def detects(self, path: Path) -> bool:
        """Tell by the names."""
        return bool(weight_files(path)) if path.is_dir() else path.name.endswith((".safetensors", INDEX))

    def open(self, request: Opening) -> Model:
        """Read the headers, hash the contents; no tensor stays in memory."""
        store = SafetensorsStore(weight_files(request.path))
        return weights_only_model(ModelSource(kind=self.name, path=request.given), store)


def weight_files(path: Path) -> list[Path]:
    """Return the safetensors files of a file, an index or a folder, in order; empty where there are none.

    In a folder the index decides where there is one, else ``model.safetensors``, else all files there are.  Raises
    NotAModelError where the index is damaged or names a file that is missing.
    """
    if path.is_dir():
        indexes = sorted(path.glob(f"*{INDEX}"))
        if indexes:
            return _indexed(indexes[0])
        single = path / "model.safetensors"
        return [single] if single.is_file() else sorted(path.glob("*.safetensors"))
    return _indexed(path) if path.name.endswith(INDEX) else [path]


def _indexed(index: Path) -> list[Path]:
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        files = [index.parent / name for name in names]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NotAModelError(f"{index} is not an index of safetensors shards: it has no readable weight_map") from None
    if any(file.parent != index.parent for file in files):
        raise NotAModelError(f"{index} names files outside its folder; shards must lie beside the index")
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise NotAModelError(f"{index} names shards that are missing: {', '.join(missing)}; fetch them too")
    return files


def weights_only_model(source: ModelSource, store: TensorStore) -> WeightsOnlyModel:
    """Assemble a model of which only the tensors are known; what they do is guessed from names and shapes."""
    layers, kept, name_of = [], [], {}
    for tensor in store.tensors.values():
        role = guess_role(tensor)
        if role is None:
            kept.append(KeptTensor(name=tensor.name, shape=tensor.shape, dtype=tensor.dtype))
            continue
        name = tensor.name.removesuffix(".weight") if role.named_by_module else tensor.name
        name_of[tensor.name] = name
        layers.append(
            Layer(
                name=name, kind=role.kind, parameter=tensor.name, shape=tensor.shape, dtype=tensor.dtype,
                axes=role.axes, row_axes=role.row_axes, block=block_of(name),
            )
        )  # fmt: skip
    summary = ModelSummary(
        name=display_name(Path(source.path)), source=source, fingerprint=fingerprint(store), output=OutputKind.NONE,
        layers=tuple(layers), kept=tuple(kept), cannot_run=CANNOT_RUN,
        non_finite=tuple(name_of.get(name, name) for name in non_finite_tensors(store)),
    )  # fmt: skip
    return WeightsOnlyModel(summary, store)


def guess_role(tensor: StoredTensor) -> Role | None:
    """Guess from a tensor's name and shape what it does; None for what is kept (norms, biases, buffers, integers)."""
    path, last = tensor.name.lower(), tensor.name.rpartition(".")[2]
    if tensor.dtype not in FLOATING or len(tensor.shape) < 2 or is_norm(path) or tensor.shape[0] == 1:
        return None
    axes = tuple(range(len(tensor.shape)))
    if last.startswith(("weight_ih", "weight_hh")):
        return Role(kind=LayerKind.RECURRENT, axes=axes)
    if last in PACKED:
        return Role(kind=LayerKind.ATTENTION, axes=axes)
    if last != "weight":
        return unknown_role(tensor.shape)
    if len(axes) == 2 and any(part in path for part in ("embed", "wte", "wpe")):
        return Role(kind=LayerKind.EMBEDDING, axes=axes, named_by_module=True)
    if len(axes) == 2:
        return linear_role(axes)
    kinds = {3: LayerKind.EXPERTS if "expert" in path else LayerKind.CONV1D, 4: LayerKind.CONV2D, 5: LayerKind.CONV3D}
    if len(axes) not in kinds:
        return unknown_role(tensor.shape)
    row_axes = 2 if kinds[len(axes)] is LayerKind.EXPERTS else 1
    return Role(kind=kinds[len(axes)], axes=axes, row_axes=row_axes, named_by_module=True)
