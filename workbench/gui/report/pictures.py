"""Pictures of widgets as PNG and SVG, whether they are on the screen or not."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPoint, QRect, QRectF, QSize
from PySide6.QtGui import QImage, QImageWriter, QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QGraphicsView, QWidget

from workbench.atomic import replacing
from workbench.errors import ExportError
from workbench.gui.report.svg_strokes import with_plain_strokes

SCALE = 2
"""Pixels of a PNG for each pixel on the screen, so that it prints well."""

KINDS = (".png", ".svg")


def save_picture(widget: QWidget, path: Path) -> None:
    """Write a picture of ``widget``; the suffix says which kind.  Raises ExportError."""
    if path.suffix.lower() not in KINDS:
        raise ExportError(f"a picture called {path.name} was asked for; expected a name that ends in .png or .svg")
    made = png(widget) if path.suffix.lower() == ".png" else svg(widget)
    with replacing(path, ExportError, "the picture") as temporary:
        temporary.write_bytes(made)


def png(widget: QWidget, size: QSize | None = None) -> bytes:
    """Return a PNG of ``widget`` at twice its size on the screen, or at twice ``size``."""
    _prepare(widget, size)
    image = QImage(widget.size() * SCALE, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(SCALE)
    image.fill(widget.palette().base().color())
    with QPainter(image) as painter:
        _draw(widget, painter)
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(buffer, QByteArray(b"png")).write(image)
    return bytes(buffer.data().data())


def svg(widget: QWidget, size: QSize | None = None) -> bytes:
    """Return an SVG of ``widget`` as large as on the screen, or of ``size``."""
    _prepare(widget, size)
    buffer = QBuffer()
    generator = QSvgGenerator(QSvgGenerator.SvgVersion.Svg11)  # the default, SVG Tiny, cannot clip
    generator.setOutputDevice(buffer)
    generator.setSize(widget.size())
    generator.setViewBox(QRect(QPoint(), widget.size()))
    generator.setTitle(widget.accessibleName())
    generator.setResolution(96)
    with QPainter(generator) as painter:
        _draw(widget, painter)
    return with_plain_strokes(bytes(buffer.data().data()))


def _draw(widget: QWidget, painter: QPainter) -> None:
    if isinstance(widget, QGraphicsView):
        painter.fillRect(widget.rect(), widget.backgroundBrush())
        widget.render(painter, QRectF(widget.rect()), widget.viewport().rect())
    else:
        widget.render(painter, QPoint())


def _prepare(widget: QWidget, size: QSize | None) -> None:
    if size is not None and not widget.isVisible():
        widget.resize(size)
    widget.ensurePolished()
    widget.grab(QRect(0, 0, 1, 1))  # delivers the resize that a hidden widget has not had yet
