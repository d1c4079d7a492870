"""Exports an MLX checkpoint, which mlx-lm runs on Apple silicon (and on Linux)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from workbench.deployment.exporters.checkpoint import CheckpointExporter

if TYPE_CHECKING:
    from workbench.deployment.checkpoints.write import Method
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Mlx(CheckpointExporter):
    """A folder as ``mlx_lm.convert`` writes it.

    Beside the plan's bytes there is a bias for each group where the scheme is symmetric.
    """

    name: ClassVar = "mlx"
    title: ClassVar = "MLX folder"
    description: ClassVar = "a checkpoint that mlx-lm loads: packed weights, scales, biases"

    def method(self, quantized: QuantizedModel) -> Method:
        """See the base class."""
        from workbench.deployment.checkpoints.mlx import MlxMethod

        return MlxMethod()
