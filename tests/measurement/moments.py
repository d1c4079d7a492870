"""The whole curvature of a model, for tests of what reads it."""

from __future__ import annotations

from dataclasses import replace

from workbench.measurement.calibrate import calibrate
from workbench.measurement.second_moments import SecondMoments
from workbench.models.data.batches import Data
from workbench.models.model import Model
from workbench.numerics.curvature import Curvature


def whole_curvature(
    model: Model, data: Data, *, batch_size: int = 8, seed: int = 0, weighed: bool = True
) -> dict[str, Curvature]:
    """Return what a calibration observes, with whole second moments; tokens count alike unless they are ``weighed``."""
    known = calibrate(model, data, batch_size=batch_size, seed=seed).curvature
    if not weighed:
        known = {name: replace(each, by_loss=None) for name, each in known.items()}
    return dict(SecondMoments(model, data, known, batch_size=batch_size, seed=seed))
