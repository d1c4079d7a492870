"""The measured loss: the model run with one weight quantized, against the model as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.measurement.units import NATS
from workbench.sensitivity.metrics.metric import OpenCells, SensitivityMetric

if TYPE_CHECKING:
    from workbench.sensitivity.scoring import Scoring


def _fill(scoring: Scoring, cells: OpenCells) -> None:
    from workbench.sensitivity.measured import measured_rows

    data = scoring.require_data("a measured loss")
    rows = measured_rows(
        scoring.model, cells, data, batch_size=scoring.batch_size, algorithm=scoring.algorithm,
        curvature=scoring.curvature, tick=scoring.ticker(cells, -(-len(data) // scoring.batch_size)),
        finite=scoring.finite,
    )  # fmt: skip
    scoring.fill(rows, len(cells))


MEASURED_KL = SensitivityMetric(
    name="measured_kl", title="Measured KL", unit=NATS, fill=_fill,
    meaning="KL to the floating-point model with this weight alone quantized; one run of the model for each cell",
)  # fmt: skip
