"""How cells are painted and edited: a histogram in the row, a list of schemes to choose from, a progress bar."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPixmap
from PySide6.QtWidgets import QComboBox, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from workbench.gui.tables.layers import STATISTICS_ROLE
from workbench.numerics.statistics import LayerStatistics

Index = QModelIndex | QPersistentModelIndex
MAX_PIXMAPS = 3000


class RowDelegate(QStyledItemDelegate):
    """Gives every row the same height, which is what makes 10,000 rows scroll."""

    def __init__(self, height: int, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._height = height

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Return the fixed height."""
        return QSize(40, self._height)


class HistogramDelegate(RowDelegate):
    """Paints a weight's histogram; pictures are kept by the identity of the statistics."""

    def __init__(self, height: int, colour: str, parent: QObject | None = None) -> None:
        super().__init__(height, parent)
        self._colour = QColor(colour)
        self._pixmaps: dict[tuple[int, int, int], tuple[LayerStatistics, QPixmap]] = {}

    def recolour(self, colour: str) -> None:
        """Draw in another colour from now on."""
        self._colour = QColor(colour)
        self._pixmaps.clear()

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint the row's background and, where there are statistics, the histogram."""
        super().paint(painter, option, index)
        statistics = index.data(STATISTICS_ROLE)
        rect: QRect = option.rect.adjusted(3, 2, -3, -2)
        if statistics is None or not statistics.count or rect.width() < 8:
            return
        painter.drawPixmap(rect.topLeft(), self._picture(statistics, rect.size(), painter))

    def _picture(self, statistics: LayerStatistics, size: QSize, painter: QPainter) -> QPixmap:
        key = (id(statistics), size.width(), size.height())
        held = self._pixmaps.get(key)
        if held is None:
            if len(self._pixmaps) > MAX_PIXMAPS:
                self._pixmaps.clear()
            device = painter.device()
            held = statistics, small_histogram(statistics, size, self._colour, device.devicePixelRatio())
            self._pixmaps[key] = held
        return held[1]


def small_histogram(statistics: LayerStatistics, size: QSize, colour: QColor, ratio: float) -> QPixmap:
    """Return a bar picture of the statistics' occupied bins, counts on a square-root scale."""
    width, height = max(round(size.width() * ratio), 1), max(round(size.height() * ratio), 1)
    step = max(round(2 * ratio), 1)
    _, counts = statistics.display(max(width // step, 4))
    pixels = np.zeros((height, width), np.uint32)
    if counts.size:
        bars = np.maximum(np.round(np.sqrt(counts / counts.max()) * height), counts > 0)
        place = np.minimum(np.arange(width) * counts.size // width, counts.size - 1)
        filled = np.arange(height, 0, -1)[:, None] <= bars[place][None, :]
        pixels[filled] = colour.rgba()
    image = QImage(pixels.tobytes(), width, height, width * 4, QImage.Format.Format_ARGB32)
    pixmap = QPixmap.fromImage(image)
    pixmap.setDevicePixelRatio(ratio)
    return pixmap


class SchemeDelegate(RowDelegate):
    """Edits a scheme in place with a list of the schemes that can be chosen."""

    def __init__(self, height: int, choices: Callable[[], tuple[str, ...]], parent: QObject | None = None) -> None:
        super().__init__(height, parent)
        self._choices = choices

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        """Return an open list; choosing commits at once."""
        editor = QComboBox(parent)
        editor.setAccessibleName("Scheme of the layer")
        editor.addItems(list(self._choices()))
        editor.activated.connect(lambda _: self._commit(editor))
        return editor

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        """Select the present scheme."""
        assert isinstance(editor, QComboBox)
        present = str(index.data(Qt.ItemDataRole.EditRole))
        if editor.findText(present) < 0:
            editor.addItem(present)
        editor.setCurrentText(present)

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: Index) -> None:
        """Hand the choice to the model."""
        assert isinstance(editor, QComboBox)
        if editor.currentText() != index.data(Qt.ItemDataRole.EditRole):
            model.setData(index, editor.currentText())

    def _commit(self, editor: QComboBox) -> None:
        self.commitData.emit(editor)
        self.closeEditor.emit(editor)
