"""Exports an MLX checkpoint, which mlx-lm runs on Apple silicon (and on Linux)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from workbench.deployment.exporters.checkpoint import CheckpointExporter


@dataclass(frozen=True, slots=True, kw_only=True)
class Mlx(CheckpointExporter):
    """A folder as ``mlx_lm.convert`` writes it.

    Beside the plan's bytes there is a bias for each group where the scheme is symmetric.
    """

    name: ClassVar = "mlx"
    title: ClassVar = "MLX folder"
    stored_by: ClassVar = "mlx.MlxMethod"
    description: ClassVar = "a checkpoint that mlx-lm loads: packed weights, scales, biases"
