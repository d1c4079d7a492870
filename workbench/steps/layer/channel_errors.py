"""Which channels of a layer its rounding error is in, weighted by what an error costs there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from workbench.errors import PlanError
from workbench.session.session import Session
from workbench.steps.layer.before_after import plan_for, rounded_weight
from workbench.steps.options import LAYER
from workbench.steps.requirements import with_moments
from workbench.steps.step import Context, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelErrorsOptions:
    """Which layer."""

    layer: str = field(metadata=LAYER.metadata)


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


def _run(context: Context, options: ChannelErrorsOptions) -> ChannelErrors:
    """Round the layer by the session's plan and return where the error is.

    ``rows_i columns_j D_ij**2`` summed over j and over i, ``D`` being the rounding error and the weights those of the
    curvature (diag G, diag A).  Raises PlanError for a plan with transforms, whose error is not the layer's own.
    """
    session, layer = context.session, options.layer
    if session.plan.transforms:
        raise PlanError("the errors of single channels are not known under transforms; take them out of the plan first")
    model = context.model()
    owner, scheme = plan_for(session, layer)
    weight = model.held_weight(owner).double()
    rounded = rounded_weight(session, owner, model, context.progress)
    squares = np.zeros(tuple(weight.shape))
    if rounded is not None:
        squares = (rounded.double().to(weight.device) - weight).square().cpu().numpy()
    curvature = session.curvature.get(layer)
    weighed = curvature is not None and (curvature.rows.size, curvature.width) == squares.shape
    if curvature is not None and weighed:
        squares = squares * (curvature.rows[:, None] if curvature.has_gradients else 1.0) * curvature.importance()
    total = float(squares.sum()) or 1.0
    return ChannelErrors(
        layer=layer, scheme=scheme, rows=squares.sum(axis=1) / total, columns=squares.sum(axis=0) / total,
        weighed=weighed,
    )  # fmt: skip


def _needs(session: Session, options: ChannelErrorsOptions) -> Session:
    """Add the layer's curvature and the moments that the plan's algorithms look at."""
    reduced, own = with_moments(session), session.curvature.get(options.layer)
    diagonal = {} if own is None else {options.layer: replace(own, full=None)}
    return replace(reduced, curvature={**diagonal, **reduced.curvature})


CHANNEL_ERRORS = Step(
    runs_model=True,
    name="channel-errors", title="Errors by channel", options=ChannelErrorsOptions, run=_run, needs=_needs,
    summary="Finds the channels that a layer's rounding error is in.",
    heading=lambda options, session: f"Errors by channel of {options.layer}",
)  # fmt: skip
