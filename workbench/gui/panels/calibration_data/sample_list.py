"""The samples of a data set, a page at a time: pictures or texts in a list, the chosen one in full beside it."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QIcon, QImage, QPixmap
from PySide6.QtWidgets import QListView, QListWidget, QListWidgetItem, QPlainTextEdit, QToolButton, QWidget

from workbench.gui.shell.foreign import as_line, as_tip, isolated
from workbench.gui.shell.widgets import button, combo, fill, fitted, named, row, splitter
from workbench.gui.shell.words import tr
from workbench.insight import quantities
from workbench.models.data.samples import Sample
from workbench.steps.browse_samples import PAGE, SPLITS, SamplePage

PICTURE = 56
"""Pixels of a picture's side in the list."""

LINE = 160
"""Letters of a text in the list."""


class SampleList(QWidget):
    """``page_requested(split, start)`` asks for a page; ``show_page`` shows it."""

    page_requested = Signal(str, int)

    def __init__(self) -> None:
        super().__init__()
        self.page: SamplePage | None = None
        self.split = combo(
            "Which data are shown", [(name.capitalize(), name) for name in SPLITS], lambda: self.ask(0),
            "The data that ranges and curvature come from, or those that plans are evaluated on",
        )  # fmt: skip
        self.read = button("Show &Samples", lambda: self.ask(0), "Read the samples as they are fed to the model")
        self.before = self._arrow(Qt.ArrowType.LeftArrow, "Samples before these", -PAGE)
        self.after = self._arrow(Qt.ArrowType.RightArrow, "Samples after these", PAGE)
        self.place = fitted()
        self.list = named(QListWidget(), "Samples")
        self.list.setResizeMode(QListView.ResizeMode.Adjust)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.list.currentRowChanged.connect(self._show_in_full)
        self.text = named(QPlainTextEdit(readOnly=True), "The chosen sample in full")
        self.text.setPlaceholderText(tr("Show Samples lists the data; choose one to read it in full"))
        parts = splitter(self.list, self.text, sizes=(420, 320))
        parts.setChildrenCollapsible(False)
        top = row(self.split, self.read, self.before, self.after, self.place, stretch=self.place)
        fill(self, top, parts, stretch=parts, gap=4)
        self.clear()

    def ask(self, start: int) -> None:
        """Ask for the page from ``start`` of the chosen data."""
        self.page_requested.emit(self.split.currentData(), max(start, 0))

    def clear(self) -> None:
        """Show no samples."""
        self.page = None
        self.list.clear()
        self.text.clear()
        self.place.clear()
        self._enable()

    def show_page(self, page: SamplePage) -> None:
        """Show a page of samples, the first one chosen."""
        self.page = page
        self.split.setCurrentIndex(self.split.findData(page.split))
        pictures = any(sample.picture is not None for sample in page.samples)
        self.list.clear()
        self.list.setViewMode(QListView.ViewMode.IconMode if pictures else QListView.ViewMode.ListMode)
        self.list.setMovement(QListView.Movement.Static)
        self.list.setIconSize(QSize(PICTURE, PICTURE))
        self.list.setUniformItemSizes(True)
        self.list.setAlternatingRowColors(not pictures)
        for sample in page.samples:
            self.list.addItem(_item(sample))
        first, last, total = map(quantities.whole, (page.start + 1, page.start + len(page.samples), page.total))
        self.place.setText(f"{first} to {last} of {total} · {page.name}")
        self._enable()
        self.list.setCurrentRow(0)

    def _enable(self) -> None:
        page = self.page
        self.before.setEnabled(page is not None and page.start > 0)
        self.after.setEnabled(page is not None and page.start + len(page.samples) < page.total)

    def _show_in_full(self, row: int) -> None:
        if self.page is not None and 0 <= row < len(self.page.samples):
            self.text.setPlainText(in_full(self.page.samples[row]))

    def _arrow(self, arrow: Qt.ArrowType, tip: str, step: int) -> QToolButton:
        arrow_button = named(QToolButton(arrowType=arrow), tip, tip)
        arrow_button.clicked.connect(lambda: self.ask((self.page.start if self.page else 0) + step))
        return arrow_button


def _item(sample: Sample) -> QListWidgetItem:
    if sample.picture is None:
        text = " ".join(sample.text.split())
        return QListWidgetItem(isolated(as_line(f"{sample.index + 1}: {text[:LINE]}{'…' if len(text) > LINE else ''}")))
    item = QListWidgetItem(QIcon(picture(sample.picture)), "" if sample.label is None else str(sample.label))
    item.setToolTip(as_tip(in_full(sample)))
    return item


def in_full(sample: Sample) -> str:
    """Return everything that is known of a sample, its text last."""
    label = "" if sample.label is None else f", label {sample.label}"
    tokens = f", {quantities.plural(sample.tokens, 'token')}" if sample.tokens else ""
    heading = f"sample {quantities.whole(sample.index + 1)}{label}{tokens}"
    return f"{tr(heading)}\n{sample.text}"


def picture(pixels: np.ndarray) -> QPixmap:
    """Return a uint8 ``[height, width, 3]`` picture enlarged without smoothing, so that pixels can be told apart."""
    height, width = pixels.shape[:2]
    image = QImage(pixels.tobytes(), width, height, 3 * width, QImage.Format.Format_RGB888)
    keep, plain = Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.FastTransformation
    return QPixmap.fromImage(image.scaled(PICTURE, PICTURE, keep, plain))
