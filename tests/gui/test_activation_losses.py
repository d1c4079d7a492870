"""What rounded inputs cost: scored from the dialog, counted in the totals, the front and the named plans."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox

from tests.gui.conftest import Person
from workbench.gui.context import edits
from workbench.models.summary import quantizable
from workbench.planning.totals import quantized_inputs
from workbench.steps.calibrate import CALIBRATE, CalibrateOptions
from workbench.steps.score import SCORE, ScoreOptions

DATA = "demo:digits-classifier"


async def _scored(person: Person) -> None:
    await person.act(lambda: person.window.document.open_path(DATA))
    await person.until(lambda: person.state.session is not None and person.state.session.model.cannot_run is None)
    await person.act(
        lambda: person.context.runner.submit(
            CALIBRATE.request(person.state.session, CalibrateOptions(data=DATA, samples=32, batch_size=16))
        )
    )
    await person.until(lambda: person.state.session.calibration is not None)
    schemes = ("int4-channel", "int8-channel")
    request = SCORE.request(person.state.session, ScoreOptions(schemes=schemes))
    await person.act(lambda: person.context.runner.submit(request))
    await person.until(lambda: "predicted_kl" in person.state.session.sensitivities)


def test_losses_of_inputs_are_scored_and_counted_everywhere(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await _scored(person)
        names = [layer.name for layer in quantizable(person.state.session.model.layers)]
        bar = person.window.statusBar()
        await person.act(lambda: edits.assign(person.context.workspace, names, weights="int8-channel"))
        assert "It includes weights." in bar.loss_label.toolTip()
        await person.act(lambda: edits.assign(person.context.workspace, names, inputs="int8-token"))
        assert "have no scores yet" in bar.loss_label.toolTip()
        assert bar.loss_label.text().endswith(" (weights only)")
        await person.act(lambda: person.window.reveal("pareto"))
        plot = person.window.panels["pareto"].plot
        assert "current plan, weights only" in {label.text for _, label in plot.item.legend.items}
        tile = person.window.panels["plan"].dashboard.tiles[2]
        assert tile.detail.text() == "of weights alone" and "rounded inputs of" in tile.toolTip()
        weights = person.state.totals.predicted
        await person.press(Qt.Key.Key_F6)
        await person.until(lambda: person.dialog("form"), 10)
        dialog = person.dialog("form")
        box = dialog.findChild(QComboBox, "metric")
        await person.choose(box, box.findData("predicted_kl_inputs"))
        await person.click(dialog.start_button)
        await person.until(lambda: "predicted_kl_inputs" in person.state.session.sensitivities)
        session, state = person.state.session, person.state
        assert state.metric == "predicted_kl", "the table that is shown is that of the weights"
        table = session.sensitivities["predicted_kl_inputs"]
        cost = sum(table.of(*cell) for cell in quantized_inputs(session.model, state.assignments).items())
        assert cost > 0 and state.totals.predicted == pytest.approx(weights + cost, rel=1e-12)
        assert "weights and the rounded inputs" in bar.loss_label.toolTip()
        assert "weights only" not in bar.loss_label.text()
        assert tile.detail.text() != "of weights alone" and "of weights alone" not in tile.toolTip().lower()
        await person.act(lambda: person.window.reveal("pareto"))
        assert "current plan" in {label.text for _, label in plot.item.legend.items}
        front = person.window.panels["pareto"].front
        assert front.loss[-1] == pytest.approx(cost, rel=1e-9), "floating-point weights leave what the inputs cost"
        assert dict((name, loss) for name, _, loss in person.window.panels["pareto"]._uniform)[
            "int8-channel"
        ] == pytest.approx(state.totals.predicted, rel=1e-12)
        person.picture("counted")

    live(story)
