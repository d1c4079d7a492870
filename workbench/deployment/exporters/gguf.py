"""Exports a GGUF file for llama.cpp: each tensor in the type that the plan says, metadata, tokenizer, chat template."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from workbench.atomic import replacing
from workbench.deployment.failed import keeping_failed
from workbench.deployment.tensors import check, refuse_quantized_activations
from workbench.errors import ExportError
from workbench.memory import in_pieces
from workbench.progress import Progress, part_of

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Gguf:
    """One GGUF file.  ``pre_tokenizer`` is llama.cpp's name for how text is split (empty: as the tokenizer says)."""

    name: ClassVar = "gguf"
    title: ClassVar = "GGUF"
    description: ClassVar = "one file for llama.cpp, each tensor in its own type, with the tokenizer"
    needs_model: ClassVar = True
    pre_tokenizer: str = ""

    def refuse(self, planned: QuantizedModel, model: Model) -> None:
        """See :class:`workbench.deployment.exporters.Refuses`."""
        from workbench.deployment.gguf_file import content_of

        opened = check(planned, model)
        refuse_quantized_activations(planned, opened, "a GGUF file", "gguf")
        content_of(planned, opened, self.pre_tokenizer)

    def left_out(self, model: Model) -> list[str]:
        """See :class:`workbench.deployment.exporters.LeavesOut`."""
        from workbench.models.gguf.tensors import is_unused

        return [layer.name for layer in model.summary.stored if is_unused(layer.parameter)]

    def remarks(self, quantized: QuantizedModel, model: Model, out: Path) -> list[str]:
        """See :class:`workbench.deployment.exporters.Remarks`."""
        from workbench.deployment.gguf_file import remarks_on

        return remarks_on(quantized.summary)

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write, read back by the package gguf, compare; see :class:`workbench.deployment.exporters.Exporter`."""
        from workbench.deployment.gguf_file import content_of, prove, write

        opened = check(quantized, model)
        refuse_quantized_activations(quantized, opened, "a GGUF file", "gguf")
        content = content_of(quantized, opened, self.pre_tokenizer)
        with replacing(out, ExportError, "the GGUF file") as temporary, in_pieces():
            write(temporary, content, part_of(progress, 0.0, 0.6))
            with keeping_failed(temporary, out):
                prove(temporary, content, part_of(progress, 0.6, 1.0))
        progress(1.0, f"wrote {out.name}")
        return (out,)
