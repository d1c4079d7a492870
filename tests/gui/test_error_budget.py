"""The error budget is measured from its panel, on the bundled classifier."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.gui.conftest import Person, empty_text
from workbench.gui.context import edits
from workbench.steps.calibrate import CALIBRATE, CalibrateOptions

MODEL = "demo:digits-classifier"


def test_the_error_budget_is_measured(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path(MODEL))
        await person.until(lambda: person.state.session is not None)
        panel = person.window.panels["error_budget"]
        await person.act(lambda: person.window.reveal("error_budget"))
        assert "Calibrate" in empty_text(panel)
        request = CALIBRATE.request(person.state.session, CalibrateOptions(data=MODEL, samples=16))
        await person.act(lambda: person.context.runner.submit(request))
        await person.until(lambda: person.state.session.calibration is not None)
        names = [layer.name for layer in person.state.session.model.layers]
        await person.act(lambda: edits.assign(person.context.workspace, names, weights="int4-g32-asym"))
        assert empty_text(panel).startswith("Measure how much") and panel.next_step.text() == "&Measure"
        await person.click(panel.next_step)
        await person.until(lambda: panel.pair is not None)
        assert np.isfinite(panel.pair.measured.decibels).all() and "dB at the output" in panel.figure.text()
        person.picture("error-budget")

    live(story)
