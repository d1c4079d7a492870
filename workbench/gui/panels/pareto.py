"""The Pareto front of size or time against predicted loss; click a point to take its plan."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QPushButton, QSlider

from workbench.errors import WorkbenchError
from workbench.gui.context import edits
from workbench.gui.context.context import Context
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.front import FrontPlot
from workbench.gui.shell.fitted_label import FittedLabel
from workbench.gui.shell.theme import Colours
from workbench.insight import quantities
from workbench.insight.fronts import (
    Measured,
    UniformPlan,
    evaluated_plans,
    front_of,
    picture_of,
    present_cost,
    rounded_activations,
    uniform_plans,
)
from workbench.insight.latest import Latest
from workbench.insight.why import why
from workbench.planning.plan import KEEP
from workbench.planning.search.search import Front
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session
from workbench.session.workspace import State
from workbench.steps.timing.candidates import TIME_CANDIDATES, TimeCandidatesOptions


class ParetoPanel(Panel):
    """Computes the front in this process: it is numpy only and takes milliseconds."""

    def __init__(self, context: Context, colours: Colours) -> None:
        super().__init__(context, colours)
        self.plot = FrontPlot(colours)
        self.figure = FittedLabel()
        self.figure.setProperty("role", "muted")
        top = self._top_line()
        layout = self.column()
        layout.addLayout(top)
        layout.addWidget(self.plot, 1)
        layout.addLayout(self._slider_line())
        self.why = QLabel()
        self.why.setAccessibleName("Why the selected layer has its scheme")
        self.why.setWordWrap(True)
        self.why.setProperty("role", "muted")
        layout.addWidget(self.why)
        self._held: Front | None = None  # the front that is slid along
        self._drag: int | None = None  # the edit that the drag goes on with
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(0)
        self._soon.timeout.connect(self._slide)
        self.front: Front | None = None
        self._uniform: tuple[UniformPlan, ...] = ()
        self._of: tuple[object, ...] = ()
        self._measured = Latest(self._evaluated)
        self.plot.taken.connect(self._take)
        self.plot.pointed.connect(lambda index: self.figure.setText(f"{self.plot.describe(index)}; Enter takes it"))
        self.setFocusProxy(self.plot)

    def redraw(self, old: State, new: State) -> None:
        """Compute the front where the table or what is fixed changed; mark the present plan."""
        session = new.session
        table = session.table(new.metric) if session else None
        if session is None or table is None:
            self.front, self._of = None, ()
            self.plot.show_picture(None)
            self.say_empty("The front of best plans appears once the sensitivity is computed (F6).")
            return
        self._offer_axes(session)
        try:
            self._compute(new, session, table)
        except WorkbenchError as error:
            self._show_none(str(error))
            return
        self.say_empty("")
        self._show(new, session)
        self._show_slider(new)
        self.why.setText(self._why(new))

    def _why(self, state: State) -> str:
        """Say why the first selected layer has its scheme."""
        front, session, totals = self.front, state.session, state.totals
        if front is None or front.microseconds is not None or session is None or totals is None:
            return ""
        if not state.selection or not state.assignments:
            return ""
        return why(front, state.selection[0], state.assignments, totals, session.table(state.metric))

    def recolour(self, colours: Colours) -> None:
        """Redraw in other colours."""
        super().recolour(colours)
        self.plot.recolour(colours)

    # ---------------------------------------------------------------- the axis

    def _top_line(self) -> QHBoxLayout:
        self.axis = QComboBox()
        self.axis.setAccessibleName("What the plans cost")
        self.axis.setToolTip("Bytes of the whole model, or microseconds of its timed layers one after another")
        self.axis.addItem("Size", None)
        self.axis.activated.connect(lambda _: self._redraw_all())
        self.time = QPushButton("&Time the Candidates")
        self.time.setToolTip("Time every scheme of the table at every shape; only what was timed takes part")
        self.time.clicked.connect(self.time_candidates)
        self.time.hide()
        line = QHBoxLayout()
        line.addWidget(self.axis)
        line.addWidget(self.figure, 1)
        line.addWidget(self.time)
        return line

    @property
    def batch(self) -> int | None:
        """The batch size whose times are the cost; None where the size is."""
        found = self.axis.currentData()
        return None if found is None else int(found)

    def time_candidates(self) -> None:
        """Time what a search may choose at the batch size that is shown."""
        state = self.state
        table = state.session.table(state.metric) if state.session else None
        if state.session is not None and table is not None:
            names = tuple(name for name in table.schemes if name != KEEP)
            options = TimeCandidatesOptions(schemes=names, batch=self.batch or 1)
            self.context.runner.submit(TIME_CANDIDATES.request(state.session, options))

    def _offer_axes(self, session: Session) -> None:
        """Offer the batch sizes that were timed, batch 1 in any case; the chosen one stays."""
        wanted = [None, *sorted({1, *(timing.batch for timing in session.timings)})]
        if [self.axis.itemData(place) for place in range(self.axis.count())] == wanted:
            return
        chosen = self.batch
        self.axis.clear()
        for batch in wanted:
            self.axis.addItem("Size" if batch is None else f"Time at batch {batch}", batch)
        self.axis.setCurrentIndex(max(wanted.index(chosen) if chosen in wanted else 0, 0))

    def _redraw_all(self) -> None:
        self._held = None
        state = self.state
        self.redraw(state, state)

    def _show_none(self, reason: str) -> None:
        """Say why there is no front: in words instead of the panel, or above an empty plot where times are missing."""
        self.front, self._of = None, ()
        self.plot.show_picture(None)
        if self.batch is None:
            self.say_empty(f"No front can be drawn: {reason}")
            return
        self.say_empty("")
        self.time.show()
        self.figure.setText(reason)
        self.why.clear()

    # ---------------------------------------------------------------- the slider

    def _slider_line(self) -> QHBoxLayout:
        line = QHBoxLayout()
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName("Size of the plan")
        self.slider.setToolTip("Slide along the front: the plan follows; letting go is one step to undo")
        self.slider.setPageStep(20)
        self.slider.valueChanged.connect(lambda _: self._soon.start())
        self.slider.sliderReleased.connect(self._let_go)
        smaller, larger = QLabel("smaller"), QLabel("more accurate")
        for label in (smaller, larger):
            label.setProperty("role", "muted")
        line.addWidget(smaller)
        line.addWidget(self.slider, 1)
        line.addWidget(larger)
        return line

    def _show_slider(self, state: State) -> None:
        """Put the handle where the present plan is, unless the user holds it."""
        front, totals = self.front, state.totals
        if front is None or totals is None or self._held is not None:
            return
        self.slider.blockSignals(True)
        self.slider.setRange(0, max(len(front) - 1, 0))
        self.slider.setValue(self._index_of(front, state))
        self.slider.blockSignals(False)

    def _slide(self) -> None:
        """Make the plan under the handle the current one; a whole drag is one undoable step."""
        state = self.state
        if state.session is None or self.front is None:
            return
        if self._held is None:
            self._drag = None
            table = state.session.require_table(state.metric)
            self._held = front_of(state.session, table, self.batch)
        index = min(self.slider.value(), len(self._held) - 1)
        plan = self._held.plan(index)
        title = f"Slide to {self._held.bits_per_weight[index]:.3f} bits per weight"
        self._drag = self.context.workspace.edit(
            title, lambda session: replace(session, plan=plan), extend=self._drag
        )
        if not self.slider.isSliderDown():
            self._held = None

    def _let_go(self) -> None:
        if self._soon.isActive():
            self._soon.stop()
            self._slide()
        self._held = None

    # ---------------------------------------------------------------- inside

    def _index_of(self, front: Front, state: State) -> int:
        """Return the plan of the front that takes no more than the present one."""
        if front.microseconds is None:
            return front.index_within(state.totals.nbytes) if state.totals else 0
        spent = present_cost(state, self.batch)
        return front.index_within(spent) if spent is not None else 0

    def _compute(self, state: State, session: Session, table: Sensitivity) -> None:
        fixed = tuple((name, session.plan.of(name)) for name in sorted(session.locked))
        of = (id(session.model), id(table), fixed, self.batch, id(session.timings) if self.batch else 0,
              id(session.inputs_table(table.metric)), id(session.cache_table(table.metric)),
              rounded_activations(session, state.assignments))  # fmt: skip
        if of != self._of:
            self.front = front_of(session, table, self.batch)
            self._uniform = uniform_plans(session, table, self.batch, state.assignments)
            self._of = of

    def _show(self, state: State, session: Session) -> None:
        front, by_size = self.front, self.batch is None
        assert front is not None
        self.time.setVisible(not by_size)
        measured = self._measured(session.evaluations, session.plans, session.timings, self.batch)
        self.plot.show_picture(picture_of(state, front, self._uniform, measured, self.batch))
        locked = f", {quantities.plural(len(session.locked), 'layer')} locked" if session.locked else ""
        timed = by_size or present_cost(state, self.batch) is not None
        untimed = "" if timed else "; the present plan has schemes that were not timed"
        self.figure.setText(f"{quantities.plural(len(front), 'plan')}{locked}; click a point to take its plan{untimed}")

    def _evaluated(self, *_basis: object) -> tuple[Measured, ...]:
        return evaluated_plans(self.state.session, self.batch) if self.state.session else ()

    def _take(self, index: int) -> None:
        """Make plan ``index`` of the front the current plan; what else the rules say of layers stays."""
        session = self.state.session
        if self.front is None or session is None or index >= len(self.front):
            return
        table = session.require_table(self.state.metric)
        fresh = front_of(session, table, self.batch)  # locks may be newer than what is drawn
        costs = self.front.nbytes if self.front.microseconds is None else self.front.microseconds
        index = fresh.index_within(float(costs[index]))
        edits.set_plan(
            self.context.workspace,
            f"Take the plan of {fresh.bits_per_weight[index]:.3f} bits per weight",
            fresh.plan(index),
        )

