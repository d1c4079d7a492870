"""The weights are there before the network: shown at once, edits kept, closed again where opening fails."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QMenu

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.errors import NotAModelError
from workbench.gui.commands import document
from workbench.gui.commands.actions import ACTIONS
from workbench.gui.context import edits
from workbench.models.layer import LayerKind
from workbench.progress import Progress
from workbench.session.session import Session
from workbench.steps.files.first_session import STILL_LOADING, is_first_look
from workbench.steps.files.open_model import OPEN

PATH = "/nowhere/tiny-llama"


class Slow:
    """Stands for a slow network: shows the first look, then waits until it is told to go on."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.fails = self.shows_nothing = False

    def run(self, progress: Progress) -> Session:
        """Take the place of opening a model."""
        whole = sessions.opened()
        layers = tuple(layer for layer in reversed(whole.model.layers) if layer.tied_to is None)  # a file's own order
        look = replace(whole, model=replace(whole.model, layers=layers, cannot_run=STILL_LOADING))
        progress(0.1, "Loading the network", None if self.shows_nothing else look)
        while not self.go_on.wait(0.01):
            progress(0.1, "Loading the network")
        if self.fails:
            raise NotAModelError("transformers cannot load it")
        return whole


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    """Openings that wait."""
    made = Slow()
    waiting = replace(OPEN, run=lambda context, options: made.run(context.progress))
    monkeypatch.setattr(document, "OPEN", waiting)
    yield made
    made.go_on.set()


async def _looked(person: Person) -> None:
    await person.act(lambda: person.window.document.open_path(PATH))
    await person.until(lambda: is_first_look(person.state.session), 10)


def test_weights_are_shown_and_edits_are_kept(live: Callable[..., None], slow: Slow) -> None:
    async def story(person: Person) -> None:
        await _looked(person)
        assert person.window.panels["layers"].isVisible()
        for spec in ACTIONS:
            if spec.id in ("save", "calibrate", "score", "export", "evaluate", "search"):
                assert not person.window.actions_by_id[spec.id].isEnabled(), spec.id
        layer = person.state.session.model.layers[3].name
        await person.act(lambda: person.context.workspace.select([layer]))
        await person.act(lambda: edits.assign(person.context.workspace, [layer], weights="int4-g32-asym"))
        assert not await person.window.document.save()
        slow.go_on.set()
        await person.until(lambda: person.state.session.model.cannot_run is None, 10)
        assert person.state.selection == (layer,)
        assert person.state.assignments[layer].weights == "int4-g32-asym"
        assert person.window.actions_by_id["calibrate"].isEnabled()
        await person.press(Qt.Key.Key_Z, control=True)
        assert person.state.assignments[layer].weights == "keep" and not person.state.undo_name

    live(story)


def test_the_first_layer_of_the_network_is_shown_unless_another_was_chosen(
    live: Callable[..., None], slow: Slow
) -> None:
    async def story(person: Person) -> None:
        await _looked(person)
        last = [layer.name for layer in person.state.session.model.layers][0]
        assert person.state.selection == (last,)
        slow.go_on.set()
        await person.until(lambda: person.state.session.model.cannot_run is None, 10)
        first = next(layer for layer in person.state.session.model.layers if layer.kind is not LayerKind.EMBEDDING)
        assert person.state.selection == (first.name,) and first.name != last

    live(story)


def test_the_start_page_shows_what_is_being_opened(live: Callable[..., None], slow: Slow) -> None:
    async def story(person: Person) -> None:
        slow.shows_nothing = True
        page = person.window.start_page
        assert not page.opening.isVisible() and not page.opened.isVisible()
        await person.act(lambda: person.window.document.open_path(PATH))
        await person.until(lambda: page.opened.value() == 100, 10)
        assert page.opening.isVisible() and page.opened.isVisible()
        assert page.opening.text() == f"{person.context.jobs.views[-1].title} – Loading the network"
        person.picture("opening")
        slow.go_on.set()
        await person.until(lambda: person.state.session is not None, 10)
        assert page.opening.isHidden()

    live(story)


@pytest.mark.parametrize("cancelled", [True, False])
def test_the_look_is_gone_where_opening_fails(live: Callable[..., None], slow: Slow, cancelled: bool) -> None:
    async def story(person: Person) -> None:
        await _looked(person)
        if cancelled:
            await person.click(person.window.status.cancel_button)
        else:
            slow.fails = True
            slow.go_on.set()
            await person.answer("error", "Close")
        await person.until(lambda: person.state.session is None, 10)
        assert person.window.start_page.isVisible()

    live(story)


def test_an_open_document_stays_until_the_other_is_there(live: Callable[..., None], slow: Slow) -> None:
    before = sessions.full(1)

    async def story(person: Person) -> None:
        await person.open(before)
        await person.act(lambda: person.window.document.open_path(PATH))
        await asyncio.sleep(0.3)
        assert person.state.session.model is before.model
        slow.go_on.set()
        await person.until(lambda: person.state.session.model is not before.model, 10)

    live(story)


def test_a_menu_of_the_start_page_goes_with_it(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        menu = QMenu(person.window)
        menu.addAction("Model folder…")
        await person.act(lambda: menu.popup(person.window.mapToGlobal(QPoint(50, 50))))
        assert menu.isVisible()
        await person.open(sessions.opened())
        assert not menu.isVisible()

    live(story)
