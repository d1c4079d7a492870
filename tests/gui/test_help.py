"""The guide, About, the tour of the first run, and what is shown of a crash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QApplication, QFrame

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.errors import MissingResultError
from workbench.gui.commands.tour import SECONDS_BETWEEN_JOBS, STOPS, FirstRun, beside
from workbench.gui.shell import settings
from workbench.steps.devices import DEVICES, DevicesOptions
from workbench.steps.step import Context, Request, Step
from workbench.version import versions


def test_the_guide_opens_with_f1_and_finds_words(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.press(Qt.Key.Key_F1, person.window)
        await person.until(lambda: person.dialog("guide"), 5)
        guide = person.dialog("guide")
        await person.type(guide.field, "undo")
        await person.press(Qt.Key.Key_Return, guide.field)
        assert guide.text.textCursor().selectedText().lower() == "undo"
        person.picture("guide")
        await person.act(guide.close)

    live(story)


def test_about_names_versions_and_devices(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.act(lambda: person.window.trigger("about"))
        await person.until(lambda: person.dialog("about"), 5)
        about = person.dialog("about")
        await person.until(lambda: "CPU:" in about.text.text(), 30)
        assert "torch " in about.text.text() and versions()[0] in about.text.text()
        await person.click(about.copy_button)
        assert QApplication.clipboard().text() == about.text.text()
        await person.act(about.close)

    live(story)


def test_the_keys_that_the_tour_names_work_while_it_is_shown(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.opened())
        await person.act(lambda: person.context.trigger("tour"))
        await person.until(lambda: person.dialog("tour"), 5)
        tour = person.dialog("tour")
        await person.act(tour.activateWindow)
        await person.press(Qt.Key.Key_F5, tour.next)
        await person.until(lambda: person.dialog("form"), 5)
        await person.act(person.dialog("form").reject)
        await person.press(Qt.Key.Key_Escape, tour.next)
        await person.until(lambda: person.dialog("tour") is None, 5)

    live(story)


def test_the_tour_comes_once_and_is_walked_by_keyboard(live: Callable[..., None]) -> None:
    session = sessions.full(1)
    demo = replace(session, model=replace(session.model, source=replace(session.model.source, path="demo:x")))

    async def story(person: Person) -> None:
        first = FirstRun(person.context, person.window)
        assert not settings.tour_ended()
        await person.open(demo)
        await person.until(lambda: person.dialog("tour"), 5)
        tour = person.dialog("tour")
        for number, step in enumerate(STOPS):
            assert tour.at == number and person.window.panels[step.panel].isVisible()
            panel = person.window.panels[step.panel]
            place = QRect(panel.mapToGlobal(QPoint(0, 0)), panel.size())
            assert not place.intersects(QRect(tour.pos(), tour.size())), f"the text covers {step.panel}"
            assert person.window.screen().availableGeometry().contains(QRect(tour.pos(), tour.size()))
            await person.until(lambda panel=panel: tour._mark.geometry().size() == panel.size(), 5)
            person.picture(f"tour-{number}")
            await person.press(Qt.Key.Key_Return, tour.next)
        await person.until(lambda: person.dialog("tour") is None, 5)
        assert settings.tour_ended()
        await person.open(replace(demo, model=replace(demo.model)))
        await person.settle(0.2)
        assert person.dialog("tour") is None
        first.end()
        await person.act(lambda: person.window.trigger("tour"))
        await person.until(lambda: person.dialog("tour"), 5)
        await person.press(Qt.Key.Key_Escape, person.dialog("tour"))
        await person.until(lambda: person.dialog("tour") is None, 5)

    live(story)


def test_help_opens_the_folder_of_the_log(
    live: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setenv("WORKBENCH_LOG_FOLDER", str(tmp_path / "log"))
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))

    async def story(person: Person) -> None:
        await person.act(lambda: person.window.trigger("show_log"))
        assert opened == [str(tmp_path / "log")] and (tmp_path / "log").is_dir()

    live(story)


def test_a_crash_can_be_copied_with_its_details(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        def fail() -> None:
            raise ZeroDivisionError("nobody caught this")

        await person.act(lambda: person.context.tasks.start(_failing(fail)))
        await person.until(lambda: person.dialog("error"), 5)
        box = person.dialog("error")
        person.picture("crash")
        await person.answer("error", "copy")
        text = QApplication.clipboard().text()
        assert "ZeroDivisionError: nobody caught this" in text and "in fail" in text and versions()[1] in text
        assert box.isVisible()
        await person.answer("error", "Close")

    live(story)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultyOptions:
    """What the step fails with."""

    error: Exception


def _fail(context: Context, options: FaultyOptions) -> None:
    raise options.error


FAULTY = Step(
    name="faulty", title="Count the layers", summary="Fails as no step should.", options=FaultyOptions, run=_fail,
    heading=lambda options, session: "Count the layers", document=False,
)  # fmt: skip


def failing(error: Exception) -> Request[FaultyOptions, None]:
    return FAULTY.request(None, FaultyOptions(error=error))


def test_a_fault_in_the_engine_can_be_copied_with_its_details(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.act(
            lambda: person.context.tasks.start(
                person.context.runner.run(failing(ZeroDivisionError("no layers")), lambda: None)
            )
        )
        await person.until(lambda: person.dialog("error"), 5)
        box = person.dialog("error")
        assert box.informativeText() == "failed with ZeroDivisionError: no layers"
        await person.answer("error", "copy")
        text = QApplication.clipboard().text()
        assert "ZeroDivisionError: no layers" in text and "in _fail" in text and versions()[1] in text
        await person.answer("error", "Close")
        assert person.window.status.message.text() == "Count the layers: failed with ZeroDivisionError: no layers"

    live(story)


def test_an_error_says_what_to_do_in_the_window_and_nothing_to_type(live: Callable[..., None]) -> None:
    error = MissingResultError("needs calibration data; calibrate first, or stop", command="workbench calibrate MODEL")

    async def story(person: Person) -> None:
        await person.act(lambda: person.context.tasks.start(person.context.runner.run(failing(error), lambda: None)))
        await person.until(lambda: person.dialog("error"), 5)
        box, words = person.dialog("error"), "needs calibration data; calibrate first, or stop"
        assert box.informativeText() == words and not box.detailedText()
        await person.answer("error", "Close")
        await person.act(lambda: person.window.reveal("jobs"))
        jobs = person.window.panels["jobs"].jobs.model()
        assert words in [jobs.index(0, column).data() for column in range(jobs.columnCount())]
        status = person.window.status
        assert status.message.property("role") == "error" and status.retry_button.isVisible()
        request = DEVICES.request(None, DevicesOptions())
        await person.act(lambda: person.context.tasks.start(person.context.runner.run(request, lambda: None)))
        await person.until(lambda: person.context.jobs.views[-1].status == "done")
        assert status.message.text() == "Ready" and status.message.property("role") == ""

    live(story)


async def _failing(fail: Callable[[], None]) -> None:
    fail()


def test_the_tour_offers_to_fill_empty_panels(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        full, requested = sessions.full(1), list[str]()
        await person.open(replace(full, sensitivities={}, evaluations=()))
        await person.act(lambda: person.window.trigger("tour"))
        await person.until(lambda: person.dialog("tour"), 5)
        tour = person.dialog("tour")
        person.context.trigger = requested.append
        assert tour.fill.isVisible() and tour.fill.isDefault(), "a tour of empty panels shows little"
        await person.click(tour.fill)
        await person.until(lambda: requested, 5)
        assert requested == ["run_all"] and person.dialog("tour") is None
        await person.act(lambda: person.context.workspace.update(lambda now: replace(full, model=now.model)))
        await person.until(lambda: person.dialog("tour"), 5)
        assert not person.dialog("tour").fill.isVisible(), "there is something in them already"
        await person.act(person.dialog("tour").reject)

    live(story)


@pytest.mark.parametrize("ends", [True, False])
def test_the_tour_of_the_first_run_begins_on_the_results_of_the_demo(live: Callable[..., None], ends: bool) -> None:
    """It began on six empty panels, while nothing was calculated yet."""
    full = sessions.full(1)
    demo = replace(full.model, source=replace(full.model.source, path="demo:x"))

    async def story(person: Person) -> None:
        requested = list[str]()
        person.context.trigger = requested.append
        first = FirstRun(person.context, person.window)
        await person.open(replace(full, model=demo, sensitivities={}, evaluations=()))
        await person.until(lambda: requested, 5)
        assert requested == ["run_all"] and person.dialog("tour") is None
        # a calibration opens the model again
        calibrated = replace(full, model=replace(demo), sensitivities={}, evaluations=())
        await person.act(lambda: person.context.workspace.update(lambda now: calibrated))
        if ends:
            await person.act(lambda: person.context.workspace.update(lambda now: replace(full, model=now.model)))
            await person.until(lambda: person.dialog("tour"), 5)
            await person.act(person.dialog("tour").reject)
        else:
            await person.settle(2 * SECONDS_BETWEEN_JOBS)
            assert requested == ["run_all"], "what was cancelled began again"
            assert person.dialog("tour") is None and not settings.tour_ended(), "it was cancelled"
            assert "The tour has not begun" in person.window.status.message.text()
        first.end()

    live(story)


def test_where_a_text_goes_beside_its_panel() -> None:
    room = QRect(0, 0, 1280, 720)
    for area, place in (
        (QRect(0, 60, 400, 300), QPoint(412 - 1, 72)),
        (QRect(600, 60, 680, 300), QPoint(600 - 12 - 440, 72)),
        (QRect(100, 60, 1100, 300), QPoint(100, 60 + 300 - 1 + 12)),
        (QRect(100, 400, 1100, 300), QPoint(100, 400 - 12 - 150)),
    ):
        found = beside(area, 440, 150, room)
        assert found == place and not area.intersects(QRect(found, QSize(440, 150)))
    crowded = beside(QRect(20, 20, 1240, 600), 440, 150, room)  # it fits nowhere: it covers as little as it can
    assert room.contains(QRect(crowded, QSize(440, 150))) and crowded.y() == 720 - 1 - 150


def test_the_tour_ends_with_the_model_that_it_shows(live: Callable[..., None]) -> None:
    """Its frame lay over the start page."""

    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.context.trigger("tour"))
        await person.until(lambda: person.dialog("tour"), 5)
        mark = person.window.findChild(QFrame, "tour-mark")
        assert mark.isVisible()
        await person.act(lambda: person.context.trigger("close"))
        await person.until(lambda: person.state.session is None, 5)
        assert person.dialog("tour") is None and person.window.findChild(QFrame, "tour-mark") is None
        assert person.window.status.message.text() == "Closed tiny-llama"

    live(story)
