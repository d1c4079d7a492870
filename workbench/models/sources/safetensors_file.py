"""A bare safetensors file, or a folder of shards: weights only, read lazily."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import NotAModelError
from workbench.models.model import Model
from workbench.models.sources.source import Opening
from workbench.models.sources.stored import in_blocks, tensors_in_files, with_tied
from workbench.models.sources.weights_only import weights_only_model
from workbench.models.summary import ModelSource
from workbench.plain_file import read_json
from workbench.readable import few

INDEX = ".safetensors.index.json"


@dataclass(frozen=True, slots=True)
class SafetensorsFiles:
    """``model.safetensors``, ``model.safetensors.index.json``, or a folder that holds them."""

    name = "safetensors"
    description = "a .safetensors file or folder"

    def detects(self, path: Path) -> bool:
        """Recognize it by the names."""
        return bool(weight_files(path)) if path.is_dir() else path.name.endswith((".safetensors", INDEX))

    def open(self, request: Opening) -> Model:
        """Read the headers, hash the contents; no tensor stays in memory."""
        store = with_tied(in_blocks(tensors_in_files(weight_files(request.path), passing=True)))
        return weights_only_model(ModelSource(kind=self.name, path=request.recorded), store, read=request.contents)


def weight_files(path: Path) -> list[Path]:
    """Return the safetensors files of a file, an index or a folder, in order; empty where there are none.

    In a folder they are those that ``transformers`` loads: ``model.safetensors`` before its index; only where there is
    neither, another index if it is the only one, or all files there are.  Raises NotAModelError where the index is
    damaged or names a file that is missing, or where there are several.
    """
    if path.is_dir():
        single, indexes = path / "model.safetensors", sorted(path.glob(f"*{INDEX}"))
        if single.is_file():
            return [single]
        if path / f"model{INDEX}" in indexes:
            return _indexed(path / f"model{INDEX}")
        if len(indexes) > 1:
            names = few((index.name for index in indexes), 8)
            raise NotAModelError(f"{path} holds {len(indexes)} indexes of shards; open one of {names}")
        return _indexed(indexes[0]) if indexes else sorted(path.glob("*.safetensors"))
    return _indexed(path) if path.name.endswith(INDEX) else [path]


def _indexed(index: Path) -> list[Path]:
    try:
        names = sorted(set(read_json(index)["weight_map"].values()))
        files = [index.parent / name for name in names]
    except OSError as error:
        raise NotAModelError(f"{index} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NotAModelError(f"{index} is not an index of safetensors shards: it has no readable weight_map") from None
    if any(file.parent != index.parent for file in files):
        raise NotAModelError(f"{index} names files outside its folder; shards must lie beside the index")
    missing = [file.name for file in files if not os.path.isfile(file)]  # of any length and of any characters
    if missing:
        raise NotAModelError(f"{index} names shards that are missing: {few(missing, 8)}; fetch them too")
    return files
