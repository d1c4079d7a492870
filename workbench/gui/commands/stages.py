"""The stages of the work, from an opened model to its deployment: which is done, runs, comes next, and why not yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from workbench.engine.jobs import Jobs, JobStatus, JobView
from workbench.gui.commands.action import ActionState, Condition, has_session, has_table, step_possible
from workbench.gui.shell.step_keys import STEP_KEYS
from workbench.gui.shell.stepper import Mark, StageStatus
from workbench.gui.shell.words import tr
from workbench.insight import quantities
from workbench.insight.dashboard import evaluation_of
from workbench.insight.roles import lacks_schemes
from workbench.planning.latest import Latest
from workbench.planning.plan import KEEP, Assignment
from workbench.session.calibrated_ranges import identity
from workbench.session.session import Session
from workbench.session.workspace import State
from workbench.steps.calibrate import CALIBRATE
from workbench.steps.checks.runtime import RUNTIME, proofs
from workbench.steps.evaluate import EVALUATE
from workbench.steps.files.export import EXPORT
from workbench.steps.files.first_session import is_first_look
from workbench.steps.files.open_model import OPEN
from workbench.steps.files.open_session import OPEN_SESSION
from workbench.steps.score import SCORE
from workbench.steps.search import SEARCH
from workbench.steps.step import Request


@dataclass(frozen=True, slots=True)
class Stage:
    """``action`` starts it, ``panel`` shows its result, ``steps`` are the names of its jobs.

    ``outcome(state)`` says what is there, or is empty.
    """

    title: str
    action: str
    panel: str
    steps: tuple[str, ...]
    outcome: Callable[[State], str]
    why_not: Condition

    @property
    def again(self) -> str:
        """How to do it once more."""
        key = next((STEP_KEYS[name] for name in self.steps if name in STEP_KEYS), "")
        return f"{key} does it again" if key and self.action else ""


def _opened(state: State) -> str:
    session = state.session
    if session is None or is_first_look(session):
        return ""
    return f"{session.model.name}: {tr(quantities.layers_of(session.model))}"


def _calibrated(state: State) -> str:
    record = state.session.calibration if state.session else None
    return f"{record.name}, {quantities.plural(record.samples, 'sample')}" if record else ""


def _scored(state: State) -> str:
    table = state.session.table(state.metric) if state.session else None
    if state.session is None or table is None:
        return ""
    if lacks_schemes(state.session, state.metric, state.target, state.assignments):
        return ""
    return f"{quantities.plural(len(table.layers), 'layer')} under {quantities.plural(len(table.schemes), 'scheme')}"


def _planned(state: State) -> str:
    quantized = _quantized(state.assignments)
    return f"{quantities.plural(quantized, 'layer')} quantized" if quantized else ""


@Latest
def _quantized(assignments: Mapping[str, Assignment]) -> int:
    return sum(each.weights != KEEP for each in assignments.values())


def _evaluated(state: State) -> str:
    session, totals = state.session, state.totals
    run = evaluation_of(session, session.plan, totals) if session and totals else None
    return f"this plan, on {run.data_name}" if run else ""


def _deployed(state: State) -> str:
    session = state.session
    rows = proofs(session) if session else ()
    ran = {row.plan for row in rows}
    # The hash of a plan of 5,000 layers takes longer than a frame: it is asked for where there is something to find.
    return "this plan ran in its runtime" if ran and session and _known_as(session) in ran else ""


@Latest
def _known_as(session: Session) -> str:
    return identity(session, session.plan)


STAGES = (
    Stage("Model", "open_folder", "layers", (OPEN.name, OPEN_SESSION.name), _opened, lambda now: None),
    Stage("Calibrate", "calibrate", "distributions", (CALIBRATE.name,), _calibrated, step_possible(CALIBRATE)),
    Stage("Score", "score", "sensitivity", (SCORE.name,), _scored, step_possible(SCORE)),
    Stage("Plan", "search", "plan", (SEARCH.name,), _planned, has_table),
    Stage("Evaluate", "evaluate", "accuracy", (EVALUATE.name,), _evaluated, step_possible(EVALUATE)),
    Stage("Deploy", "", "deploy", (EXPORT.name, RUNTIME.name), _deployed, step_possible(EXPORT)),
)
"""In the order of the work.  One without an action of its own is done in its panel."""


class Stages:
    """Follows the jobs; knows which plans were exported while the window is open."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._exported: dict[int, tuple[str, str]] = {}  # models and plans by the number of the job

    def marks(self, now: ActionState, running: Mapping[str, str]) -> tuple[Mark, ...]:
        """Return what every stage shows now; ``running`` says what jobs are doing, by the name of their step."""
        self._note_exports()
        marks: list[Mark] = []
        for stage in STAGES:
            outcome = stage.outcome(now.state) or self._deployed_here(stage, now.state.session)
            reason = None if stage is STAGES[0] else has_session(now) or stage.why_not(now)
            waiting = any(mark.status in (StageStatus.NEXT, StageStatus.RUNNING) for mark in marks)
            texts = [running[name] for name in stage.steps if name in running]
            if texts:
                status, tip = StageStatus.RUNNING, tr(texts[0])
            elif outcome:
                status, tip = StageStatus.DONE, tr(f"{outcome}\nClick to see it; {stage.again}".rstrip("; "))
            elif reason is None and not waiting:
                status, tip = StageStatus.NEXT, tr("The next stage: click to start it")
                if stage.steps == (SCORE.name,) and now.state.target and now.state.session is not None:
                    tip += tr("; it scores the schemes that the target runs")
            elif reason is None:
                status, tip = StageStatus.LATER, tr("Possible now, though an earlier stage usually comes first")
            else:
                status, tip = StageStatus.LATER, tr("Not yet: {}").format(tr(reason))
            marks.append(Mark(tr(stage.title), status, tip))
        return tuple(marks)

    def _note_exports(self) -> None:
        for view in self._jobs.views:
            request = self._jobs.request(view.id)
            is_new = view.status is JobStatus.DONE and view.id not in self._exported
            if is_new and isinstance(request, Request) and request.step is EXPORT and request.session is not None:
                exported = request.session
                self._exported[view.id] = exported.model.fingerprint, identity(exported, exported.plan)

    def opening(self) -> JobView | None:
        """Return the job that opens a model or session now, None where there is none."""
        jobs = ((view, self._jobs.request(view.id)) for view in self._jobs.views if not view.status.over)
        opens = (view for view, each in jobs if isinstance(each, Request) and each.step.name in STAGES[0].steps)
        return next(opens, None)

    def _deployed_here(self, stage: Stage, session: Session | None) -> str:
        if stage.panel != "deploy" or session is None or not self._exported:
            return ""
        known = session.model.fingerprint, _known_as(session)
        return "this plan was exported" if known in self._exported.values() else ""
