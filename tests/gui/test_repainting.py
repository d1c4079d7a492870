"""Cached pictures equal fresh painting; a change inside a panel does not lay out the whole window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from PySide6.QtCore import QAbstractEventDispatcher, QCoreApplication, QEvent, QObject, QSize, Qt
from PySide6.QtGui import QIcon, QPaintEvent
from PySide6.QtWidgets import QAbstractScrollArea, QApplication

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.panel_updates import PanelUpdates
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.histogram import Histogram
from workbench.gui.shell import icons, theme
from workbench.gui.tables.layer_columns import BITS, INPUTS
from workbench.gui.tables.row_painter import LayersView
from workbench.gui.window import Window
from workbench.session.session import Session
from workbench.session.table import of_tap
from workbench.session.workspace import State

Q, UP = "model.layers.0.self_attn.q_proj", "model.layers.1.mlp.up_proj"


def _picture(view: QAbstractScrollArea) -> np.ndarray:
    image = view.viewport().grab().toImage()
    return np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), -1)[:, : image.width() * 4].copy()


def test_the_page_is_turned_before_any_panel_draws(live: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """All panels at once, when a model is opened, held the loop for three frames; nor are they painted empty before."""
    drawn, turned, draw, turn = list[str](), list[list[str]](), Panel._draw, Window._turn_page
    paint = LayersView.paintEvent

    def painting(view: LayersView, event: QPaintEvent) -> None:
        drawn.append("rows")
        paint(view, event)

    def drawing(panel: Panel, state: State) -> None:
        drawn.extend([] if state is panel._drawn else [type(panel).__name__])
        draw(panel, state)

    def turning(window: Window, force: bool) -> bool:
        before = len(drawn)
        result = turn(window, force)
        turned.extend([drawn[before:]] if result else [])
        return result

    monkeypatch.setattr(Panel, "_draw", drawing)
    monkeypatch.setattr(Window, "_turn_page", turning)
    monkeypatch.setattr(LayersView, "paintEvent", painting)

    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        assert drawn.index("LayersPanel") < drawn.index("rows"), "painted before there was anything to see"
        assert turned[-1] == [] and {"LayersPanel", "PlanPanel", "SensitivityPanel", "DistributionsPanel"} <= {*drawn}
        drawn.clear()
        await person.act(lambda: person.window.reveal("accuracy"))
        assert "AccuracyPanel" in drawn, "a panel that comes to the front still draws itself"

    live(story, size=(1920, 1080))


def test_rows_and_cells_that_are_kept_are_those_of_a_fresh_window(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        window = person.window
        await person.open(sessions.full(2))
        tree, heatmap, workspace = window.panels["layers"].view, window.panels["sensitivity"].heatmap, person.context

        async def check(what: str, act: Callable[[], object]) -> None:
            await person.act(act)
            for _ in range(12):  # new histograms take some frames
                shown = [_picture(tree), _picture(heatmap)]
            for cache in (tree._rows, tree._texts, tree._pixmaps, heatmap._cached, heatmap._texts):
                cache.clear()
            for _ in range(12):
                fresh = [_picture(tree), _picture(heatmap)]
            for name, item, other in zip(("tree", "heatmap"), shown, fresh, strict=True):
                assert np.array_equal(item, other), f"{what}: the {name} shows what is no longer so"

        def session(change: Callable[[Session], Session]) -> Callable[[], object]:
            return lambda: workspace.workspace.edit("Change", change)

        header = tree.header()
        await check("the first picture", lambda: None)
        await check("a selection", lambda: workspace.workspace.select([Q, UP]))
        await check("an edit", session(lambda now: replace(now, plan=now.plan.assign([UP], weights="int8-channel"))))
        await check("inputs", session(lambda now: replace(now, plan=now.plan.assign([Q], inputs="int8-token"))))
        await check("undo", workspace.workspace.undo)
        await check("a lock", session(lambda now: replace(now, locked=frozenset({Q}))))
        await check("a target", lambda: workspace.workspace.show_target("gguf"))
        await check("a metric", lambda: workspace.workspace.show_metric("weight_error"))
        await check("a column", lambda: header.setSectionHidden(INPUTS, not header.isSectionHidden(INPUTS)))
        await check("a width", lambda: header.resizeSection(0, header.sectionSize(0) - 25))
        await check("a closed block", lambda: tree.collapse(tree.model().index(0, 0)))
        await check("an order", lambda: tree.sortByColumn(BITS, Qt.SortOrder.DescendingOrder))
        await check("a filter", lambda: window.panels["layers"].filter.setText("up_proj"))
        await check("higher rows", lambda: heatmap.zoom(1.25))
        await check("dark colours", lambda: window.recolour(theme.DARK))
        await check("a click", lambda: window.panels["sensitivity"]._click(3, 1))

    live(story, size=(1600, 1000))


def test_an_edit_lays_out_its_panels_and_not_the_docks(live: Callable[..., None]) -> None:
    class Watch(QObject):
        count = 0

        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            self.count += event.type() == QEvent.Type.LayoutRequest
            return False

    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        await person.layer(Q)
        watch = Watch()
        person.window.area.installEventFilter(watch)
        for scheme in ("int8-channel", "int4-g32-asym", "keep"):
            plan = person.state.session.plan.assign([UP, Q], weights=scheme)
            await person.act(partial(person.context.workspace.edit, "Change", partial(replace, plan=plan)))
        await person.layer(UP)
        assert not watch.count, f"all docks were laid out {watch.count} times"
        person.window.area.removeEventFilter(watch)

    live(story)


class Turns:
    """Notes in which turn of the event loop something was called."""

    def __init__(self) -> None:
        self.now = 0
        self.calls: list[tuple[int, str]] = []
        QAbstractEventDispatcher.instance().awake.connect(self._next)

    def _next(self) -> None:
        self.now += 1

    def note(self, what: str) -> None:
        self.calls.append((self.now, what))

    def stop(self) -> None:
        QAbstractEventDispatcher.instance().awake.disconnect(self._next)


def test_first_inputs_and_outputs_are_drawn_plot_by_plot(
    live: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They resize all three plots, so that one turn of the event loop drew all of them twice."""
    turns, redraw = Turns(), Histogram.redraw

    def noted(plot: Histogram) -> None:
        turns.note(plot.accessibleName())
        redraw(plot)

    monkeypatch.setattr(Histogram, "redraw", noted)

    async def story(person: Person) -> None:
        calibrated = sessions.full(2)
        opened = replace(
            calibrated, statistics=dict(of_tap(calibrated.statistics, "weight")), ranges={}, active_ranges={}
        )
        await person.open(opened)
        await person.layer(Q)
        await person.settle(0.5)
        turns.calls.clear()
        person.context.workspace.update(lambda session: calibrated)
        await person.settle(0.5)
        turns.stop()
        assert {name for _, name in turns.calls} >= {"Histogram of the inputs", "Histogram of the outputs"}
        places = [turn for turn, _ in turns.calls]
        assert len(places) == len(set(places)), turns.calls
        assert len(places) <= 4, f"drawn more often than needed: {turns.calls}"

    live(story, size=(1600, 1000))


