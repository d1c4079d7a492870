"""The German catalogue holds the words of menus, commands, panels, stages and roles, and a window speaks them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from xml.etree import ElementTree

import pytest
from PySide6.QtCore import Qt, QTranslator
from PySide6.QtWidgets import QApplication

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.commands.actions import ACTIONS, MENUS
from workbench.gui.commands.stages import STAGES
from workbench.gui.panels import PANELS
from workbench.gui.shell import words
from workbench.insight.roles import ROLES

CATALOGUE = {
    message.findtext("source", ""): message.findtext("translation", "")
    for message in ElementTree.parse(words.folder() / "de.ts").iter("message")
}


def spoken() -> set[str]:
    """Return every text that a catalogue translates."""
    texts = {*MENUS, *(text for action in ACTIONS for text in (action.text, action.tip))}
    texts |= {panel.title for panel in PANELS} | {stage.title for stage in STAGES}
    return (texts | {text for each in ROLES for text in (each.title, each.text)}) - {""}


@pytest.fixture
def german(qapp: QApplication) -> Iterator[None]:
    """The application in German."""
    words.install(qapp, "de")
    yield
    for translator in qapp.findChildren(QTranslator):
        qapp.removeTranslator(translator)
        translator.deleteLater()


def test_the_catalogue_is_complete_and_its_mnemonics_are_unique() -> None:
    missing = spoken() - {source for source, text in CATALOGUE.items() if text}
    assert len(missing) <= 0.05 * len(spoken()), sorted(missing)
    for menu in MENUS:
        texts = [CATALOGUE.get(action.text, action.text) for action in ACTIONS if action.menu == menu]
        keys = Counter(text[text.index("&") + 1].lower() for text in texts if "&" in text)
        assert not [key for key, count in keys.items() if count > 1], (menu, keys)


def test_a_german_window(german: None, live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        titles = [menu.title().replace("&", "") for menu in person.window.menus.values()]
        assert titles == ["Datei", "Bearbeiten", "Ausführen", "Ansicht", "Hilfe"]
        await person.open(sessions.full(1))
        assert person.window.docks["layers"].windowTitle() == "Schichten"
        assert person.window.stepper.buttons[1].text() == "Kalibrieren"
        assert person.window.actions_by_id["save"].text() == "&Speichern"
        assert person.window.start_page.roles.itemText(3) == "Erkunden"
        board = person.window.panels["plan"].dashboard
        assert "," not in board.tiles[1].value.text(), "numbers stay as they are"
        person.picture("german")

    live(story)


def test_a_window_from_right_to_left(qapp: QApplication, live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        first, *_, last = person.window.stepper.buttons
        assert first.x() > last.x()
        await person.layer("model.layers.0.mlp.up_proj")
        heat = person.window.panels["sensitivity"].heatmap
        await person.click(heat.viewport(), heat.cell_rect(3, 4).center())
        assert heat.cells.chosen[3] == 4, "a click hits the cell that is painted there"
        person.picture("right-to-left")

    qapp.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    try:
        live(story)
    finally:
        qapp.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
