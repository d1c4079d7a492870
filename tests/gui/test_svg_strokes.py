"""Exported curves stand where they are seen, with strokes that no viewer scales."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
from PySide6.QtCore import QByteArray, QPointF, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.report import pictures
from workbench.gui.report.pictures import SVG, with_plain_strokes

DRAWN = f"""<?xml version="1.0"?>
<svg width="100mm" height="50mm" viewBox="0 0 100 50" xmlns="{SVG}" version="1.1"><title>a &amp; b</title>
<g fill="none" stroke="#000000" stroke-width="1" transform="matrix(10,0,0,-2,5,40)">
<polyline vector-effect="non-scaling-stroke" points="0,0 1.5,10 2e-1,-3 "/>
<path vector-effect="non-scaling-stroke" d="M0,0 L1,1 C1,2 3,4 5,6 Z "/></g>
<g fill="#ff0000" stroke="none" transform="matrix(10,0,0,-2,5,40)"><path d="M0,0 L1,1 "/></g>
<g stroke="#000000" transform="matrix(2,0,0,2,0,0)"><text x="1" y="2">0,5</text><path d="M0,0 L1,1 "/></g></svg>"""


def test_points_go_through_the_matrix_of_stroked_curves_only() -> None:
    root = ElementTree.fromstring(with_plain_strokes(DRAWN.encode()))
    stroked, filled, mixed = root.findall(f"{{{SVG}}}g")
    line, curve = stroked
    assert line.get("points") == "5,40 20,20 7,46 " and curve.get("d") == "M5,40 L15,38 C15,36 35,32 55,28 Z "
    assert stroked.get("transform") is None and line.get("vector-effect") is None
    assert filled.get("transform") == "matrix(10,0,0,-2,5,40)" and filled[0].get("d") == "M0,0 L1,1 "
    assert mixed.get("transform") == "matrix(2,0,0,2,0,0)" and mixed[0].text == "0,5"
    assert with_plain_strokes(DRAWN.encode()).count(b' width="100mm" height="50mm"') == 1


def test_a_histogram_looks_the_same_and_has_no_stroke_that_is_scaled(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.context.workspace.select(["model.layers.0.self_attn.q_proj"]))
        plot = person.window.panels["distributions"].plots["input"]
        drawn = pictures.svg(plot)
        for group in ElementTree.fromstring(drawn).iter(f"{{{SVG}}}g"):
            numbers = [float(item) for item in re.findall(r"-?[\d.]+", group.get("transform", ""))]
            if group.get("stroke", "none") != "none" and len(group):
                assert not numbers or max(abs(numbers[0]), abs(numbers[3])) < 2, ElementTree.tostring(group)[:300]
        shown = _greys(plot.grab().toImage())
        image = QImage(plot.size(), QImage.Format.Format_RGB32)
        image.fill(plot.backgroundBrush().color())
        with QPainter(image) as painter:
            QSvgRenderer(QByteArray(drawn)).render(painter)
        assert QPointF(image.width(), image.height()) == QPointF(plot.width(), plot.height())
        assert np.corrcoef(shown.ravel(), _greys(image).ravel())[0, 1] > 0.8

    live(story)


def _greys(image: QImage) -> np.ndarray:
    """Return the picture's brightness in cells of 8 pixels, so that edges need not be at the same pixel."""
    grey = image.convertToFormat(QImage.Format.Format_Grayscale8)
    small = grey.scaled(image.width() // 8, image.height() // 8, mode=Qt.TransformationMode.SmoothTransformation)
    small = small.convertToFormat(QImage.Format.Format_Grayscale8)
    rows = np.frombuffer(small.constBits(), np.uint8).reshape(small.height(), small.bytesPerLine())
    return rows[:, : small.width()].astype(float)
