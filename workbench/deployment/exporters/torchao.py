"""Exports a torchao checkpoint: its tensor subclasses as transformers saves them, with a FqnToConfig."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from workbench.deployment.exporters.checkpoint import CheckpointExporter


@dataclass(frozen=True, slots=True, kw_only=True)
class Torchao(CheckpointExporter):
    """A folder that transformers loads with torchao.

    An integer takes a byte whatever its width, and each group a zero point: more than the plan counts below 8 bits.
    """

    name: ClassVar = "torchao"
    title: ClassVar = "torchao folder"
    stored_by: ClassVar = "torchao.TorchaoMethod"
    description: ClassVar = "a checkpoint of torchao's tensors that transformers loads"
