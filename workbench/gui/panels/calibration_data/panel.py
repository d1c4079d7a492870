"""The data behind the ranges: their samples, how much of the evaluation data they cover, whether they are enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QTabWidget, QVBoxLayout, QWidget

from workbench.gui.context.context import Context
from workbench.gui.panels.calibration_data.sample_list import SampleList
from workbench.gui.panels.calibration_data.token_outliers import FIELDS as TOKENS
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.coverage import CoveragePlot
from workbench.gui.plots.saturation import SaturationPlot
from workbench.gui.shell.theme import Colours
from workbench.gui.tables.fields import Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.insight.latest import same_objects
from workbench.insight.token_outliers import token_rows
from workbench.measurement.data_quality import CalibrationQuality
from workbench.session.workspace import State
from workbench.steps.browse_samples import BROWSE_SAMPLES, BrowseSamplesOptions
from workbench.steps.checks.quality import QUALITY, QualityOptions
from workbench.steps.step import Request

FIELDS = (
    Field("Layer", lambda row: row[0][0]),
    Field("Tensor", lambda row: row[0][1]),
    Number("Moved", lambda row: row[1] if np.isfinite(row[1]) else None, quantities.share, unit="share",
           tip="How far the last doubling of the data moved the range, of its width; at most 5 % is settled"),
    Number("Distance", lambda row: row[2], unit="σ",
           tip="Earth mover's distance of calibration to evaluation values, in standard deviations; lower is better"),
)  # fmt: skip

COVERED = (
    ("vocabulary", "of the vocabulary was seen"),
    ("tokens", "of the evaluation's tokens have an id that was seen"),
    ("classes", "of its labels"),
    ("lengths", "of its samples have a length within those seen"),
)


JUDGED = (1, 2, 3)
"""Tabs that have nothing to show before the data are judged."""


O = TypeVar("O")  # noqa: E741
R = TypeVar("R")


class CalibrationDataPanel(Panel):
    """The verdict above; below, a tab each for the samples and the plots.  Both are asked for by a button."""

    def __init__(self, context: Context, colours: Colours) -> None:
        super().__init__(context, colours)
        self.samples = SampleList()
        self.samples.wanted.connect(self._read)
        self.judge = QPushButton("&Judge the Data")
        self.judge.setToolTip("Run the model on growing parts of the calibration data, then on the evaluation data")
        self.judge.clicked.connect(self.start_judging)
        self.verdict, self.coverage = QLabel(), QLabel()
        for label in (self.verdict, self.coverage):
            label.setWordWrap(True)
            label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.verdict.setProperty("role", "figure")
        self.coverage.setProperty("role", "muted")
        self.saturation_plot, self.coverage_plot = SaturationPlot(colours), CoveragePlot(colours)
        self.table = RecordsView("Tensors by how far they are from settled", FIELDS)
        self.tokens = RecordsView("Tokens with massive values", TOKENS)
        self._tokens_of: tuple[object, ...] = ()
        self.quality: CalibrationQuality | None = None
        self._hash = ""
        self.tabs = QTabWidget()
        self._arrange()
        self.show_quality(None)
        self.setFocusProxy(self.samples.read)

    def redraw(self, old: State, new: State) -> None:
        """Say what is missing; forget what belongs to other data."""
        session = new.session
        if session is None or session.calibration is None:
            self.say_empty("Calibrate (F5) to see the data that ranges and predictions come from.")
            self._forget("")
            return
        self.say_empty("")
        self.judge.setEnabled(session.model.cannot_run is None)
        if session.calibration.content_hash != self._hash:
            self._forget(session.calibration.content_hash)
        if new.data_quality is not self.quality:
            self.show_quality(new.data_quality)
        of = (session.outliers, new.selection)
        if not same_objects(of, self._tokens_of):
            self._tokens_of = of
            self.tokens.show_records(token_rows(session, new.selection))

    def recolour(self, colours: Colours) -> None:
        """Redraw in other colours."""
        super().recolour(colours)
        for plot in (self.saturation_plot, self.coverage_plot):
            plot.recolour(colours)

    def start_judging(self) -> None:
        """Judge the data in the engine."""
        self.context.tasks.start(self._judging())

    def show_quality(self, quality: CalibrationQuality | None) -> None:
        """Show a judgement, or that there is none yet."""
        self.quality = quality
        self.saturation_plot.show_saturation(quality.saturation if quality else None)
        self.coverage_plot.show_quality(quality)
        for place in JUDGED:
            self.tabs.setTabEnabled(place, quality is not None)
            self.tabs.setTabToolTip(place, "" if quality is not None else "Judge the data first (Alt+J)")
        if quality is None:
            self.verdict.setText("Not judged yet: are the data enough, and do they stand for what the model will see?")
            self.table.show_records(())
            return
        self.verdict.setText(_capital(quality.sentence()))
        self.coverage.setText(in_words(quality))
        self.table.show_records(rows_of(quality))

    # ---------------------------------------------------------------- inside

    def _arrange(self) -> None:
        top = QHBoxLayout()
        top.addWidget(self.judge, 0, Qt.AlignmentFlag.AlignTop)
        top.addWidget(self.verdict, 1)
        covered = QWidget()
        column = QVBoxLayout(covered)
        column.setContentsMargins(0, 4, 0, 0)
        column.addWidget(self.coverage)
        column.addWidget(self.coverage_plot, 1)
        self.tabs.setDocumentMode(True)
        self.tabs.setAccessibleName("Views of the calibration data")
        for title, widget in (
            ("Samples", self.samples), ("Saturation", self.saturation_plot), ("Coverage", covered),
            ("Tensors", self.table), ("Outlier tokens", self.tokens),
        ):  # fmt: skip
            self.tabs.addTab(widget, title)
        layout = self.column()
        layout.addLayout(top)
        layout.addWidget(self.tabs, 1)

    def _forget(self, content_hash: str) -> None:
        self._hash = content_hash
        self.samples.clear()
        self.show_quality(None)

    def _read(self, split: str, start: int) -> None:
        self.context.tasks.start(self._reading(split, start))

    async def _reading(self, split: str, start: int) -> None:
        session = self.state.session
        if session is None:
            return
        request = BROWSE_SAMPLES.request(session, BrowseSamplesOptions(split=split, start=start))
        page = await self._ask(request, lambda: self._read(split, start))
        if page is not None:
            self.samples.show_page(page)

    async def _judging(self) -> None:
        session = self.state.session
        if session is None:
            return
        quality = await self._ask(QUALITY.request(session, QualityOptions()), self.start_judging)
        if quality is not None:
            self.context.workspace.show_data_quality(quality)

    async def _ask(self, request: Request[O, R], again: Callable[[], None]) -> R | None:
        """Run the request; the answer is None where the window holds other data by then."""
        answer = await self.context.runner.run(request.reduced(), again)
        now, before = self.state.session, None if request.session is None else request.session.calibration
        if before is None or now is None or now.calibration is None:
            return None
        return answer if now.calibration.content_hash == before.content_hash else None


def rows_of(quality: CalibrationQuality) -> list[tuple[tuple[str, str], float, float]]:
    """Return every tensor, how far its range moved last and the distance of its values; the largest move first."""
    saturation = quality.saturation
    last = saturation.moved[-1] if len(saturation.moved) else np.full(len(saturation.layers), np.inf)
    rows = [(key, float(moved), quality.distances.get(key, float("nan")))
            for key, moved in zip(saturation.layers, last, strict=True)]  # fmt: skip
    return sorted(rows, key=lambda row: -row[1])


def in_words(quality: CalibrationQuality) -> str:
    """Return how many samples there are and how much of the evaluation data they cover."""
    counts = (
        f"{quantities.plural(quality.calibration.samples, 'sample')} for calibration, "
        f"{quality.evaluation.samples:,} for evaluation"
    )
    shares = [
        f"{quantities.share(value)} {words}"
        for name, words in COVERED
        if np.isfinite(value := getattr(quality.coverage, name))
    ]
    return "; ".join([counts, *shares])


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
