"""The whole job with mouse and keyboard, on the bundled models: open to export, and what reopening keeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit

from tests.gui.conftest import Person, empty_text
from workbench.engine.engine import Engine

SAMPLES = "6"


async def _start(person: Person, samples: bool = True) -> None:
    """Fill in the open form and start with Enter."""
    await person.until(lambda: person.dialog("form"), 10)
    dialog = person.dialog("form")
    if samples:
        await person.type(dialog.findChild(QLineEdit, "qt_spinbox_lineedit"), SAMPLES)
    await person.click(dialog.start_button)


async def _open(person: Person, model: str) -> None:
    await person.act(lambda: person.window.document.open_path(model))
    await person.until(lambda: person.state.session is not None and person.state.session.model.cannot_run is None)
    assert model.removeprefix("demo:") in person.window.windowTitle()
    person.picture("opened")


async def _calibrate(person: Person) -> None:
    await person.press(Qt.Key.Key_F5)
    await _start(person)
    await person.until(lambda: person.state.session.calibration is not None)
    await person.until(lambda: person.window.panels["distributions"].plots["input"].region is not None)
    person.picture("calibrated")


async def _score(person: Person) -> None:
    await person.press(Qt.Key.Key_F6)
    await _start(person)
    await person.until(lambda: "predicted_kl" in person.state.session.sensitivities)
    heatmap, layers = person.window.panels["sensitivity"].heatmap, len(person.state.session.model.stored)
    await person.until(lambda: heatmap.cells is not None and heatmap.cells.score.shape[0] == layers)
    person.picture("scored")


async def _edit(person: Person) -> None:
    heatmap = person.window.panels["sensitivity"].heatmap
    await person.click(heatmap.viewport(), heatmap.cell_rect(1, 2).center())
    layer, scheme = heatmap.cells.rows[1], heatmap.cells.columns[2]
    assert person.state.assignments[layer].weights == scheme
    assert person.state.undo_name == f"Set {layer} to {scheme}"
    assert scheme in person.window.actions_by_id["undo"].text()
    await person.until(lambda: person.state.selection == (layer,), 5)
    person.picture("assigned")
    await person.press(Qt.Key.Key_Z, control=True)
    assert person.state.assignments[layer].weights == "keep"
    await person.press(Qt.Key.Key_Z, control=True, shift=True)
    assert person.state.assignments[layer].weights == scheme


async def _search(person: Person) -> None:
    plan = person.window.panels["plan"]
    await person.type(plan.budget.lineEdit(), "4.5")
    await person.click(plan.search_button)
    await person.until(lambda: person.state.undo_name.startswith("Search"))
    assert person.state.totals.bits_per_weight <= 4.5
    bits = f"{person.state.totals.bits_per_weight:.3f}"
    await person.until(lambda: bits in person.window.status.bits_label.text())
    person.picture("searched")


async def _evaluate(person: Person) -> None:
    await person.press(Qt.Key.Key_F8)
    await _start(person)
    await person.until(lambda: person.state.session.evaluations)
    accuracy, metrics = person.window.panels["accuracy"], person.state.session.evaluations[0].metrics
    await person.until(lambda: accuracy.isVisible() and accuracy.table.records.rowCount() == len(metrics))
    person.picture("evaluated")


async def _save(person: Person, path: Path) -> None:
    await person.press(Qt.Key.Key_S, control=True)
    await person.until(lambda: person.dialog("path"), 10)
    dialog: Any = person.dialog("path")
    await person.type(dialog.findChild(QLineEdit, "fileNameEdit"), str(path))
    await person.press(Qt.Key.Key_Return, dialog.findChild(QLineEdit, "fileNameEdit"))
    await person.until(lambda: path.exists() and not person.state.dirty)
    assert path.name in person.window.windowTitle()
    assert not person.window.isWindowModified()


async def _reopen(person: Person, path: Path) -> None:
    before = person.state.session
    await person.press(Qt.Key.Key_W, control=True)
    await person.until(lambda: person.state.session is None)
    assert person.window.start_page.isVisible()
    person.picture("closed")
    await person.act(lambda: person.window.document.open_path(str(path)))
    await person.until(lambda: person.state.session is not None)
    after, panels = person.state.session, person.window.panels
    assert after.plan == before.plan
    assert after.active_ranges == before.active_ranges
    assert panels["sensitivity"].isHidden() or panels["sensitivity"].heatmap.cells is not None
    for name in ("sensitivity", "pareto", "accuracy", "distributions"):
        await person.act(lambda name=name: person.window.reveal(name))
        assert empty_text(panels[name]) == ""
    assert panels["pareto"].front is not None
    person.picture("reopened")


async def _export(person: Person, folder: Path) -> None:
    await person.press(Qt.Key.Key_E, control=True, shift=True)
    await person.until(lambda: person.dialog("form"), 10)
    dialog: Any = person.dialog("form")
    out = folder / "plan.json"
    await person.type(
        next(line for line in dialog.findChildren(QLineEdit) if line.accessibleName() == "Path"), str(out)
    )
    await person.click(dialog.start_button)
    await person.until(out.exists)
    person.picture("exported")


@pytest.mark.parametrize("model", ["demo:digits-classifier", "demo:language-model"])
def test_the_whole_thread(live: Callable[..., None], tmp_path: Path, model: str) -> None:
    async def story(person: Person) -> None:
        person.picture("started")
        await _open(person, model)
        await _calibrate(person)
        await _score(person)
        await _edit(person)
        await _search(person)
        await _evaluate(person)
        await _save(person, tmp_path / "session.qwb")
        await _reopen(person, tmp_path / "session.qwb")
        await _export(person, tmp_path)
        assert not [message for message in person.context.messages.entries if message.level == "error"]

    live(story, engine=Engine() if model == "demo:language-model" else None)
