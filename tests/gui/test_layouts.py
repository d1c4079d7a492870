"""Layouts for kinds of work, and the colour map of heatmaps: by keys, kept for the next time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QTreeView, QWidget

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.plots.cells import lookup
from workbench.gui.shell import settings
from workbench.gui.shell.presets import PRESETS

KEYS = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier


def test_a_layout_brings_its_panels_to_the_front_and_gives_them_room(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        window = person.window
        await person.open(sessions.full(1))
        heights = {}
        for key, (name, preset) in zip((Qt.Key.Key_1, Qt.Key.Key_2, Qt.Key.Key_3, Qt.Key.Key_4), PRESETS.items(),
                                       strict=True):  # fmt: skip
            await person.act(lambda key=key: QTest.keyClick(window, key, KEYS))
            await person.settle(0.1)
            assert all(window.panels[panel].is_seen for panel in preset.fronts), name
            heights[name] = window.panels["plan"].height()
            person.picture(name)
        assert heights["plan"] > 1.2 * heights["explore"]
        assert all(line.isVisible() for line in window.panels["plan"].dashboard.tiles[0].changes[:1])
        await person.press(Qt.Key.Key_L, window, control=True, shift=True)
        await person.settle(0.1)
        assert all(window.panels[panel].is_seen for panel in PRESETS["explore"].fronts)

    live(story, size=(1600, 1000))


def test_a_window_that_grows_gives_the_tree_its_share_until_the_user_moves_a_border(live: Callable[..., None]) -> None:
    """A small window gives the tree less than its share: the plan below has a least height."""

    async def story(person: Person) -> None:
        await person.open(sessions.opened(sessions.summary(30), with_weights=False))
        window, area = person.window, person.window.area
        tree = window.panels["layers"].findChild(QTreeView)
        await person.act(lambda: window.resize(1920, 1080))
        assert tree.viewport().height() > 24.5 * tree.visualRect(tree.model().index(0, 0)).height()
        person.picture("large")
        layers, plan = area.docks["layers"], area.docks["plan"]
        between = QPoint(layers.geometry().center().x(), (layers.geometry().bottom() + plan.geometry().top()) // 2)
        await person.act(lambda: drag(area, between, between - QPoint(0, 200)))
        share = layers.height() / area.height()
        assert share < 0.5
        await person.act(lambda: window.resize(1920, 1000))
        await person.act(lambda: window.resize(1920, 1080))
        assert abs(layers.height() / area.height() - share) < 0.03

    live(story)


def drag(widget: QWidget, start: QPoint, stop: QPoint) -> None:
    """Press, move and let go of the left button."""
    QTest.mousePress(widget, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(widget, stop)
    QApplication.processEvents()
    QTest.mouseRelease(widget, Qt.MouseButton.LeftButton, pos=stop)


def test_key_figures_fold_where_there_is_little_room(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        tile = person.window.panels["plan"].dashboard.tiles[0]
        assert tile.value.isVisible() and not tile.changes[0].isVisible()
        await person.act(lambda: person.window.resize(1600, 1100))
        await person.act(person.window.reset_layout)
        await person.settle(0.1)
        assert tile.detail.isVisible() and tile.changes[0].isVisible()

    live(story)


def test_another_colour_map_is_taken_by_a_key_and_kept(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        heat = person.window.panels["sensitivity"].heatmap
        before = heat._image.copy()
        await person.act(lambda: QTest.keyClick(person.window, Qt.Key.Key_H, KEYS))
        assert settings.heat_colours() == "cividis" and heat._image != before
        assert not person.window.colours.dark

    live(story)


@pytest.mark.parametrize("name", settings.HEAT_COLOURS)
def test_the_lightness_of_a_colour_map_only_grows(name: str) -> None:
    red, green, blue = (lookup(name)[:, :3] / 255.0).T
    linear = [np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4) for part in (red, green, blue)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    assert (np.diff(luminance) >= -2e-3).all() and luminance[-1] > 0.5 > 0.1 > luminance[0]
