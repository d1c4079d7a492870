"""Compare two evaluations on the same samples: what differs, and whether so many samples resolve it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from workbench.errors import DataError, MissingResultError
from workbench.measurement.evaluation import Evaluation
from workbench.measurement.paired import Difference, between
from workbench.session.session import Session
from workbench.steps.options import OptionInfo
from workbench.steps.requirements import without_results
from workbench.steps.step import Step

Run = tuple[str, str]
"""The plan's and the data's hash of an evaluation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparePlansOptions:
    """Which two of the session's evaluations, each by its plan's and its data's hash."""

    first: Run = field(metadata=OptionInfo(
        label="First", help="the plan's hash and the data's hash of the first evaluation", command=False
    ).metadata)  # fmt: skip
    second: Run = field(metadata=OptionInfo(
        label="Second", help="the same of the second, which is subtracted", command=False
    ).metadata)  # fmt: skip


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


def _pair(session: Session, options: ComparePlansOptions) -> tuple[Evaluation, Evaluation]:
    return _evaluation(session, options.first), _evaluation(session, options.second)


def _heading(options: ComparePlansOptions, session: Session | None) -> str:
    if session is None:
        return COMPARE_PLANS.title
    first, second = _pair(session, options)
    return f"Compare {first.plan_name} with {second.plan_name}"


COMPARE_PLANS: Step[ComparePlansOptions, tuple[Difference, ...]] = Step(
    name="compare-plans", title="Compare two evaluations", options=ComparePlansOptions, heading=_heading,
    summary="Compares two evaluations sample by sample.",
    run=lambda context, options: paired_differences(*_pair(context.session, options)),
    needs=lambda session, options: replace(without_results(session), evaluations=_pair(session, options)),
)  # fmt: skip
