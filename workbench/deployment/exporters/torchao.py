"""Exports a torchao checkpoint: its tensor subclasses as transformers saves them, with a FqnToConfig."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from workbench.deployment.exporters.checkpoint import CheckpointExporter

if TYPE_CHECKING:
    from workbench.deployment.checkpoints.write import Method
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Torchao(CheckpointExporter):
    """A folder that transformers loads with torchao.

    An integer takes a byte whatever its width, and each group a zero point: more than the plan counts below 8 bits.
    """

    name: ClassVar = "torchao"
    title: ClassVar = "torchao folder"
    description: ClassVar = "a checkpoint of torchao's tensors that transformers loads"

    def method(self, quantized: QuantizedModel) -> Method:
        """See the base class."""
        from workbench.deployment.checkpoints.torchao import TorchaoMethod

        return TorchaoMethod()
