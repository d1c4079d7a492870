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
    tick = scoring.ticker(cells, -(-len(data) // scoring.batch_size))
    scoring.fill(measured_rows(scoring, data, cells, tick), len(cells))


MEASURED_KL = SensitivityMetric(
    name="measured_kl", title="Measured KL", unit=NATS, fill=_fill,
    meaning="KL to the floating-point model with this weight alone quantized; one run of the model for each cell",
    formula="mean of Σ p·(ln p − ln q) over tokens or samples; p: floating point, q: with this weight rounded",
)  # fmt: skip
