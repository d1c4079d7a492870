"""The models that quality is measured on, with their data, and how they are handed to other tools.

A case is a Hugging Face folder and two arrays of token windows, so that every tool runs the same bits.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from workbench.measurement.calibrate import calibrate
from workbench.measurement.second_moments import SecondMoments
from workbench.models.data.datasets import Dataset, open_dataset
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.models.summary import quantizable
from workbench.numerics.curvature import Curvature

ROOT = Path(__file__).parents[2]
CASES = Path(os.environ.get("WORKBENCH_CASES", ROOT / ".." / "shared" / "cases"))


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A language model in ``folder`` and the windows that calibrate and that judge."""

    name: str
    folder: Path
    model: Model
    calibration: Dataset
    evaluation: Dataset

    @cached_property
    def curvature(self) -> Mapping[str, Curvature]:
        """Curvature from all calibration windows."""
        known = calibrate(self.model, self.calibration).curvature
        return dict(SecondMoments(self.model, self.calibration, known))

    @cached_property
    def layers(self) -> tuple[str, ...]:
        """The layers that bits per weight count: all linear ones but the head that is tied to the embedding."""
        return tuple(layer.name for layer in quantizable(self.model.summary.stored))

    def windows(self, folder: Path) -> tuple[Path, Path]:
        """Write both splits as int64 arrays ``[windows, tokens]`` into ``folder`` and return the files."""
        folder.mkdir(parents=True, exist_ok=True)
        files = folder / f"{self.name}-calibration.npy", folder / f"{self.name}-evaluation.npy"
        for file, data in zip(files, (self.calibration, self.evaluation), strict=True):
            np.save(file, data.tensors["input_ids"].numpy().astype(np.int64))
        return files


def open_case(name: str) -> Case:
    """Open ``llama-260k`` (found through ``WORKBENCH_CASES``) or ``demo``, the bundled language model.

    Raises FileNotFoundError where the cases are not on this machine.
    """
    if name == "demo":
        model, data = open_model("demo:language-model"), "demo:language-model"
        return Case(
            name=name, folder=ROOT / "resources" / "demo" / "language-model", model=model,
            calibration=open_dataset(data, model, split="calibration"),
            evaluation=open_dataset(data, model, split="evaluation"),
        )  # fmt: skip
    folder = CASES / name
    if not folder.is_dir():
        raise FileNotFoundError(f"{name} is not in {CASES}; set WORKBENCH_CASES, or run the case demo alone")
    model = open_model(folder)
    return Case(
        name=name, folder=folder, model=model,
        calibration=open_dataset(folder / "calibration_tokens.npy", model, split="calibration"),
        evaluation=open_dataset(folder / "evaluation_tokens.npy", model, split="evaluation"),
    )  # fmt: skip
