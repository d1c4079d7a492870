"""The predicted loss: second moments of inputs and output gradients, or slopes sample by sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.measurement.units import NATS
from workbench.models.layer import ROUTER
from workbench.sensitivity.metrics.metric import OpenCells, SensitivityMetric

if TYPE_CHECKING:
    from workbench.sensitivity.scoring import Scoring


def _fill(scoring: Scoring, cells: OpenCells) -> None:
    from workbench.sensitivity.predicted import directional_rows, kronecker_rows, split_forms
    from workbench.sensitivity.rerouting import measure_rerouting

    kronecker, directional = split_forms(scoring, tuple(cells))
    scoring.errors.update({name: scoring.curvature[name].error for name in kronecker})
    rerouting = None
    if scoring.dataset is not None and any(layer.keep == ROUTER for layer in scoring.model.summary.layers):
        rerouting = measure_rerouting(
            scoring.model, scoring.dataset, scoring.curvature, batch_size=scoring.batch_size, seed=scoring.seed,
            progress=scoring.progress,
        )  # fmt: skip
    scoring.fill(kronecker_rows(scoring, {name: cells[name] for name in kronecker}, rerouting), len(cells))
    if directional:
        data = scoring.require_data("a predicted loss")
        sloped = directional_rows(scoring, data, dict.fromkeys(directional, scoring.table.schemes), rerouting)
        scoring.fill(scoring.with_slopes(sloped), len(directional), start=len(kronecker) / len(cells))
        _fill_flat(scoring, {name: cells[name] for name in directional})


def _fill_flat(scoring: Scoring, cells: OpenCells) -> None:
    """Measure the layers at which every gradient was 0: dead ones, or ones that act through a choice (argmax)."""
    import numpy as np

    from workbench.sensitivity.measured import measured_rows

    rows, data = scoring.table.row, scoring.require_data("a measured loss")
    flat = {name: schemes for name, schemes in cells.items() if np.isnan(scoring.table.score[rows[name]]).all()}
    if flat:
        tick = scoring.ticker(flat, -(-len(data) // scoring.batch_size))
        scoring.fill(measured_rows(scoring, data, flat, tick), len(flat), start=1.0)


PREDICTED_KL = SensitivityMetric(
    name="predicted_kl", title="Predicted KL", unit=NATS, moments="diagonal", fill=_fill,
    meaning="Second-order prediction of the KL that quantizing this weight alone causes; needs a calibration",
)  # fmt: skip
