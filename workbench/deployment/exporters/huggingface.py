"""Exports a Hugging Face folder that transformers loads: the evaluated values in float32, configuration, tokenizer."""

from __future__ import annotations

import dataclasses
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from workbench.atomic import replacing_folder
from workbench.deployment.safetensors_file import write_safetensors
from workbench.deployment.tensors import Entry, check, decoded_entries, kept_entries, refuse_quantized_activations
from workbench.errors import ExportError, ModelError
from workbench.models.dtypes import DTYPES, tensor_bytes
from workbench.progress import Progress

if TYPE_CHECKING:
    import torch

    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel

MARKER = "quantization-workbench.json"
"""Lists what an export wrote into its folder; only a folder that holds nothing else is ever replaced."""

COPIED = (".json", ".txt", ".model", ".jinja", ".tiktoken")


@dataclass(frozen=True, slots=True, kw_only=True)
class HuggingFaceFolder:
    """A folder with config.json, model.safetensors in float32 and the source's tokenizer."""

    name: ClassVar = "huggingface"
    title: ClassVar = "Hugging Face folder"
    description: ClassVar = "a folder that transformers loads, with the evaluated values in float32"
    needs_model: ClassVar = True

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write, load with transformers, compare; see :class:`workbench.deployment.exporters.Exporter`."""
        opened = check(quantized, model)
        source = _source_folder(opened)
        refuse_quantized_activations(quantized, opened, "a float checkpoint")
        _check_place(out, source)
        entries = [*decoded_entries(quantized, opened), *(_widened(each) for each in kept_entries(quantized, opened))]
        with replacing_folder(out, ExportError, "the Hugging Face folder") as temporary:
            _copy_settings(source, temporary, untied=bool(quantized.changes.untied))
            write_safetensors(temporary / "model.safetensors", entries, {"format": "pt"}, progress)
            files = sorted(path.name for path in temporary.iterdir())
            (temporary / MARKER).write_text(_marker(quantized, files), encoding="utf-8")
            progress(1.0, "loading it with transformers")
            _prove(temporary, entries, opened)
        return tuple(out / name for name in (*files, MARKER))


def _source_folder(model: Model) -> Path:
    """Return the folder that the model came from; ExportError if it did not come from one or the folder is gone."""
    source = model.summary.source
    if source.kind != "huggingface":
        raise ExportError(
            f"{model.summary.name} comes from {source.kind}, so transformers has no config.json to load it with; "
            "export to state-dict or safetensors instead"
        )
    from workbench.models.sources.catalog import resolve

    try:
        folder, _ = resolve(source.path)
    except ModelError as error:
        raise ExportError(f"the configuration and the tokenizer cannot be copied: {error}") from error
    return folder if folder.is_dir() else folder.parent


def _check_place(out: Path, source: Path) -> None:
    """Raise ExportError if anything but an earlier export stands at ``out``."""
    if out.is_dir() and out.resolve() != source.resolve():
        try:
            written = {MARKER, *json.loads((out / MARKER).read_text(encoding="utf-8"))["files"]}
        except (OSError, ValueError, KeyError, TypeError):
            written = set()
        if {str(path.relative_to(out)) for path in out.rglob("*")} <= written:
            return
    if out.exists():
        raise ExportError(
            f"{out} exists and holds more than an earlier export; choose a new folder, nothing was changed"
        )


def _marker(quantized: QuantizedModel, files: list[str]) -> str:
    content = {
        "type": "quantization-workbench/huggingface-export", "version": 1, "fingerprint": quantized.summary.fingerprint,
        "plan": quantized.plan.hash, "files": files,
    }  # fmt: skip
    return json.dumps(content, indent=2) + "\n"


def _copy_settings(source: Path, target: Path, *, untied: bool) -> None:
    """Copy configuration, tokenizer and licence, never weights or code; the configuration's dtype becomes float32.

    ``untied``: the head has a weight of its own now, and the configuration says so.
    """
    for file in sorted(source.iterdir()):
        legal = file.name.upper().startswith(("LICENSE", "LICENCE", "NOTICE"))
        settings = file.suffix in COPIED and not file.name.endswith(".index.json")
        if file.is_file() and (legal or settings) and file.name not in (MARKER, "config.json"):
            shutil.copyfile(file, target / file.name)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    if untied:
        config["tie_word_embeddings"] = False
    text = json.dumps(_in_float32(config), indent=2, ensure_ascii=False) + "\n"
    (target / "config.json").write_text(text, encoding="utf-8")


def _in_float32(config: Any) -> Any:
    if not isinstance(config, dict):
        return config
    return {
        key: "float32" if key in ("dtype", "torch_dtype") and value is not None else _in_float32(value)
        for key, value in config.items()
    }


def _widened(entry: Entry) -> Entry:
    """Return a kept tensor in float32, which holds every narrower floating-point value exactly."""
    if "float" not in entry.dtype or DTYPES[entry.dtype].bits >= 32:
        return entry

    def load() -> torch.Tensor:
        import torch

        return torch.as_tensor(entry.load()).to(torch.float32)

    return dataclasses.replace(entry, dtype="float32", load=load)


def _prove(folder: Path, entries: list[Entry], model: Model) -> None:
    """Raise ExportError unless transformers loads the folder and every tensor has the bits that were written."""
    from workbench.models.sources import open_model

    try:
        loaded = open_model(folder)
    except ModelError as error:
        raise ExportError(f"transformers does not load what was written: {error}") from error
    written = {entry.name: entry for entry in entries}

    def compare(name: str, tensor: torch.Tensor) -> None:
        if not np.array_equal(tensor_bytes(tensor), written[name].data()):
            raise ExportError(f"transformers loads other values for {name} than were evaluated; please report")

    for layer in model.summary.stored:
        compare(layer.parameter, layer.tensor_of(loaded.weight(layer.name)))
    for tensor in model.summary.kept:
        compare(tensor.name, loaded.kept(tensor.name))
