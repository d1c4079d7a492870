"""Compare two evaluations on the same samples: what differs, and whether so many samples resolve it."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.errors import DataError, MissingResultError
from workbench.measurement.evaluation import Evaluation
from workbench.measurement.paired import Difference, between
from workbench.session.session import Session
from workbench.steps.needs import without_results
from workbench.steps.options import OptionInfo
from workbench.steps.step import Context, Step

FIRST = OptionInfo(label="First", help="the plan's hash and the data's hash of the first evaluation", command=False)
SECOND = OptionInfo(label="Second", help="the same of the second, which is subtracted", command=False)

Run = tuple[str, str]
"""The plan's and the data's hash of an evaluation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparePlansOptions:
    """Which two of the session's evaluations, each by its plan's and its data's hash."""

    first: Run = field(metadata=FIRST.metadata)
    second: Run = field(metadata=SECOND.metadata)


def run_of(evaluation: Evaluation) -> Run:
    """Return what tells an evaluation from the session's others."""
    return evaluation.plan_hash, evaluation.data_hash


def paired_differences(first: Evaluation, second: Evaluation) -> tuple[Difference, ...]:
    """Return ``first - second`` of every metric that both have; DataError where they ran on different samples."""
    if first.data_hash != second.data_hash:
        raise DataError(
            f"{first.plan_name} ran on {first.data_name}, {second.plan_name} on other samples ({second.data_name}); "
            "evaluate both on the same data to compare them sample by sample"
        )
    shared = [name for name in first.metrics if name in second.metrics]
    return tuple(between(first.metrics[name], second.metrics[name]) for name in shared)


def _evaluation(session: Session, run: Run) -> Evaluation:
    for evaluation in session.evaluations:
        if run_of(evaluation) == run:
            return evaluation
    raise MissingResultError(f"the session has no evaluation of the plan {run[0]} on the data {run[1]}; evaluate first")


def _run(context: Context, options: ComparePlansOptions) -> tuple[Difference, ...]:
    session = context.session
    return paired_differences(_evaluation(session, options.first), _evaluation(session, options.second))


def _heading(options: ComparePlansOptions, session: Session | None) -> str:
    if session is None:
        return COMPARE_TITLE
    first, second = (_evaluation(session, run).plan_name for run in (options.first, options.second))
    return f"Compare {first} with {second}"


def _needs(session: Session, options: ComparePlansOptions) -> Session:
    """Keep the two evaluations."""
    return without_results(
        session, evaluations=tuple(_evaluation(session, run) for run in (options.first, options.second))
    )


COMPARE_TITLE = "Compare two evaluations"

COMPARE_PLANS = Step(
    name="compare-plans",
    title=COMPARE_TITLE,
    summary="Compares two evaluations sample by sample.",
    options=ComparePlansOptions,
    run=_run,
    heading=_heading,
    needs=_needs,
)
