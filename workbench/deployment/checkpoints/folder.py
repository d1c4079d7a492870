"""The folder around a checkpoint's tensors: where the original lies, what is copied from it, what may be replaced."""

from __future__ import annotations

import filecmp
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import ExportError, ModelError
from workbench.models.checkpoints.beside import BESIDE
from workbench.models.readers.pooling import module_files
from workbench.plain_file import read_json
from workbench.progress import Progress

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.planning.plan import Assignment
    from workbench.quantization.quantized_model import QuantizedModel

MARKER = "quantization-workbench.json"
"""Lists what an export wrote into its folder; only a folder that holds nothing else is ever replaced."""

COPIED = (".json", ".txt", ".model", ".spm", ".jinja", ".tiktoken")
ORIGINS = ("huggingface", "quantized_checkpoint")
"""The sources whose folders have a config.json."""


def source_folder(model: Model, *, bare: bool = False) -> Path:
    """Return the folder that the model came from; ExportError if it did not come from one or the folder is gone.

    ``bare``: a safetensors file that lies beside its config.json will do too, which needs no memory for a network.
    """
    source = model.summary.source
    beside = bare and source.kind == "safetensors" and has_settings(Path(source.path))
    if source.kind not in ORIGINS and not beside:
        raise ExportError(
            f"{model.summary.name} comes from {source.kind}, so transformers has no config.json to load it with; "
            "export to state-dict or safetensors instead"
        )
    from workbench.models.sources.catalog import resolve

    try:
        folder, _ = resolve(source.path)
    except ModelError as error:
        raise ExportError(f"the configuration and the tokenizer cannot be copied: {error}") from error
    require_settings(folder)
    folder = folder if folder.is_dir() else folder.parent
    _require_own(folder)
    return folder


def require_settings(path: Path) -> None:
    """Raise ExportError where no config.json lies in a folder, or beside a file."""
    if not has_settings(path):
        folder = path if path.is_dir() else path.parent
        raise ExportError(
            f"no config.json lies in {folder}; put the weights, as model.safetensors, into a folder with the "
            "config.json and the tokenizer of their model and open that, or export to state-dict or safetensors"
        )


def has_settings(path: Path) -> bool:
    """Tell whether config.json lies in a folder, or beside a file."""
    return ((path if path.is_dir() else path.parent) / "config.json").is_file()


def check_place(out: Path, source: Path) -> None:
    """Raise ExportError if anything but an earlier export stands at ``out``."""
    if out.is_dir() and out.resolve() != source.resolve():
        try:
            written = {MARKER, *read_json(out / MARKER)["files"]}
        except (OSError, ValueError, KeyError, TypeError):
            written = set()
        if set(_names(out)) <= written:
            return
    if out.exists():
        raise ExportError(
            f"{out} exists and holds more than an earlier export; choose a new folder, nothing was changed"
        )


def mark(quantized: QuantizedModel, folder: Path, kind: str) -> list[str]:
    """Write the list of all files of ``folder`` into it, and return their names with the list's own."""
    files = sorted(_names(folder))
    content = {
        "type": f"quantization-workbench/{kind}-export", "version": 1, "fingerprint": quantized.summary.fingerprint,
        "plan": quantized.plan.hash, "files": files,
    }  # fmt: skip
    (folder / MARKER).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return [*files, MARKER]


def _names(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]


def read_settings(source: Path, model: Model | None, *, untied: bool) -> dict[str, Any]:
    """Return config.json; ``untied``: the head has a weight of its own now, and the configuration says so.

    A ``model`` of embeddings was evaluated without the head of words that its class may have.
    """
    from workbench.models.execution.network import NetworkModel

    config: dict[str, Any] = read_json(source / "config.json")
    config.pop("quantization_config", None)
    config.pop("auto_map", None)  # code is not copied
    if isinstance(config.get("model_args"), dict):
        config["model_args"].pop("num_classes", None)  # transformers gives timm its own, and takes no other
    if isinstance(model, NetworkModel) and model.inputs.embeds and config.get("architectures"):
        config["architectures"] = [type(model.body.network).__name__]
    if untied:
        config["tie_word_embeddings"] = False
    return config


