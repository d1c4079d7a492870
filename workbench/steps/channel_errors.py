"""Which channels of a layer its rounding error sits in, weighed by what an error costs there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import PlanError
from workbench.progress import Progress, silent
from workbench.session.session import Session
from workbench.steps.before_after import plan_for, rounded_weight
from workbench.steps.needs import moments_of_plan, without_results

if TYPE_CHECKING:
    from workbench.engine.model_cache import ModelCache
    from workbench.models.model import Model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChannelErrors:
    """Shares of the layer's predicted loss, float64, each adding up to 1 (all 0 where nothing is rounded).

    ``rows`` ``[outputs]`` by output channel, ``columns`` ``[inputs]`` by column of the weight's matrix; ``weighed``
    tells whether curvature weighs the squared errors (else they count alike).
    """

    layer: str
    scheme: str
    rows: np.ndarray
    columns: np.ndarray
    weighed: bool


def channel_errors(session: Session, layer: str, *, model: Model, progress: Progress = silent) -> ChannelErrors:
    """Round the layer by the session's plan and say where the error is.

    ``rows_i columns_j D_ij**2`` summed over j and over i, ``D`` being the rounding error and the weights those of the
    curvature (diag G, diag A).  Raises PlanError for a plan with transforms, whose error is not the layer's own.
    """
    if session.plan.transforms:
        raise PlanError("the errors of single channels are not known under transforms; take them out of the plan first")
    owner, scheme = plan_for(session, layer)
    weight = model.weight(owner).double()
    rounded = rounded_weight(session, owner, model=model, progress=progress)
    squares = np.zeros(tuple(weight.shape)) if rounded is None else (rounded.double() - weight).square().cpu().numpy()
    curvature = session.curvature.get(layer)
    weighed = curvature is not None and (curvature.rows.size, curvature.columns.size) == squares.shape
    if curvature is not None and weighed:
        squares = squares * curvature.rows[:, None] * curvature.columns[None]
    total = float(squares.sum()) or 1.0
    return ChannelErrors(
        layer=layer, scheme=scheme, rows=squares.sum(axis=1) / total, columns=squares.sum(axis=0) / total,
        weighed=weighed,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FindChannelErrors:
    """Find the channels that a layer's rounding error sits in; the response is a ChannelErrors."""

    session: Session
    layer: str
    trust: bool = False

    @property
    def title(self) -> str:
        """What a person reads in the jobs panel."""
        return f"Errors by channel of {self.layer}"

    def slim(self) -> FindChannelErrors:
        """Keep the plan, the ranges, the layer's curvature and the moments that the plan's algorithms look at."""
        held = {name: replace(one, full=None) for name, one in self.session.curvature.items() if name == self.layer}
        curvature = {**held, **moments_of_plan(self.session)}
        return replace(self, session=without_results(self.session, curvature=curvature))

    def run(self, models: ModelCache, progress: Progress) -> ChannelErrors:
        """Round and compare; raises what rounding raises."""
        model = models.get(self.session.model, self.trust)
        return channel_errors(self.session, self.layer, model=model, progress=progress)
