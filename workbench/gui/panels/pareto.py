"""The Pareto front of size or time against predicted loss; click a point to use its plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSlider

from workbench.deployment.targets import target
from workbench.errors import WorkbenchError
from workbench.gui.context import edits
from workbench.gui.context.worker import Worker
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.front import FrontPlot
from workbench.gui.shell.widgets import Still, button, combo, fitted, label, named, offer, row
from workbench.insight import quantities
from workbench.insight.fronts import (
    Measured,
    UniformPlan,
    evaluated_plans,
    front_of,
    picture_of,
    present_cost,
    shared_choices,
    uniform_plans,
    why,
)
from workbench.insight.legality import rounding_of, unknown_rounding
from workbench.models.layer import Layer
from workbench.models.summary import searchable
from workbench.planning.latest import Latest
from workbench.planning.plan import KEEP, Assignment, Plan
from workbench.planning.search.search import Front
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session
from workbench.session.workspace import State
from workbench.steps.timing.candidates import TIME_CANDIDATES, TimeCandidatesOptions

MARGINS = 12
"""Pixels beside the explanation."""

SLID, USED = "Slide to {} bits per weight", "Use the plan of {} bits per weight"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A plan that the user chose of the front: the words for the edit, which it is, and the document's ``rules``."""

    words: str
    pick: Callable[[Front], int]
    rules: tuple[object, ...]


class Slider(Still, QSlider):
    """A slider that the wheel leaves alone while the mouse passes over it."""


Taken = tuple[Wanted, Front, int, Plan]
"""What was wanted, the front of it, the index of the plan there, the plan."""


