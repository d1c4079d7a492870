"""The one mutable document: the current session, what is selected, the undo stack.  On the main thread; free of Qt.

Every change makes a new frozen :class:`State` and tells the listeners ``changed(old, new)``; views redraw what differs.
Edits (plan, ranges, locks) are undoable; results (statistics, tables, evaluations) are not undone by undo.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError
from workbench.models.layer import Layer
from workbench.numerics.ranges import Range
from workbench.planning.plan import Assignment, Plan, changed_names, resolve, resolve_some
from workbench.planning.totals import Ledger, Totals, plan_totals
from workbench.session.session import Session

MAX_UNDO = 500


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edits:
    """The part of a session that a person edits, and that undo restores."""

    plan: Plan
    plans: Mapping[str, Plan]
    active_ranges: Mapping[tuple[str, str], Range]
    locked: frozenset[str]

    @staticmethod
    def of(session: Session) -> Edits:
        """Take the edits out of ``session``."""
        return Edits(plan=session.plan, plans=session.plans, active_ranges=session.active_ranges, locked=session.locked)

    def into(self, session: Session) -> Session:
        """Return ``session`` with these edits."""
        return replace(session, plan=self.plan, plans=self.plans, active_ranges=self.active_ranges, locked=self.locked)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """A snapshot for the view.  ``assignments`` and ``totals`` belong to ``session.plan``; ``plan_error`` says why
    there are none.  ``metric`` is the sensitivity metric that is shown; ``target`` names what the plan shall run on
    (see :mod:`workbench.deployment.targets`; empty: anything); ``dirty``: the file on disk is older.
    ``ledger`` holds the sums behind ``totals``."""

    session: Session | None = None
    path: Path | None = None
    selection: tuple[str, ...] = ()
    metric: str = "predicted_kl"
    target: str = ""
    dirty: bool = False
    undo_name: str = ""
    redo_name: str = ""
    assignments: Mapping[str, Assignment] = field(default_factory=dict)
    totals: Totals | None = None
    ledger: Ledger | None = None
    plan_error: str = ""


Listener = Callable[[State, State], None]


class Workspace:
    """Owns the state; the only way to change it is through these methods, on the main thread."""

    def __init__(self) -> None:
        self.state = State()
        self._listeners: list[Listener] = []
        self._undo: list[tuple[str, Edits]] = []
        self._redo: list[tuple[str, Edits]] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener(old, new)`` after every change; returns the function that ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def open(self, session: Session, path: Path | None) -> None:
        """Make ``session`` the document; the undo stack starts anew."""
        self._undo.clear()
        self._redo.clear()
        self._set(replace(self.state, session=session, path=path, selection=(), dirty=False))

    def close(self) -> None:
        """Drop the document."""
        self._undo.clear()
        self._redo.clear()
        self._set(State(target=self.state.target))

    def edit(self, name: str, change: Callable[[Session], Session]) -> None:
        """Apply an undoable edit with a readable name (``Set 24 layers to int4-g128``); no step if nothing changed."""
        session = self._session()
        after = change(session)
        if after is session:
            return
        self._undo = [*self._undo[-MAX_UNDO + 1 :], (name, Edits.of(session))]
        self._redo.clear()
        self._set(replace(self.state, session=after, dirty=True))

    def amend(self, name: str, change: Callable[[Session], Session]) -> None:
        """Go on with the last edit under another name, so that a drag is one step; an edit where there is none."""
        session = self._session()
        after = change(session)
        if after is session:
            return
        before = self._undo.pop()[1] if self._undo else Edits.of(session)
        self._undo.append((name, before))
        self._redo.clear()
        self._set(replace(self.state, session=after, dirty=True))

    def update(self, change: Callable[[Session], Session]) -> None:
        """Take up a result (not undoable)."""
        self._set(replace(self.state, session=change(self._session()), dirty=True))

    def undo(self) -> None:
        """Take back the last edit; nothing happens on an empty stack."""
        self._step(self._undo, self._redo)

    def redo(self) -> None:
        """Do the last undone edit again."""
        self._step(self._redo, self._undo)

    def select(self, layers: Iterable[str]) -> None:
        """Select layers by name."""
        selection = tuple(dict.fromkeys(layers))
        if selection != self.state.selection:
            self._set(replace(self.state, selection=selection))

    def show_metric(self, metric: str) -> None:
        """Choose the sensitivity metric that is shown and summed."""
        self._set(replace(self.state, metric=metric))

    def show_target(self, target: str) -> None:
        """Choose what the plan shall run on; an empty name lets everything pass."""
        self._set(replace(self.state, target=target))

    def saved(self, path: Path, session: Session) -> None:
        """Note that ``session`` is on disk at ``path``; later edits keep the document dirty."""
        self._set(replace(self.state, path=path, dirty=self.state.session is not session))

    def _session(self) -> Session:
        if self.state.session is None:
            raise WorkbenchError("no model is open; open a model or a session first")
        return self.state.session

    def _step(self, source: list[tuple[str, Edits]], target: list[tuple[str, Edits]]) -> None:
        if not source:
            return
        session = self._session()
        name, edits = source.pop()
        target.append((name, Edits.of(session)))
        self._set(replace(self.state, session=edits.into(session), dirty=True))

    def _set(self, state: State) -> None:
        old = self.state
        state = replace(
            state,
            undo_name=self._undo[-1][0] if self._undo else "",
            redo_name=self._redo[-1][0] if self._redo else "",
        )
        self.state = _resolved(old, state)
        for listener in tuple(self._listeners):
            listener(old, self.state)


def _resolved(old: State, new: State) -> State:
    """Resolve the plan again if it, the model, the metric or the tables changed: where it can be, only what differs."""
    if new.session is None:
        return replace(new, assignments={}, totals=None, ledger=None, plan_error="")
    same_facts = old.session is not None and (
        old.session.model is new.session.model
        and old.session.sensitivities is new.session.sensitivities
        and old.metric == new.metric
    )
    if same_facts and old.session is not None and old.session.plan is new.session.plan:
        return new
    try:
        edited = _edited(old, new.session) if same_facts else None
        if edited is not None:
            return replace(new, **edited)
        assignments = resolve(new.session.plan, new.session.model.layers)
    except WorkbenchError as error:
        return replace(new, assignments={}, totals=None, ledger=None, plan_error=str(error))
    table = new.session.table(new.metric)
    beside = new.session.inputs_table(new.metric), new.session.cache_table(new.metric)
    if new.session.plan.transforms:
        sums = plan_totals(new.session.model, new.session.plan, table, *beside)
        return replace(new, assignments=assignments, totals=sums, ledger=None, plan_error="")
    ledger = Ledger.of(new.session.model, assignments, table, *beside)
    return replace(new, assignments=assignments, totals=ledger.totals, ledger=ledger, plan_error="")


def _edited(old: State, session: Session) -> dict[str, Any] | None:
    """Return the fields of the state after an edit of a few exact names; None if the whole plan must be resolved."""
    if old.session is None or old.ledger is None or session.plan.transforms:
        return None
    names = changed_names(old.session.plan, session.plan)
    by_name = session.model.by_name
    if names is None or len(names) > len(by_name) // 4 or not names <= by_name.keys():
        return None
    changes = resolve_some(session.plan, _with_ties(session, names))
    ledger = old.ledger.moved(old.assignments, changes)
    return {
        "assignments": {**old.assignments, **changes}, "ledger": ledger, "totals": ledger.totals, "plan_error": "",
    }  # fmt: skip


def _with_ties(session: Session, names: set[str]) -> list[Layer]:
    """Return the layers ``names``, their owners and all that are tied to those, in model order."""
    model = session.model
    owners = {model.by_name[name].tied_to or name for name in names}
    tied = [layer.name for layer in model.tied if layer.tied_to in owners]
    return sorted(
        (model.by_name[name] for name in {*names, *owners, *tied}), key=lambda layer: model.position[layer.name]
    )
