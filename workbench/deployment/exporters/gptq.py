"""Exports a GPTQ checkpoint, for the many runtimes that load them (vLLM, transformers with GPTQModel, SGLang)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from workbench.deployment.exporters.checkpoint import CheckpointExporter

if TYPE_CHECKING:
    from workbench.deployment.checkpoints.write import Method
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Gptq(CheckpointExporter):
    """A folder as AutoGPTQ and GPTQModel write it.

    ``checkpoint_format``: ``gptq`` stores zero points minus one, ``gptq_v2`` as they are (GPTQModel, vLLM, SGLang);
    ``auto`` is ``gptq``, which more programs read, unless a zero point is 0, which only rounding shows.
    Beside the plan's bytes there is an index of four bytes for each input of a layer, and zero points where the scheme
    is symmetric.
    """

    name: ClassVar = "gptq"
    title: ClassVar = "GPTQ folder"
    description: ClassVar = "a GPTQ checkpoint: qweight, qzeros, scales, g_idx"
    checkpoint_format: str = "auto"

    def method(self, quantized: QuantizedModel) -> Method:
        """See the base class."""
        from workbench.deployment.checkpoints.gptq import GptqMethod

        return GptqMethod(self.checkpoint_format).chosen(quantized)

    def remarks(self, quantized: QuantizedModel, model: Model, out: Path) -> list[str]:
        """See :class:`workbench.deployment.exporters.Remarks`."""
        from workbench.deployment.checkpoints.gptq import remarks_on

        return remarks_on(quantized)
