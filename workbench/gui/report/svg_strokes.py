"""SVG whose lines are as wide as on the screen in every viewer.

Qt writes a curve in the data's own units under a matrix and asks that its stroke be left out of the scaling
(``vector-effect``, SVG Tiny 1.2 and SVG 2).  Browsers do so; librsvg, CairoSVG and others draw lines as thick as the
scale.  So the points are put through the matrix here.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np

SVG = "http://www.w3.org/2000/svg"
NUMBER = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
POINT = re.compile(f"({NUMBER}),({NUMBER})")
POINTS = {f"{{{SVG}}}path": "d", f"{{{SVG}}}polyline": "points", f"{{{SVG}}}polygon": "points"}
"""The elements that can be put through a matrix, and which attribute holds their points."""

for _prefix, _space in (("", SVG), ("xlink", "http://www.w3.org/1999/xlink")):
    ElementTree.register_namespace(_prefix, _space)


def with_plain_strokes(svg: bytes) -> bytes:
    """Return what ``QSvgGenerator`` wrote with every stroked curve in the picture's own units."""
    root = ElementTree.fromstring(svg)
    for group in root.iter(f"{{{SVG}}}g"):
        numbers = re.findall(NUMBER, group.get("transform", ""))
        shapes = list(group)
        if len(numbers) != 6 or group.get("stroke", "none") == "none" or not all(one.tag in POINTS for one in shapes):
            continue
        a, b, c, d, e, f = map(float, numbers)
        matrix = np.array([[a, c, e], [b, d, f]])
        for shape in shapes:
            _move(shape, matrix)
        del group.attrib["transform"]
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _move(shape: ElementTree.Element, matrix: np.ndarray) -> None:
    """Put the points of a shape through ``matrix``, float64 ``[2, 3]``."""

    def moved(found: re.Match[str]) -> str:
        x, y = matrix @ (float(found[1]), float(found[2]), 1.0)
        return f"{x:.6g},{y:.6g}"

    held = POINTS[shape.tag]
    shape.set(held, POINT.sub(moved, shape.get(held, "")))
    shape.attrib.pop("vector-effect", None)
