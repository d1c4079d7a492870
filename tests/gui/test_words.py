"""The German catalogue holds the words of menus, commands, panels, stages and roles, and a window speaks them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import Qt, QTranslator
from PySide6.QtWidgets import QApplication

from tests.gui import sessions
from tests.gui.conftest import Person
from tests.gui.spoken import catalogue, of_sources, spoken
from workbench.gui.commands.actions import ACTIONS, MENUS
from workbench.gui.shell import words

CATALOGUE = catalogue()
MADE = 82
"""Texts that are put together from parts, which no catalogue can hold: none may be added, use ``tr("... {}")``."""


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
    assert not missing, f"{len(missing)} texts without a translation in de.ts: {sorted(missing)}"
    assert len(spoken()) > 750
    made = of_sources()[1]
    assert len(made) <= MADE, f"{len(made) - MADE} more texts are put together: {made}"
    for menu in MENUS:
        texts = [CATALOGUE.get(action.text, action.text) for action in ACTIONS if action.menu == menu]
        keys = Counter(text[text.index("&") + 1].lower() for text in texts if "&" in text)
        assert not [key for key, count in keys.items() if count > 1], (menu, keys)


def test_translations_keep_what_is_filled_in_and_the_keys() -> None:
    for source, text in CATALOGUE.items():
        assert sorted(re.findall(r"\{[^}]*\}", source)) == sorted(re.findall(r"\{[^}]*\}", text)), source
        assert ("&" in source) == ("&" in text), (source, text)
        assert (source[-1:] == "…") == (text[-1:] == "…"), (source, text)


def test_the_compiled_catalogue_is_that_of_the_source(german: None) -> None:
    for source, text in CATALOGUE.items():
        assert words.tr(source) == text, "compile it: python -m workbench.gui.shell.words"


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
