"""The samples of a data set, a page at a time: pictures or texts in a list, the chosen one in full beside it."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QIcon, QImage, QPixmap
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QListView,
    QListWidget,
    QListWidgetItem,
    QPlainTextEdit,
    QPushButton,
    QSplitter,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from workbench.gui.shell.fitted_label import FittedLabel
from workbench.models.data.samples import Sample
from workbench.steps.browse_samples import PAGE, SPLITS, SamplePage

PICTURE = 56
"""Pixels of a picture's side in the list."""

LINE = 160
"""Letters of a text in the list."""


class SampleList(QWidget):
    """``wanted(split, start)`` asks for a page; ``show_page`` shows it."""

    wanted = Signal(str, int)

    def __init__(self) -> None:
        super().__init__()
        self.page: SamplePage | None = None
        self.split = QComboBox()
        self.split.setAccessibleName("Which data are shown")
        self.split.setToolTip("The data that ranges and curvature come from, or those that plans are evaluated on")
        for name in SPLITS:
            self.split.addItem(name.capitalize(), name)
        self.split.activated.connect(lambda _: self.ask(0))
        self.read = QPushButton("Show &Samples")
        self.read.setToolTip("Read the samples as they are fed to the model")
        self.read.clicked.connect(lambda: self.ask(0))
        self.before = self._arrow(Qt.ArrowType.LeftArrow, "Samples before these", -PAGE)
        self.after = self._arrow(Qt.ArrowType.RightArrow, "Samples after these", PAGE)
        self.place = FittedLabel()
        self.place.setProperty("role", "muted")
        self.list = QListWidget()
        self.list.setAccessibleName("Samples")
        self.list.setResizeMode(QListView.ResizeMode.Adjust)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.list.currentRowChanged.connect(self._show_one)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setAccessibleName("The chosen sample in full")
        self.text.setPlaceholderText("Show Samples lists the data; choose one to read it in full")
        self._arrange()
        self.clear()

    def ask(self, start: int) -> None:
        """Ask for the page from ``start`` of the chosen data."""
        self.wanted.emit(self.split.currentData(), max(start, 0))

    def clear(self) -> None:
        """Show no samples."""
        self.page = None
        self.list.clear()
        self.text.clear()
        self.place.setText("")
        self._enable()

    def show_page(self, page: SamplePage) -> None:
        """Show a page of samples, the first one chosen."""
        self.page = page
        self.split.setCurrentIndex(self.split.findData(page.split))
        pictures = any(one.picture is not None for one in page.samples)
        self.list.clear()
        self.list.setViewMode(QListView.ViewMode.IconMode if pictures else QListView.ViewMode.ListMode)
        self.list.setMovement(QListView.Movement.Static)
        self.list.setIconSize(QSize(PICTURE, PICTURE))
        self.list.setUniformItemSizes(True)
        self.list.setAlternatingRowColors(not pictures)
        for one in page.samples:
            self.list.addItem(_item(one))
        last = page.start + len(page.samples)
        self.place.setText(f"{page.start + 1:,} to {last:,} of {page.total:,} · {page.name}")
        self._enable()
        self.list.setCurrentRow(0)

    def _enable(self) -> None:
        page = self.page
        self.before.setEnabled(page is not None and page.start > 0)
        self.after.setEnabled(page is not None and page.start + len(page.samples) < page.total)

    def _show_one(self, row: int) -> None:
        if self.page is None or not 0 <= row < len(self.page.samples):
            return
        self.text.setPlainText(in_full(self.page.samples[row]))

    def _arrow(self, arrow: Qt.ArrowType, tip: str, step: int) -> QToolButton:
        button = QToolButton()
        button.setArrowType(arrow)
        button.setToolTip(tip)
        button.setAccessibleName(tip)
        button.clicked.connect(lambda: self.ask((self.page.start if self.page else 0) + step))
        return button

    def _arrange(self) -> None:
        top = QHBoxLayout()
        for widget in (self.split, self.read, self.before, self.after):
            top.addWidget(widget)
        top.addWidget(self.place, 1)
        parts = QSplitter(Qt.Orientation.Horizontal)
        parts.addWidget(self.list)
        parts.addWidget(self.text)
        parts.setSizes([420, 320])
        parts.setChildrenCollapsible(False)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(top)
        layout.addWidget(parts, 1)


def _item(one: Sample) -> QListWidgetItem:
    if one.picture is None:
        text = " ".join(one.text.split())
        return QListWidgetItem(f"{one.index + 1}: {text[:LINE]}{'…' if len(text) > LINE else ''}")
    item = QListWidgetItem(QIcon(picture(one.picture)), "" if one.label is None else str(one.label))
    item.setToolTip(in_full(one))
    return item


def in_full(one: Sample) -> str:
    """Return everything that is known of a sample, its text last."""
    facts = [f"sample {one.index + 1:,}"]
    if one.label is not None:
        facts.append(f"label {one.label}")
    if one.tokens:
        facts.append(f"{one.tokens:,} tokens")
    return f"{', '.join(facts)}\n{one.text}"


def picture(pixels: np.ndarray) -> QPixmap:
    """Return a uint8 ``[height, width, 3]`` picture enlarged without smoothing, so that pixels can be told apart."""
    height, width = pixels.shape[:2]
    image = QImage(pixels.tobytes(), width, height, 3 * width, QImage.Format.Format_RGB888)
    keep, plain = Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.FastTransformation
    return QPixmap.fromImage(image.scaled(PICTURE, PICTURE, keep, plain))
