"""The plan's key figures as tiles: value, interval, and the change against the saved plan and the best uniform one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSizePolicy, QWidget

from workbench.gui.context.worker import FEW, Worker
from workbench.gui.shell.copying import offer_copy, put
from workbench.gui.shell.fitted_label import FittedLabel
from workbench.gui.shell.foreign import as_spoken
from workbench.gui.shell.widgets import column, fitted, named, row, set_role
from workbench.gui.shell.words import tr
from workbench.insight import quantities
from workbench.insight.dashboard import Dashboard, Difference, KeyFigure, best_uniform
from workbench.planning.latest import same_objects
from workbench.session.workspace import State

TITLES = ("Size", "Bits per weight", "Predicted loss", "Measured loss", "Kernels")
CHANGES = 2
"""Changes below each figure: against the saved plan, and against the best uniform one."""


class Tile(QWidget):
    """A figure: its title, the value in large digits, its interval, and how it differs from other plans."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.figure: Callable[[], KeyFigure] = lambda: KeyFigure(title=title, value="")
        """Makes the figure as it is copied."""
        self.title, self.value, self.detail = fitted(title), fitted(role="key"), fitted()
        self.changes = [fitted() for _ in range(CHANGES)]
        lines = column(self.title, self.value, self.detail, *self.changes)
        lines.setSpacing(1)
        self.setLayout(lines)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setObjectName("tile")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)  # its frame when it has the keyboard
        offer_copy(self, "&Copy the Figure", self.copy)

    def copy(self) -> None:
        """Copy the figure, its interval and its changes, with decimal points."""
        figure = self.figure()
        changes = (change.sentence for change in figure.differences)
        put("\n".join(filter(None, (f"{figure.title}: {figure.value}", figure.detail, *changes))))

    def show_lines(self, count: int) -> None:
        """Show so many of the lines, from above."""
        for place, line in enumerate((self.title, self.value, self.detail, *self.changes)):
            line.setVisible(place < count)

    def show_figure(self, figure: KeyFigure) -> None:
        """Show a figure."""
        self.title.say(*dict.fromkeys((figure.title, figure.title.partition(" (")[0])))
        self.value.setText(figure.value)
        self.setMinimumWidth(self.value.fontMetrics().horizontalAdvance(figure.value) + 1)  # others give way
        self.detail.say(figure.detail, *filter(None, (figure.short,)))
        for place, line in enumerate(self.changes):
            known = place < len(figure.differences)
            _show_change(line, figure.differences[place] if known else None)
        words = [tr(difference.sentence) for difference in figure.differences]
        name = f"{tr(figure.title)}: {figure.value}"
        tip = "\n".join(filter(None, (name, tr(figure.detail), *words, "", tr(figure.tip))))
        named(self, name, tip)
        self.setAccessibleDescription(as_spoken(tip))


def _show_change(line: FittedLabel, change: Difference | None) -> None:
    if change is None:
        line.clear()
        return
    text, kind = change.text, change.kind
    if change.better is None:
        line.say(change.sentence, f"{text} as {kind}", f"as {kind}")
    else:  # a narrow tile says at least that there is more, which its tip has
        line.say(f"{text} vs {change.against}", f"{text} vs {kind}", f"{text} {tr(kind)}", f"{text} …", text)
    set_role(line, "muted" if change.better is None else "good" if change.better else "warning")


def _with_uniform(state: State) -> State:
    """Work out the best uniform plan, and return the state, whose figures are compared with it from now on."""
    best_uniform(state)
    return state


class PlanDashboard(QWidget):
    """Five tiles, of equal width so that digits stay where they are."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(tr("What the plan comes to"))
        self._figures, self._worker = Dashboard(), Worker(self, self._show)
        self._basis: tuple[object, ...] = ()
        self._changes = 0  # lines that are needed
        self._room: tuple[QWidget, int] | None = None
        self.tiles = [Tile(title) for title in TITLES]
        content = row()
        content.setSpacing(12)
        for tile in self.tiles:
            content.addWidget(tile, 1)
        self.setLayout(content)

    def fit(self, page: QWidget, height: int) -> None:
        """Show as many lines of every tile as leave ``page``, of which this is a part, within a height in pixels."""
        layout, most = page.layout(), 3 + self._changes
        self._room = page, height
        for count in range(most, 1, -1):
            for tile in self.tiles:
                tile.show_lines(count)
                tile.updateGeometry()
            self.updateGeometry()  # else the page's layout answers from before, and more is folded than must be
            if layout is None or layout.totalMinimumSize().height() <= height:
                break

    def show_state(self, state: State) -> None:
        """Show the figures of the state's plan; nothing where it does not fit the model."""
        session = state.session
        results = (session.timings, session.plans, session.evaluations, session.active_ranges) if session else ()
        basis = (state.totals, state.assignments, state.metric, state.target, *results)
        if same_objects(basis, self._basis):
            return
        self._basis = basis
        self._worker.forget()
        self._show(state)
        if self._figures.waits:
            self._worker.ask(partial(_with_uniform, state), FEW + 1)

    def _show(self, state: State) -> None:
        figures = self._figures.figures(state)
        changes = max((len(figure.differences) for figure in figures), default=0)
        for place, tile in enumerate(self.tiles):
            tile.figure = partial(self._plain_figure, state, place)
        for tile, figure in zip(self.tiles, figures or (KeyFigure(title="", value=""),) * len(TITLES), strict=True):
            tile.show_figure(figure)
        self.tiles[-1].setVisible(self.tiles[-1].value.text() != quantities.NONE)
        self._fit_changes(changes)

    def _plain_figure(self, state: State, place: int) -> KeyFigure:
        with quantities.with_points():
            return Dashboard().figures(state)[place]

    def _fit_changes(self, changes: int) -> None:
        if changes != self._changes:
            self._changes = changes
            if self._room is not None:
                self.fit(*self._room)
