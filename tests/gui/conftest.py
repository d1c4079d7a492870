"""A screen large enough for the window, settings of its own, and a way to act as a person does.

Every act goes through Qt's event queue from outside any task, as a person's does: a nested loop inside a coroutine
would stop the others.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

if os.environ.get("QT_QPA_PLATFORM", "offscreen") == "offscreen":
    _screen = {
        "name": "wide",
        "x": 0,
        "y": 0,
        "width": 1920,
        "height": 1200,
        "logicalDpi": 96,
        "logicalBaseDpi": 96,
        "dpr": 1,
    }
    _file = Path(tempfile.mkdtemp(prefix="workbench-screen-")) / "screen.json"
    _file.write_text(json.dumps({"synchronousWindowSystemEvents": False, "screens": [_screen]}))
    os.environ["QT_QPA_PLATFORM"] = f"offscreen:configfile={_file}"

from PySide6.QtCore import QPoint, QSettings, Qt, QTimer  # noqa: E402
from PySide6.QtGui import QFontDatabase  # noqa: E402
from PySide6.QtTest import QTest  # noqa: E402
from PySide6.QtWidgets import QAbstractItemView, QApplication, QComboBox, QTabWidget, QWidget  # noqa: E402
from qasync import QEventLoop  # noqa: E402

from tests.engine.inline_engine import InlineEngine  # noqa: E402
from workbench.engine.drawing_engine import DrawingEngine  # noqa: E402
from workbench.engine.jobs import Jobs  # noqa: E402
from workbench.gui import app as application_module  # noqa: E402
from workbench.gui.context.context import Context  # noqa: E402
from workbench.gui.panels.panel import Panel  # noqa: E402
from workbench.gui.shell import theme  # noqa: E402
from workbench.gui.window import Window  # noqa: E402
from workbench.session.session import Session  # noqa: E402
from workbench.session.workspace import Workspace  # noqa: E402

Button, Modifier = Qt.MouseButton, Qt.KeyboardModifier


@pytest.fixture(scope="session")
def qapp() -> QApplication:
    """The application; without fonts Qt would draw boxes and say nothing."""
    app = application_module.application()
    assert QFontDatabase.families(), "no fonts: install fontconfig and a font such as DejaVu"
    return app


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Settings and recovery copies that no other test and no person sees."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(tmp_path / "settings"))
    yield


class Person:
    """What a person does at the window, and what they see."""

    def __init__(self, window: Window, pictures: Path | None) -> None:
        self.window = window
        self.context = window.context
        self._pictures = pictures
        self._shots = 0

    @property
    def state(self) -> Any:
        """The document as it is now."""
        return self.context.workspace.state

    async def act(self, what: Callable[[], object]) -> None:
        """Do something from outside any task."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def call() -> None:
            try:
                what()
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(None)

        QTimer.singleShot(0, call)
        await done
        await self.settle()

    async def settle(self, seconds: float = 0.02) -> None:
        """Let the window draw what changed, one panel after the other."""
        await asyncio.sleep(seconds)
        for _ in range(200):
            if self.window.is_drawn:
                return
            await asyncio.sleep(0.01)

    async def until(self, true: Callable[[], object], seconds: float = 150.0) -> None:
        """Wait until something has become true."""
        for _ in range(int(seconds / 0.02)):
            if true():
                await self.settle()
                return
            await asyncio.sleep(0.02)
        raise AssertionError("it did not become true in time")

    async def press(
        self, key: Qt.Key, widget: QWidget | None = None, control: bool = False, shift: bool = False
    ) -> None:
        """Press a key in ``widget``, or in what has the focus."""
        modifiers = Qt.KeyboardModifier.NoModifier
        if control:
            modifiers |= Qt.KeyboardModifier.ControlModifier
        if shift:
            modifiers |= Qt.KeyboardModifier.ShiftModifier
        if QApplication.activeWindow() is None:
            await self.act(self.window.activateWindow)  # a window manager does that when a dialog closes
        target = widget or QApplication.focusWidget() or self.window
        await self.act(lambda: QTest.keyClick(target, key, modifiers))

    async def type(self, widget: QWidget, text: str) -> None:
        """Replace what stands in a field."""

        def typing() -> None:
            widget.setFocus()
            QTest.keyClick(widget, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
            QTest.keyClicks(widget, text)

        await self.act(typing)

    async def click(self, widget: QWidget, where: QPoint | None = None, button: Button = Button.LeftButton,
                    modifier: Modifier = Modifier.NoModifier) -> None:  # fmt: skip
        """Click into ``widget``, in its middle unless told where."""
        spot = where or widget.rect().center()
        await self.act(lambda: QTest.mouseClick(widget, button, modifier, spot))

    async def tab(self, tabs: QTabWidget, page: int | QWidget) -> None:
        """Click on a tab, by its place or its page."""
        place = page if isinstance(page, int) else tabs.indexOf(page)
        await self.click(tabs.tabBar(), tabs.tabBar().tabRect(place).center())

    async def row(self, table: QAbstractItemView, row: int) -> None:
        """Click on the first cell of a row."""
        await self.click(table.viewport(), table.visualRect(table.model().index(row, 0)).center())

    async def choose(self, box: QComboBox, index: int) -> None:
        """Go to an entry of a box with the arrow keys."""

        def keys() -> None:
            box.setFocus()
            while box.currentIndex() != index:
                before = box.currentIndex()
                QTest.keyClick(box, Qt.Key.Key_Down if before < index else Qt.Key.Key_Up)
                assert box.currentIndex() != before, f"entry {index} cannot be reached"

        await self.act(keys)

    async def pick(self, box: QComboBox, text: str) -> None:
        """Go to an entry of a list that is open, or opens by itself, with the arrow keys, and press Return."""
        await self.until(box.view().isVisible, 5)
        expected = box.findText(text)
        assert expected >= 0, f"{text} is not in the list"

        def keys() -> None:
            view = box.view()
            while view.currentIndex().row() != expected:
                before = view.currentIndex().row()
                QTest.keyClick(view, Qt.Key.Key_Down if before < expected else Qt.Key.Key_Up)
                assert view.currentIndex().row() != before, f"{text} cannot be reached"
            QTest.keyClick(view, Qt.Key.Key_Return)

        await self.act(keys)

    async def layer(self, name: str, column: int = 0, modifier: Modifier = Modifier.NoModifier) -> None:
        """Click on a layer in the tree."""
        panel = self.window.panels["layers"]
        index = panel.model.index_of(name, column)
        await self.act(lambda: panel.view.scrollTo(index))
        await self.click(panel.view.viewport(), panel.view.visualRect(index).center(), modifier=modifier)

    async def open(self, session: Session, path: Path | None = None) -> None:
        """Have a session open, as if it had just been read."""
        await self.act(lambda: self.context.workspace.open(session, path))

    def dialog(self, name: str) -> Any:
        """Return the open dialog of that name, None if there is none."""
        for widget in QApplication.topLevelWidgets():
            if widget.objectName() == name and widget.isVisible():
                return widget
        return None

    async def answer(self, name: str, button: str) -> None:
        """Press a button of a dialog, by its object name or text."""
        from PySide6.QtWidgets import QAbstractButton

        await self.until(lambda: self.dialog(name), 10)
        result = [item for item in self.dialog(name).findChildren(QAbstractButton)
                 if button in (item.objectName(), item.text().replace("&", ""))]  # fmt: skip
        await self.click(result[0])

    def picture(self, name: str) -> None:
        """Draw the whole window; the picture is kept where WORKBENCH_SCREENSHOTS says."""
        self._shots += 1
        picture = self.window.grab()
        assert not picture.isNull()
        if self._pictures is not None:
            self._pictures.mkdir(parents=True, exist_ok=True)
            assert picture.save(str(self._pictures / f"{self._shots:02d}-{name}.png"))


def empty_text(panel: Panel) -> str:
    """What covers a panel that is empty, or an empty string."""
    return panel._hint.text() if panel._hint.isVisibleTo(panel) else ""


Story = Callable[[Person], Awaitable[None]]


@pytest.fixture
def live(qapp: QApplication, request: pytest.FixtureRequest) -> Iterator[Callable[..., None]]:
    """Run ``story(person)`` in a window with a live event loop; everything that was made must be gone afterwards."""
    threads = set(threading.enumerate())
    widgets = len(QApplication.topLevelWidgets())
    expected = os.environ.get("WORKBENCH_SCREENSHOTS")
    pictures = Path(expected) / request.node.name if expected else None
    messages: list[bool] = []

    def run(
        story: Story, *, engine: Any = None, size: tuple[int, int] = (1280, 720), dark: bool = False,
        seconds: float = 240,
    ) -> None:  # fmt: skip
        with asyncio.Runner(loop_factory=lambda: QEventLoop(qapp)) as runner:
            runner.run(_lived(qapp, story, engine, size, dark, pictures, seconds))
        messages.append(True)

    yield run
    if not messages:
        return  # the failed test's traceback holds what it made
    for _ in range(3):
        qapp.processEvents()
        qapp.sendPostedEvents(None, 52)  # QEvent.DeferredDelete
        gc.collect()
    assert len(QApplication.topLevelWidgets()) <= widgets, QApplication.topLevelWidgets()
    remaining = [thread for thread in threading.enumerate() if thread not in threads and thread.is_alive()]
    lasting = ("workbench-bands", "tqdm")  # as long as the process
    remaining = [thread for thread in remaining if not thread.name.startswith(lasting)]
    assert not remaining, remaining
    gc.freeze()  # modules and caches are not looked through again after every test


async def _lived(
    app: QApplication, story: Story, engine: Any, size: tuple[int, int], dark: bool, pictures: Path | None,
    seconds: float,
) -> None:  # fmt: skip
    colours = theme.DARK if dark else theme.LIGHT
    theme.apply(app, colours)
    used = engine or InlineEngine()
    jobs = Jobs(used, drawing=DrawingEngine())
    context = Context(Workspace(), jobs)
    window = Window(context, colours, keep_layout=False)
    restore = application_module.install_hooks(context)
    unsubscribe = used.subscribe(window.engine_event)
    try:
        window.resize(*size)
        window.show()
        await used.start()
        await asyncio.sleep(0.05)
        await asyncio.wait_for(story(Person(window, pictures)), seconds)
    finally:
        await context.tasks.stop()
        unsubscribe()
        await jobs.close()
        window.dispose()
        restore()
        await asyncio.sleep(0)
