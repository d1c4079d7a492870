"""Tab reaches everything, in the order in which it is read, and where the keyboard is can be seen."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QWheelEvent
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QComboBox, QSlider, QTabBar, QTabWidget, QWidget

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.panels import PANELS

MOST_STOPS = 200


def _inner(widget: QWidget) -> bool:
    """Whether a widget is part of one that takes the keyboard for it."""
    return isinstance(widget.parent(), QAbstractSpinBox | QComboBox) or widget.focusProxy() is not None


def _takers(root: QWidget) -> list[QWidget]:
    """Return what is seen in ``root`` and takes the keyboard by Tab."""
    tab = Qt.FocusPolicy.TabFocus
    return [
        each for each in root.findChildren(QWidget)
        if each.window() is root.window() and each.isVisible() and each.isEnabled() and each.focusPolicy() & tab
        and not _inner(each)
    ]  # fmt: skip


def _seen(widget: QWidget) -> QImage:
    parent = widget.parentWidget()
    return (parent if parent is not None and not widget.isWindow() else widget).grab().toImage()


def _named(widget: QWidget) -> str:
    return " ".join((type(widget).__name__, widget.accessibleName(), getattr(widget, "text", str)())).strip()


async def _walk(person: Person, root: QWidget) -> tuple[list[QWidget], list[str]]:
    """Press Tab through ``root``; returns the stops, and those that look the same with and without the keyboard."""
    stops: list[QWidget] = []
    invisible: list[str] = []
    await person.act(lambda: _takers(root)[-1].setFocus(Qt.FocusReason.TabFocusReason))
    for _ in range(MOST_STOPS * (not root.isWindow())):
        if not root.isAncestorOf(QApplication.focusWidget()):
            break
        await person.press(Qt.Key.Key_Backtab, shift=True)
    await person.press(Qt.Key.Key_Tab)
    while (at := QApplication.focusWidget()) is not None and root.isAncestorOf(at) and at not in stops:
        stops.append(at)
        with_keyboard = _seen(at)
        for _ in range(MOST_STOPS):
            await person.press(Qt.Key.Key_Tab)
            if QApplication.focusWidget() is not at:  # else from link to link
                break
        if _seen(at) == with_keyboard and QApplication.focusWidget() is not at:
            invisible.append(_named(at))
    return stops, invisible


async def _check(person: Person, root: QWidget, name: str, unseen: dict[str, list[str]]) -> list[QWidget]:
    stops, invisible = await _walk(person, root)
    missed = [_named(each) for each in _takers(root) if each not in stops]
    places = [(each.mapTo(root, QPoint(0, 0)), each) for each in stops]
    backwards = [_named(after) for (at, before), (place, after) in itertools.pairwise(places)
                 if place.y() + after.height() <= at.y() and not isinstance(before, QTabBar)
                 or place.x() + after.width() <= at.x() and place.y() <= at.y()]  # fmt: skip
    missed += [f"out of order: {each}" for each in backwards[root.isWindow() :]]  # there, Tab goes round
    if missed or invisible:
        unseen[name] = [*(f"missed: {each}" for each in missed), *(f"invisible: {each}" for each in invisible)]
    return stops


def test_tab_reaches_every_part_of_every_panel_and_shows_where_it_is(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        wrong: dict[str, list[str]] = {}
        await person.act(person.window.activateWindow)
        await _check(person, person.window.centralWidget(), "start", wrong)
        await _check(person, person.window.status, "status", wrong)
        await person.open(sessions.full(2))
        layer = person.state.session.model.layers[2].name
        await person.act(lambda: person.context.workspace.select((layer,)))
        for spec in PANELS:
            panel = person.window.panels[spec.id]
            await person.act(lambda name=spec.id: person.window.reveal(name))
            await _check(person, panel, spec.id, wrong)
            for tabs in panel.findChildren(QTabWidget):
                for page in (each for each in range(1, tabs.count()) if tabs.isTabEnabled(each)):
                    await person.tab(tabs, page)
                    await _check(person, panel, f"{spec.id}, {tabs.tabText(page)}", wrong)
        assert wrong == {}

    live(story)


def test_an_opened_document_begins_with_its_layers(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.act(person.window.activateWindow)
        await person.open(sessions.full(1))
        assert QApplication.focusWidget() is person.window.panels["layers"].view
        await person.act(person.context.workspace.close)
        assert QApplication.focusWidget() is person.window.start_page.model_button

    live(story)


def test_the_keyboard_waits_in_a_panel_for_its_result(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.act(person.window.activateWindow)
        full = sessions.full(1)
        await person.open(replace(full, sensitivities={}))
        panel = person.window.panels["sensitivity"]
        await person.act(lambda: person.window.reveal("sensitivity"))
        assert QApplication.focusWidget() is panel.next_step
        await person.act(lambda: panel.show_running(["sensitivity"]))
        assert panel.isAncestorOf(QApplication.focusWidget()) and not panel.next_step.isEnabled()
        await person.act(lambda: person.context.workspace.update(lambda session: full))
        assert QApplication.focusWidget() is panel.heatmap

    live(story)


DIALOGS = (
    "calibrate", "score", "evaluate", "audit", "train", "export", "device", "palette", "guide", "about",
    "report_problem", "language",
)  # fmt: skip


def test_tab_reaches_every_part_of_every_dialog_and_shows_where_it_is(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        wrong: dict[str, list[str]] = {}
        await person.act(person.window.activateWindow)
        await person.open(sessions.full(1))
        await person.act(lambda: person.context.workspace.select((person.state.session.model.layers[2].name,)))
        for action in DIALOGS:
            await person.act(lambda action=action: person.window.trigger(action))
            await person.settle(0.1)
            dialog = QApplication.activePopupWidget() or QApplication.activeWindow()
            assert dialog not in (person.window, None), action
            await _check(person, dialog, action, wrong)
            await person.press(Qt.Key.Key_Escape, dialog)
        assert wrong == {}

    live(story)


def _turn(field: QWidget, degrees: int) -> None:
    """Turn the mouse wheel over a field."""
    spot, none = QPointF(field.rect().center()), QPoint()
    buttons, modifiers = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
    at = QPointF(field.mapToGlobal(spot.toPoint())), none, QPoint(0, degrees * 8)
    QApplication.sendEvent(field, QWheelEvent(spot, *at, buttons, modifiers, Qt.ScrollPhase.NoScrollPhase, False))


def test_the_wheel_turns_only_the_field_that_has_the_keyboard(live: Callable[..., None]) -> None:
    kinds = QAbstractSpinBox, QComboBox, QSlider

    def turn_all(root: QWidget) -> int:
        fields = [each for each in root.findChildren(QWidget) if isinstance(each, kinds) and each.isEnabled()]
        for field in fields:
            assert field.focusPolicy() is not Qt.FocusPolicy.WheelFocus, field.accessibleName()
            before = QApplication.focusWidget(), _value(field)
            for degrees in (-15, 15, 15):
                _turn(field, degrees)
            assert (QApplication.focusWidget(), _value(field)) == before, field.accessibleName()
        return len(fields)

    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        for spec in PANELS:
            await person.act(lambda spec=spec: person.window.reveal(spec.id))
        layers = person.window.panels["layers"]
        await person.act(lambda: layers.view.setFocus())
        before = person.state
        await person.act(lambda: turn_all(person.window.area))
        assert person.state.session is before.session and person.state.target == before.target
        assert turn_all(person.window.area) > 15
        await person.act(lambda: person.context.trigger("calibrate"))
        await person.until(lambda: person.dialog("form"), 10)
        form = person.dialog("form")
        number = form.findChild(QAbstractSpinBox)
        await person.act(lambda: form.start_button.setFocus())
        assert turn_all(form) >= 4
        await person.act(lambda: number.setFocus())
        old = _value(number)
        await person.act(lambda: _turn(number, 15))
        assert _value(number) != old, "where the keyboard is, the wheel may turn"
        await person.act(form.reject)

    live(story)


def _value(field: QWidget) -> object:
    return field.currentIndex() if isinstance(field, QComboBox) else field.value()  # type: ignore[attr-defined]
