"""A model that was just opened as a session: its facts, the statistics of its weights, an empty plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.planning.plan import Plan
from workbench.progress import Progress, silent
from workbench.session.environment import environment
from workbench.session.session import Session

if TYPE_CHECKING:
    from workbench.models.model import Model


def start(model: Model, progress: Progress = silent) -> Session:
    """Return a new session: the model's facts, the weights' statistics, a plan that keeps every layer as it is."""
    from workbench.measurement.calibrate import weight_statistics

    summary = model.summary
    return Session(
        model=summary,
        environment=environment(),
        plan=Plan(model=summary.name, fingerprint=summary.fingerprint),
        statistics=weight_statistics(model, progress),
        notes=tuple(f"the weights of {name} hold NaN or infinite values" for name in summary.non_finite),
    )
