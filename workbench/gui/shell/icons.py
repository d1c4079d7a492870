"""Line icons from ``resources/style/icons``, drawn in the theme's colours."""

from __future__ import annotations

from importlib.resources import files

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from workbench.gui.shell.theme import Colours

SIZE = 20
SCALE = 3


def icon(name: str, colours: Colours) -> QIcon:
    """Return the icon called ``name``; disabled in the muted colour."""
    source = (files("workbench_resources") / "style" / "icons" / f"{name}.svg").read_text(encoding="utf-8")
    result = QIcon()
    result.addPixmap(_pixmap(source.replace("currentColor", colours.text)), QIcon.Mode.Normal)
    result.addPixmap(_pixmap(source.replace("currentColor", colours.border)), QIcon.Mode.Disabled)
    return result


def _pixmap(source: str) -> QPixmap:
    pixmap = QPixmap(SIZE * SCALE, SIZE * SCALE)
    pixmap.setDevicePixelRatio(SCALE)
    pixmap.fill(Qt.GlobalColor.transparent)
    with QPainter(pixmap) as painter:
        QSvgRenderer(QByteArray(source.encode())).render(painter, QRectF(0, 0, SIZE, SIZE))
    return pixmap
