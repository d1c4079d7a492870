"""The one mutable document: the current session, what is selected, the undo stack.  On the main thread; free of Qt.

Every change makes a new frozen :class:`State` and calls the listeners with the old and the new one; views redraw what
differs.  Edits (plan, ranges, locks) can be undone; undo never removes results (statistics, tables, evaluations).
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from workbench.deployment.targets import known_target
from workbench.deployment.targets import target as target_of
from workbench.errors import WorkbenchError
from workbench.measurement.data_quality import CalibrationQuality
from workbench.measurement.evaluation import Ceilings
from workbench.memory import uncollected
from workbench.models.layer import Layer
from workbench.planning.latest import same_objects
from workbench.planning.plan import Assignment, changed_names, resolve, resolve_some
from workbench.planning.totals import Ledger, Totals, plan_totals
from workbench.sensitivity.metrics import ACTIVATION_METRICS
from workbench.session.budget import Budget
from workbench.session.contents import ANY
from workbench.session.edits import Edit, EditableParts, exchanged, same, with_branch
from workbench.session.session import Session
from workbench.session.shared_file import Stamp

MAX_UNDO = 500
KNOWN = 4
"""States before whose assignments and sums are kept: those of 60,000 layers take 5 MB each."""

_Known = tuple[tuple[object, ...], Mapping[str, Assignment], Totals | None, Ledger | None]
"""What a plan's assignments and sums depend on, and what they were."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """A snapshot for the view.  ``assignments`` and ``totals`` belong to ``session.plan``; ``plan_error`` says why
    there are none.  ``metric`` is the sensitivity metric that plans are summed and searched with;
    ``activation_metric`` the one of inputs or the KV cache whose table is shown in its place (empty: none).
    ``target`` names the runtime or device of the plan (see :mod:`workbench.deployment.targets`; empty: any).
    ``budget`` is what a search may use, ``search_error`` why the last one found no plan within it, ``smallest_budget``
    the least amount, in the budget's unit, within which there is one.
    ``dirty``: the file on disk is older.  ``ledger`` holds the sums behind ``totals``.

    ``contrast`` names the two plans whose differences are marked in tree and heatmap (empty: none).
    ``compared`` is the other session of a comparison, read from ``compared_path``; ``data_quality`` judges the
    calibration data, ``ceilings`` are this machine's."""

    session: Session | None = None
    path: Path | None = None
    selection: tuple[str, ...] = ()
    metric: str = "predicted_kl"
    activation_metric: str = ""
    target: str = ""
    budget: Budget = Budget()
    search_error: str = ""
    smallest_budget: float | None = None
    compared: Session | None = None
    compared_path: Path = Path()
    contrast: tuple[str, str] | tuple[()] = ()
    data_quality: CalibrationQuality | None = None
    ceilings: Ceilings | None = None
    dirty: bool = False
    undo_name: str = ""
    redo_name: str = ""
    assignments: Mapping[str, Assignment] = field(default_factory=dict)
    totals: Totals | None = None
    ledger: Ledger | None = None
    plan_error: str = ""

    @property
    def shown_metric(self) -> str:
        """The metric whose table is shown."""
        return self.activation_metric or self.metric


Listener = Callable[[State, State], None]