def test_one_turn_draws_one_panel(live: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The window's own timer used to draw a second panel before the first was on the screen."""

    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        drawn: list[str] = []
        begin, following = PanelUpdates._begin, PanelUpdates._next_panel
        monkeypatch.setattr(PanelUpdates, "_begin", lambda self: (drawn.append("frame"), begin(self)))
        monkeypatch.setattr(PanelUpdates, "_next_panel", lambda self: (drawn.append("panel"), following(self)))

        def edit_and_poll() -> None:
            person.context.workspace.show_metric("weight_error")
            person.window._turns.draw()
            person.window._poll()
            assert drawn == ["frame"], "status bar and actions have a turn of their own"
            person.window._poll()
            assert drawn == ["frame", "panel"], "where timers of 0 ms do not come, the window's timer draws"

        await person.act(edit_and_poll)
        assert person.window.is_drawn

    live(story)


def test_a_panel_that_fails_leaves_the_others_their_turns(
    live: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))

        def fail(self: PanelUpdates) -> None:
            self._due.pop()
            raise ValueError("a defect")

        def show_and_fail() -> None:
            person.context.workspace.show_metric("weight_error")
            person.window._turns.draw()
            with monkeypatch.context() as broken, pytest.raises(ValueError, match="a defect"):
                broken.setattr(PanelUpdates, "_next_panel", fail)
                person.window._turns.stop()  # as when its timer has gone off
                person.window._turns.draw()

        await person.act(show_and_fail)
        await person.until(lambda: person.window.is_drawn, 5)

    live(story)


def test_other_colours_read_no_drawing_again_and_english_asks_no_catalogue(
    live: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        asked: list[object] = []
        monkeypatch.setattr(icons, "QSvgRenderer", asked.append)
        monkeypatch.setattr(QCoreApplication, "translate", lambda *texts: asked.append(texts) or texts[1])
        await person.act(lambda: person.window.recolour(theme.DARK))
        await person.act(lambda: person.window.arrange("compare"))
        assert not asked
        assert person.window.actions_by_id["save"].icon().cacheKey() != 0

    live(story)


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_icons_are_of_the_themes_colours_and_of_their_own_shape(colours: theme.Colours, qapp: QApplication) -> None:
    for mode, colour in ((QIcon.Mode.Normal, colours.text), (QIcon.Mode.Disabled, colours.border)):
        image = icons.icon("save", colours).pixmap(QSize(20, 20), 3.0, mode).toImage()
        pixels = [image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height())]
        full = [pixel.name() for pixel in pixels if pixel.alpha() == 255]
        assert len(full) > 100 and set(full) == {colour} and sum(pixel.alpha() == 0 for pixel in pixels) > 1000
