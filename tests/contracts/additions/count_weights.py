"""Count weights: how many weights each scheme of the plan stores."""

from __future__ import annotations

from dataclasses import dataclass, replace

from workbench.planning.plan import resolve
from workbench.session.results import StepResult
from workbench.session.session import Session
from workbench.steps.step import Context, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class CountWeightsOptions:
    """Nothing to choose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The weights of one scheme."""

    scheme: str
    weights: int


def _run(context: Context, options: CountWeightsOptions) -> StepResult:
    layers = context.session.model.layers
    counts: dict[str, int] = {}
    for name, assignment in resolve(context.session.plan, layers).items():
        rows, columns = context.session.model.by_name[name].matrix
        counts[assignment.weights] = counts.get(assignment.weights, 0) + rows * columns
    return StepResult.of(Count, [Count(scheme=scheme, weights=weights) for scheme, weights in counts.items()])


def _heading(options: CountWeightsOptions, session: Session | None) -> str:
    return "Count the weights"


def _join(session: Session, options: CountWeightsOptions, result: StepResult) -> Session:
    return replace(session, results={**session.results, "count-weights": result})


COUNT_WEIGHTS = Step(
    name="count-weights", title="Count weights", summary="Counts the weights that each scheme of the plan stores.",
    options=CountWeightsOptions, run=_run, heading=_heading, join=_join,
)  # fmt: skip
