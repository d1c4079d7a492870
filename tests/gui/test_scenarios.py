"""What a first user does with mouse and keyboard, from the start page to a file.

With pictures, on an X server:
``WORKBENCH_SCREENSHOTS=FOLDER QT_QPA_PLATFORM=xcb xvfb-run python -m pytest -m slow tests/gui/test_scenarios.py``
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit

from tests.gui import sessions
from tests.gui.conftest import Person, empty_text
from tests.gui.test_panels import _drag
from workbench.engine.engine import Engine
from workbench.gui.panels.distributions.range_editor import range_of
from workbench.gui.shell.forecast import ForecastLine
from workbench.gui.shell.stepper import StageStatus
from workbench.planning.plan import KEEP
from workbench.planning.totals import layer_bits
from workbench.session.session import Session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

HD = (1920, 1080)
BITS = 4.5


def test_make_this_model_4_5_bits_and_export_it_for_llama_cpp(live: Callable[..., None], tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")

    async def story(person: Person) -> None:
        window = person.window
        person.picture("start")
        await person.click(window.start_page.role_buttons.button(0))
        await person.click(window.start_page.demo_button)
        await person.until(lambda: window.stepper.marks[0].status is StageStatus.DONE)
        person.picture("opened")
        await person.press(Qt.Key.Key_F5, window, control=True)
        await person.until(lambda: window.stepper.marks[4].status is StageStatus.DONE, 600)
        person.picture("planned")
        totals = person.state.totals
        assert 0.9 * BITS < totals.bits_per_weight <= BITS
        measured = person.state.session.evaluations[-1].metrics["kl"].value
        assert 0.75 < totals.predicted / measured < 1.33
        await person.click(window.stepper.buttons[5])
        forms = window.panels["deploy"].forms
        assert forms.chosen.form.kind == "gguf" and forms.export.isEnabled(), "the role's form is selected"
        await person.type(forms.place, str(tmp_path / "mine.gguf"))
        await person.click(forms.export)
        await person.until(lambda: (tmp_path / "mine.gguf").exists(), 100)
        await person.until(lambda: window.stepper.marks[5].status is StageStatus.DONE)
        person.picture("exported")
        tensors = gguf.GGUFReader(tmp_path / "mine.gguf").tensors
        matrices = sum(int(tensor.n_bytes) for tensor in tensors if len(tensor.shape) > 1)  # norms are float32 in GGUF
        schemes = {name: each.weights for name, each in person.state.assignments.items()}
        stored = person.state.session.model.stored
        assert 8 * matrices == sum(layer_bits(layer, schemes[layer.name]) for layer in stored)
        quantized = {each.weights for each in person.state.assignments.values()} - {KEEP}
        assert {tensor.tensor_type.name.lower() for tensor in tensors} >= quantized

    live(story, size=HD, seconds=900)


def test_two_sessions_are_compared_and_reported(live: Callable[..., None], tmp_path: Path) -> None:
    async def story(person: Person) -> None:
        window = person.window
        await person.act(lambda: window.document.open_path("demo:digits-classifier"))
        await person.until(lambda: window.stepper.marks[0].status is StageStatus.DONE)
        await person.press(Qt.Key.Key_F5, window, control=True)
        await person.until(lambda: window.stepper.marks[4].status is StageStatus.DONE, 200)
        first = person.state.session
        first.save(tmp_path / "first.qwb")
        names = [layer.name for layer in first.model.stored]
        await person.act(lambda: person.window.context.workspace.select(names))
        await person.press(Qt.Key.Key_Minus, window, control=True)
        second = person.state.totals
        assert second.nbytes < person.state.session.evaluations[-1].nbytes
        await person.act(lambda: person.window.context.workspace.compare_with(first, tmp_path / "first.qwb"))
        await person.act(lambda: window.reveal("compare"))
        assert empty_text(window.panels["compare"]) == ""
        person.picture("compared")
        await person.press(Qt.Key.Key_Z, window, control=True)
        assert person.state.session.plan == first.plan, "one undo takes the edit back"
        from workbench.gui.report import report

        await person.act(lambda: report.write(person.state, tmp_path / "report.html"))
        text = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert "<svg" in text and first.model.name in text and "http://" not in text.replace("http://www.w3.org", "")

    live(story, size=HD)
    assert Session.load(tmp_path / "first.qwb").evaluations


def test_a_python_factory_without_weights_is_named_random(live: Callable[..., None], tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "from torch import nn\n\ndef build():\n    return nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 4))\n",
        encoding="utf-8",
    )

    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path(str(tmp_path / "net.py")))
        await person.until(lambda: person.dialog("form"), 60)
        dialog = person.dialog("form")
        assert any(field.text() == "" for field in dialog.findChildren(QLineEdit)), "a field for a file of weights"
        await person.act(dialog.accept)
        await person.answer("question", "trust")
        await person.until(lambda: person.state.session is not None and person.state.session.model.cannot_run is None)
        assert any("random" in f"{each.title} {each.text}".lower() for each in person.window.context.messages.entries)
        person.picture("opened")

    live(story, size=HD)


def test_cells_are_clicked_painted_and_taken_back(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        window = person.window
        await person.open(sessions.full(2))
        heatmap, before = window.panels["sensitivity"].heatmap, person.state.session.plan
        scheme = heatmap.cells.columns[0]
        names = heatmap.cells.rows[2:6]
        await person.click(heatmap.viewport(), heatmap.cell_rect(2, 0).center())
        await person.settle(0.1)
        assert person.state.assignments[names[0]].weights == scheme and person.state.selection == (names[0],)
        person.picture("clicked")
        spots = [heatmap.cell_rect(row, 0).center() for row in range(2, 6)]
        await person.act(lambda: QTest.mousePress(heatmap.viewport(), Qt.MouseButton.LeftButton, pos=spots[0]))
        for spot in spots[1:]:
            await person.act(lambda spot=spot: _drag(heatmap.viewport(), spot))
        await person.act(lambda: QTest.mouseRelease(heatmap.viewport(), Qt.MouseButton.LeftButton, pos=spots[-1]))
        assert {person.state.assignments[name].weights for name in names} == {scheme}
        person.picture("painted")
        await person.act(heatmap.setFocus)
        await person.press(Qt.Key.Key_Right, heatmap)
        await person.press(Qt.Key.Key_Return, heatmap)
        assert person.state.assignments[heatmap.cells.rows[heatmap.cursor_cell[0]]].weights == heatmap.cells.columns[1]
        while person.state.undo_name:
            await person.press(Qt.Key.Key_Z, window, control=True)
        assert person.state.session.plan == before
        person.picture("taken-back")

    live(story, size=HD)


def test_a_range_is_dragged_typed_and_chosen(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        window = person.window
        await person.act(lambda: window.document.open_path("demo:digits-classifier"))
        await person.until(lambda: window.stepper.marks[0].status is StageStatus.DONE)
        await person.click(window.stepper.buttons[1])
        await person.until(lambda: person.dialog("form"), 10)
        await person.click(person.dialog("form").start_button)
        await person.until(lambda: person.state.session.calibration is not None)
        name = person.state.session.model.stored[1].name
        await person.layer(name)
        panel = window.panels["distributions"]
        plot, line = panel.plots["input"], panel.line
        person.picture("observed")
        first = range_of(person.state.session, name, "input")
        view = plot.item.getViewBox()
        start = plot.mapFromScene(view.mapViewToScene(QPointF(first.high, view.viewRect().center().y())))
        await person.act(lambda: QTest.mousePress(plot.viewport(), Qt.MouseButton.LeftButton, pos=start))
        for step in range(1, 9):
            await person.act(lambda step=step: _drag(plot.viewport(), start - QPoint(6 * step, 0)))
        end = start - QPoint(48, 0)
        await person.act(lambda: QTest.mouseRelease(plot.viewport(), Qt.MouseButton.LeftButton, pos=end))
        dragged = range_of(person.state.session, name, "input")
        assert dragged.method == "manual" and dragged.high < first.high and dragged.low == first.low
        person.picture("dragged")
        await person.type(line.high, "1.5")
        await person.press(Qt.Key.Key_Return, line.high)
        assert range_of(person.state.session, name, "input").high == pytest.approx(1.5, rel=1e-4)
        await person.choose(line.method, line.method.findData("mse"))
        await person.act(lambda: line.method.activated.emit(line.method.currentIndex()))
        assert range_of(person.state.session, name, "input").method == "mse"
        person.picture("by-method")
        while person.state.undo_name:
            await person.press(Qt.Key.Key_Z, window, control=True)
        assert range_of(person.state.session, name, "input") == first

    live(story, size=HD)


def test_a_killed_job_is_done_again_and_edits_are_saved(live: Callable[..., None], tmp_path: Path) -> None:
    engine = Engine()

    async def story(person: Person) -> None:
        window = person.window
        await person.act(lambda: window.document.open_path("demo:digits-classifier"))
        await person.until(lambda: window.stepper.marks[0].status is StageStatus.DONE)
        await person.press(Qt.Key.Key_F5, window)
        await person.until(lambda: person.dialog("form"), 10)
        line = person.dialog("form").findChild(ForecastLine)
        await person.until(lambda: "Estimating" not in line.text(), 60)
        os.kill(engine.pid, signal.SIGSTOP)  # it cannot end before it is killed
        await person.click(person.dialog("form").start_button)
        await person.until(lambda: person.context.jobs.views[-1].status == "running", 10)
        person.picture("running")
        os.kill(engine.pid, signal.SIGKILL)
        await person.until(window.status.retry_button.isVisible, 10)
        person.picture("killed")
        assert person.dialog("error") is None and person.state.session is not None
        await person.until(lambda: engine.alive, 30)
        await person.click(window.status.retry_button)
        await person.until(lambda: person.state.session.calibration is not None)
        names = [layer.name for layer in person.state.session.model.stored]
        await person.act(lambda: person.context.workspace.select(names[:2]))
        box = window.panels["plan"].weights
        await person.choose(box, box.findData("int8-channel"))
        await person.act(lambda: box.activated.emit(box.currentIndex()))
        assert {person.state.assignments[name].weights for name in names[:2]} == {"int8-channel"}
        person.picture("edited")
        file = tmp_path / "kept.qwb"
        await person.act(lambda: person.state.session.save(file))
        back = Session.load(file)
        assert back.plan == person.state.session.plan and back.calibration is not None

    live(story, engine=engine, size=HD)
