"""A step: what a user can ask for, described once for the window, the command line, Python and the engine."""

from __future__ import annotations

import importlib
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import PurePath
from pprint import pformat
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl

from workbench.engine.executors import cluster
from workbench.engine.failure import portable
from workbench.engine.model_cache import ModelCache
from workbench.errors import (
    CancelledError,
    MemoryLimitError,
    MissingResultError,
    WorkbenchError,
    memory_error,
    out_of_memory,
)  # fmt: skip
from workbench.measurement.partial_results import remembered
from workbench.memory import give_back, limit, limited_to
from workbench.models.model import Model
from workbench.models.placement import AUTO, Placement
from workbench.models.sources.files import Stamp, require_as_opened, weights_stamp
from workbench.planning.plan import Plan
from workbench.preflight import Estimate, measured
from workbench.progress import Notes, Progress, heeding, silent
from workbench.session.edits import EditableParts
from workbench.session.session import Session
from workbench.steps.changed_files import require_unchanged
from workbench.steps.device_memory import device_error, free, is_of_device, smaller_rooms
from workbench.steps.requirements import Requirement, without_results
from workbench.steps.session_data import opened_once

log = logging.getLogger(__name__)

O = TypeVar("O")  # noqa: E741
R = TypeVar("R")

NO_SESSION = "no model is open; open a model or a session first"
HEAD = "import workbench as wb\n"
SESSION_LINE = 'session = wb.Session.load("session.qwb")  # the session of the window, as it was last saved\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a step runs in: the open session, its model on demand, where to report progress.

    ``opened`` is the session's model where it is open already; ``trust`` allows its own Python file to run;
    ``placement`` says where one that is not open yet shall run.
    A step adds sentences to ``notes`` about what its result leaves out.  ``says`` is progress that receives, as partial
    results, what a long step is estimated to take and then what it took; without it that is only tried under a limit.
    """

    document: Session | None = None
    models: ModelCache = field(default_factory=ModelCache)
    opened: Model | None = None
    trust: bool = False
    placement: Placement = field(default_factory=Placement)
    progress: Progress = silent
    notes: list[str] = field(default_factory=list)
    says: Progress | None = None

    @property
    def session(self) -> Session:
        """The session; raises MissingResultError where none is open."""
        if self.document is None:
            raise MissingResultError(NO_SESSION)
        return self.document

    def model(self) -> Model:
        """Return the session's model, opened if need be; raises what opening raises."""
        return self.opened or self.models.get(self.session.model, self.trust, self.placement)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Generic[O, R]):
    """What a user can ask for.

    ``name`` is the spelling on the command line, ``title`` the menu entry and the form's title, ``summary`` what the
    step does (form and help). ``options`` is the frozen dataclass of its options (see :mod:`workbench.steps.options`).
    ``run(context, options)`` does the work and changes nothing but the files that the options name. ``heading(options,
    session)`` is the job's title (default: ``title``). ``needs(session, options)`` returns the part of the session that
    ``run`` reads: what crosses the pipe; the default is the model's facts, the plan, the locks, the data's records and
    the active ranges. ``join(session, options, result)`` puts a result into the session as it is by then;
    ``keep(session, options, partial)`` what a cancelled run had computed. ``undo(options)`` names the edit, where the
    result is one. ``requires`` must be met before the step can run; ``document``: it works on a session.
    ``first(session)`` returns the options that a form starts with, ``missing(session, options)`` what they lack on this
    session: names of options, and what to give; ``wants(session, options)`` what these options add to ``requires``.
    ``call`` is the step's function in the public
    interface (``wb.evaluate``) if it has one; ``python(request)`` replaces the lines that are generated.
    ``listed``: it stands in the list of jobs.  ``aside`` is the role of the process that runs it beside other jobs,
    without a model: ``files`` reads and writes it, ``drawing`` pictures of it (empty: the engine).
    ``runs_model``: it opens the session's model, so that it matters where; ``spreads``: workers can do pieces of it.
    ``costs(context, options)`` says what a
    long run will take, None for a short one.

    A step is a constant of its ``run``'s module, named like the step in capitals; a pickle only refers to it.
    """

    name: str
    title: str
    summary: str
    options: type[O]
    run: Callable[[Context, O], R]
    heading: Callable[[O, Session | None], str] | None = None
    needs: Callable[[Session, O], Session] = lambda session, options: without_results(session)
    join: Callable[[Session, O, R], Session] | None = None
    keep: Callable[[Session, O, R], Session] | None = None
    undo: Callable[[O], str] | None = None
    first: Callable[[Session], O] | None = None
    missing: Callable[[Session, O], Mapping[str, str]] = lambda session, options: {}
    wants: Callable[[Session, O], tuple[Requirement, ...]] = lambda session, options: ()
    requires: tuple[Requirement, ...] = ()
    document: bool = True
    call: str = ""
    python: Callable[[Request[O, R]], str] | None = None
    listed: bool = True
    aside: str = ""
    runs_model: bool = False
    spreads: bool = False
    costs: Callable[[Context, O], Estimate | None] | None = None

    def __call__(
        self, session: Session | None, options: O, *, model: Model | None = None, trust: bool = False,
        placement: Placement | None = None, notes: list[str] | None = None, progress: Progress = silent,
        says: Progress | None = None,
    ) -> R:  # fmt: skip
        """Run the step in this process; ``model`` saves opening the session's again, ``notes`` gets its notes,
        ``says`` what a long run will take.

        Raises what ``run`` raises, and the errors of requirements that are not met.
        """
        placement = placement or Placement()
        context = Context(
            document=session, opened=model, trust=trust, placement=placement, progress=progress, says=says
        )  # fmt: skip
        return self.within(context if notes is None else replace(context, notes=notes), options)

    def __reduce__(self) -> tuple[Callable[[str, str], AnyStep], tuple[str, str]]:
        return _imported, (self.run.__module__, self.name)

    def within(self, context: Context, options: O) -> R:
        """Run the step in a context whose session meets its requirements; else raises their errors.

        Where memory runs out, it runs again with batches half as large, down to single samples, then in pieces of a
        quarter of what was free, and last in the smallest pieces that it knows; a note says so, as it does where the
        step goes on from an interrupted run.  Raises MemoryLimitError where all this does not help.
        """
        if context.document is not None:
            for requirement in (*self.requires, *self.wants(context.document, options)):
                requirement.require(context.document)
        with remembered(context.notes), opened_once():
            return self._with_memory(context, options)

    def _with_memory(self, context: Context, options: O) -> R:
        if self.runs_model and context.opened is not None:
            require_as_opened(context.opened, self.title)
        before, rooms = _stamp(self, context), iter(smaller_rooms())
        if self.costs is not None:
            give_back()  # what earlier steps left
        room = context.placement.memory
        while True:
            try:
                first = room == context.placement.memory
                with limited_to(room), self.estimated(context, options) if first else nullcontext():
                    result = self.run(context, options)
                require_unchanged(before, _stamp(self, context), self.title, getattr(options, "out", None))
                return result
            except (MemoryError, RuntimeError, OSError, WorkbenchError) as error:
                if not out_of_memory(error):
                    raise
                if (smaller := _smaller(options)) is not None:
                    options, words = smaller
                elif is_of_device(error):
                    raise device_error(error, self.title) from None
                elif (least := next(rooms, None)) is not None:
                    room, words = least
                else:
                    named = isinstance(error, MemoryLimitError)  # else it may blame the data, or a file
                    raise portable(error if named else memory_error(error) or error, self.title) from error
            context.notes.append(f"{self.title}: the memory ran out, so it ran with {words}")
            context.progress(0.0, f"The memory ran out; again with {words}")
            free()

    def estimate(self, context: Context, options: O, *, strict: bool = False) -> Estimate | None:
        """Return what a run will take, from short trials; None for a short one, and where that cannot be told.
        ``strict``: how many samples a short one has, and the error because of which it cannot be told."""
        if self.costs is None:
            return None
        about, samples = _about(self, context, options), getattr(options, "samples", None)
        if (known := _estimates.get(about)) is not None and known[0] in (samples, None):
            again = known[1] if known[0] == samples else known[1].on(min(samples or 0, known[1].samples))
            return again if strict or not again.is_count else None
        try:
            with limited_to(context.placement.memory), heeding(context.progress):
                expected = self.costs(context, options)
            if expected is not None and about and (samples is None or expected.samples):
                _estimates.clear()  # of another state, perhaps
                _estimates[about] = samples, expected
            return None if expected is not None and expected.is_count and not strict else expected
        except Exception as error:  # the run itself says what is wrong
            log.info("%s: no estimate", self.title, exc_info=error)
            if strict or isinstance(error, CancelledError):
                raise
            return None

    @contextmanager
    def estimated(self, context: Context, options: O) -> Iterator[None]:
        """Report what the run in a ``with`` block will take, and then what it took, where it is a long one.

        Raises MemoryLimitError where it cannot fit.
        """
        says = context.says or silent
        needed = context.says is not None or limit() is not None
        expected = self.estimate(context, options) if needed else None
        if expected is None:
            yield
            return
        expected.require(self.title)
        says(0.0, f"{self.title}: {expected.text}", expected)
        with measured() as spent:
            yield
        outcome = replace(expected, took=spent.seconds, peak=spent.peak, compiling=spent.compiling)
        says(1.0, f"{self.title}: {outcome.outcome}", outcome)
        log.info("%s %s", self.title, outcome.outcome)

    def request(
        self, session: Session | None, options: O, *, trust: bool = False, placement: Placement | None = None
    ) -> Request[O, R]:
        """Return the request to run this step."""
        return Request(step=self, options=options, session=session, trust=trust, placement=placement or Placement())

    def why_not(self, session: Session | None) -> str | None:
        """Return why the step cannot be run on a session, None if it can."""
        if session is None:
            return NO_SESSION if self.document else None
        return next((reason for need in self.requires if (reason := need.unmet(session)) is not None), None)


