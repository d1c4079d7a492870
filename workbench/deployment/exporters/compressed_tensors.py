"""Exports a compressed-tensors checkpoint for vLLM and transformers: each layer packed as the plan says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from workbench.progress import Progress

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedTensors:
    """A folder with config.json, shards under the original's names and the tokenizer.

    The tensors take the plan's bytes, 16 more for each packed integer layer (its shape), and what fills the rows of
    packed codes and of zero points up to four bytes.
    """

    name: ClassVar = "compressed-tensors"
    title: ClassVar = "compressed-tensors folder"
    description: ClassVar = "a packed checkpoint that vLLM and transformers load"
    needs_model: ClassVar = True

    def refuse(self, planned: QuantizedModel, model: Model) -> None:
        """See :class:`workbench.deployment.exporters.Refuses`."""
        from workbench.deployment.checkpoints.compressed_tensors import CompressedTensorsMethod
        from workbench.deployment.checkpoints.write import refuse_checkpoint

        refuse_checkpoint(CompressedTensorsMethod(), planned, model)

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write, read back by the library, compare; see :class:`workbench.deployment.exporters.Exporter`."""
        from workbench.deployment.checkpoints.compressed_tensors import CompressedTensorsMethod
        from workbench.deployment.checkpoints.write import write_checkpoint

        return write_checkpoint(CompressedTensorsMethod(), quantized, model, out, progress)
