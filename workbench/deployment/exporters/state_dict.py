"""Exports the quantized model's values as a plain floating-point state dict."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from workbench.atomic import replacing
from workbench.deployment.failed import keeping_failed
from workbench.deployment.safetensors_file import prove_bytes, prove_header, read_safetensors, write_safetensors
from workbench.deployment.tensors import Entry, check, decoded_entries, other_entries, refuse_quantized_activations
from workbench.errors import ExportError
from workbench.progress import Progress

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDict:
    """Quantized weights decoded to float32, all else in its stored dtype, under the network's parameter names.

    Tied tensors appear under every name, so that ``network.load_state_dict(safetensors.torch.load_file(path))`` works;
    the metadata's ``tied`` maps each of the other names to the first.
    """

    name: ClassVar = "state-dict"
    title: ClassVar = "Float state dict"
    description: ClassVar = "the decoded values as a float state dict (safetensors), for torch's load_state_dict"
    needs_model: ClassVar = True

    def refuse(self, planned: QuantizedModel, model: Model) -> None:
        """See :class:`workbench.deployment.exporters.Refuses`."""
        _require_fit(planned, check(planned, model))

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write, read back, compare; see :class:`workbench.deployment.exporters.Exporter`."""
        opened = check(quantized, model)
        _require_fit(quantized, opened)
        entries = [*decoded_entries(quantized, opened), *other_entries(quantized, opened)]
        tied = list(_tied(opened, {entry.name: entry for entry in entries}))
        entries += [entry for _, entry in tied]
        metadata = {
            "format": "pt", "fingerprint": quantized.summary.fingerprint,
            "tied": json.dumps({entry.name: owner for owner, entry in tied}),
        }  # fmt: skip
        with replacing(out, ExportError, "the state dict") as temporary:
            write_safetensors(temporary, entries, metadata, progress)
            with keeping_failed(temporary, out):
                prove_header(temporary, entries, metadata)
                prove_bytes(read_safetensors(temporary), entries)
        progress(1.0, f"wrote {out.name}")
        return (out,)


def _require_fit(quantized: QuantizedModel, model: Model) -> None:
    refuse_quantized_activations(quantized, model, "a float state dict")
    if quantized.changes.untied:
        raise ExportError(
            f"the plan's rotation gives {quantized.changes.untied[0]} a weight of its own, which a network that ties "
            "it cannot load from a state dict; export to huggingface or safetensors"
        )


def _tied(model: Model, known: Mapping[str, Entry]) -> Iterator[tuple[str, Entry]]:
    """Yield the other names of tied tensors, each after its owner: they are one tensor."""
    for name, owner in model.aliases().items():
        if owner in known and name not in known:
            yield owner, dataclasses.replace(known[owner], name=name)