AnyStep = Step[Any, Any]
"""A step of the table, whose options and result only its own module knows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Request(Generic[O, R]):
    """A step with its options, about a session: what jobs keep, the engine runs and the window repeats.

    ``cluster`` is the address of the processes that do pieces of a step that ``spreads``; empty: it runs in one.
    """

    step: Step[O, R]
    options: O
    session: Session | None = None
    trust: bool = False
    placement: Placement = field(default_factory=Placement)
    cluster: str = ""

    @property
    def title(self) -> str:
        """What the list of jobs shows."""
        heading = self.step.heading
        return self.step.title if heading is None else heading(self.options, self.session)

    @property
    def keeps_partial(self) -> bool:
        """Whether the partial result of a cancelled run is of use."""
        return self.step.keep is not None

    @property
    def listed(self) -> bool:
        """Whether the user sees the job."""
        return self.step.listed

    @property
    def aside(self) -> str:
        """The role of the process that runs it beside other jobs; empty for the engine."""
        return self.step.aside

    def reduced(self) -> Request[O, R]:
        """Return the request with no more of the session than the step needs."""
        if self.session is None:
            return self
        return replace(self, session=self.step.needs(self.session, self.options))

    def about(self, current: Session | None) -> Request[O, R]:
        """Return the request with the results that ``current`` holds by now, and the plan and edits of its own session.

        A session of another model changes nothing.
        """
        session = self.session
        if current is None or session is None or current is session or not self.fits(current):
            return self
        manual = {place: chosen for place, chosen in session.active_ranges.items() if chosen.method == "manual"}
        edits = replace(EditableParts.of(session), active_ranges={**current.active_ranges, **manual})
        return replace(self, session=edits.into(current))

    def fits(self, current: Session | None) -> bool:
        """Return whether ``current`` is a session of the request's model, so that the result belongs to it."""
        return (
            current is not None and self.session is not None
            and current.model.fingerprint == self.session.model.fingerprint
        )  # fmt: skip

    def run(self, models: ModelCache, progress: Progress) -> R:
        """Do the work; called in the engine.  Raises what the step's ``run`` raises."""
        last: list[tuple[float, str]] = [(0.0, "")]

        def report(fraction: float, text: str, partial: object = None) -> None:
            last[0] = fraction, text
            progress(fraction, text, partial)

        context = Context(document=self.session, models=models, trust=self.trust, placement=self.placement,
                          progress=report, says=report)  # fmt: skip
        with self._workers(lambda: progress(*last[0])):
            result = self.step.within(context, self.options)
        if context.notes:
            progress(*last[0], Notes(context.notes))
        return result

    @contextmanager
    def _workers(self, beat: Callable[[], object]) -> Iterator[None]:
        """Let the step use the cluster's workers meanwhile, where there is one."""
        if not self.cluster:
            yield
            return
        place = self.placement
        with cluster(self.cluster, device=place.device, dtype=place.dtype, trust=self.trust) as workers:
            workers.beat = beat
            yield

    def joined(self, current: Session, result: R) -> Session:
        """Return ``current`` with what the result adds to it; edits made while the job ran stay.

        Raises FingerprintMismatchError for a session of another model.
        """
        if self.step.join is None or self.session is None:
            return current
        current.model.require_fingerprint(self.session.model.fingerprint, "the result")
        return self.step.join(current, self.options, result)

    def with_partial(self, current: Session, partial: R) -> Session:
        """Return ``current`` with what a run that was cancelled or lost its engine had computed."""
        return current if self.step.keep is None else self.step.keep(current, self.options, partial)

    def python(self, file: PurePath | None = None, current: Plan | None = None) -> str:
        """Return the script that does the same, with the session as it was last saved in ``file``, where its plan is
        ``current``: a job's own plan is written out where that is another one by now."""
        script, line = self._script(), SESSION_LINE
        if file is not None:
            line = line.replace('"session.qwb"', repr(str(file)))
        if SESSION_LINE in script and self.session is not None and current not in (None, self.session.plan):
            document = pformat(json.loads(self.session.plan.to_json()), width=120, sort_dicts=False)
            line += f"plan = wb.Plan.from_json({document})\nsession = replace(session, plan=plan)\n"
            script = f"from dataclasses import replace\n\n{script}"
        return script.replace(SESSION_LINE, line)

    def opening(self, path: str, factory: str | None, weights: str | None) -> str:
        """Return the line of a script that opens a model where and as the job did."""
        given = {"factory": factory, "weights": weights, "trust": self.trust, **asdict(self.placement)}
        said = [f"{name}={value!r}" for name, value in given.items() if value not in (None, False, AUTO)]
        return f"model = wb.open({', '.join([repr(path), *said])})\n"

    def _script(self) -> str:
        step, given = self.step, arguments(self.options)
        if step.python is not None:
            return f"{HEAD}\n{step.python(self)}\n"
        start, about = (SESSION_LINE, "session") if step.document else ("", "None")
        placed = list[str]()
        if step.runs_model and self.session is not None and (self.trust or self.placement != Placement()):
            source = self.session.model.source
            start += self.opening(source.path, source.factory, source.weights)
            placed = ["model=model", *(["trust=True"] if self.trust else [])]
        if step.call:
            return f"{HEAD}\n{start}result = {step.call}({', '.join([about, *given, *placed])})\n"
        name, options = step.name.upper().replace("-", "_"), step.options.__name__
        called = f"{name}({', '.join([f'{about}, {options}(' + ', '.join(given) + ')', *placed])})"
        return f"{HEAD}from {step.run.__module__} import {name}, {options}\n\n{start}result = {called}\n"


