"""The printable report of a session: drawn in the light palette from the state alone, as one HTML file.

The page needs nothing else, reads well in a browser and prints well.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from jinja2 import Environment
from markupsafe import Markup

from workbench.atomic import replacing
from workbench.errors import ExportError
from workbench.session.workspace import State

if TYPE_CHECKING:
    from workbench.gui.report.sections import Section


def html(state: State) -> str:
    """Return the report of the open session; raises ExportError without one."""
    from workbench.gui.report.sections import SECTIONS  # pyqtgraph is loaded when there is something to draw

    session = state.session
    if session is None:
        raise ExportError("there is nothing to report; open a model or a session first")
    sections = [section for make in SECTIONS if (section := make(session, state)) is not None]
    subtitle = f"{session.plan.name}, {time.strftime('%Y-%m-%d %H:%M')}"
    return page(f"Quantization of {session.model.name}", subtitle, sections)


def write(state: State, path: Path) -> None:
    """Write the report; raises ExportError."""
    text = html(state)
    with replacing(path, ExportError, "the report") as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """Return the whole page; every text is escaped."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["base64"] = lambda data: base64.b64encode(data).decode()
    environment.filters["inlined"] = _inlined
    template = (files("workbench_resources") / "report" / "page.html.jinja").read_text(encoding="utf-8")
    return environment.from_string(template).render(title=title, subtitle=subtitle, sections=sections)


def _inlined(svg: bytes, prefix: str) -> Markup:
    """Return an SVG file as an element of a page: with ids of its own, as wide as the page lets it."""
    root = ElementTree.fromstring(svg)
    for name in ("width", "height"):
        root.attrib.pop(name, None)
    for element in root.iter():
        for name, value in element.items():
            if name == "id":
                element.set(name, f"{prefix}-{value}")
            elif name.rpartition("}")[2] == "href" and value.startswith("#"):
                element.set(name, f"#{prefix}-{value[1:]}")
            elif value.startswith("url(#"):
                element.set(name, value.replace("url(#", f"url(#{prefix}-"))
    return Markup(ElementTree.tostring(root, encoding="unicode"))
