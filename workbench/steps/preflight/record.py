"""What long steps were estimated to take and took, stored in the session."""

from __future__ import annotations

from dataclasses import dataclass, replace

from workbench.preflight import Estimate
from workbench.session.results import StepResult
from workbench.session.session import Session

RESOURCES = "resources"
"""The name of the stored result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCosts:
    """What the last long run of a step took, beside the estimate: seconds, and bytes of anonymous memory."""

    step: str
    seconds: float
    estimated_seconds: float
    memory: int
    estimated_memory: int


def with_estimate(session: Session, step: str, estimate: Estimate) -> Session:
    """Return the session with what a run of ``step`` took; as it is where the run has not ended."""
    if estimate.took is None or estimate.peak is None:
        return session
    stored = session.results.get(RESOURCES)
    rows = [] if stored is None else [row for row in stored.rows(StepCosts) if row.step != step]
    rows.append(StepCosts(
        step=step, seconds=estimate.took, estimated_seconds=estimate.seconds, memory=estimate.peak,
        estimated_memory=estimate.memory,
    ))  # fmt: skip
    return replace(session, results={**session.results, RESOURCES: StepResult.of(StepCosts, rows)})
