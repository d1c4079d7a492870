"""Exports a torchao checkpoint: its tensor subclasses as transformers saves them, with a FqnToConfig."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from workbench.progress import Progress

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Torchao:
    """A folder that transformers loads with torchao.

    An integer takes a byte whatever its width, and each group a zero point: more than the plan counts below 8 bits.
    """

    name: ClassVar = "torchao"
    title: ClassVar = "torchao folder"
    description: ClassVar = "a checkpoint of torchao's tensors that transformers loads"
    needs_model: ClassVar = True

    def refuse(self, planned: QuantizedModel, model: Model) -> None:
        """See :class:`workbench.deployment.exporters.Refuses`."""
        from workbench.deployment.checkpoints.torchao import TorchaoMethod
        from workbench.deployment.checkpoints.write import refuse_checkpoint

        refuse_checkpoint(TorchaoMethod(), planned, model)

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write, read back by torchao, compare; see :class:`workbench.deployment.exporters.Exporter`."""
        from workbench.deployment.checkpoints.torchao import TorchaoMethod
        from workbench.deployment.checkpoints.write import write_checkpoint

        return write_checkpoint(TorchaoMethod(), quantized, model, out, progress)
