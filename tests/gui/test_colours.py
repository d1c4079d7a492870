"""Light or dark: switched by a key, kept for the next time, and given back to the desktop."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from tests.gui.conftest import Person
from workbench.gui.plots.plot import Plot
from workbench.gui.shell import settings, theme


def test_colours_are_switched_and_given_back_to_the_desktop(
    live: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    desktop = [theme.DARK]
    monkeypatch.setattr(theme, "choose", lambda setting="system": desktop[0])

    async def story(person: Person) -> None:
        window = person.window
        assert settings.theme() == "system" and not window.colours.dark
        for name, dark in (("dark", True), ("light", False)):
            await person.press(Qt.Key.Key_T, window, control=True)
            assert settings.theme() == name and window.colours.dark is dark
        await person.act(lambda: QApplication.styleHints().colorSchemeChanged.emit(Qt.ColorScheme.Dark))
        assert not window.colours.dark, "the person has chosen"
        keys = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier
        await person.act(lambda: QTest.keyClick(window, Qt.Key.Key_T, keys))
        assert settings.theme() == "system" and window.colours.dark
        desktop[0] = theme.LIGHT
        await person.act(lambda: QApplication.styleHints().colorSchemeChanged.emit(Qt.ColorScheme.Light))
        assert not window.colours.dark and settings.theme() == "system"

    live(story)


def test_a_change_of_colours_leaves_the_numbers_of_an_axis(qapp: QApplication) -> None:
    plot = Plot(theme.LIGHT, "Values", bottom="value")
    plot.show()
    plot.item.setXRange(-0.6, 0.6)
    qapp.processEvents()
    plot.recolour(theme.DARK)
    qapp.processEvents()
    assert plot.item.getAxis("bottom").autoSIPrefixScale == 1.0
    plot.close()
    plot.deleteLater()
