"""What the window asks of the engine: frozen, picklable, with the title that a person reads.

A request that works on a session carries only what its task needs: ``slim`` drops the rest before it crosses the pipe.
``merge`` takes a response up into the session that the window holds by then, which may have been edited meanwhile.
Requests of their own kind of work have files of their own (planner, timings, audits, training).
Nothing here imports torch; the tasks are imported where they run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, Protocol, TypeVar

import numpy as np

from workbench.engine.model_cache import ModelCache
from workbench.measurement.evaluation import Evaluation
from workbench.planning.plan import Plan
from workbench.progress import Progress
from workbench.sensitivity.metrics import ACTIVATION_METRICS, BY_NAME, metric_phrase
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session
from workbench.steps.needs import moments, moments_of_plan, without_results


class Request(Protocol):
    """A frozen request."""

    @property
    def title(self) -> str:
        """What a person reads in the jobs panel."""
        ...

    def run(self, models: ModelCache, progress: Progress) -> Any:
        """Do it; called in the engine."""
        ...




@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Score:
    """Score every layer under every scheme by one metric; partial results are tables with NaN where nothing is yet."""

    session: Session
    metric: str = "predicted_kl"
    schemes: tuple[str, ...] = ()
    samples: int | None = None
    batch_size: int = 8
    seed: int = 0
    algorithm: str = "rtn-clip"
    trust: bool = False

    @property
    def title(self) -> str:
        return f"Sensitivity by {metric_phrase(self.metric)}"

    def slim(self) -> Score:
        """Keep what scoring needs: the data's record, the metric's earlier table, curvature where it is used."""
        curvature = moments(self.session, {self.algorithm}, self.metric)
        earlier = {name: table for name, table in self.session.sensitivities.items() if name == self.metric}
        ranges = self.session.ranges if BY_NAME[self.metric].part == "inputs" else {}
        slimmed = without_results(self.session, curvature=curvature, sensitivities=earlier, ranges=ranges)
        return replace(self, session=slimmed)

    def run(self, models: ModelCache, progress: Progress) -> Sensitivity:
        """Score; raises MissingResultError, CannotRunError and what opening the model raises."""
        from workbench.steps import tasks

        return tasks.score(
            self.session, self.metric, model=models.get(self.session.model, self.trust), schemes=self.schemes or None,
            samples=self.samples, batch_size=self.batch_size, seed=self.seed, algorithm=self.algorithm,
            trust=self.trust, progress=progress,
        ).sensitivities[self.metric]  # fmt: skip

    def joined(self, current: Session, response: Sensitivity) -> Session:
        """Put the table in place of an earlier one of its metric."""
        return replace(current, sensitivities={**current.sensitivities, response.metric: response})

    def kept(self, current: Session, partial: Sensitivity) -> Session:
        """Take up the cells of a cancelled run, which the same run goes on from, unless the session has as many."""
        return current if knows_as_much(current, partial) else self.joined(current, partial)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchPlan:
    """Find the plan of the least loss within a budget: bits per weight, or bytes of the whole model.

    ``target`` (see :mod:`workbench.deployment.targets`) refuses what it cannot run; None: anything goes.
    """

    session: Session
    bits_per_weight: float | None = None
    nbytes: int | None = None
    metric: str = "predicted_kl"
    target: str | None = None

    @property
    def title(self) -> str:
        if self.bits_per_weight is not None:
            return f"Search a plan of {self.bits_per_weight:g} bits per weight"
        return f"Search a plan of {self.nbytes or 0:,} bytes"

    def slim(self) -> SearchPlan:
        """Keep the plan, the locks, the metric's table and those of what is rounded besides."""
        used = BY_NAME[self.metric].derived_from or (self.metric,)
        kept = {*used, *ACTIVATION_METRICS}
        tables = {name: table for name, table in self.session.sensitivities.items() if name in kept}
        return replace(self, session=without_results(self.session, sensitivities=tables))

    def run(self, models: ModelCache, progress: Progress) -> Plan:
        """Search; raises MissingResultError without a table and BudgetError where nothing meets the budget."""
        from workbench.planning.budgets import Budgets
        from workbench.steps import planner, tasks

        if self.target is None:
            return tasks.search(
                self.session, bits_per_weight=self.bits_per_weight, size=self.nbytes, metric=self.metric
            )
        budgets = Budgets(bits_per_weight=self.bits_per_weight, nbytes=self.nbytes)
        return planner.find_plan(self.session, budgets, metric=self.metric, target=self.target, progress=progress)

    def joined(self, current: Session, response: Plan) -> Session:
        """Make the plan the current one."""
        return replace(current, plan=response)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluate:
    """Measure the session's current plan against the floating-point baseline, by a metric of one's own besides."""

    session: Session
    data: str | None = None
    samples: int | None = None
    batch_size: int = 8
    seed: int = 0
    metric: str | None = None
    trust: bool = False

    @property
    def title(self) -> str:
        where = f" on {short(self.data)}" if self.data else ""
        return f"Evaluate “{self.session.plan.name}”{where}"

    def slim(self) -> Evaluate:
        """Keep the plan, the active ranges, the predictions, and the moments that its algorithms look at."""
        kept = ("predicted_kl", *ACTIVATION_METRICS)
        tables = {name: table for name, table in self.session.sensitivities.items() if name in kept}
        return replace(
            self,
            session=without_results(self.session, sensitivities=tables, curvature=moments_of_plan(self.session)),
        )

    def run(self, models: ModelCache, progress: Progress) -> Evaluation:
        """Evaluate; raises CannotRunError, DataError, PlanError and what opening the model raises."""
        from workbench.steps import tasks

        return tasks.evaluate(
            self.session, model=models.get(self.session.model, self.trust), data=self.data, samples=self.samples,
            batch_size=self.batch_size, seed=self.seed, metric=self.metric, trust=self.trust, progress=progress,
        )  # fmt: skip

    def joined(self, current: Session, response: Evaluation) -> Session:
        """Add the evaluation, in place of an earlier one of the same plan on the same data."""
        return replace(current, evaluations=with_evaluation(current.evaluations, response))


