"""Pictures of widgets as PNG and SVG, whether they are on the screen or not.

The lines of an SVG are as wide as on the screen in every viewer.  Qt writes a curve in the data's own units under a
matrix and asks that its stroke be left out of the scaling (``vector-effect``, SVG Tiny 1.2 and SVG 2).  Browsers do so;
librsvg, CairoSVG and others draw lines as thick as the scale.  So the points are put through the matrix here.
"""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QImage, QImageWriter, QPainter
from PySide6.QtSvg import QSvgGenerator, QSvgRenderer
from PySide6.QtWidgets import QGraphicsView, QWidget

from workbench.atomic import replacing
from workbench.errors import ExportError
from workbench.readable import readable

SCALE = 2
"""Pixels of a PNG for each pixel on the screen, so that it prints well."""

KINDS = (".png", ".svg")

SVG = "http://www.w3.org/2000/svg"
NUMBER = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
POINT = re.compile(f"({NUMBER}),({NUMBER})")
POINTS = {f"{{{SVG}}}path": "d", f"{{{SVG}}}polyline": "points", f"{{{SVG}}}polygon": "points"}
"""The elements that can be put through a matrix, and which attribute holds their points."""

for _prefix, _space in (("", SVG), ("xlink", "http://www.w3.org/1999/xlink")):
    ElementTree.register_namespace(_prefix, _space)


def save_picture(widget: QWidget, path: Path) -> None:
    """Write a picture of ``widget``; the suffix says which kind.  Raises ExportError."""
    if path.suffix.lower() not in KINDS:
        raise ExportError(f"a picture called {path.name} was asked for; expected a name that ends in .png or .svg")
    picture = png(widget) if path.suffix.lower() == ".png" else svg(widget)
    with replacing(path, ExportError, "the picture") as temporary:
        temporary.write_bytes(picture)


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


def as_pixels(drawing: bytes) -> QImage:
    """Return an SVG file as a picture of twice its size."""
    renderer = QSvgRenderer(QByteArray(drawing))
    image = QImage(renderer.defaultSize() * SCALE, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.white)
    with QPainter(image) as painter:
        renderer.render(painter)
    return image


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


def with_plain_strokes(svg: bytes) -> bytes:
    """Return what ``QSvgGenerator`` wrote with every stroked curve in the picture's own units."""
    root = ElementTree.fromstring(readable(svg.decode(errors="replace"), lines=True))
    for group in root.iter(f"{{{SVG}}}g"):
        numbers, movable = re.findall(NUMBER, group.get("transform", "")), all(shape.tag in POINTS for shape in group)
        if len(numbers) != 6 or group.get("stroke", "none") == "none" or not movable:
            continue
        matrix = tuple(map(float, numbers))
        for shape in group:
            _move(shape, matrix)
        del group.attrib["transform"]
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _move(shape: ElementTree.Element, matrix: tuple[float, ...]) -> None:
    """Put the points of a shape through ``matrix``, the six numbers of an SVG transform, column by column."""
    a, b, c, d, e, f = matrix

    def moved(point: re.Match[str]) -> str:
        x, y = float(point[1]), float(point[2])
        return f"{a * x + c * y + e:.6g},{b * x + d * y + f:.6g}"

    attribute = POINTS[shape.tag]
    shape.set(attribute, POINT.sub(moved, shape.get(attribute, "")))
    shape.attrib.pop("vector-effect", None)
