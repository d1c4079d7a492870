"""A quantized checkpoint by the plan that it was opened with: its files, as they are."""

from __future__ import annotations

import filecmp
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.deployment.checkpoints.folder import copy_settings
from workbench.errors import ExportError
from workbench.models.sources.quantized_checkpoint import quantization_of
from workbench.models.sources.safetensors_file import weight_files
from workbench.plain_file import read_json
from workbench.progress import Progress

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.planning.plan import Assignment
    from workbench.quantization.quantized_model import QuantizedModel


def stated_by(model: Model, source: Path) -> tuple[str, Any]:
    """Return the method of the checkpoint in ``source`` and its settings; no method where it is not ``model``'s."""
    opened = model.summary.source.kind == "quantized_checkpoint"
    return (quantization_of(read_json(source / "config.json")) if opened else None) or ("", {})


def is_as_stored(quantized: QuantizedModel, model: Model, assignments: Mapping[str, Assignment]) -> bool:
    """Return whether all layers, their inputs and caches have what the checkpoint of ``model`` gives them."""
    for layer in model.summary.layers:
        name, assignment = layer.name, assignments[layer.name]
        stated, bounds = model.encoded_range(name), quantized.ranges.get((name, "input"))
        ranged = assignment.inputs is None or stated in (None, bounds and (bounds.low, bounds.high))
        stored = quantized.tensors.get(name)
        weights = layer.tied_to is not None or (stored and stored.scheme) == model.encoding(name)
        activations = (assignment.inputs, assignment.cache) == (model.encoded_inputs(name), model.encoded_cache(name))
        if not (ranged and activations and weights):
            return False
    return not (model.overrides.weights or model.overrides.others or quantized.others)


def is_copy(source: Path, folder: Path) -> bool:
    """Return whether ``folder`` holds the weights and the config.json of ``source``."""
    copies = [folder / file.name for file in _files(source)]
    return all(copy.is_file() and filecmp.cmp(source / copy.name, copy, shallow=False) for copy in copies)


def _files(source: Path) -> list[Path]:
    return [*weight_files(source), *source.glob("*.safetensors.index.json"), source / "config.json"]


def copy_checkpoint(source: Path, folder: Path, progress: Progress) -> None:
    """Copy a checkpoint with its tokenizer and licence; ExportError where a copy reads back otherwise."""
    copy_settings(source, folder, {})
    files = _files(source)
    for number, file in enumerate(files):
        progress(number / len(files), f"writing {file.name}")
        shutil.copyfile(file, folder / file.name)
    if not is_copy(source, folder):
        raise ExportError(f"what was written to {folder} reads back otherwise; check the disk and export again")
    progress(1.0, f"wrote {folder.name}")
