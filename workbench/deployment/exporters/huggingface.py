"""Exports a Hugging Face folder that transformers loads: the evaluated values in float32, configuration, tokenizer."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from workbench.atomic import replacing_folder
from workbench.deployment.checkpoints.folder import check_place, copy_settings, mark, read_settings, source_folder
from workbench.deployment.failed import keeping_failed
from workbench.deployment.safetensors_file import prove_header, write_safetensors
from workbench.deployment.tensors import (
    Entry,
    check,
    decoded_entries,
    other_entries,
    refuse_quantized_activations,
    require_same_bytes,
)
from workbench.errors import ExportError, ModelError
from workbench.models.dtypes import DTYPES, tensor_bytes
from workbench.models.placement import CPU, Placement
from workbench.progress import Progress

if TYPE_CHECKING:
    import torch

    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel

TIMM = "timm_model."
"""Where transformers has a network of timm; files leave it out, so that timm reads them too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HuggingFaceFolder:
    """A folder with config.json, model.safetensors in float32 and the source's tokenizer."""

    name: ClassVar = "huggingface"
    title: ClassVar = "Hugging Face folder"
    description: ClassVar = "a folder that transformers loads, with the evaluated values in float32"
    needs_model: ClassVar = True

    def refuse(self, planned: QuantizedModel, model: Model) -> None:
        """See :class:`workbench.deployment.exporters.Refuses`."""
        opened = check(planned, model)
        source_folder(opened)
        refuse_quantized_activations(planned, opened, "a float checkpoint")

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write, load with transformers, compare; see :class:`workbench.deployment.exporters.Exporter`."""
        opened = check(quantized, model)
        source = source_folder(opened)
        refuse_quantized_activations(quantized, opened, "a float checkpoint")
        check_place(out, source)
        entries = [*decoded_entries(quantized, opened), *(_widened(each) for each in other_entries(quantized, opened))]
        with replacing_folder(out, ExportError, "the Hugging Face folder") as temporary:
            config = read_settings(source, opened, untied=bool(quantized.changes.untied))
            copy_settings(source, temporary, _in_float32(config))
            named = [dataclasses.replace(each, name=each.name.removeprefix(TIMM)) for each in entries]
            write_safetensors(temporary / "model.safetensors", named, {"format": "pt"}, progress)
            files = mark(quantized, temporary, "huggingface")
            progress(1.0, "loading it with transformers")
            with keeping_failed(temporary, out):
                prove_header(temporary / "model.safetensors", named, {"format": "pt"})
                _prove(temporary, entries, opened)
        return tuple(out / name for name in files)


def _in_float32(config: Any) -> Any:
    if not isinstance(config, dict):
        return config
    return {
        key: "float32" if key in ("dtype", "torch_dtype") and value is not None else _in_float32(value)
        for key, value in config.items()
    }


def _widened(entry: Entry) -> Entry:
    """Return an unquantized tensor in float32, which holds every narrower floating-point value exactly."""
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
        loaded = open_model(folder, placement=Placement(CPU))
    except ModelError as error:
        raise ExportError(f"transformers does not load what was written: {error}") from error
    written = {entry.name: entry for entry in entries}

    def compare(name: str, tensor: torch.Tensor) -> None:
        require_same_bytes(written[name], tensor_bytes(tensor), written[name].data(), "please report")

    for layer in model.summary.stored:
        compare(layer.parameter, layer.tensor_of(loaded.weight(layer.name)))
    for tensor in model.summary.others:
        compare(tensor.name, loaded.other(tensor.name))
