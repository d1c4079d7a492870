"""Count weights: how many weights each scheme of the plan stores."""

from __future__ import annotations

from dataclasses import dataclass, replace

from workbench.planning.plan import resolve
from workbench.session.results import StepResult
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


COUNT_WEIGHTS = Step(
    name="count-weights", title="Count weights", options=CountWeightsOptions, run=_run,
    summary="Counts the weights that each scheme of the plan stores.",
    join=lambda session, options, result: replace(session, results={**session.results, "count-weights": result}),
)  # fmt: skip