def _copied(source: Path) -> list[Path]:
    """Return the tokenizer, generation settings and licence in a model's folder, and what makes embeddings of its
    states; never the network's weights or code."""
    own = [
        file for file in sorted(source.iterdir())
        if file.is_file() and file.name not in (MARKER, "config.json", *BESIDE) and (
            file.name.upper().startswith(("LICENSE", "LICENCE", "NOTICE"))
            or (file.suffix in COPIED and not file.name.endswith(".index.json"))
        )
    ]  # fmt: skip
    return own + module_files(source, ExportError)


def _require_own(source: Path) -> None:
    """Raise ExportError for a link to a file elsewhere: an export that somebody shares would hold a private file.

    Links of the Hub's cache lead from ``snapshots/NUMBER`` into ``blobs`` beside that.
    """
    own = source.resolve()
    places = (own, *(parent / "blobs" for parent in own.parents[1:2]))
    for file in _copied(source):
        if not any(file.resolve().is_relative_to(place) for place in places):
            raise ExportError(
                f"{file} is a link to {file.resolve()}, outside the model's folder, and would be copied into the "
                "export; put the file itself there"
            )


def copy_settings(source: Path, target: Path, config: dict[str, Any]) -> None:
    """Copy tokenizer, generation settings and licence, never weights or code, and write ``config`` beside them."""
    for file in _copied(source):
        copy = target / file.relative_to(source)
        copy.parent.mkdir(exist_ok=True, parents=True)
        shutil.copyfile(file, copy)
    write_config(target, config)


def write_config(folder: Path, config: Mapping[str, Any]) -> None:
    """Write config.json."""
    text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    (folder / "config.json").write_text(text, encoding="utf-8")


def stated_by(model: Model, source: Path) -> tuple[str, Any]:
    """Return the method of the checkpoint in ``source`` and its settings; no method where it is not ``model``'s."""
    from workbench.models.sources.quantized_checkpoint import quantization_of

    opened = model.summary.source.kind == "quantized_checkpoint"
    return (quantization_of(read_json(source / "config.json")) if opened else None) or ("", {})


def is_as_stored(quantized: QuantizedModel, model: Model, assignments: Mapping[str, Assignment]) -> bool:
    """Return whether all layers, their inputs and caches have what the checkpoint of ``model`` gives them."""
    for layer in model.summary.layers:
        name, assignment, stored = layer.name, assignments[layer.name], quantized.tensors.get(layer.name)
        stated, bounds = model.encoded_range(name), quantized.ranges.get((name, "input"))
        own = (model.encoded_inputs(name), model.encoded_cache(name), layer.tied_to is None and model.encoding(name))
        planned = (assignment.inputs, assignment.cache, layer.tied_to is None and stored and stored.scheme)
        if planned != own or (assignment.inputs and stated not in (None, bounds and (bounds.low, bounds.high))):
            return False
    return not (model.overrides.weights or model.overrides.others or quantized.others)


def is_copy(source: Path, folder: Path) -> bool:
    """Return whether ``folder`` holds the weights and the config.json of ``source``."""
    copies = [folder / file.name for file in _files(source)]
    return all(copy.is_file() and filecmp.cmp(source / copy.name, copy, shallow=False) for copy in copies)


def _files(source: Path) -> list[Path]:
    from workbench.models.sources.safetensors_file import weight_files

    return [*weight_files(source), *source.glob("*.safetensors.index.json"), source / "config.json"]


def copy_checkpoint(source: Path, folder: Path, progress: Progress) -> None:
    """Copy a checkpoint with its tokenizer and licence; ExportError where a copy reads back otherwise."""
    copy_settings(source, folder, {})
    for file in _files(source):
        progress(0.0, f"writing {file.name}")
        shutil.copyfile(file, folder / file.name)
    if not is_copy(source, folder):
        raise ExportError(f"what was written to {folder} reads back otherwise; check the disk and export again")
