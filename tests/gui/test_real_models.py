"""What a user does in the window with models of real size: ``WORKBENCH_REAL_MODELS`` names a folder that holds them.

``smollm2-135m`` (a language model) and ``minilm-l6`` (a sentence encoder), as Hugging Face folders.  With pictures, on
an X server (a path each in ``WORKBENCH_REAL_MODELS`` and ``WORKBENCH_SCREENSHOTS``):
``QT_QPA_PLATFORM=xcb xvfb-run python -m pytest -m slow tests/gui/test_real_models.py``
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit

from tests.gui.conftest import Person
from workbench.gui.shell.stepper import StageStatus

FOLDER = Path(os.environ.get("WORKBENCH_REAL_MODELS", "nowhere"))
GUIDE = Path(__file__).parents[2] / "resources" / "guide" / "guide.md"
"""English prose that is always there: the data to calibrate with and, its second half, to evaluate on."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
HD = (1920, 1080)


def _model(name: str) -> Path:
    if not (FOLDER / name).is_dir():
        pytest.skip(f"WORKBENCH_REAL_MODELS names no folder with {name}")
    return FOLDER / name


async def _planned(person: Person, model: Path, role: int, data: Path) -> None:
    """Choose a role, open the model, and run all steps on the data."""
    window = person.window
    await person.click(window.start_page.role_buttons.button(role))
    await person.act(lambda: window.document.open_path(str(model)))
    await person.until(lambda: window.actions_by_id["run_all"].isEnabled(), 120)
    person.picture("opened")
    await person.press(Qt.Key.Key_F5, window, control=True)
    await person.until(lambda: person.dialog("form"), 20)
    form = person.dialog("form")
    await person.type(form.findChildren(QLineEdit)[0], str(data))
    samples = next(each for each in form.findChildren(QLineEdit) if each.objectName() == "qt_spinbox_lineedit")
    await person.type(samples, "8")
    await person.act(form.accept)
    for stage, name in ((1, "calibrated"), (2, "scored"), (3, "planned"), (4, "evaluated")):
        await person.until(lambda stage=stage: window.stepper.marks[stage].status is StageStatus.DONE, 1500)
        person.picture(name)


async def _exported(person: Person, kind: str, out: Path) -> None:
    """Export to the form that the role selects."""
    await person.click(person.window.stepper.buttons[5])
    forms = person.window.panels["deploy"].forms
    assert forms.chosen.form.kind == kind and forms.export.isEnabled()
    await person.type(forms.place, str(out))
    await person.click(forms.export)
    await person.until(lambda: person.window.stepper.marks[5].status is StageStatus.DONE, 600)
    person.picture("exported")


def test_a_language_model_of_135_million_weights_becomes_a_gguf_file(live: Callable[..., None], tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    model, out = _model("smollm2-135m"), tmp_path / "smol.gguf"
    text = tmp_path / "guide.txt"
    text.write_text(GUIDE.read_text(encoding="utf-8"), encoding="utf-8")

    async def story(person: Person) -> None:
        await _planned(person, model, 0, text)
        totals, run = person.state.totals, person.state.session.evaluations[-1]
        assert 4.4 < totals.bits_per_weight <= 4.5
        assert 0.75 < totals.predicted / run.metrics["kl"].value < 1.33
        await _exported(person, "gguf", out)

    live(story, size=HD, seconds=3000)
    size = sum(int(tensor.n_bytes) for tensor in gguf.GGUFReader(out).tensors)
    assert size < 1.02 * 134.5e6 * 4.5 / 8


def test_a_sentence_encoder_becomes_an_onnx_file_of_8_bits(live: Callable[..., None], tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    model, out = _model("minilm-l6"), tmp_path / "minilm.onnx"
    sentences = tmp_path / "sentences.txt"
    sentences.write_text(GUIDE.read_text(encoding="utf-8").replace(". ", ".\n"), encoding="utf-8")

    async def story(person: Person) -> None:
        await _planned(person, model, 2, sentences)
        assert person.state.totals.bits_per_weight <= 8.1
        await _exported(person, "onnx", out)

    live(story, size=HD, seconds=3000)
    assert any(tensor.data_type == onnx.TensorProto.INT8 for tensor in onnx.load(out).graph.initializer)
