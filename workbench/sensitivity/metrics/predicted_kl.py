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
        sloped_layers = [name for name in directional if name not in scoring.measured]
        sloped = directional_rows(scoring, data, dict.fromkeys(sloped_layers, scoring.table.schemes), rerouting)
        scoring.fill(scoring.with_slopes(sloped), len(directional), start=len(kronecker) / len(cells))
        _fill_flat(scoring, {name: cells[name] for name in directional})


def _fill_flat(scoring: Scoring, cells: OpenCells) -> None:
    """Measure the layers at which every gradient was 0: dead ones, or ones that act through a choice (argmax)."""
    import numpy as np

    from workbench.sensitivity.measured import measured_rows

    table, data = scoring.table, scoring.require_data("a measured loss")
    left = {name: [scheme for scheme in schemes if np.isnan(table.of(name, scheme))] for name, schemes in cells.items()}
    flat = {name: schemes for name, schemes in left.items() if schemes}
    if flat:
        tick = scoring.ticker(flat, -(-len(data) // scoring.batch_size))
        scoring.fill(measured_rows(scoring, data, flat, tick), len(flat), start=1.0)
        scoring.measured.update(name for name, (scheme, *_) in flat.items() if not np.isnan(table.of(name, scheme)))
    if scoring.measured:
        names = [name for name in table.layers if name in scoring.measured]
        few = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        scoring.finite.notes.append(f"measured, not predicted, since no gradient reaches it: {few}")


PREDICTED_KL = SensitivityMetric(
    name="predicted_kl", title="Predicted KL", unit=NATS, moments="diagonal", fill=_fill,
    meaning="Second-order prediction of the KL that quantizing this weight alone causes; needs a calibration",
)  # fmt: skip
