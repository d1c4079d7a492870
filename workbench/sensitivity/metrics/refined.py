"""The refined loss: predicted losses corrected by those that were measured.  numpy only."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from workbench.measurement.units import NATS
from workbench.sensitivity.metrics.metric import SensitivityMetric
from workbench.sensitivity.table import Sensitivity


@lru_cache(maxsize=4)  # the same object for the same tables: what is drawn and summed from it stays valid
def refined_table(table: Sensitivity, measured: Sensitivity) -> Sensitivity:
    """Return measured losses where there are any, elsewhere the prediction times its scheme's median ratio to them.

    The ratio is that of the scheme's own measured cells, or of all where the scheme has none: a calibrated prediction,
    to be shown as such.  Measured plans do not go with it: they were predicted by other losses.
    """
    score = table.score.copy()
    known = measured.cells(table.layers, table.schemes)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(table.score > 0, known / table.score, np.nan)
    everywhere = float(np.nanmedian(ratios)) if np.isfinite(ratios).any() else 1.0
    for column in range(len(table.schemes)):
        own = ratios[np.isfinite(ratios[:, column]), column]
        score[:, column] *= float(np.median(own)) if own.size else everywhere
    return replace(table, score=np.where(np.isnan(known), score, known), checks=None, uncorrected=None)


REFINED = SensitivityMetric(
    name="refined", title="Refined KL", unit=NATS, derived_from=("predicted_kl", "measured_kl"),
    meaning="The predicted losses with measured ones in place where decisions are close, the others corrected by them",
    formula="the measurement, else the prediction times the factor of the measured cells near it",
)  # fmt: skip
