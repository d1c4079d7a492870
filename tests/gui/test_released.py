"""A closed window is let go: nothing holds it, its context or its document, however the last job ended."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.engine.engine import Engine
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.steps.calibrate import CALIBRATE, CalibrateOptions
from workbench.steps.files.open_model import OPEN, OpenModelOptions

MODEL = "demo:digits-classifier"


@pytest.mark.parametrize("ended", ["no job", "failed", "cancelled", "running", "done", "done in the engine process"])
def test_nothing_of_a_closed_window_is_left(ended: str, live: Callable[..., None], qapp: QApplication) -> None:
    references: dict[str, weakref.ref[Any]] = {}

    async def story(person: Person) -> None:
        context = person.context
        references.update(
            window=weakref.ref(person.window), context=weakref.ref(context), jobs=weakref.ref(context.jobs),
            workspace=weakref.ref(context.workspace),
        )  # fmt: skip
        context.messages.show_error = lambda *told: None
        if ended == "no job":
            return
        if ended == "failed":
            request = OPEN.request(None, OpenModelOptions(path="/no/such/model"))
            assert await context.runner.run(request, lambda: None) is None
            return
        await person.act(lambda: person.window.document.open_path(MODEL))
        await person.until(lambda: person.state.session is not None)
        if ended.startswith("done"):
            await _calibrated_with_the_form(person)
            return
        context.runner.submit(CALIBRATE.request(person.state.session, CalibrateOptions(data=MODEL)))
        await person.until(lambda: context.jobs.views[-1].fraction > 0.1)
        if ended == "cancelled":
            context.jobs.cancel(context.jobs.views[-1].id)
            await person.settle(0.1)

    live(story, engine=Engine() if "process" in ended else None)
    for _ in range(3):
        qapp.processEvents()
        qapp.sendPostedEvents(None, 52)  # QEvent.DeferredDelete
        gc.collect()
    held = [name for name, item in references.items() if item() is not None]
    assert references and not held, [type(x) for name in held for x in gc.get_referrers(references[name]())]


async def _calibrated_with_the_form(person: Person) -> None:
    await person.press(Qt.Key.Key_F5, person.window)
    await person.until(lambda: person.dialog("form"), 10)
    await person.click(person.dialog("form").start_button)
    await person.until(lambda: person.state.session.calibration is not None)


def test_statistics_of_a_model_go_when_another_is_opened(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        def alive() -> int:
            gc.collect()
            return sum(type(each) is LayerStatistics for each in gc.get_objects())

        before = alive()
        for name in ("first", "second"):  # of other names: the histograms of one must not stand for the other's
            session = sessions.opened(sessions.summary(2, name=name, prefix=f"{name}.layers"))
            count = len(session.statistics)
            await person.open(session)
            del session
        await person.settle(0.3)
        assert person.window.panels["layers"].view._pixmaps, "histograms were drawn"
        assert alive() - before <= count

    live(story)