class Workspace:
    """Owns the state; the only way to change it is through these methods, on the main thread."""

    def __init__(self) -> None:
        self.state = State()
        self._listeners: list[Listener] = []
        self._undo: list[Edit] = []
        self._redo: list[Edit] = []
        self._numbers = itertools.count(1)
        self._known = deque[_Known](maxlen=KNOWN)
        self.on_disk: Session | None = None  # as it was opened or saved last
        self.read: Stamp = ()  # which version of the document's file was read or saved here
        self.document = 0  # a number for each that is opened or closed: whether it is another one than before

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener(old, new)`` after every change; returns the function that ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def open(self, session: Session, path: Path | None, *, unsaved: bool = False, read: Stamp = ()) -> None:
        """Make ``session`` the document; the undo stack is empty.  ``unsaved``: it is not what stands at ``path``,
        ``read`` is the version of that file which it comes from.

        One without a target, or with one that is not known here, is for the target that is chosen; one without a budget
        is searched within the present one."""
        self._undo.clear()
        self._redo.clear()
        self._known.clear()
        self.document += 1
        aim = "" if session.target == ANY else known_target(session.target) or self.state.target
        session = session if session.target in (aim, ANY) else replace(session, target=aim)
        session = session if session.budget else replace(session, budget=replace(self.state.budget, problem=""))
        self.on_disk, self.read = None if unsaved else session, read
        view = replace(
            self.state, selection=(), activation_metric="", search_error="", smallest_budget=None, contrast=(),
            target=aim, budget=session.budget or self.state.budget,
        )  # fmt: skip
        self._set(replace(view, session=session, path=path, dirty=unsaved))

    def close(self) -> None:
        """Drop the document."""
        self._undo.clear()
        self._redo.clear()
        self._known.clear()
        self.document += 1
        self._set(State(target=self.state.target, budget=self.state.budget))

    def edit(self, name: str, change: Callable[[Session], Session], *, extend: int | None = None) -> int | None:
        """Apply an undoable edit with a readable name (``Set 24 layers to int4-g128``); return its number.

        ``extend`` is the number of an earlier edit: if it is still the last one, both become one step to undo, under
        the new name; so a drag is one step.  Returns None, and adds no step, if nothing changed.  Where steps were
        undone before, the plan that they had led to stays as a named one.
        """
        session = self._session()
        with uncollected():
            after = change(session)
        if after is session:
            return None
        branched = with_branch(session, self._redo, after.plan)
        if branched is not session:
            session, after = branched, change(branched)
        before, number = EditableParts.of(session), next(self._numbers)
        if extend is not None and self._undo and self._undo[-1].number == extend:
            last = self._undo.pop()
            before, number = EditableParts.of(exchanged(session, last.after, last.before)), extend
        step = Edit(number=number, name=name, before=before, after=EditableParts.of(after))
        self._undo = [*self._undo[-MAX_UNDO + 1 :], step]
        self._redo.clear()
        self._set(replace(self.state, session=after, target=_target(after), dirty=True))
        return number

    def update(self, change: Callable[[Session], Session]) -> None:
        """Add a result to the document; undo does not remove it."""
        self._set(replace(self.state, session=change(self._session()), dirty=True))

    def undo(self) -> None:
        """Undo the last edit; nothing happens on an empty stack."""
        if self._undo:
            last = self._undo.pop()
            self._redo.append(last)
            self._exchange(last.after, last.before)

    def redo(self) -> None:
        """Redo the edit that was undone last; nothing happens on an empty stack."""
        if self._redo:
            last = self._redo.pop()
            self._undo.append(last)
            self._exchange(last.before, last.after)

    def _exchange(self, old: EditableParts, new: EditableParts) -> None:
        session = exchanged(self._session(), old, new)
        self._set(replace(self.state, session=session, target=_target(session), dirty=not same(session, self.on_disk)))

    def select(self, layers: Iterable[str]) -> None:
        """Select layers by name."""
        selection = tuple(dict.fromkeys(layers))
        if selection != self.state.selection:
            self._set(replace(self.state, selection=selection))

    def show_metric(self, metric: str) -> None:
        """Choose the sensitivity table that is shown; one of weights is summed and searched with from now on."""
        if metric in ACTIVATION_METRICS:
            self._set(replace(self.state, activation_metric=metric))
        else:
            self._set(replace(self.state, metric=metric, activation_metric=""))

    def compare_with(self, session: Session, path: Path) -> None:
        """Choose the other session of a comparison; it is never changed."""
        self._set(replace(self.state, compared=session, compared_path=path))

    def show_contrast(self, plans: tuple[str, str] | tuple[()]) -> None:
        """Mark where two plans differ, by their names (see ``insight/plan_differences.py``); none where it is empty."""
        if plans != self.state.contrast:
            self._set(replace(self.state, contrast=plans))

    def show_data_quality(self, quality: CalibrationQuality) -> None:
        """Show a judgement of the session's calibration data, until the data change."""
        self._set(replace(self.state, data_quality=quality))

    def show_ceilings(self, ceilings: Ceilings) -> None:
        """Show how fast this machine's memory and arithmetic are."""
        self._set(replace(self.state, ceilings=ceilings))

    def show_target(self, target: str) -> None:
        """Choose the plan's runtime or device, in an open session as an edit; an empty name allows everything."""
        if self.state.session is None:
            self._set(replace(self.state, target=target))
        elif target != self.state.target:
            title = f"Choose the target {target_of(target).title}" if target else "Allow any target"
            self.edit(title, lambda session: replace(session, target=target or ANY))

    def show_budget(self, budget: Budget) -> None:
        """Choose what a search may use, which the session remembers; the error of an earlier search is over."""
        state = replace(self.state, budget=budget, search_error="", smallest_budget=None)
        kept = replace(budget, problem="")
        if state.session is not None and kept != state.session.budget:
            session = replace(state.session, budget=kept)
            state = replace(state, session=session, dirty=not same(session, self.on_disk))
        self._set(state)

    def show_search_error(self, error: str, smallest: float | None = None) -> None:
        """Note why a search found no plan, and the smallest budget for one; this replaces a problem of the amount."""
        budget = replace(self.state.budget, problem="")
        self._set(replace(self.state, budget=budget, search_error=error, smallest_budget=smallest))

    def saved(self, path: Path, session: Session, version: Stamp = ()) -> None:
        """Note that ``session`` is on disk at ``path``; later edits keep the document dirty."""
        self.on_disk, self.read = session, version
        self._set(replace(self.state, path=path, dirty=self.state.session is not session))

    def _session(self) -> Session:
        if self.state.session is None:
            raise WorkbenchError("no model is open; open a model or a session first")
        return self.state.session

    def _set(self, state: State) -> None:
        old = self.state
        before, kept = (each.session.budget if each.session else None for each in (old, state))
        if kept and kept != before and kept != replace(state.budget, problem=""):  # it came with an edit
            state = replace(state, budget=kept)
        if _data_hash(state) != _data_hash(old):
            state = replace(state, data_quality=None)
        if _searched(state) != _searched(old):
            state = replace(state, search_error="", smallest_budget=None)
        state = replace(
            state,
            undo_name=self._undo[-1].name if self._undo else "",
            redo_name=self._redo[-1].name if self._redo else "",
        )
        with uncollected():  # a whole plan makes an object or two for each of its layers
            self.state = self._with_assignments(old, state)
        for listener in tuple(self._listeners):
            listener(old, self.state)

    def _with_assignments(self, old: State, new: State) -> State:
        """Resolve the plan, or take what is known from shortly before: undo goes back there."""
        facts, before = _facts(new), _facts(old)
        if same_objects(facts, before):
            return new
        for known, assignments, totals, ledger in self._known if facts else ():
            if same_objects(known, facts):
                state = replace(new, assignments=assignments, totals=totals, ledger=ledger, plan_error="")
                break
        else:
            state = _resolved(old, new)
        if facts and before and facts[1] is before[1] and not old.plan_error:  # of another model nothing fits
            self._known.append((before, old.assignments, old.totals, old.ledger))
        return state


