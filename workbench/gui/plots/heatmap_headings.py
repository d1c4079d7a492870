"""What stands around a heatmap's cells: the rows' names with their locks, the columns' names and their families."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from workbench.gui.plots.cells import Cells
from workbench.gui.shell.theme import Colours

LOCK_WIDTH = 12

SHORT = {"Microscaling": "MX", "Small floats": "FP", "Codebooks": "Code", "16- and 32-bit floats": "16/32 bit",
         "Integers": "Int", "GGUF blocks": "GGUF"}  # fmt: skip
"""What stands above a family's columns where they are too few for its title."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadedRow:
    """A row's name (empty where rows are too low for text), where it stands, and its marks."""

    text: str
    top: int
    height: int
    selected: bool
    locked: bool


def paint_names(painter: QPainter, area: QRect, rows: Iterable[HeadedRow], colours: Colours) -> None:
    """Paint the names into ``area``, right-aligned and shortened on the left, over the ground of selected rows."""
    painter.save()
    painter.setClipRect(area)
    metrics = painter.fontMetrics()
    for row in rows:
        rect = QRect(area.x(), row.top, area.width(), row.height)
        if row.selected:
            painter.fillRect(rect, QColor(colours.selection))
        if not row.text:
            continue
        if row.locked:
            paint_lock(painter, rect.left() + 3, rect.center().y(), QColor(colours.muted))
        room = rect.width() - 10 - (LOCK_WIDTH if row.locked else 0)
        painter.setPen(QColor(colours.text))
        painter.drawText(
            rect.adjusted(4, 0, -6, 0), Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter,
            metrics.elidedText(row.text, Qt.TextElideMode.ElideLeft, room),
        )  # fmt: skip
    painter.restore()


def paint_heads(
    painter: QPainter, area: QRect, cells: Cells, lefts: Mapping[int, int], width: int, band: int, colours: Colours
) -> None:
    """Paint the columns' names into ``area``, on their side where they are wider than a column; families above them.

    ``lefts`` are the columns' left edges, ``width`` is a column's, ``band`` the height of the families' titles.
    """
    painter.save()
    painter.setClipRect(area)
    _paint_families(painter, cells, lefts, width, band, area.height(), colours)
    painter.setPen(QColor(colours.text))
    metrics = painter.fontMetrics()
    for column, name in enumerate(cells.columns):
        rect = QRect(lefts[column], band, width, area.height() - band)
        if rect.right() < area.left() or rect.left() > area.right():
            continue
        if metrics.horizontalAdvance(name) + 8 <= width and rect.height() < 40:
            painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, name)
            continue
        painter.save()
        painter.translate(rect.center().x() + metrics.ascent() / 2 - 1, rect.bottom() - 5)
        painter.rotate(-90)
        painter.drawText(0, 0, name)
        painter.restore()
    painter.restore()


def _paint_families(
    painter: QPainter, cells: Cells, lefts: Mapping[int, int], width: int, band: int, height: int, colours: Colours
) -> None:
    """Paint each family's title over its columns, and a line between two families."""
    for title, first, count in cells.spans:
        rect = QRect(lefts[first], 0, count * width, band)
        painter.setPen(QColor(colours.muted))
        fits = painter.fontMetrics().horizontalAdvance(title) <= rect.width() - 8
        text = title if fits else SHORT.get(title, title)
        text = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, rect.width() - 7)
        painter.drawText(rect.adjusted(5, 0, -3, 0), Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)
        if first:
            painter.fillRect(rect.x(), 0, 1, height, QColor(colours.border))


def paint_lock(painter: QPainter, left: int, middle: int, colour: QColor) -> None:
    """Paint a lock 9 pixels wide, its middle at the given height."""
    painter.save()
    painter.setPen(QPen(colour, 1))
    painter.drawRoundedRect(left + 2, middle - 4, 4, 6, 2, 2)
    painter.fillRect(left, middle, 9, 5, colour)
    painter.restore()
