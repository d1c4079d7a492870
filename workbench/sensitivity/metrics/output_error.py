"""The error of the layer's own output, from second moments of its inputs or from data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.errors import MissingResultError
from workbench.measurement.units import RELATIVE_SQUARED_ERROR
from workbench.sensitivity.metrics.metric import OpenCells, SensitivityMetric

if TYPE_CHECKING:
    from workbench.sensitivity.scoring import Scoring


def _fill(scoring: Scoring, cells: OpenCells) -> None:
    from workbench.sensitivity.measured import output_rows

    if scoring.dataset is None and not scoring.curvature:
        raise MissingResultError("output_error needs calibrated curvature or data; calibrate, or give a data set")
    if scoring.dataset is not None:
        scoring.require_data("an output error")
    scoring.fill(output_rows(scoring, cells, scoring.ticker(cells, 1)), len(cells))


OUTPUT_ERROR = SensitivityMetric(
    name="output_error", title="Layer-output error", unit=RELATIVE_SQUARED_ERROR, moments="full", fill=_fill,
    meaning="Squared error of the layer's own output over its squared size",
    formula="Σ |D·x|² / Σ |W·x|²; D: rounding error, W: weight, x: the layer's inputs",
)  # fmt: skip
