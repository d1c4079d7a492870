"""The whole curvature of a model, for tests of what reads it."""

from __future__ import annotations

from workbench.measurement.calibrate import calibrate
from workbench.measurement.second_moments import SecondMoments
from workbench.models.data.batches import Data
from workbench.models.model import Model
from workbench.numerics.curvature import Curvature


def whole_curvature(model: Model, data: Data, *, batch_size: int = 8, seed: int = 0) -> dict[str, Curvature]:
    """Return what a calibration observes, with whole second moments."""
    known = calibrate(model, data, batch_size=batch_size, seed=seed).curvature
    return dict(SecondMoments(model, data, known, batch_size=batch_size, seed=seed))
