"""The report's page: one HTML file that needs nothing else, reads well in a browser and prints well."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from xml.etree import ElementTree

from jinja2 import Environment
from markupsafe import Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A picture: an SVG file, or a PNG's bytes; ``caption`` says what it shows."""

    caption: str
    svg: bytes = b""
    png: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """``rows`` of text, the headings first; ``cut`` rows more were left out."""

    caption: str
    rows: Sequence[Sequence[str]]
    cut: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading, sentences, pictures and tables."""

    title: str
    words: Sequence[str] = ()
    figures: Sequence[Figure] = field(default=())
    tables: Sequence[Table] = field(default=())

    @property
    def anchor(self) -> str:
        """The section's id in the page."""
        return "-".join("".join(letter if letter.isalnum() else " " for letter in self.title.lower()).split())


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
