"""The estimate of a step, for scripts and for forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workbench.errors import MissingResultError
from workbench.models.model import Model
from workbench.models.placement import Placement
from workbench.planning.plan import Plan
from workbench.preflight import Estimate
from workbench.session.session import Environment, Session
from workbench.steps.step import Context, Request, Step


def estimate(
    step: str, session: Session | Model, *, model: Model | None = None, plan: Plan | None = None, trust: bool = False,
    device: str = "auto", **options: object,
) -> Estimate | None:  # fmt: skip
    """Return what a step (``"calibrate"``, ``"sensitivity"``, ``"evaluate"``) will take: seconds, memory, disk.

    ``options`` are those of the step; ``session`` may be an opened model where nothing is calibrated yet; ``plan``
    replaces the session's.  Short trials of the step's own work are timed, a few percent of it.  None for a step that
    takes less than two seconds, or that has no estimate.  Raises WorkbenchError for a step that does not exist.
    """
    from workbench.steps import REGISTRY

    chosen = REGISTRY.get(step)
    if isinstance(session, Model):
        model, session = session, Session(model=session.summary, environment=Environment.here(), plan=Plan())
    session = session if plan is None else replace(session, plan=plan)
    reason = chosen.why_not(session)
    if reason is not None:
        raise MissingResultError(reason)
    context = Context(document=session, opened=model, trust=trust, placement=Placement(device))
    expected: Estimate | None = chosen.estimate(context, chosen.options(**options))
    return expected


FORECAST = Step(
    name="forecast", title="Estimate", options=Request[Any, Any], runs_model=True, listed=False,
    run=lambda context, request: (request.step.estimate(context, request.options, strict=True),),
    summary="Says what another step, given as its request, would take; raises what its trials raise.",
    needs=lambda session, request: request.step.needs(session, request.options),
)  # fmt: skip
