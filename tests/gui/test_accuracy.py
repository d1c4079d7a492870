"""Accuracy: two evaluations are compared sample by sample, in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyqtgraph as pg
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox

from tests.gui import sessions
from tests.gui.conftest import Person, empty_text
from workbench.gui.plots.comparison import Bar, Comparison
from workbench.gui.plots.plot import _ticks, log_ticks
from workbench.gui.plots.timing import RooflinePlot
from workbench.gui.shell import theme
from workbench.insight.roofline import Point
from workbench.measurement.evaluation import Changed, Evaluation
from workbench.session.session import Session


def _paired() -> Session:
    """Two evaluations whose KL differ by 0.1 in every sample, and whose agreement differs by noise only."""
    rng = np.random.default_rng(0)
    base, noise = rng.normal(1.0, 0.5, 128), rng.normal(0.0, 0.3, 128)
    first, second = (sessions.evaluation(bits, 0.1) for bits in (3.5, 5.5))
    session = sessions.full(1)
    runs = (_with(second, kl=base, top1_agreement=base), _with(first, kl=base + 0.1, top1_agreement=base + noise))
    return replace(session, evaluations=runs)


def _with(run: Evaluation, **samples: np.ndarray) -> Evaluation:
    metrics = {name: replace(run.metrics[name], per_sample=values) for name, values in samples.items()}
    return replace(run, metrics=metrics)


def test_two_plans_are_compared_in_words(live: Callable[..., None]) -> None:
    session = _paired()

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.window.reveal("accuracy"))
        line = person.window.panels["accuracy"].pair
        assert line.isVisible() and line.first.currentText().startswith("3.5 bits")
        await person.press(Qt.Key.Key_Space, line.button)
        await person.until(lambda: line.words.text())
        kl, agreement = line.words.text().splitlines()
        assert kl.startswith("kl: +0.1 nats") and kl.endswith("this difference is resolved with 128 samples")
        assert "is not resolved with 128 samples" in agreement
        person.picture("compared")
        await person.press(Qt.Key.Key_Up, line.second)
        assert not line.words.text(), "what was said belongs to other plans"
        await person.click(line.button)
        assert line.words.text() == "Choose two different evaluations."

    live(story)


def test_the_first_evaluation_brings_the_metrics_to_the_front(live: Callable[..., None]) -> None:
    session = sessions.full(1)

    async def story(person: Person) -> None:
        panel = person.window.panels["accuracy"]
        await person.open(replace(session, evaluations=()))
        await person.act(lambda: person.window.reveal("accuracy"))
        assert empty_text(panel) and not panel.tabs.isTabEnabled(0)
        await person.act(lambda: person.context.workspace.update(lambda now: session))
        assert panel.tabs.currentIndex() == 0 and panel.tabs.isTabEnabled(0) and panel.table.isVisible()

    live(story)


def test_bars_stand_in_the_order_of_their_bits(live: Callable[..., None]) -> None:
    runs = tuple(sessions.evaluation(bits, 0.1) for bits in (5.5, 3.5, 4.5))

    async def story(person: Person) -> None:
        await person.open(replace(sessions.full(1), evaluations=runs))
        await person.act(lambda: person.window.reveal("accuracy"))
        plot = person.window.panels["accuracy"].findChildren(Comparison)[0]
        ((ticks,),) = [plot.item.getAxis("bottom")._tickLevels]
        assert [text for _, text in ticks] == ["FP", "3.50", "4.50", "5.50"]

    live(story)


def test_no_loss_stands_on_an_axis_that_begins_at_zero(qapp: object) -> None:
    plot = Comparison("KL", theme.LIGHT)
    plot.show_bars("KL", "nats", 0.0, [Bar(name="4.50", value=0.0, low=0.0, high=0.0, predicted=0.0)])
    low, high = plot.item.viewRange()[1]
    assert low == 0 and high > 0
    plot.deleteLater()


def test_other_samples_are_refused(live: Callable[..., None]) -> None:
    session = _paired()
    runs = (session.evaluations[0], replace(session.evaluations[1], data_hash="sha256:other"))

    async def story(person: Person) -> None:
        await person.open(replace(session, evaluations=runs))
        await person.act(lambda: person.window.reveal("accuracy"))
        line = person.window.panels["accuracy"].pair
        await person.click(line.button)
        await person.until(lambda: person.context.messages.entries)
        assert "evaluate both on the same data" in person.context.messages.entries[-1].text
        for box in person.window.findChildren(QMessageBox):
            await person.act(box.close)

    live(story)


def test_what_changed_most_is_listed(live: Callable[..., None]) -> None:
    session = _paired()
    changed = tuple(
        Changed(sample=n, position=n - 1, kl=0.1 * n, flipped=n == 2, context=f"line\n{'word ' * 40}end {n}",
                baseline=f"a{n}", quantized=f"b{n}", actual="")
        for n in range(4)
    )  # fmt: skip
    session = replace(session, evaluations=(session.evaluations[0], replace(session.evaluations[1], changed=changed)))

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.window.reveal("accuracy"))
        panel = person.window.panels["accuracy"]
        await person.tab(panel.tabs, 1)
        view = panel.changed
        assert [item.kl for item in view.table.records.records] == sorted((item.kl for item in changed), reverse=True)
        assert view.figure.text() == "the 4 most changed, 1 flip among them"
        texts = [column.shown(changed[0]) for column in view.table.records.columns]
        assert texts[6] == "" and texts[7].startswith("…") and texts[7].endswith("end 0") and "\n" not in texts[7]
        await person.press(Qt.Key.Key_Space, view.flips)
        assert [item.sample for item in view.table.records.records] == [2]
        person.picture("flips")
        await person.press(Qt.Key.Key_Down, view.run)
        assert not view.table.records.records and "evaluate again" in view.figure.text()

    live(story)


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (56.0, 95.0, ["60", "70", "80", "90"]),
        (1.01e-5, 1.2e-5, ["1.05e-5", "1.1e-5", "1.15e-5", "1.2e-5"]),
        (2.0, 100.0, ["2", "5", "10", "20", "50", "100"]),
        (1.0, 1e4, ["1", "10", "100", "1,000", "10,000"]),
    ],
)
def test_a_logarithmic_axis_has_numbers_however_far_it_is_zoomed_in(low: float, high: float, texts: list[str]) -> None:
    ticks = log_ticks(math.log10(low), math.log10(high))
    assert [text for _, text in ticks] == texts
    values = [10**at for at, _ in ticks]
    assert values == pytest.approx([float(text.replace(",", "")) for text in texts])
    assert log_ticks(1.0, 1.0), "not even a range of no width is refused"


CORNERS = {(0.5, 90.0): (8, 6), (8.0, 90.0): (-8, 6), (0.5, 1.0): (8, -6), (8.0, 1.0): (-8, -6)}
"""Points in the corners of a roofline, and the offset of a legend there."""


@pytest.mark.parametrize("free", CORNERS)
def test_the_legend_goes_where_it_hides_no_point(qapp: object, free: tuple[float, float]) -> None:
    plot = RooflinePlot(theme.LIGHT)
    plot.resize(520, 300)
    plot.grab()
    others = [Point(text="", intensity=x, speed=y, quantized=x > 1) for x, y in CORNERS if (x, y) != free]
    plot.show_points(others, None)
    assert plot.item.legend.opts["offset"] == CORNERS[free]
    plot.close()


def test_an_axis_writes_all_its_numbers_alike(qapp: object) -> None:
    axis = pg.AxisItem("left")
    for end, levels, texts in (
        (1.2e-4, ([0.0, 1e-4], [5e-5]), ["0", "1e-4", "5e-5"]),
        (1.2e-3, ([0.0, 1e-3], [2.5e-4, 7.5e-4]), ["0", "1e-3", "2.5e-4", "7.5e-4"]),
        (0.3, ([0.0, 0.1, 0.2],), ["0", "0.1", "0.2"]),
    ):
        axis.setRange(0.0, end)
        assert [text for values in levels for text in _ticks(axis, values, 1.0, values[-1] - values[0] or end)] == texts
