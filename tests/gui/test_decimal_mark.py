"""A decimal comma, where the user wants one: in all that is shown and typed, never in what is copied or written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from tests.gui import sessions
from tests.gui.conftest import Person
from tests.gui.shown_texts import texts
from workbench.gui.panels import PANELS
from workbench.gui.report import report
from workbench.gui.shell import settings
from workbench.insight import quantities

NAMES = re.compile(r"\S*[A-Za-z_]\.\S*|\S+\.[A-Za-z]\S*|@\S+")
"""Text with a point that is not a number: names of layers and files."""

POINT = re.compile(r"(?<![\w.])\d+\.(\d{1,2}|\d{4,})(?![\d.])")
"""A number with a decimal point; three digits may as well be thousands."""

SPOKEN = re.compile(r"kind:|worst|re:|FP|TFLOP|INT|NVIDIA|Cortex|Apple|Orin|GHz|^\d\.\d+ bits\b")
"""Texts with figures that are names: of chips, of plans, and what the filter takes."""


TYPED = ("QLineEdit", "PathField")


@pytest.fixture
def comma() -> Iterator[None]:
    """Numbers with a decimal comma."""
    quantities.use_comma(True)
    yield
    quantities.use_comma(False)


@pytest.mark.parametrize(("text", "shown"), [
    (lambda: quantities.number(0.0123), "0,0123"), (lambda: quantities.number(-12345.6), "−12.346"),
    (lambda: quantities.number(4.1e-4), "4,1e-4"), (lambda: quantities.cell(0.0321), "3,2e-2"),
    (lambda: quantities.data_size(12345), "12,3 kB"), (lambda: quantities.count(1200000), "1,20 M"),
    (lambda: quantities.share(0.1234), "12,34 %"), (lambda: quantities.microseconds(1500), "1,50 ms"),
    (lambda: quantities.duration(1.25), "1,2 s"), (lambda: quantities.reduction(34, 10), "3,40× smaller"),
    (lambda: quantities.plural(1024, "layer"), "1.024 layers"), (lambda: quantities.whole(10000), "10.000"),
    (lambda: quantities.fixed(4.5, 3), "4,500"), (lambda: quantities.short(0.25), "0,25"),
])  # fmt: skip
def test_every_kind_of_number(comma: None, text: Callable[[], str], shown: str) -> None:
    assert text() == shown
    with quantities.with_points():
        points = text()
    assert points == shown.translate(quantities.COMMA) and text() == shown


def test_a_window_with_commas(comma: None, live: Callable[..., None], tmp_path: Path) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.layer("model.layers.0.self_attn.k_proj")
        shown = dict[str, str]()
        for spec in PANELS:
            await person.act(lambda name=spec.id: person.window.reveal(name))
            result = texts(person.window.panels[spec.id])
            shown |= {text: f"{spec.id}: {where}" for where, text in result if not where.startswith(TYPED)}
        shown |= {text: f"status: {where}" for where, text in texts(person.window.status)}
        numbers = {text: where for text, where in shown.items() if not SPOKEN.search(text)}
        points = {text: where for text, where in numbers.items() if POINT.search(NAMES.sub("", text))}
        assert not points, points
        assert sum(bool(re.search(r"\d,\d", text)) for text in shown) > 60
        axis = person.window.panels["distributions"].plots["weight"].item.getAxis("bottom")
        assert "0,5" in axis.tickStrings([0.5, 1.0], 1.0, 0.5)
        person.picture("commas")
        await _plain(person, tmp_path)

    live(story, size=(1920, 1080))


async def _plain(person: Person, folder: Path) -> None:
    """What leaves the window has points."""
    budget = person.window.panels["plan"].budget
    for text in ("1.004,5", "1.004", "1,004,5"):
        await person.type(budget, text)
        assert "can be read in two ways: use a decimal comma" in budget.problem
    for text in ("4.5", "4,5"):
        await person.type(budget, text)
        await person.press(Qt.Key.Key_Return, budget)
        assert person.state.budget.amount == 4.5 and not budget.problem and budget.text() == "4,5"
        budget.setValue(3.25)
        assert budget.text() == "3,25" and budget.number == 3.25
    clipboard = QApplication.clipboard()
    tile = person.window.panels["plan"].dashboard.tiles[1]
    await person.act(tile.copy)
    assert re.match(r"Bits per weight: \d\.\d{3}\n", clipboard.text()) and "," in tile.value.text()
    await person.act(person.window.panels["layers"].copy)
    assert re.search(r"\t\d+\.\d+", clipboard.text()) and not re.search(r"\d,\d", clipboard.text())
    out = folder / "report.html"
    report.write(person.state, out)
    message = re.sub("<[^>]*>", " ", out.read_text())
    assert re.search(r"\d\.\d{3}", message) and not re.search(r"\b\d,\d{1,2}\b", message)


def test_the_choice_is_kept_for_the_next_start(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        assert settings.decimal_mark() == "."
        await person.act(lambda: person.window.trigger("decimal_mark"))
        await person.answer("question", "comma")
        await person.until(lambda: settings.decimal_mark() == ",", 5)
        assert quantities.fixed(4.5, 1) == "4.5", "now nothing changes"

    live(story)