class ParetoPanel(Panel):
    """Computes the front in this process: it is numpy only and takes milliseconds, seconds for 60,000 layers."""

    def _build(self) -> None:
        self.figure = fitted()
        self.plot = FrontPlot(self.colours)
        self.plot.taken.connect(self._use)
        self.plot.pointed.connect(lambda index: self.figure.setText(f"{self.plot.describe(index)}; Enter uses it"))
        self.axis = combo(
            "What the plans cost", [("Size", None)], self._redraw_all,
            "Bytes of the whole model, or microseconds of its timed layers one after another",
        )  # fmt: skip
        tip = "Time every scheme of the table at every shape; only what was timed takes part"
        self.time = button("&Time the Candidates", self.time_candidates, tip)
        self.time.hide()
        self.why = label(role="muted", name="Why the selected layer has its scheme", wrap=True)
        top = row(self.axis, self.figure, self.time, stretch=self.figure)
        self.column(top, self.plot, self._slider_line(), self.why, stretch=self.plot, focus=(self.plot,))
        self._why = ""
        self.front: Front | None = None
        self._slider_front: Callable[[], Front] | None = None  # while the slider moves
        self._drag: int | None = None  # the edit that the drag goes on with
        self._uniform: tuple[UniformPlan, ...] = ()
        self._of: Session | None = None  # the front's, kept so that no other object gets an id of the basis
        self._basis: tuple[object, ...] = ()
        self._asked: tuple[object, ...] = ()
        self._worker, self._planner = Worker(self, self._show_worked_out), Worker(self, self._take)
        self._measured, self._outside = Latest(self._evaluated), Latest(_outside)

    def redraw(self, old: State, new: State) -> None:
        """Compute the front where the table or what is fixed changed; mark the current plan."""
        session = new.session
        table = session.table(new.metric) if session else None
        if session is None or table is None:
            self._clear()
            self.say_empty("The front of best plans appears once the sensitivity is computed (F6).", "sensitivity")
            return
        batches = sorted({1, *(timing.batch for timing in session.timings)})
        offer(self.axis, [("Size", None), *((f"Time at batch {batch}", batch) for batch in batches)])
        basis = self._basis_of(new, session, table)
        if self.front is not None and basis == self._basis:
            self._worker.forget()
            self._show(new, session, table)
            return
        if self._worker.is_busy and basis == self._asked:
            return
        if self.front is not None and self.front.space.summary is not session.model:
            self._clear()
        self._asked = basis
        work = partial(_worked_out, session, table, self.batch, new.target, new.assignments)
        self._worker.ask(work, len(session.model.layers))
        if self._worker.is_busy and self.front is None:
            self.say_empty("The best plans of all sizes are being worked out…")

    def _show_worked_out(self, answer: tuple[Front, tuple[UniformPlan, ...], Session] | WorkbenchError) -> None:
        state = self._drawn
        session = state.session
        if isinstance(answer, WorkbenchError):
            self._show_none(str(answer))
        elif session is not None:
            (self.front, self._uniform, self._of), self._basis = answer, self._asked
            self._show(state, session, session.require_table(state.metric))

    @property
    def batch(self) -> int | None:
        """The batch size whose times are the cost; None where the size is."""
        batch: int | None = self.axis.currentData()
        return batch

    def time_candidates(self) -> None:
        """Time what a search may choose at the batch size that is shown."""
        state = self.state
        table = state.session.table(state.metric) if state.session else None
        if state.session is not None and table is not None:
            names = tuple(name for name in table.schemes if name != KEEP)
            options = TimeCandidatesOptions(schemes=names, batch=self.batch or 1)
            self.context.runner.submit(TIME_CANDIDATES.request(state.session, options))

    def _redraw_all(self) -> None:
        self._slider_front = None
        self.redraw(self.state, self.state)

    def _clear(self) -> None:
        self._worker.forget()
        self.front, self._basis = None, ()
        self.plot.show_picture(None)

    def _show_none(self, reason: str) -> None:
        """Explain why there is no front: in words instead of the panel, or above an empty plot without times."""
        self._clear()
        if self.batch is None:
            self.say_empty(f"No front can be drawn: {reason}")
            return
        self.say_empty("")
        self.time.show()
        self.figure.setText(reason)
        self._explain("")

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave the plot its room."""
        super().resizeEvent(event)
        self._explain(self._why)

    def _explain(self, words: str) -> None:
        """Show an explanation below the plot: its first statement where all of it would take a third of the height."""
        self._why = words
        for part in (words, words.partition(";")[0]):
            self.why.setText(part)
            if 3 * self.why.heightForWidth(self.width() - MARGINS) <= self.height():
                break
        self.why.setToolTip(words)

    def _slider_line(self) -> QHBoxLayout:
        tip = "Slide along the front: the plan follows; letting go is one step to undo"
        self.slider = named(Slider(Qt.Orientation.Horizontal), "Size of the plan", tip)
        self.slider.setPageStep(20)
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._soon.timeout.connect(self._slide)
        self.slider.valueChanged.connect(lambda _: self._soon.start())
        self.slider.sliderReleased.connect(self._let_go)
        self._cheaper = label("smaller", "muted")
        return row(self._cheaper, self.slider, label("more accurate", "muted"), stretch=self.slider)

    def _show_slider(self, state: State) -> None:
        """Put the handle where the current plan is, unless the user drags it."""
        front, totals = self.front, state.totals
        if front is None or totals is None or self._slider_front is not None:
            return
        spent = totals.nbytes if front.microseconds is None else present_cost(state, self.batch)
        self.slider.blockSignals(True)
        self.slider.setRange(0, max(len(front) - 1, 0))
        self.slider.setValue(0 if spent is None else front.index_within(spent))
        self.slider.blockSignals(False)

    def _slide(self) -> None:
        """Make the plan under the handle the current one; a whole drag is one undoable step."""
        session = self.state.session
        if session is None or self.front is None:
            return
        if self._slider_front is None:
            self._drag, self._slider_front = None, self._newest(session)
        place = self.slider.value()
        self._ask(SLID, lambda front: min(place, len(front) - 1))
        if not self.slider.isSliderDown():
            self._slider_front = None

    def _let_go(self) -> None:
        if self._soon.isActive():
            self._soon.stop()
            self._slide()
        self._slider_front = None

    def _ask(self, words: str, pick: Callable[[Front], int]) -> None:
        """Work out a plan of the newest front and take it."""
        session = self.state.session
        if session is None or self.front is None:
            return
        newest, wanted = self._slider_front or self._newest(session), Wanted(words, pick, self._rules())

        def work() -> Taken:
            front = newest()
            index = pick(front)
            return wanted, front, index, front.plan(index)

        self._planner.ask(work, len(session.model.layers))

    def _rules(self) -> tuple[object, ...]:
        """Return what a plan of the front is made for."""
        session = self.state.session
        edited = (session.plan, session.locked) if session else ()
        return edited, self.state.metric, self.state.target, self.batch

    def _take(self, taken: Taken | WorkbenchError) -> None:
        """Make a plan of a front the current plan; it is worked out again where the document was edited meanwhile."""
        if isinstance(taken, WorkbenchError):
            self._show_none(str(taken))
            return
        wanted, front, index, plan = taken
        session = self.state.session
        if session is None or session.model is not front.space.summary:
            return
        if wanted.rules != self._rules():
            self._slider_front = None
            self._ask(wanted.words, wanted.pick)
            return
        title = wanted.words.format(quantities.fixed(front.bits_per_weight[index], 3))
        if wanted.words == SLID:
            edit = self.context.workspace.edit
            self._drag = edit(title, lambda now: replace(now, plan=plan), extend=self._drag)
        else:
            edits.set_plan(self.context.workspace, title, plan)

    def _newest(self, session: Session) -> Callable[[], Front]:
        """Return what makes the front as of now, once: locks may be newer than what is drawn."""
        table = session.require_table(self.state.metric)
        if self.front is not None and self._basis == self._basis_of(self.state, session, table):
            return cache(partial(self.front.on, session.plan))
        return cache(partial(front_of, session, table, self.batch, self.state.target))

    def _basis_of(self, state: State, session: Session, table: Sensitivity) -> tuple[object, ...]:
        """Return all that the front and uniform plans depend on."""
        outside = self._outside(session.model.layers)
        fixed = tuple((name, state.assignments.get(name)) for name in (*sorted(session.locked), *outside))
        return (id(session.model), id(table), fixed, self.batch, state.target,
                id(session.timings) if self.batch else 0, id(session.inputs_table(table.metric)),
                id(session.cache_table(table.metric)), shared_choices(session, state.assignments))  # fmt: skip

    def _show(self, state: State, session: Session, table: Sensitivity) -> None:
        front, by_size = self.front, self.batch is None
        assert front is not None
        self.say_empty("")
        self._show_slider(state)
        self._explain("" if self.batch else why_selected(front, state))
        self.time.setVisible(not by_size)
        self._cheaper.setText("smaller" if by_size else "faster")
        measured = self._measured(session.evaluations, session.plans, session.timings, self.batch)
        self.plot.show_picture(picture_of(state, front, self._uniform, measured, self.batch))
        timed = by_size or present_cost(state, self.batch) is not None
        counted = rounding_of(state.target) and not unknown_rounding(session, state.target, table.metric)
        words = {
            quantities.plural(len(front), "plan"): True,
            f"{quantities.plural(len(session.locked), 'layer')} locked": session.locked,
            f"for {target(state.target).title}" if state.target else "": state.target,
            "its own rounding of inputs counts in the choice": counted,
            "click a point to use its plan": True,
            "the current plan has schemes that were not timed": not timed,
        }
        self.figure.setText("; ".join(text for text, holds in words.items() if holds))

    def _evaluated(self, *_basis: object) -> tuple[Measured, ...]:
        return evaluated_plans(self.state.session, self.batch) if self.state.session else ()

    def _use(self, index: int) -> None:
        """Make plan ``index`` of the front the current plan; what else the rules say of layers stays."""
        session, front = self.state.session, self.front
        if front is None or session is None or index >= len(front):
            return
        costs = front.nbytes if front.microseconds is None else front.microseconds
        cost = float(costs[index])
        self._ask(USED, lambda front: front.index_within(cost))


def _outside(layers: tuple[Layer, ...]) -> tuple[str, ...]:
    """Return the layers that no search decides."""
    searched = {layer.name for layer in searchable(layers)}
    return tuple(layer.name for layer in layers if layer.name not in searched)


def _worked_out(
    session: Session, table: Sensitivity, batch: int | None, target: str, assignments: Mapping[str, Assignment]
) -> tuple[Front, tuple[UniformPlan, ...], Session]:
    return front_of(session, table, batch, target), uniform_plans(session, table, batch, assignments, target), session


def why_selected(front: Front, state: State) -> str:
    """Explain why the first selected layer has its scheme, on a front by size; empty where that is unknown."""
    if not state.selection or not state.assignments or state.totals is None or state.session is None:
        return ""
    return why(front, state.selection[0], state.assignments, state.totals, state.session.table(state.metric))
