"""Layer x scheme scores: what a scheme would cost each layer.  Higher is worse, always."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench.models.summary import OutputKind
from workbench.sensitivity.directions import Directions

METRICS = {
    "predicted_kl": "nats",
    "measured_kl": "nats",
    "output_error": "relative squared error",
    "weight_error": "relative squared error",
}
"""The metrics and their units.  ``predicted_kl`` needs curvature, ``measured_kl`` and ``output_error`` run the model,
``weight_error`` (10 ** (-SQNR / 10)) needs weights only."""

ACTIVATION_METRICS = dict.fromkeys(
    ("predicted_kl_inputs", "measured_kl_inputs", "predicted_kl_cache", "measured_kl_cache"), "nats"
)
"""The metrics of activation schemes and their units: each layer's input, or its keys or values, quantized alone."""

DISTANCE = "half squared distance"
"""The unit of a loss where outputs are no logits: what their KL is to Gaussians of variance 1 around them."""


def unit_of(metric: str, output: OutputKind) -> str:
    """Return the unit of a metric's scores for a model of such outputs."""
    unit = (METRICS | ACTIVATION_METRICS)[metric]
    return DISTANCE if unit == "nats" and output is OutputKind.EMBEDDING else unit


def is_divergence(unit: str) -> bool:
    """Tell whether a unit is one of losses of the model's answers, which an evaluation measures for whole plans."""
    return unit in ("nats", DISTANCE)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sensitivity:
    """``score[layer, scheme]`` (float64; NaN: not computed) for quantizing that one layer's weight alone (its input, or
    keys or values, by an activation metric).

    ``directions`` say how errors of several layers add up, where the loss was predicted sample by sample.
    ``algorithm`` names how the weights were rounded; ``samples`` and ``seed`` say what was measured on; ``data_hash``
    on which data.
    """

    metric: str
    unit: str
    layers: tuple[str, ...]
    schemes: tuple[str, ...]
    score: np.ndarray
    samples: int
    seed: int
    algorithm: str = "rtn-clip"
    data_hash: str = ""
    directions: Directions | None = None

    @cached_property
    def row(self) -> dict[str, int]:
        """Index of each layer."""
        return {name: index for index, name in enumerate(self.layers)}

    @cached_property
    def column(self) -> dict[str, int]:
        """Index of each scheme."""
        return {name: index for index, name in enumerate(self.schemes)}

    def of(self, layer: str, scheme: str) -> float:
        """Return the cell's score, NaN where it was not computed."""
        if layer not in self.row or scheme not in self.column:
            return float("nan")
        return float(self.score[self.row[layer], self.column[scheme]])

    def slopes(self, layer: str, scheme: str) -> np.ndarray | None:
        """Return the cell's slopes as :meth:`Directions.of` does, None where it has none."""
        return None if self.directions is None else self.directions.of(layer, scheme, self.of(layer, scheme))
