"""The error of the weight itself, 10 ** (-SQNR / 10): no data, no gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.measurement.units import RELATIVE_SQUARED_ERROR
from workbench.sensitivity.metrics.metric import OpenCells, SensitivityMetric

if TYPE_CHECKING:
    from workbench.sensitivity.scoring import Scoring


def _fill(scoring: Scoring, cells: OpenCells) -> None:
    scoring.fill(((name, _errors(scoring, name, schemes)) for name, schemes in cells.items()), len(cells))


def _errors(scoring: Scoring, name: str, schemes: Sequence[str]) -> dict[str, float]:
    energy = float(scoring.model.held_weight(name).float().double().square().sum())
    errors = scoring.squared_errors(name, schemes)
    return {scheme: error / energy if energy else 0.0 for scheme, error in errors.items()}


WEIGHT_ERROR = SensitivityMetric(
    name="weight_error", title="Weight error", unit=RELATIVE_SQUARED_ERROR, needs_data=False, fill=_fill,
    meaning="Squared error of the weight over its squared size; needs neither data nor a calibration",
    formula="Σ D² / Σ W²; D: rounding error, W: weight",
)  # fmt: skip
