"""Light or dark: switched by a key, kept for the next time, and given back to the desktop."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolButton

from tests.gui.conftest import Person
from tests.gui.test_access import GROUNDS, contrast
from workbench.gui.plots.plot import Plot
from workbench.gui.shell import settings, theme
from workbench.gui.shell.number_field import NumberField


def test_colours_are_switched_and_given_back_to_the_desktop(
    live: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    desktop, named = [theme.DARK], {"dark": theme.DARK, "light": theme.LIGHT}
    monkeypatch.setattr(theme, "choose", lambda setting="system": named.get(setting, desktop[0]))

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


@pytest.mark.parametrize("setting", ["system", "light", "dark"])
def test_high_contrast_is_followed_in_both_themes(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    high = SimpleNamespace(contrastPreference=lambda: Qt.ContrastPreference.HighContrast)
    hints = SimpleNamespace(accessibility=lambda: high, colorScheme=lambda: Qt.ColorScheme.Dark)
    monkeypatch.setattr(theme, "QGuiApplication", SimpleNamespace(styleHints=lambda: hints))
    colours = theme.choose(setting)
    assert colours.dark is (setting != "light")
    for ground in GROUNDS:
        assert min(contrast(getattr(colours, role), getattr(colours, ground)) for role in ("text", "muted")) >= 7
        assert contrast(colours.border, getattr(colours, ground)) >= 7, "fields have frames that can be seen"


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


def test_a_label_that_does_not_fit_the_left_axis_is_shortened(qapp: QApplication) -> None:
    plot = Plot(theme.LIGHT, "Values", bottom="value")
    plot.label("left", "count (log)")
    axis, shown = plot.item.getAxis("left"), {}
    plot.show()
    for height in (300, 110, 60, 300):
        plot.resize(400, height)
        qapp.processEvents()
        shown[height] = axis.labelText
        assert not axis.label.isVisible() or axis.label.boundingRect().width() <= axis.size().height() + 10
        middle = axis.label.mapToParent(axis.label.boundingRect().center()).y()
        assert not axis.label.isVisible() or abs(middle - axis.size().height() / 2) < 1.5, "in the middle of its axis"
    assert shown == {300: "count (log)", 110: "count", 60: ""}
    plot.recolour(theme.DARK)
    assert axis.labelText == "count (log)"
    plot.close()
    plot.deleteLater()


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_fields_of_numbers_have_the_frame_of_other_fields(qapp: QApplication, colours: theme.Colours) -> None:
    theme.apply(qapp, colours)
    field = NumberField(0, 10, 4)
    field.resize(90, 26)
    picture = field.grab().toImage()
    assert picture.pixelColor(45, 0).name() == picture.pixelColor(0, 13).name() == colours.frame
    field.deleteLater()
    theme.apply(qapp, theme.LIGHT)


def test_the_button_of_what_the_toolbar_hides_can_be_seen_on_dark(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        more = person.window.findChild(QToolButton, "qt_toolbar_ext_button")
        picture = more.icon().pixmap(QSize(18, 18)).toImage()
        pixels = [picture.pixelColor(x, y) for x in range(picture.width()) for y in range(picture.height())]
        solid = [colour for colour in pixels if colour.alpha() > 100]
        assert solid and all(colour.lightness() > 200 for colour in solid)

    live(story, dark=True)
