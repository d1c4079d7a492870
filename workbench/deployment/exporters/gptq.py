"""Exports a GPTQ checkpoint, for the many runtimes that load them (vLLM, transformers with GPTQModel, SGLang)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from workbench.progress import Progress

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Gptq:
    """A folder as AutoGPTQ and GPTQModel write it.

    ``checkpoint_format``: ``gptq`` stores zero points minus one, ``gptq_v2`` as they are (GPTQModel, vLLM, SGLang);
    ``auto`` is ``gptq``, which more programs read, unless a zero point is 0, which only rounding shows.
    Beside the plan's bytes there is an index of four bytes for each input of a layer, and zero points where the scheme
    is symmetric.
    """

    name: ClassVar = "gptq"
    title: ClassVar = "GPTQ folder"
    description: ClassVar = "a GPTQ checkpoint: qweight, qzeros, scales, g_idx"
    needs_model: ClassVar = True
    checkpoint_format: str = "auto"

    def refuse(self, planned: QuantizedModel, model: Model) -> None:
        """See :class:`workbench.deployment.exporters.Refuses`."""
        from workbench.deployment.checkpoints.gptq import GptqMethod
        from workbench.deployment.checkpoints.write import refuse_checkpoint

        refuse_checkpoint(GptqMethod(self.checkpoint_format), planned, model)

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write, unpack again, compare; see :class:`workbench.deployment.exporters.Exporter`."""
        from workbench.deployment.checkpoints.gptq import GptqMethod
        from workbench.deployment.checkpoints.write import write_checkpoint

        return write_checkpoint(GptqMethod(self.checkpoint_format).chosen(quantized), quantized, model, out, progress)
