"""Calibration data: samples are read and leafed through, and the data are judged, on the bundled models."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QListView

from tests.gui import sessions
from tests.gui.conftest import Person, empty_text
from workbench.engine.engine import Engine
from workbench.gui.plots.calibration_data import covered
from workbench.models.data.samples import Sample
from workbench.steps.browse_samples import SamplePage
from workbench.steps.calibrate import CALIBRATE, CalibrateOptions

DIGITS = "demo:digits-classifier"


async def _calibrated(person: Person, data: str, samples: int) -> None:
    await person.act(lambda: person.window.document.open_path(data))
    await person.until(lambda: person.state.session is not None)
    await person.act(
        lambda: person.context.runner.submit(
            CALIBRATE.request(person.state.session, CalibrateOptions(data=data, samples=samples, batch_size=16))
        )
    )
    await person.until(lambda: person.state.session.calibration is not None)


def test_images_are_leafed_through_and_judged(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        panel = person.window.panels["calibration_data"]
        await person.act(lambda: person.window.document.open_path(DIGITS))
        await person.until(lambda: person.state.session is not None)
        await person.act(lambda: person.window.reveal("calibration_data"))
        assert "Calibrate" in empty_text(panel)
        await _calibrated(person, DIGITS, 64)
        assert not empty_text(panel) and panel.verdict.text().startswith("Not checked yet")
        assert [panel.tabs.isTabEnabled(place) for place in range(5)] == [True, False, False, False, True]
        samples = panel.samples
        await person.click(samples.read)
        await person.until(lambda: samples.page is not None)
        assert samples.list.count() == 48 and samples.page.total == 64
        assert samples.list.viewMode() == QListView.ViewMode.IconMode
        assert not samples.before.isEnabled()
        await person.press(Qt.Key.Key_Right, samples.list)
        assert samples.text.toPlainText().startswith("sample 2, label")
        await person.click(samples.after)
        await person.until(lambda: samples.page.start == 48)
        assert samples.list.count() == 16 and not samples.after.isEnabled()
        person.picture("samples")
        await person.click(panel.judge)
        await person.until(lambda: panel.quality is not None)
        assert "samples the ranges of" in panel.verdict.text()
        assert "of its labels" in panel.coverage.text() and panel.table.records.rowCount() > 3
        for page in range(panel.tabs.count()):
            await person.tab(panel.tabs, page)
            person.picture(f"tab-{page}")
        await _calibrated_again(person)
        assert panel.quality is None and samples.page is None, "other data were judged"

    live(story)


async def _calibrated_again(person: Person) -> None:
    before = person.state.session.calibration
    request = CALIBRATE.request(person.state.session, CalibrateOptions(data=DIGITS, samples=32))
    await person.act(lambda: person.context.runner.submit(request))
    await person.until(lambda: person.state.session.calibration is not before)


def test_text_is_shown_as_text(live: Callable[..., None]) -> None:
    texts = ("first line\nsecond line", "注意 " * 100, "")
    shown = tuple(Sample(index=n, text=text, tokens=256) for n, text in enumerate(texts))
    page = SamplePage(name="text", split="evaluation", start=0, total=3, samples=shown)

    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.window.reveal("calibration_data"))
        samples = person.window.panels["calibration_data"].samples
        await person.act(lambda: samples.show_page(page))
        assert samples.list.viewMode() == QListView.ViewMode.ListMode
        assert samples.list.item(0).text() == "1: first line second line"
        assert samples.text.toPlainText() == "sample 1, 256 tokens\nfirst line\nsecond line"
        assert samples.split.currentData() == "evaluation" and not samples.after.isEnabled()
        person.picture("text")

    live(story)


def test_coverage_counts_evaluation_tokens_by_the_calibrations_order() -> None:
    share = covered(np.array([1, 5, 0, 2]), np.array([4, 1, 3, 0, 2]))
    assert np.allclose(share, [0, 0.1, 0.1, 0.5])


def test_outlier_tokens_are_listed_with_their_text(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        panel = person.window.panels["calibration_data"]
        await _calibrated(person, "demo:language-model", 16)
        await person.act(lambda: person.window.reveal("calibration_data"))
        await person.tab(panel.tabs, panel.tokens)
        await person.act(lambda: person.context.workspace.select([]))
        session = person.state.session
        table = panel.tokens.records
        assert table.rowCount() == len(session.outliers)
        layer = "model.layers.3.mlp.down_proj"
        await person.act(lambda: person.context.workspace.select([layer]))
        rows = [table.record(row) for row in range(table.rowCount())]
        assert {(row.layer, row.tap) for row in rows} == {(layer, "input"), (layer, "output")}
        result = session.outliers[layer, "input"]
        assert len(result.text) == result.value.size == 16
        first = [field.shown(rows[0]) for field in table.columns]
        assert (
            repr(result.text[0]) in first
            and f"sample {result.sample[0] + 1}, position {result.position[0] + 1}" in first
        ), "as lists of samples count"
        person.picture("tokens")

    live(story, engine=Engine())