R = TypeVar("R")


def slim(request: R) -> R:
    """Return the request with no more of the session than it needs; any other request as it is."""
    slimmer = getattr(request, "reduced", None) or getattr(request, "slim", None)
    return slimmer() if slimmer is not None else request


def merge(current: Session, request: Any, response: Any) -> Session:
    """Return ``current`` with what ``response`` adds to it; edits made while the job ran stay.

    A request whose response belongs into the session has a method ``joined(current, response)``; for others (save,
    export, open) ``current`` is returned as it is.  The caller must not merge into a session of another model: raises
    FingerprintMismatchError.
    """
    joined = getattr(request, "joined", None)
    if joined is None:
        return current
    current.model.require_fingerprint(request.session.model.fingerprint, "the result")
    merged: Session = joined(current, response)
    return merged


def knows_as_much(current: Session, partial: Sensitivity) -> bool:
    """Tell whether the session's table of the same metric has no fewer computed cells than ``partial``."""
    held = current.sensitivities.get(partial.metric)
    known = 0 if held is None else np.isfinite(held.score).sum()
    return bool(known >= np.isfinite(partial.score).sum())


def with_evaluation(known: tuple[Evaluation, ...], new: Evaluation) -> tuple[Evaluation, ...]:
    """Return the evaluations with ``new`` last, in place of an earlier one of the same plan on the same data."""
    same = (new.plan_hash, new.data_hash)
    return (*(old for old in known if (old.plan_hash, old.data_hash) != same), new)


def short(path: str | Path) -> str:
    """Return the last part of a path, or the name of a bundled data set as it is."""
    text = str(path)
    return text if text.startswith("demo:") else PurePath(text).name or text


def Calibrate(*, session: Session, trust: bool = False, **values: Any) -> Any:
    """Bridge: a request of the step."""
    from workbench.steps.calibrate import CALIBRATE, CalibrateOptions

    return CALIBRATE.request(session, CalibrateOptions(**values), trust=trust)


def Export(*, session: Session, trust: bool = False, **values: Any) -> Any:
    """Bridge: a request of the step."""
    from workbench.steps.files.export import EXPORT, ExportOptions

    return EXPORT.request(session, ExportOptions(**values), trust=trust)


def OpenModel(*, trust: bool = False, **values: Any) -> Any:
    """Bridge: a request of the step."""
    from workbench.steps.files.open_model import OPEN, OpenModelOptions

    return OPEN.request(None, OpenModelOptions(**values), trust=trust)


def OpenSession(*, path: str) -> Any:
    """Bridge: a request of the step."""
    from workbench.steps.files.open_session import OPEN_SESSION, OpenSessionOptions

    return OPEN_SESSION.request(None, OpenSessionOptions(path=path))


def SaveSession(*, session: Session, path: str) -> Any:
    """Bridge: a request of the step."""
    from workbench.steps.files.save_session import SAVE_SESSION, SaveSessionOptions

    return SAVE_SESSION.request(session, SaveSessionOptions(path=path))
