"""Exports a folder that ONNX Runtime GenAI generates from: a graph with a cache, its configuration, the tokenizer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from workbench.atomic import replacing_folder
from workbench.deployment.checkpoints.folder import check_place, copy_settings, mark, read_settings, source_folder
from workbench.deployment.failed import keeping_failed
from workbench.deployment.tensors import check
from workbench.errors import ExportError
from workbench.progress import Progress, part_of

if TYPE_CHECKING:
    from workbench.deployment.onnx.file import Content
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxGenai:
    """model.onnx, its tensors in model.onnx.data, genai_config.json, and the source's tokenizer and settings."""

    name: ClassVar = "onnx-genai"
    title: ClassVar = "ONNX Runtime GenAI folder"
    description: ClassVar = "a folder that onnxruntime-genai generates text from, with a cache of keys and values"
    needs_model: ClassVar = True
    accuracy: int = 1

    def preparing(self, model: Model) -> float:
        """Return the seconds that capturing the network takes."""
        from workbench.deployment.onnx.capture_cost import capture_seconds

        return capture_seconds(model)

    def refuse(self, planned: QuantizedModel, model: Model) -> None:
        """See :class:`workbench.deployment.exporters.Refuses`."""
        self._content(planned, model)

    def _content(self, quantized: QuantizedModel, model: Model | None) -> tuple[Path, Content, dict[str, Any]]:
        from workbench.deployment.onnx.capture import require_onnx
        from workbench.deployment.onnx.decoder import capture_decoder
        from workbench.deployment.onnx.file import content_of, refusals, require_accuracy, require_fit

        opened = check(quantized, model)
        source = source_folder(opened)
        require_onnx()
        require_accuracy(self.accuracy)
        require_fit(refusals(quantized, opened))  # which takes less time than capturing the network
        graph, settings = capture_decoder(opened)
        return source, content_of(quantized, opened, graph, accuracy=self.accuracy), settings

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write, read back by the package onnx, compare; see :class:`workbench.deployment.exporters.Exporter`."""
        from workbench.deployment.onnx.file import prove, write

        progress(0.0, "capturing the network")
        source, content, settings = self._content(quantized, model)
        check_place(out, source)
        with replacing_folder(out, ExportError, "the ONNX Runtime GenAI folder") as temporary:
            copy_settings(source, temporary, read_settings(source, model, untied=bool(quantized.changes.untied)))
            (temporary / "genai_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
            file = temporary / "model.onnx"
            write(file, content, temporary / "model.onnx.data", part_of(progress, 0.3, 0.7))
            files = mark(quantized, temporary, self.name)
            with keeping_failed(temporary, out):
                prove(file, content, part_of(progress, 0.7, 1.0), graph=True)
        progress(1.0, f"wrote {out.name}")
        return tuple(out / name for name in files)
