"""A NumPy archive of named weights (``.weights.npz``): weights only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from workbench.models.model import Model
from workbench.models.sources.source import Opening
from workbench.models.sources.stored import tensors_in_memory
from workbench.models.sources.weights_only import weights_only_model
from workbench.models.summary import ModelSource


@dataclass(frozen=True, slots=True)
class NumpyArchive:
    """Weights only, like a bare safetensors file."""

    name = "numpy_archive"
    description = "a .weights.npz archive"

    def detects(self, path: Path) -> bool:
        """Tell by the suffix."""
        return path.is_file() and path.name.endswith(".weights.npz")

    def open(self, request: Opening) -> Model:
        """Load the arrays; pickles are refused by NumPy."""
        with np.load(request.path, allow_pickle=False) as archive:
            state = {name: torch.from_numpy(archive[name]) for name in archive.files}
        return weights_only_model(ModelSource(kind=self.name, path=request.recorded), tensors_in_memory(state))
