"""Exports a torchao checkpoint: its tensor subclasses as transformers saves them, with a FqnToConfig."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from workbench.deployment.exporters.checkpoint import CheckpointExporter

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Torchao(CheckpointExporter):
    """A folder that transformers loads with torchao.

    An integer takes a byte whatever its width, and each group a zero point: more than the plan counts below 8 bits.
    """

    name: ClassVar = "torchao"
    title: ClassVar = "torchao folder"
    stored_by: ClassVar = "torchao.TorchaoMethod"
    description: ClassVar = "a checkpoint of torchao's tensors that transformers loads"

    def remarks(self, quantized: QuantizedModel, model: Model, out: Path) -> list[str]:
        """See :class:`workbench.deployment.exporters.Remarks`."""
        from workbench.deployment.checkpoints.loading import loads_in_transformers

        return loads_in_transformers(out, model, runs=True)
