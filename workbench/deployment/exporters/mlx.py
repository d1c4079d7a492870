"""Exports an MLX checkpoint, which mlx-lm runs on Apple silicon (and on Linux)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from workbench.progress import Progress

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Mlx:
    """A folder as ``mlx_lm.convert`` writes it.

    Beside the plan's bytes there is a bias for each group where the scheme is symmetric.
    """

    name: ClassVar = "mlx"
    title: ClassVar = "MLX folder"
    description: ClassVar = "a checkpoint that mlx-lm loads: packed weights, scales, biases"
    needs_model: ClassVar = True

    def refuse(self, planned: QuantizedModel, model: Model) -> None:
        """See :class:`workbench.deployment.exporters.Refuses`."""
        from workbench.deployment.checkpoints.mlx import MlxMethod
        from workbench.deployment.checkpoints.write import refuse_checkpoint

        refuse_checkpoint(MlxMethod(), planned, model)

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write, unpack again, compare; see :class:`workbench.deployment.exporters.Exporter`."""
        from workbench.deployment.checkpoints.mlx import MlxMethod
        from workbench.deployment.checkpoints.write import write_checkpoint

        return write_checkpoint(MlxMethod(), quantized, model, out, progress)
