"""The predicted loss: second moments of inputs and output gradients, or slopes sample by sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.measurement.units import NATS
from workbench.sensitivity.metrics.metric import OpenCells, SensitivityMetric

if TYPE_CHECKING:
    from workbench.sensitivity.scoring import Scoring


def _fill(scoring: Scoring, cells: OpenCells) -> None:
    from workbench.sensitivity.predicted import directional_rows, kronecker_rows, split_forms

    model, data = scoring.model, scoring.dataset
    kronecker, directional = split_forms(model, tuple(cells), scoring.curvature, data)
    rows = kronecker_rows(model, {name: cells[name] for name in kronecker}, scoring.curvature, scoring.algorithm)
    scoring.fill(rows, len(cells))
    if directional and data is not None:
        scoring.require_data("a predicted loss")
        sloped = directional_rows(
            model, {name: scoring.table.schemes for name in directional}, data, scoring.curvature,
            batch_size=scoring.batch_size, seed=scoring.seed, algorithm=scoring.algorithm, progress=scoring.progress,
        )  # fmt: skip
        scoring.fill(scoring.with_slopes(sloped), len(directional), start=len(kronecker) / len(cells))


PREDICTED_KL = SensitivityMetric(
    name="predicted_kl", title="Predicted KL", unit=NATS, moments="diagonal", fill=_fill,
    meaning="Second-order prediction of the KL that quantizing this weight alone causes; needs a calibration",
)  # fmt: skip
