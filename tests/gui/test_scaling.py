"""Nothing is cut off at 1280 x 720, at 100, 150 and 200 % scaling, nor on a screen of 1920 x 1080 at 200 %."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QTabBar, QWidget

from tests.gui import sessions
from tests.gui.conftest import Person
from tests.gui.cut_widgets import cut
from tests.gui.test_layouts import KEYS
from workbench.engine.jobs import JobStatus, JobView
from workbench.gui import window as window_module
from workbench.gui.context.context import Context
from workbench.gui.panels import PANELS
from workbench.gui.shell import settings, theme
from workbench.insight import quantities
from workbench.insight.dashboard import KeyFigure
from workbench.sensitivity.confidence import interval
from workbench.session.workspace import Workspace

ROOT = Path(__file__).parents[2]


SCREENS = (("1", "1280x720", "en"), ("1.5", "1280x720", "en"), ("2", "1280x720", "de"), ("2", "960x540", "en"),
           ("2", "960x540", "de"))  # fmt: skip
"""Scaling, the window's size before it, and language."""

Screen = tuple[str, str, str]


@pytest.fixture(scope="module")
def windows() -> Iterator[dict[Screen, subprocess.Popen[str]]]:
    """A window on each screen, all at once."""
    command = [sys.executable, "-m", "tests.gui.cut_widgets"]
    started = {
        screen: subprocess.Popen(
            [*command, *screen[1:]], cwd=ROOT, env={**os.environ, "QT_SCALE_FACTOR": screen[0]},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for screen in SCREENS
    }  # fmt: skip
    yield started
    for item in started.values():
        item.kill()
        item.communicate()


@pytest.mark.parametrize("screen", SCREENS)
def test_nothing_is_cut(screen: Screen, windows: dict[Screen, subprocess.Popen[str]]) -> None:
    """German words are long: tabs and buttons lay over each other at 200 %."""
    result, wrong = windows[screen].communicate(timeout=240)
    assert windows[screen].returncode == 0, wrong
    assert not result.strip(), result


@pytest.mark.parametrize(("larger", "fills"), [(True, True), (False, False)])
def test_a_window_larger_than_its_screen_fills_it(
    larger: bool, fills: bool, qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = qapp.primaryScreen().availableSize()
    monkeypatch.setattr(window_module, "SIZE", screen + QSize(1, 0) if larger else screen)
    window = window_module.Window(Context(Workspace()), theme.LIGHT)
    assert window.isMaximized() is fills
    window.dispose()
    qapp.sendPostedEvents(None, 52)  # QEvent.DeferredDelete


def test_the_window_fits_a_large_screen_at_200_percent(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        for name in person.window.panels:
            await person.act(lambda name=name: person.window.reveal(name))
        least = person.window.minimumSizeHint()
        assert least.width() <= 1920 // 2 and least.height() <= 1080 // 2, least

    live(story)


def test_the_start_page_fits_a_large_screen_at_200_percent_with_recent_files(
    live: Callable[..., None], tmp_path: Path
) -> None:
    """What is hidden counts as well: Qt makes a stack of pages as high as its highest."""
    for number in range(8):
        file = tmp_path / f"model {number}.onnx"
        file.touch()
        settings.remember(file)

    async def story(person: Person) -> None:
        page, view = person.window.start_page, JobView(id=1, title="Open it", status=JobStatus.RUNNING, text="x")
        for opening in (None, view):
            await person.act(lambda opening=opening: page.show_opening(opening))
            await person.act(lambda: page.show_recent(settings.recent()))
            least = person.window.minimumSizeHint()
            assert least.height() <= 1080 // 2 - 10, "a title bar stands above it"
        person.picture("start")
        assert page.model_button.hasFocus()
        for stop in (page.session_button, page.demo_button):
            await person.press(Qt.Key.Key_Tab)
            assert stop.hasFocus()
        await person.press(Qt.Key.Key_Tab)
        assert isinstance(QApplication.focusWidget(), QLabel), "the recent files; no frame takes the keyboard"
        await person.act(lambda: page.show_recent([]))
        await person.act(page.demo_button.setFocus)
        await person.press(Qt.Key.Key_Tab)
        assert QApplication.focusWidget() is person.window.stepper.buttons[0], "nothing that cannot be seen"
        bar = person.window.pages.widget(0).verticalScrollBar()
        assert bar.maximum() > 0, "what does not fit is scrolled to"

    live(story, size=(960, 530))


def test_on_a_small_screen_the_plan_lies_behind_the_tree(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(3))
        await person.act(person.window.area.size_docks)
        layers, plan = (person.window.panels[name] for name in ("layers", "plan"))
        view = layers.view
        assert view.viewport().height() >= 12 * view.visualRect(view.model().index(0, 0)).height()
        assert layers.is_seen and not plan.is_seen
        for key, front in ((Qt.Key.Key_2, plan), (Qt.Key.Key_1, layers)):
            await person.act(lambda key=key: QTest.keyClick(person.window, key, KEYS))
            await person.settle(0.1)
            assert front.is_seen
        await person.click(person.window.stepper.buttons[3])
        assert plan.is_seen, "the stage shows the panel"

    live(story, size=(960, 540))


def test_a_predicted_loss_has_its_interval_beside_it_where_there_is_room(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        status, state = person.window.status, person.state
        totals = replace(state.totals, error=0.1 * state.totals.predicted)
        assert status.range_label.isHidden(), "this session's table has no errors"
        await person.act(lambda: status._show_figures(state.session, totals, state))
        await person.act(status._fit)
        ends = [quantities.number(end) for end in interval(totals.predicted, totals.error, totals.doubt)]
        assert status.range_label.isVisible() and status.range_label.text() == f"({ends[0]} to {ends[1]})"
        await person.act(lambda: person.window.resize(800, 540))
        assert status.range_label.isHidden() and status.loss_label.isVisible()

    live(story, size=(1280, 720))


def test_tabs_of_a_small_screen_are_scrolled_and_not_cut(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        bars = person.window.area.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
        shown = [bar for bar in bars if bar.isVisible()]
        assert sum(bar.count() for bar in shown) == len(PANELS), "plan and layers share a place, too"
        for bar in shown:
            words = [bar.fontMetrics().horizontalAdvance(bar.tabText(place)) for place in range(bar.count())]
            assert [place for place, word in enumerate(words) if bar.tabRect(place).width() <= word] == []
        await person.act(lambda: person.window.reveal("deploy"))
        bar = next(bar for bar in shown if bar.count() == max(each.count() for each in shown))
        assert bar.tabText(bar.currentIndex()) == "Deploy"
        assert bar.rect().contains(bar.tabRect(bar.currentIndex())), "it is scrolled into sight"

    live(story, size=(960, 540))


def test_no_digit_of_a_key_figure_is_cut(live: Callable[..., None]) -> None:
    """Five figures on half a screen of 1920 pixels at 200 %."""

    async def story(person: Person) -> None:
        await person.open(sessions.full(3))
        await person.act(lambda: person.window.reveal("plan"))
        tiles = person.window.panels["plan"].dashboard.tiles
        for tile, value in zip(tiles, ("1.48 MB", "4.500", "0.00837", "0.00802", "287 µs"), strict=True):
            await person.act(lambda tile=tile, value=value: tile.show_figure(KeyFigure(title="Loss", value=value)))
        await person.act(tiles[-1].show)
        for value, tile in ((tile.value, tile) for tile in tiles):
            assert value.shown == value.text() and value.fontMetrics().horizontalAdvance(value.text()) <= tile.width()

    live(story, size=(960, 540))


def test_a_squeezed_button_is_found(qapp: QApplication) -> None:
    holder = QWidget()
    button, roomy = QPushButton("Far too long for that", holder), QPushButton("Fits", holder)
    button.setFixedWidth(30)
    roomy.setGeometry(0, 60, 120, 40)
    holder.resize(300, 120)
    holder.show()
    qapp.processEvents()
    (result,) = cut(holder)
    assert "Far too long" in result
    holder.close()
    holder.deleteLater()


def test_the_window_fits_a_small_screen_while_a_job_runs(live: Callable[..., None]) -> None:
    """1920 x 1080 at 200 % leaves 960 x 540 pixels of our own."""

    async def story(person: Person) -> None:
        status = person.window.status
        await person.open(sessions.full(2))
        job = JobView(id=1, title="Evaluate a plan with quite a name", status=JobStatus.RUNNING, fraction=0.5, text="x")
        await person.act(lambda: status.show_jobs((job,)))
        assert person.window.minimumSizeHint().width() <= 960 and person.window.width() == 960
        assert status.cancel_button.isVisible() and status.share.isVisible() and status.loss_label.isVisible()
        assert not status.bar.isVisible() and status.message.width() >= 100
        inside = status.device_button.mapTo(person.window, QPoint(status.device_button.width(), 0)).x()
        assert inside <= person.window.width()
        person.picture("narrow")
        await person.act(lambda: person.window.resize(1600, 540))
        assert status.bar.isVisible() and status.size_label.isVisible() and status.bits_label.isVisible()
        await person.act(lambda: status.show_jobs(()))
        assert not status.bar.isVisible() and status.size_label.isVisible()

    live(story, size=(960, 540))


def test_buttons_of_the_start_page_are_as_wide_as_their_texts(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        page = person.window.start_page
        for each in (page.model_button, page.session_button, page.demo_button):
            assert each.width() >= each.sizeHint().width(), each.text()

    live(story)
