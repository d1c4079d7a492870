"""The Pareto front of size against predicted loss; click a point to take its plan."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QSlider

from workbench.errors import WorkbenchError
from workbench.gui import quantities
from workbench.gui.desk import Desk
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.front import FrontPlot, Measured, Picture
from workbench.gui.theme import Colours
from workbench.gui.why import why
from workbench.models.summary import quantizable
from workbench.planning.plan import Plan
from workbench.planning.search import Front, pareto
from workbench.planning.sensitivity import Sensitivity
from workbench.planning.totals import plan_totals
from workbench.runtime.workspace import State
from workbench.storage.session import Session


class ParetoPanel(Panel):
    """Computes the front in this process: it is numpy only and takes milliseconds."""

    def __init__(self, desk: Desk, colours: Colours) -> None:
        super().__init__(desk, colours)
        self.plot = FrontPlot(colours)
        self.figure = QLabel()
        self.figure.setProperty("role", "muted")
        self.figure.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        top = QHBoxLayout()
        top.addWidget(self.figure, 1)
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
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(0)
        self._soon.timeout.connect(self._slide)
        self.front: Front | None = None
        self._uniform: tuple[tuple[str, float, float], ...] = ()
        self._of: tuple[object, ...] = ()
        self.plot.taken.connect(self._take)
        self.plot.pointed.connect(lambda index: self.figure.setText(f"{self.plot.describe(index)}; Enter takes it"))
        self.setFocusProxy(self.plot)

    def redraw(self, old: State, new: State) -> None:
        """Compute the front where the table or what is fixed changed; mark the present plan."""
        session = new.session
        table = session.sensitivities.get(new.metric) if session else None
        if session is None or table is None:
            self.front, self._of = None, ()
            self.plot.show_picture(None)
            self.say_empty("The front of best plans appears once the sensitivity is computed (F6).")
            return
        try:
            self._compute(session, table)
        except WorkbenchError as error:
            self.front, self._of = None, ()
            self.say_empty(f"No front can be drawn: {error}")
            return
        self.say_empty("")
        self._show(new, session, table)
        self._show_slider(new)
        self.why.setText(why(self.front, new))

    def recolour(self, colours: Colours) -> None:
        """Redraw in other colours."""
        super().recolour(colours)
        self.plot.recolour(colours)

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
        """Put the handle where the present plan is, unless a person holds it."""
        front, totals = self.front, state.totals
        if front is None or totals is None or self._held is not None:
            return
        self.slider.blockSignals(True)
        self.slider.setRange(0, max(len(front) - 1, 0))
        self.slider.setValue(front.index_within(totals.nbytes))
        self.slider.blockSignals(False)

    def _slide(self) -> None:
        """Make the plan under the handle the current one; a whole drag is one undoable step."""
        state = self.desk.workspace.state
        if state.session is None or self.front is None:
            return
        first = self._held is None
        if self._held is None:
            table = state.session.sensitivities[state.metric]
            self._held = pareto(state.session.model, table, state.session.plan, state.session.locked)
        index = min(self.slider.value(), len(self._held) - 1)
        plan = self._held.plan(index)
        title = f"Slide to {self._held.bits_per_weight[index]:.3f} bits per weight"
        step = self.desk.workspace.edit if first else self.desk.workspace.amend
        step(title, lambda session: replace(session, plan=plan))
        if not self.slider.isSliderDown():
            self._held = None

    def _let_go(self) -> None:
        if self._soon.isActive():
            self._soon.stop()
            self._slide()
        self._held = None

    # ---------------------------------------------------------------- inside

    def _compute(self, session: Session, table: Sensitivity) -> None:
        fixed = tuple((name, session.plan.of(name)) for name in sorted(session.locked))
        of = (id(session.model), id(table), fixed)
        if of != self._of:
            self.front = pareto(session.model, table, session.plan, session.locked)
            self._uniform = _uniform(session, table)
            self._of = of

    def _show(self, state: State, session: Session, table: Sensitivity) -> None:
        front, totals = self.front, state.totals
        assert front is not None
        present = None
        if totals is not None and totals.predicted is not None:
            present = (totals.nbytes / 1e6, totals.predicted)
        if self.plot.picture is not None and self.plot.picture.loss is front.loss:
            loss = self.plot.picture.loss
        else:
            loss = front.loss
        self.plot.show_picture(
            Picture(
                megabytes=front.nbytes / 1e6, bits_per_weight=front.bits_per_weight, loss=loss,
                unit="nats" if table.unit == "nats" else "rel. error", present=present, uniform=self._uniform,
                measured=_measured(session) if table.unit == "nats" else (),
            )
        )  # fmt: skip
        locked = f", {quantities.plural(len(session.locked), 'layer')} locked" if session.locked else ""
        self.figure.setText(f"{quantities.plural(len(front), 'plan')}{locked}; click a point to take its plan")

    def _take(self, index: int) -> None:
        """Make plan ``index`` of the front the current plan; what else the rules say of layers stays."""
        session = self.desk.workspace.state.session
        if self.front is None or session is None:
            return
        table = session.sensitivities[self.desk.workspace.state.metric]
        if index >= len(self.front):
            return
        fresh = pareto(session.model, table, session.plan, session.locked)  # locks may be newer than what is drawn
        index = fresh.index_within(int(self.front.nbytes[index]))
        self.desk.take_plan(f"Take the plan of {fresh.bits_per_weight[index]:.3f} bits per weight", fresh.plan(index))


def _uniform(session: Session, table: Sensitivity) -> tuple[tuple[str, float, float], ...]:
    """Return name, megabytes and loss of giving one scheme to every layer that a search may touch."""
    layers = [layer for layer in quantizable(session.model.layers) if layer.name in table.row]
    found = []
    for scheme in table.schemes:
        totals = plan_totals(session.model, Plan.uniform(layers, scheme), table)
        if totals.predicted is not None:
            found.append((scheme, totals.nbytes / 1e6, totals.predicted))
    return tuple(found)


def _measured(session: Session) -> tuple[Measured, ...]:
    return tuple(
        Measured(
            name=run.plan_name, megabytes=run.nbytes / 1e6, value=run.metrics["kl"].value,
            low=run.metrics["kl"].low, high=run.metrics["kl"].high, predicted=run.predicted_kl,
        )
        for run in session.evaluations
        if "kl" in run.metrics
    )  # fmt: skip
