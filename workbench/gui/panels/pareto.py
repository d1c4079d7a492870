"""The Pareto front of size or time against predicted loss; click a point to use its plan."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QHBoxLayout, QSlider

from workbench.deployment.targets import target
from workbench.errors import WorkbenchError
from workbench.gui.context import edits
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.front import FrontPlot
from workbench.gui.shell.widgets import button, combo, fitted, label, named, offer, row
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
from workbench.insight.latest import Latest
from workbench.planning.plan import KEEP
from workbench.planning.search.search import Front
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session
from workbench.session.workspace import State
from workbench.steps.timing.candidates import TIME_CANDIDATES, TimeCandidatesOptions


class ParetoPanel(Panel):
    """Computes the front in this process: it is numpy only and takes milliseconds."""

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
        self.column(top, self.plot, self._slider_line(), self.why, stretch=self.plot, focus=self.plot)
        self.front: Front | None = None
        self._slider_front: Front | None = None  # while the slider moves
        self._drag: int | None = None  # the edit that the drag goes on with
        self._uniform: tuple[UniformPlan, ...] = ()
        self._basis: tuple[object, ...] = ()
        self._measured = Latest(self._evaluated)

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
        try:
            self._compute(new, session, table)
        except WorkbenchError as error:
            self._show_none(str(error))
            return
        self.say_empty("")
        self._show(new, session)
        self._show_slider(new)
        self.why.setText("" if self.batch or self.front is None else why_selected(self.front, new))

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
        self.why.clear()

    def _slider_line(self) -> QHBoxLayout:
        tip = "Slide along the front: the plan follows; letting go is one step to undo"
        self.slider = named(QSlider(Qt.Orientation.Horizontal), "Size of the plan", tip)
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
            self._drag = None
            self._slider_front = self._new_front(session)
        front = self._slider_front
        index = min(self.slider.value(), len(front) - 1)
        plan, title = front.plan(index), f"Slide to {quantities.fixed(front.bits_per_weight[index], 3)} bits per weight"
        self._drag = self.context.workspace.edit(title, lambda now: replace(now, plan=plan), extend=self._drag)
        if not self.slider.isSliderDown():
            self._slider_front = None

    def _let_go(self) -> None:
        if self._soon.isActive():
            self._soon.stop()
            self._slide()
        self._slider_front = None

    def _new_front(self, session: Session) -> Front:
        """Return the front as of now: locks may be newer than what is drawn."""
        return front_of(session, session.require_table(self.state.metric), self.batch, self.state.target)

    def _compute(self, state: State, session: Session, table: Sensitivity) -> None:
        fixed = tuple((name, session.plan.of(name)) for name in sorted(session.locked))
        choices = shared_choices(session, state.assignments)[:2]
        basis = (id(session.model), id(table), fixed, self.batch, state.target,
                 id(session.timings) if self.batch else 0, id(session.inputs_table(table.metric)),
                 id(session.cache_table(table.metric)), choices)  # fmt: skip
        if basis != self._basis:
            self.front = front_of(session, table, self.batch, state.target)
        self._basis = basis
        self._uniform = uniform_plans(session, table, self.batch, state.assignments, state.target)

    def _show(self, state: State, session: Session) -> None:
        front, by_size = self.front, self.batch is None
        assert front is not None
        self.time.setVisible(not by_size)
        self._cheaper.setText("smaller" if by_size else "faster")
        measured = self._measured(session.evaluations, session.plans, session.timings, self.batch)
        self.plot.show_picture(picture_of(state, front, self._uniform, measured, self.batch))
        locked = f", {quantities.plural(len(session.locked), 'layer')} locked" if session.locked else ""
        locked += f", for {target(state.target).title}" if state.target else ""
        timed = by_size or present_cost(state, self.batch) is not None
        untimed = "" if timed else "; the current plan has schemes that were not timed"
        self.figure.setText(f"{quantities.plural(len(front), 'plan')}{locked}; click a point to use its plan{untimed}")

    def _evaluated(self, *_basis: object) -> tuple[Measured, ...]:
        return evaluated_plans(self.state.session, self.batch) if self.state.session else ()

    def _use(self, index: int) -> None:
        """Make plan ``index`` of the front the current plan; what else the rules say of layers stays."""
        session, front = self.state.session, self.front
        if front is None or session is None or index >= len(front):
            return
        costs = front.nbytes if front.microseconds is None else front.microseconds
        newest = self._new_front(session)
        index = newest.index_within(float(costs[index]))
        title = f"Use the plan of {quantities.fixed(newest.bits_per_weight[index], 3)} bits per weight"
        edits.set_plan(self.context.workspace, title, newest.plan(index))


def why_selected(front: Front, state: State) -> str:
    """Explain why the first selected layer has its scheme, on a front by size; empty where that is unknown."""
    if not state.selection or not state.assignments or state.totals is None or state.session is None:
        return ""
    return why(front, state.selection[0], state.assignments, state.totals, state.session.table(state.metric))