def _facts(state: State) -> tuple[object, ...]:
    """Return what a plan's assignments and sums depend on; nothing without a session."""
    session = state.session
    return () if session is None else (session.plan, session.model, session.sensitivities, state.metric)


def _target(session: Session) -> str:
    return "" if session.target == ANY else known_target(session.target)


def _data_hash(state: State) -> str:
    record = state.session.calibration if state.session else None
    return record.content_hash if record else ""


def _searched(state: State) -> tuple[object, ...]:
    """Return what decides whether a search finds a plan, beside the budget."""
    tables = state.session.sensitivities if state.session else {}
    return state.target, state.metric, *map(id, tables.values())


def _resolved(old: State, new: State) -> State:
    """Resolve the plan of another state: where it can be, only what differs."""
    if new.session is None:
        return replace(new, assignments={}, totals=None, ledger=None, plan_error="")
    same_facts = old.session is not None and (
        old.session.model is new.session.model
        and old.session.sensitivities is new.session.sensitivities
        and old.metric == new.metric
    )
    try:
        edited = _edited(old, new, new.session) if same_facts else None
        if edited is not None:
            return edited
        assignments = resolve(new.session.plan, new.session.model.layers)
    except WorkbenchError as error:
        return replace(new, assignments={}, totals=None, ledger=None, plan_error=str(error))
    tables = new.session.tables(new.metric)
    if new.session.plan.transforms:
        sums = plan_totals(new.session.model, new.session.plan, *tables)
        return replace(new, assignments=assignments, totals=sums, ledger=None, plan_error="")
    if same_facts and old.assignments.keys() == assignments.keys():  # panels look for other objects
        assignments = _kept(old.assignments, assignments)
    ledger = _moved(old, assignments) if same_facts else None
    ledger = ledger or Ledger.of(new.session.model, assignments, *tables)
    return replace(new, assignments=assignments, totals=ledger.totals, ledger=ledger, plan_error="")


def _kept(before: Mapping[str, Assignment], after: Mapping[str, Assignment]) -> dict[str, Assignment]:
    """Return ``after`` with the objects of ``before`` where they say the same; thousands of layers share a few."""
    chosen: dict[tuple[int, int], Assignment] = {}
    kept = {}
    for name, new in after.items():
        old = before[name]
        pair = id(old), id(new)
        if (assignment := chosen.get(pair)) is None:
            assignment = chosen[pair] = old if old == new else new
        kept[name] = assignment
    return kept


def _edited(old: State, new: State, session: Session) -> State | None:
    """Return the state after an edit of a few exact names; None if the whole plan must be resolved."""
    if old.session is None or old.ledger is None or session.plan.transforms:
        return None
    names = changed_names(old.session.plan, session.plan)
    by_name = session.model.by_name
    if names is None or len(names) > len(by_name) // 4 or not names <= by_name.keys():
        return None
    changes = resolve_some(session.plan, _with_ties(session, names))
    ledger = old.ledger.moved(old.assignments, changes)
    assignments = {**old.assignments, **changes}
    return replace(new, assignments=assignments, ledger=ledger, totals=ledger.totals, plan_error="")


def _moved(old: State, assignments: Mapping[str, Assignment]) -> Ledger | None:
    """Return the sums after a change of few layers; None where there is nothing to go on from."""
    before = old.assignments
    if old.ledger is None or before.keys() != assignments.keys():
        return None
    changes = {name: after for name, after in assignments.items() if before[name] is not after}
    return old.ledger.moved(before, changes) if len(changes) <= len(before) // 4 else None


def _with_ties(session: Session, names: frozenset[str]) -> list[Layer]:
    """Return the layers ``names``, their owners and all that are tied to those, in model order."""
    model = session.model
    owners = {model.by_name[name].tied_to or name for name in names}
    tied = [layer.name for layer in model.tied if layer.tied_to in owners]
    return sorted(
        (model.by_name[name] for name in {*names, *owners, *tied}), key=lambda layer: model.position[layer.name]
    )
