"""The data behind the ranges: their samples, how much of the evaluation data they cover, whether they are enough."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
from PySide6.QtWidgets import QLabel, QSizePolicy

from workbench.gui.panels.calibration_data.sample_list import SampleList
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.calibration_data import CoveragePlot, SaturationPlot
from workbench.gui.shell.widgets import button, column, label, page, row, tabs
from workbench.gui.tables.fields import Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.insight.token_outliers import token_rows
from workbench.measurement.data_quality import CalibrationQuality
from workbench.numerics.statistics.outliers import SIGMAS
from workbench.planning.latest import same_objects
from workbench.session.workspace import State
from workbench.steps.browse_samples import BROWSE_SAMPLES, BrowseSamplesOptions
from workbench.steps.checks.quality import QUALITY, QualityOptions
from workbench.steps.step import Request

FIELDS = (
    Field("Layer", lambda row: row[0][0]),
    Field("Tensor", lambda row: row[0][1], words=True),
    Number("Moved", lambda row: row[1] if np.isfinite(row[1]) else None, quantities.share, unit="share",
           tip="How far the last doubling of the data moved the range, of its width; at most 5 % is settled"),
    Number("Distance", lambda row: row[2], unit="σ",
           tip="Earth mover's distance of calibration to evaluation values, in standard deviations; lower is better"),
)  # fmt: skip

TOKENS = (
    Field("Layer", lambda row: row.layer),
    Field("Tensor", lambda row: row.tap, words=True),
    Number("Value", lambda row: row.value),
    Number("Std. dev.", lambda row: row.sigmas, partial(quantities.fixed, places=1), unit="σ",
           tip="The value's magnitude in standard deviations of all the tensor's values"),
    Field("Token", lambda row: row.token, tip="The token's text (its id where there is no tokenizer), or the pixel"),
    Field("Position", lambda row: row.place_in_words, key=lambda row: row.place, words=True,
          tip="Sample of the calibration data, and the position in it, both from 1"),
    Number("Channel", lambda row: row.channel),
    Number(f"≥ {SIGMAS:g} s.d.", lambda row: None if row.share < 0 else row.share, quantities.share, unit="share",
           tip=f"Share of the tokens that reach {SIGMAS:g} standard deviations; images' pixels are not counted"),
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

    def _build(self) -> None:
        self.samples = SampleList()
        self.samples.page_requested.connect(self._read)
        tip = "Run the model on growing parts of the calibration data, then on the evaluation data"
        self.judge = button("&Check the Data", self._judge, tip)
        self.verdict, self.coverage = _sentence("figure"), _sentence("muted")
        self.saturation_plot, self.coverage_plot = SaturationPlot(self.colours), CoveragePlot(self.colours)
        self.table = RecordsView("Tensors by how far they are from settled", FIELDS)
        self.tokens = RecordsView("Tokens with massive values", TOKENS)
        self.tabs = tabs("Views of the calibration data", (
            ("Samples", self.samples), ("Saturation", self.saturation_plot),
            ("Coverage", page(self.coverage, self.coverage_plot, stretch=self.coverage_plot)),
            ("Tensors", self.table), ("Outlier tokens", self.tokens),
        ))  # fmt: skip
        top = row(column(self.judge, None), self.verdict, stretch=self.verdict)
        self.column(top, self.tabs, stretch=self.tabs, focus=(self.samples.read, self.table, self.tokens))
        self._tokens_basis: tuple[object, ...] = ()
        self.quality: CalibrationQuality | None = None
        self._hash = ""
        self.show_quality(None)

    def redraw(self, old: State, new: State) -> None:
        """Describe what is missing; forget what belongs to other data."""
        session = new.session
        if session is None or session.calibration is None:
            self.say_empty("Calibrate (F5) to see the data that ranges and predictions come from.", "calibrate")
            self._forget("")
            return
        self.say_empty("")
        self.judge.setEnabled(session.model.cannot_run is None)
        if session.calibration.content_hash != self._hash:
            self._forget(session.calibration.content_hash)
        if new.data_quality is not self.quality:
            self.show_quality(new.data_quality)
        basis = (session.outliers, new.selection)
        if not same_objects(basis, self._tokens_basis):
            self._tokens_basis = basis
            self.tokens.show_records(token_rows(session, new.selection))

    def show_quality(self, quality: CalibrationQuality | None) -> None:
        """Show a judgement, or that there is none yet."""
        self.quality = quality
        self.saturation_plot.show_saturation(quality.saturation if quality else None)
        self.coverage_plot.show_quality(quality)
        for place in JUDGED:
            self.tabs.setTabEnabled(place, quality is not None)
            self.tabs.setTabToolTip(place, "" if quality is not None else "Check the data first (Alt+C)")
        if quality is None:
            self.verdict.setText("Not checked yet: is there enough data, and is it like what the model will see?")
            self.table.show_records(())
            return
        sentence = quantities.marked_in(quality.sentence())
        self.verdict.setText(f"{sentence[:1].upper()}{sentence[1:]}")
        self.coverage.setText(in_words(quality))
        self.table.show_records(rows_of(quality))

    def _forget(self, content_hash: str) -> None:
        self._hash = content_hash
        self.samples.clear()
        self.show_quality(None)

    def _read(self, split: str, start: int) -> None:
        options = BrowseSamplesOptions(split=split, start=start)
        self._ask(BROWSE_SAMPLES.request(self.state.session, options), self.samples.show_page)

    def _judge(self) -> None:
        self._ask(QUALITY.request(self.state.session, QualityOptions()), self.context.workspace.show_data_quality)

    def _ask(self, request: Request[O, R], show: Callable[[R], None]) -> None:
        """Run the request; the answer is dropped where the window holds other data by then."""
        content_hash = self._hash

        def answered(answer: R) -> None:
            calibration = self.state.session.calibration if self.state.session else None
            if calibration is not None and calibration.content_hash == content_hash:
                show(answer)

        if self.state.session is not None:
            self.context.runner.ask(request, answered)


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
        f"{quantities.whole(quality.evaluation.samples)} for evaluation"
    )
    shares = [
        f"{quantities.share(value)} {words}"
        for name, words in COVERED
        if np.isfinite(value := getattr(quality.coverage, name))
    ]
    return "; ".join([counts, *shares])


def _sentence(role: str) -> QLabel:
    sentence = label(role=role, wrap=True)
    sentence.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    return sentence