def _stamp(step: AnyStep, context: Context) -> Stamp:
    """Return how the files of the session's model look that hold weights; none for a step that reads no model."""
    return () if not step.runs_model or context.document is None else weights_stamp(context.document.model.source)


_estimates: dict[str, tuple[int | None, Estimate]] = {}
"""The last estimate: who asks for it and then runs the step, perhaps on fewer samples, waits for one trial."""


def _about(step: AnyStep, context: Context, options: O) -> str:
    """Return what an estimate depends on beside the number of samples; empty without a session."""
    if (session := context.document) is None:
        return ""
    given: Any = options
    others = replace(given, samples=None) if hasattr(given, "samples") else given
    known = session.calibration, session.evaluation, sorted(session.sensitivities), bool(session.statistics)
    return repr((step.name, others, context.placement, limit(), session.model.fingerprint, session.plan.hash, known))


def _smaller(options: O) -> tuple[O, str] | None:
    """Return the options with batches half as large, and that in words; None where there is nothing to halve."""
    size = getattr(options, "batch_size", None)
    if not is_dataclass(options) or not isinstance(size, int) or size < 2:
        return None
    whole: Any = options
    less: O = replace(whole, batch_size=size // 2)
    return less, f"batches of {size // 2}"


def _imported(module: str, name: str) -> AnyStep:
    members = vars(importlib.import_module(module)).values()
    return next(member for member in members if isinstance(member, Step) and member.name == name)


def arguments(options: object) -> list[str]:
    """Return ``name=value`` for every option that differs from its default."""
    if not is_dataclass(options) or isinstance(options, type):
        raise TypeError(f"a step's options are a dataclass, not {options!r}")
    values = [(item.name, getattr(options, item.name), item.default) for item in fields(options)]
    return [f"{name}={value!r}" for name, value, default in values if value != default]


def plan_name(session: Session | None) -> str:
    """Return the name of the session's plan in quotation marks, for headings."""
    return "the plan" if session is None else f"“{session.plan.name}”"


def short(path: str) -> str:
    """Return the last part of a path, or the name of a bundled data set, for headings: ``a.csv (column text)``."""
    if query := re.search(r"\?((?:column|window|stride|text)=.*)$", path):
        path = f"{path[: query.start()]} ({', '.join(map(' '.join, parse_qsl(query[1])))})"
    return path if path.startswith("demo:") else PurePath(path).name or path
