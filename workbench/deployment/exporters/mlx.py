"""Exports an MLX checkpoint, which mlx-lm runs on Apple silicon (and on Linux)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from workbench.deployment.exporters.checkpoint import CheckpointExporter

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Mlx(CheckpointExporter):
    """A folder as ``mlx_lm.convert`` writes it.

    Beside the plan's bytes there is a bias for each group where the scheme is symmetric.
    """

    name: ClassVar = "mlx"
    title: ClassVar = "MLX folder"
    stored_by: ClassVar = "mlx.MlxMethod"
    description: ClassVar = "a checkpoint that mlx-lm loads: packed weights, scales, biases"

    def remarks(self, quantized: QuantizedModel, model: Model, out: Path) -> list[str]:
        """See :class:`workbench.deployment.exporters.Remarks`."""
        from workbench.deployment.checkpoints.mlx_networks import remarks_on
        from workbench.deployment.gguf_file import configuration

        return remarks_on(configuration(quantized.summary)[1])
